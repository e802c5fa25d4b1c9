//! Starts the child processes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use clap::ValueEnum;
use warptrace_host::{MemorySize, REGISTERS_VARIABLE};

use super::{Sample, Variant};
use crate::arguments::Whole;
use crate::files;
use crate::subject::Case;

pub(super) struct Children {
    common: Vec<String>,
    folder: tempfile::TempDir,
}

impl Children {
    pub(super) fn new(arguments: &Whole) -> anyhow::Result<Self> {
        let Whole { target, kind, warm, .. } = arguments;
        let folder = files::scratch(target.scratch.as_deref())?;
        let kind = kind.to_possible_value().context("a kind of inputs has a name")?;
        let mut common = vec!["--device".to_owned(), target.device.to_string()];
        let mut option = |name: &str, value: Option<String>| {
            common.extend(value.map(|value| [name.to_owned(), value]).into_iter().flatten());
        };
        option("--kind", Some(kind.get_name().to_owned()));
        option("--grid", target.grid.map(|grid| grid.to_string()));
        option("--inputs", target.inputs.as_deref().map(Path::display).map(|path| path.to_string()));
        common.extend(target.quick.then(|| "--quick".to_owned()));
        common.extend(warm.then(|| "--warm".to_owned()));
        Ok(Self { common, folder })
    }

    /// Runs a program once, with `memory` for the recording. Fails if the process fails or prints no sample.
    pub(super) fn run(
        &self,
        case: &Case,
        variant: &Variant,
        memory: Option<MemorySize>,
    ) -> anyhow::Result<Sample> {
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut command = Command::new(program);
        command.args(["whole", "--subject", &case.name(), "--variant", &variant.name]).args(&self.common);
        command.arg("--out").arg(self.folder.path());
        if variant.is_limited() {
            command.env(REGISTERS_VARIABLE, "1");
        }
        if let Some(MemorySize(bytes)) = memory {
            command.arg("--memory").arg(bytes.to_string());
        }
        let run = || format!("{} ({})", case.name(), variant.name);
        let started = Instant::now();
        // Drops the driver's messages about compilation; errors are reported below.
        let output = command.stdin(Stdio::null()).output().context("cannot start this program again")?;
        let took = started.elapsed().as_secs_f64();
        anyhow::ensure!(
            output.status.success(),
            "{} ended with {}: {}",
            run(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.starts_with('{'));
        let line = line.with_context(|| format!("{} ended without a result", run()))?;
        let sample: Sample =
            serde_json::from_str(line).with_context(|| format!("{} printed `{line}`", run()))?;
        Ok(Sample { process_s: took - sample.input_s, ..sample })
    }
}
