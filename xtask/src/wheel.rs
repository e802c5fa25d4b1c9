//! `cargo xtask wheel`: builds the wheel of `cli/python`, including the tool and `warptrace-query`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, ensure};
use warptrace_build::TOOLCHAIN_FOLDER;

use crate::{aarch64, process, workspace};

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
    /// Build for aarch64, with the tools that `cargo xtask setup --tests` installs. QEMU runs the check, without
    /// packages that read tables
    #[arg(long)]
    aarch64: bool,
    /// Cargo's profile
    #[arg(long, default_value = "release")]
    profile: String,
}

/// Returns a command that runs `program` here, or for aarch64.
fn command(is_aarch64: bool, program: impl AsRef<OsStr>) -> Command {
    if is_aarch64 { aarch64::command(program) } else { Command::new(program) }
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let Options { check: checks, aarch64, ref profile } = *options;
    let build = ["build", "--package", "warptrace-cli", "--features", "full,query", "--bins", "--profile"];
    let cargo = workspace::cargo();
    let mut cargo = command(aarch64, cargo.get_program());
    process::run(cargo.args(build).arg(profile).current_dir(workspace::root()))?;
    let wheel = pack(aarch64, profile)?;
    println!("{}, {} bytes", workspace::shown(&wheel), wheel.metadata()?.len());
    if checks {
        check(aarch64, &wheel)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds and checks the wheel of the profile `dev`, with programs that are already built.
pub(crate) fn check_debug() -> anyhow::Result<()> {
    check(false, &pack(false, "dev")?)
}

/// Builds the wheel with the programs of the profile, which must be built already. Returns its path.
fn pack(is_aarch64: bool, profile: &str) -> anyhow::Result<PathBuf> {
    let package = workspace::root().join("cli/python");
    let scripts = package.join("warptrace.data/scripts");
    fs::create_dir_all(&scripts).with_context(|| format!("cannot make {}", workspace::shown(&scripts)))?;
    let target = workspace::target()?;
    let folder = target.join(if is_aarch64 { aarch64::TARGET } else { "" });
    let folder = folder.join(if profile == "dev" { "debug" } else { profile });
    for name in ["warptrace", "warptrace-query"] {
        let program = folder.join(name);
        fs::copy(&program, scripts.join(name))
            .with_context(|| format!("cannot copy {}", workspace::shown(&program)))?;
    }

    let wheels = target.join(if is_aarch64 { "wheels-aarch64" } else { "wheels" });
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let mut command = command(is_aarch64, maturin()?);
    command
        .args(["build", "--quiet", "--profile", profile, "--target-dir"])
        .arg(&target)
        .arg("--out")
        .arg(&wheels)
        .current_dir(&package);
    if is_aarch64 {
        command.args(["--target", aarch64::TARGET]);
    }
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

/// Installs the wheel into an empty environment and checks it there: alone, and unless it is for aarch64, then
/// with all supported readers.
fn check(is_aarch64: bool, wheel: &Path) -> anyhow::Result<()> {
    let folder = workspace::target()?.join("wheel-check");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    // Debian's Python for aarch64 has no pip, so this machine's pip installs with `--python`.
    let own =
        process::quietly(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]), LIMIT)?;
    process::run(command(is_aarch64, "python3").args(["-m", "venv", "--without-pip"]).arg(&folder))?;
    let python = folder.join("bin/python");
    let install = |what: &[&str]| {
        let mut pip = command(is_aarch64, own.last_line());
        process::pip(pip.args(["-m", "pip", "--python"]).arg(&python).arg("install").args(what))
    };
    let run = |readers: &str| {
        let mut command = command(is_aarch64, &python);
        command.arg(workspace::root().join("cli/python/tests/check.py")).arg(readers);
        process::run(command.current_dir(&folder))
    };
    install(&[&wheel.to_string_lossy()])?;
    run("none")?;
    if is_aarch64 {
        return Ok(());
    }
    install(&READERS)?;
    run("all")
}
