//! `cargo xtask miri`: runs tests under Miri, which detects undefined behaviour.

use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::{process, workspace};

/// Tests of code with pointers that Miri can run: it runs no lanes of the simulator, no CUDA and no zstd.
const TESTS: [&[&str]; 2] = [
    &["--package", "warptrace-device", "--test", "it", "memory::"],
    &["--package", "warptrace-encode", "--tests"],
];

const FLAGS: [&str; 4] = [
    // Addresses in device memory are integers, as on a GPU.
    "-Zmiri-permissive-provenance",
    // Rayon's queues violate Stacked Borrows, Miri's default model. Rayon's threads outlive the tests.
    "-Zmiri-tree-borrows",
    "-Zmiri-ignore-leaks",
    // Tests read their environment and the time.
    "-Zmiri-disable-isolation",
];

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let miri = Command::new("rustup").args(["run", "nightly", "cargo", "miri", "--version"]).output();
    if !miri.is_ok_and(|output| output.status.success()) {
        bail!("this needs Miri: `rustup toolchain install nightly --component miri,rust-src`");
    }
    for arguments in TESTS {
        println!("\n== {}", arguments.join(" "));
        // Cargo run through `CARGO` does not accept `+nightly`, so rustup selects it.
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
