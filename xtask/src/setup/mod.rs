//! `cargo xtask setup`: the tools that a GPU build and the tests need.

mod compiler;
mod cuda;
mod readers;

use std::process::ExitCode;

/// What was found or done for one tool.
type Found = Result<String, Missing>;

/// Finds or installs a tool.
type SetUp = fn() -> Found;

/// A tool that is not there and could not be installed.
struct Missing {
    /// What was tried, a line each.
    tried: Vec<String>,
    /// What the person can do.
    help: String,
    /// What does not work without it.
    without: &'static str,
}

/// Runs the chore; fails if a tool is missing.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    Ok(if all().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sets up what can be set up, and says what it found or did.
///
/// # Errors
/// The names of the tools that are missing.
pub(crate) fn all() -> Result<(), Vec<&'static str>> {
    let mut missing = Vec::new();
    let tools: [(&str, SetUp); 4] = [
        ("device compiler", compiler::set_up),
        ("assembler", cuda::set_up_assembler),
        ("disassembler", cuda::set_up_disassembler),
        ("export readers", readers::set_up),
    ];
    for (name, set_up) in tools {
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
