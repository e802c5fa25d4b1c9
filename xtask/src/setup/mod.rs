//! `cargo xtask setup`: the tools that a GPU build needs, and those that only tests need.

mod compiler;
mod cuda;
mod readers;

use std::path::Path;
use std::process::ExitCode;

use crate::book;
use crate::process::pip_install;

/// What was found or done for one tool.
pub(crate) type SetUpResult = Result<String, Missing>;

/// Finds or installs a tool.
type SetUp = fn() -> SetUpResult;

/// A tool that is not there and could not be installed.
pub(crate) struct Missing {
    /// What was tried, a line each.
    pub(crate) tried: Vec<String>,
    /// What the person can do.
    pub(crate) help: String,
    /// What does not work without it.
    pub(crate) without: &'static str,
}

/// Finds a tool; if it is not there, installs wheels of PyPI into `folder` and looks again.
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
    /// Also what only tests need: NVIDIA's disassembler, and readers of exports (DuckDB, Polars, Perfetto, lcov)
    #[arg(long)]
    tests: bool,
}

/// What tools are set up for. Each purpose includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum For {
    /// Tracing kernels.
    Users,
    /// The fast tier of the tests.
    Tests,
    /// All tests.
    AllTests,
}

/// Runs the chore; fails if a tool is missing.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let whom = if options.tests { For::AllTests } else { For::Users };
    Ok(if all(whom).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sets up what can be set up, and says what it found or did.
///
/// # Errors
/// The names of the tools that are missing.
pub(crate) fn all(whom: For) -> Result<(), Vec<&'static str>> {
    let mut missing = Vec::new();
    let tools: [(&str, For, SetUp); 5] = [
        ("device compiler", For::Users, compiler::set_up),
        ("assembler", For::Users, cuda::set_up_assembler),
        ("disassembler", For::Tests, cuda::set_up_disassembler),
        ("link checker", For::Tests, book::set_up_links),
        ("export readers", For::AllTests, readers::set_up),
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
