//! `cargo xtask demo`: records and verifies a trace from a fresh checkout.

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context;
use warptrace_build::SETUP_LOCK_VARIABLE;

use crate::{process, setup, workspace};

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let target = workspace::target()?;
    build(&target)?;
    let tool = target.join("release").join(format!("warptrace{}", std::env::consts::EXE_SUFFIX));
    let folder = target.join("demo");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let trace = folder.join("demo.wtrc");
    let (tool_shown, trace_shown) = (workspace::shown(&tool), workspace::shown(&trace));

    let call = |arguments: &[&str]| {
        println!("\n$ {tool_shown} {}", arguments.join(" "));
        process::run(Command::new(&tool).args(arguments).current_dir(workspace::root()))
    };
    call(&["demo", "-o", &trace_shown])?;
    call(&["verify", &trace_shown])?;
    call(&["info", &trace_shown])?;
    call(&["top", &trace_shown])?;

    println!(
        "\nA kernel was traced: each control-flow decision of each warp is in {trace_shown}.\n\nWhat next:"
    );
    for (command, what) in [
        // Pixels at the edge of the set, where lanes leave the loop one after the other.
        (format!("{tool_shown} decode {trace_shown} --block 200 --warp 2"), "what one warp did"),
        (format!("{tool_shown} decode {trace_shown} --format csv | head"), "the same for a program to read"),
        (format!("{tool_shown} demo --help"), "what can be recorded, and how"),
        (format!("{tool_shown} new my-kernels"), "a package for a kernel of your own"),
        ("cargo xtask test".to_owned(), "what CI runs"),
    ] {
        println!("  {what}:\n      {command}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the tool while GPU tools are installed. Build scripts that need these tools wait for a lock.
fn build(target: &Path) -> anyhow::Result<()> {
    let path = target.join("setup.lock");
    std::fs::create_dir_all(target).with_context(|| format!("cannot create {}", target.display()))?;
    let lock = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    lock.lock().context("cannot lock the file")?;
    let set_up = std::thread::spawn(move || {
        // Setup prints missing tools. The simulator runs without a device compiler.
        let _ = setup::all(setup::For::Users);
        drop(lock);
    });
    // Two build scripts may wait for the lock.
    let jobs = std::thread::available_parallelism().map_or(1, usize::from) + 2;
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--package", "warptrace-cli", "--jobs", &jobs.to_string()]);
    let built = process::run(cargo.env(SETUP_LOCK_VARIABLE, &path));
    set_up.join().ok();
    built
}
