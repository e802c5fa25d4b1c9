//! `cargo xtask setup`: installs the tools for GPU builds and for tests.

mod compiler;
mod cuda;
mod readers;

use std::path::Path;
use std::process::ExitCode;

use crate::process::pip_install;
use crate::{aarch64, book};

/// Description of a tool, or the reason why it is missing.
pub(crate) type SetUpResult = Result<String, Missing>;

type SetUp = fn() -> SetUpResult;

pub(crate) struct Missing {
    /// Attempts, one line each.
    pub(crate) tried: Vec<String>,
    /// Instructions for the user.
    pub(crate) help: String,
    /// Consequences of the missing tool.
    pub(crate) without: &'static str,
}

/// Finds a tool. If it is missing, installs PyPI wheels into `folder` and tries again.
pub(crate) fn find_or_install(
    find: impl Fn() -> Result<String, String>,
    folder: &Path,
    wheels: &[&str],
    mut missing: Missing,
) -> SetUpResult {
    match find() {
        Ok(found) => return Ok(found),
        Err(reason) => missing.tried.push(reason),
    }
    println!("installing {} with pip ...", wheels.join(", "));
    match pip_install(folder, &[&["--no-deps"], wheels].concat()) {
        Ok(()) => match find() {
            Ok(found) => return Ok(format!("{found}; installed by `python3 -m pip`")),
            Err(reason) => missing.tried.push(format!("pip succeeded, and yet: {reason}")),
        },
        Err(error) => missing.tried.push(format!("{error:#}")),
    }
    Err(missing)
}

/// Arguments of `setup`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Also what only tests need: NVIDIA's disassembler, and readers of exports (DuckDB, Polars, Perfetto, lcov), a compiler and QEMU for aarch64
    #[arg(long)]
    tests: bool,
}

/// Purpose of the tools. Each purpose includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum For {
    Users,
    /// Fast tier of the tests.
    Tests,
    AllTests,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let whom = if options.tests { For::AllTests } else { For::Users };
    Ok(if all(whom).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Finds or installs the tools for a purpose and prints the result. Fails with the names of missing tools.
pub(crate) fn all(whom: For) -> Result<(), Vec<&'static str>> {
    let mut missing = Vec::new();
    let tools: [(&str, For, SetUp); 6] = [
        ("device compiler", For::Users, compiler::set_up),
        ("assembler", For::Users, cuda::set_up_assembler),
        ("disassembler", For::Tests, cuda::set_up_disassembler),
        ("link checker", For::Tests, book::set_up_links),
        ("export readers", For::AllTests, readers::set_up),
        ("aarch64 tools", For::AllTests, aarch64::set_up),
    ];
    for (name, _, set_up) in tools.into_iter().filter(|(_, purpose, _)| *purpose <= whom) {
        match set_up() {
            Ok(found) => println!("{name:<16} {found}"),
            Err(error) => {
                missing.push(name);
                println!("{name:<16} MISSING");
                for line in &error.tried {
                    println!("{:<16} - {line}", "");
                }
                println!("{:<16} What to do: {}.", "", error.help);
                println!("{:<16} {}", "", error.without);
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}
