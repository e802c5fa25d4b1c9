//! The project's chores: `cargo xtask help`.

mod aarch64;
mod book;
mod budget;
mod demo;
mod evaluation;
mod examples;
mod fuzz;
mod golden;
mod idle;
mod junit;
mod miri;
mod package;
mod process;
mod rooms;
mod setup;
mod steps;
mod test;
mod wheel;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's chores.
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo xtask",
    after_help = "New here? `cargo xtask demo` records a kernel; `cargo xtask test` runs the tests."
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Find or install the device compiler and NVIDIA's assembler, and with --tests what only tests need
    Setup(setup::Options),
    /// Set up, record a kernel, verify the trace and look at it
    Demo,
    /// Run the fast tier of checks, as CI does; with --all, every suite in full
    Test(test::Options),
    /// Build the documentation as a book, and check that no link leads nowhere
    Book,
    /// Rewrite the golden files from what the code writes now
    Golden,
    /// Package all crates for a registry; build and run the examples from the packages
    Package(package::Options),
    /// Build the Python wheel, and with --check install it into an empty environment and try it
    Wheel(wheel::Options),
    /// Run tests under Miri (nightly Rust with the component miri)
    Miri,
    /// Run the fuzz targets with many inputs
    Fuzz(fuzz::Options),
    /// Measure; arguments go to `warptrace-bench bench`
    #[command(disable_help_flag = true)]
    Bench(Forwarded),
    /// Check the tracer on a GPU; arguments go to `warptrace-bench check`
    #[command(disable_help_flag = true)]
    GpuTest(Forwarded),
}

/// Arguments of another program.
#[derive(Debug, clap::Args)]
struct Forwarded {
    /// Handed on as they are
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Setup(options) => setup::run(&options),
        Chore::Demo => demo::run(),
        Chore::Test(options) => test::run(&options),
        Chore::Book => book::run(),
        Chore::Golden => golden::run(),
        Chore::Miri => miri::run(),
        Chore::Package(options) => package::run(&options),
        Chore::Wheel(options) => wheel::run(&options),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Bench(forwarded) => evaluation::run("bench", &forwarded.arguments),
        Chore::GpuTest(forwarded) => evaluation::run("check", &forwarded.arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
