//! Starting the processes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;
use warptrace_host::{Device, MemorySize};

use super::{Sample, Way};
use crate::arguments::{Inputs, Target};
use crate::machine;
use crate::subject::Case;

/// Starts this program again for each run, and takes what the run tells.
pub(super) struct Children {
    inputs: Inputs,
    common: Vec<String>,
    folder: tempfile::TempDir,
}

/// The most device memory that a recording may have.
pub(super) fn most_memory(target: &Target, device: &dyn Device) -> u64 {
    let usual = if machine::is_gpu(device) {
        device.facts().free_bytes / 4 * 3
    } else {
        device.facts().memory_bytes / 4
    };
    target.max_memory.map_or(usual, |MemorySize(bytes)| bytes)
}

impl Children {
    /// Makes a folder for traces. With `warm` a process runs the program untraced before the run that counts.
    pub(super) fn new(inputs: Inputs, target: &Target, warm: bool) -> anyhow::Result<Self> {
        let folder = match &target.scratch {
            Some(folder) => std::fs::create_dir_all(folder).and_then(|()| tempfile::tempdir_in(folder)),
            None => tempfile::tempdir(),
        };
        let folder = folder.context("cannot create a folder for traces; name another with --scratch")?;
        let mut common = vec!["--device".to_owned(), target.device.to_string()];
        let mut option = |name: &str, value: Option<String>| {
            common.extend(value.map(|value| [name.to_owned(), value]).into_iter().flatten());
        };
        option("--grid", target.grid.map(|grid| grid.to_string()));
        option("--inputs", target.inputs.as_deref().map(Path::display).map(|path| path.to_string()));
        common.extend(target.quick.then(|| "--quick".to_owned()));
        common.extend(warm.then(|| "--warm".to_owned()));
        Ok(Self { inputs, common, folder })
    }

    /// Runs a program once, with `memory` for the recording.
    ///
    /// # Errors
    /// If the process fails, or does not tell of the run.
    pub(super) fn run(&self, case: &Case, way: &Way, memory: Option<MemorySize>) -> anyhow::Result<Sample> {
        let samples = self.run_all(case, std::slice::from_ref(way), memory, None)?;
        samples.into_iter().next().context("a process ended without a run")
    }

    /// Runs a program in these ways in one process, one after the other, with `memory` for each recording.
    /// There may be fewer runs, but at least one, where `limit` passes.
    ///
    /// # Errors
    /// If the process fails, or does not tell of each run.
    pub(super) fn run_all(
        &self,
        case: &Case,
        ways: &[Way],
        memory: Option<MemorySize>,
        limit: Option<Duration>,
    ) -> anyhow::Result<Vec<Sample>> {
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut command = Command::new(program);
        command.arg("whole-run").arg(case.name()).args(&self.common);
        let kind = self.inputs.to_possible_value().context("a kind of inputs has a name")?;
        command.arg("--kind").arg(kind.get_name()).arg("--out").arg(self.folder.path());
        for way in ways {
            command.arg("--way").arg(&way.name);
        }
        if let Some(MemorySize(bytes)) = memory {
            command.arg("--memory").arg(bytes.to_string());
        }
        if let Some(limit) = limit {
            command.arg("--time-limit").arg(limit.as_secs().to_string());
        }
        let started = Instant::now();
        // What the driver has to say while it compiles is of no interest; an error is.
        let output = command.stdin(Stdio::null()).output().context("cannot start this program again")?;
        let took = started.elapsed().as_secs_f64();
        let names: Vec<&str> = ways.iter().map(|way| way.name.as_str()).collect();
        anyhow::ensure!(
            output.status.success(),
            "{} ({}) ended with {}: {}",
            case.name(),
            names.join(", "),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let text = String::from_utf8_lossy(&output.stdout);
        let samples: Vec<Sample> = text
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).with_context(|| format!("a run answered `{line}`")))
            .collect::<anyhow::Result<_>>()?;
        let ended = if limit.is_some() { samples.len().min(names.len()) } else { names.len() };
        anyhow::ensure!(
            samples.iter().map(|sample| sample.way.as_str()).eq(names[..ended].iter().copied()),
            "{} was asked for {} and told of {} runs",
            case.name(),
            names.join(", "),
            samples.len()
        );
        Ok(samples.into_iter().map(|sample| Sample { process_s: took - sample.input_s, ..sample }).collect())
    }
}
