//! `cargo xtask miri`: runs tests under Miri, which notices what is undefined.

use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::{process, workspace};

/// What Miri can run of the code that dereferences pointers: no lanes of the simulator, which switch stacks
/// in assembler; no CUDA; no zstd, which is C.
const TESTS: [&[&str]; 2] = [
    &["--package", "warptrace-device", "--test", "it", "memory::"],
    &["--package", "warptrace-encode", "--tests"],
];

const FLAGS: [&str; 4] = [
    // Addresses in device memory are numbers, as a GPU takes them.
    "-Zmiri-permissive-provenance",
    // Rayon's queues break the older model of borrows, which is Miri's default; its threads outlive the
    // tests.
    "-Zmiri-tree-borrows",
    "-Zmiri-ignore-leaks",
    // Tests look at their environment and at the time.
    "-Zmiri-disable-isolation",
];

/// Runs the chore.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let miri = Command::new("rustup").args(["run", "nightly", "cargo", "miri", "--version"]).output();
    if !miri.is_ok_and(|output| output.status.success()) {
        bail!("this needs Miri: `rustup toolchain install nightly --component miri,rust-src`");
    }
    for arguments in TESTS {
        println!("\n== {}", arguments.join(" "));
        // Through rustup: cargo itself takes no `+nightly`.
        let mut command = Command::new("rustup");
        command
            .current_dir(workspace::root())
            .args(["run", "nightly", "cargo", "miri", "test", "--quiet"])
            .args(arguments)
            .env("WARPTRACE_NO_DEVICE_CODE", "1")
            .env("MIRIFLAGS", FLAGS.join(" "));
        process::run(&mut command)?;
    }
    println!("\nMiri found nothing that is undefined");
    Ok(ExitCode::SUCCESS)
}
