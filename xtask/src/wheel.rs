//! `cargo xtask wheel`: builds the wheel of `cli/python`, including the tool and `warptrace-query`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, ensure};
use warptrace_build::TOOLCHAIN_FOLDER;

use crate::{process, workspace};

const MATURIN: &str = "maturin>=1.9,<2";
/// Packages that read tables in the check, on PyPI.
const READERS: [&str; 5] = ["pandas>=2.2", "pyarrow>=16", "polars>=1.9", "duckdb>=1.3", "numpy>=1.26"];
const LIMIT: Duration = Duration::from_secs(600);

/// Arguments of `wheel`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Install the wheel into an empty environment, and compare what it reads with what the tool prints
    #[arg(long)]
    check: bool,
    /// Cargo's profile
    #[arg(long, default_value = "release")]
    profile: String,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let build = ["build", "--package", "warptrace-cli", "--features", "full,query", "--bins"];
    process::run(workspace::cargo().args(build).args(["--profile", &options.profile]))?;
    let wheel = pack(&options.profile)?;
    println!("{}", workspace::shown(&wheel));
    if options.check {
        check(&wheel)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds and checks the wheel of the profile `dev`, with programs that are already built.
pub(crate) fn check_debug() -> anyhow::Result<()> {
    check(&pack("dev")?)
}

/// Builds the wheel with the programs of the profile, which must be built already. Returns its path.
fn pack(profile: &str) -> anyhow::Result<PathBuf> {
    let package = workspace::root().join("cli/python");
    let scripts = package.join("warptrace.data/scripts");
    fs::create_dir_all(&scripts).with_context(|| format!("cannot make {}", workspace::shown(&scripts)))?;
    let target = workspace::target()?;
    let folder = if profile == "dev" { "debug" } else { profile };
    for name in ["warptrace", "warptrace-query"] {
        let program = target.join(folder).join(name);
        fs::copy(&program, scripts.join(name))
            .with_context(|| format!("cannot copy {}", workspace::shown(&program)))?;
    }

    let wheels = target.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let mut command = Command::new(maturin()?);
    command
        .args(["build", "--quiet", "--profile", profile, "--target-dir"])
        .arg(&target)
        .arg("--out")
        .arg(&wheels)
        .current_dir(&package);
    process::run(&mut command)?;
    let found = fs::read_dir(&wheels)?.next().context("maturin made no wheel")??;
    Ok(found.path())
}

/// Returns the path of maturin. Installs it into the toolchain folder if necessary.
fn maturin() -> anyhow::Result<PathBuf> {
    let folder = workspace::root().join(TOOLCHAIN_FOLDER).join("maturin");
    let program = folder.join("bin/maturin");
    let is_there =
        || process::quietly(Command::new(&program).arg("--version"), LIMIT).is_ok_and(|ended| ended.success);
    if !is_there() {
        println!("installing {MATURIN} with pip ...");
        process::pip_install(&folder, &[MATURIN])?;
        ensure!(is_there(), "pip succeeded, and yet maturin does not run");
    }
    Ok(program)
}

/// Installs the wheel into an empty environment and checks it there: alone, then with all supported readers.
fn check(wheel: &Path) -> anyhow::Result<()> {
    let folder = workspace::target()?.join("wheel-check");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let python = folder.join("bin/python");
    let install =
        |what: &[&str]| process::pip(Command::new(&python).args(["-m", "pip", "install"]).args(what));
    let run = |readers: &str| {
        let mut command = Command::new(&python);
        command.arg(workspace::root().join("cli/python/tests/check.py")).arg(readers);
        process::run(command.current_dir(&folder))
    };
    install(&[&wheel.to_string_lossy()])?;
    run("none")?;
    install(&READERS)?;
    run("all")
}
