//! `cargo xtask fuzz`: runs the fuzz targets.

use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::{process, workspace};

/// Arguments of `fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How long each target runs
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,

    /// Only these targets; all if none is named
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let known = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(name)) {
        bail!("there is no fuzz target `{unknown}`: there are {}", known.join(", "));
    }
    let nightly = Command::new("rustup").args(["run", "nightly", "rustc", "--version"]).output();
    if !nightly.is_ok_and(|output| output.status.success()) {
        bail!("fuzzing needs a nightly Rust: `rustup toolchain install nightly`");
    }
    if !workspace::has_subcommand("fuzz") {
        bail!("fuzzing needs cargo-fuzz: `cargo install cargo-fuzz`");
    }
    let seeds = ["run", "--quiet", "--package", "warptrace-decoder", "--example", "fuzz_seeds"];
    process::run(workspace::cargo().args(seeds))?;
    copy_ptx_seeds()?;
    let chosen = if options.targets.is_empty() { known } else { options.targets.clone() };
    let mut failed = Vec::new();
    for name in &chosen {
        println!("\n== {name}, {} s", options.seconds);
        // Through rustup: cargo itself takes no `+nightly`.
        let mut command = Command::new("rustup");
        command
            .current_dir(workspace::root())
            .args(["run", "nightly", "cargo", "fuzz", "run", name, "--"])
            .arg(format!("-max_total_time={}", options.seconds))
            // A target that needs more has lost a bound on its memory.
            .args(["-rss_limit_mb=2048", "-timeout=10"]);
        if !process::status(&mut command)?.success() {
            failed.push(name.as_str());
        }
    }
    if failed.is_empty() {
        println!("\n{} fuzz targets ran without a finding", chosen.len());
        return Ok(ExitCode::SUCCESS);
    }
    bail!("findings in {}: the inputs are in fuzz/artifacts", failed.join(", "))
}

/// Copies the golden PTX to where the fuzzer of the PTX reader starts from.
fn copy_ptx_seeds() -> anyhow::Result<()> {
    let corpus = workspace::root().join("fuzz/corpus/ptx_parse");
    std::fs::create_dir_all(&corpus).with_context(|| format!("cannot create {}", corpus.display()))?;
    let golden = workspace::root().join("tracer-ptx/tests/golden");
    let files = std::fs::read_dir(&golden).with_context(|| format!("cannot read {}", golden.display()))?;
    for path in files.flatten().map(|entry| entry.path()) {
        if let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|it| it == "ptx")) {
            std::fs::copy(&path, corpus.join(name))
                .with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// The names of the files in `fuzz/fuzz_targets`.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = workspace::root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}
