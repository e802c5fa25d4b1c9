//! Checks the tracer on a device, measures it, and draws the thesis's figures.
//!
//! ```text
//! subjects (programs on inputs) ─┬─ check    right result, every event, same lanes everywhere
//! codecs (one list)  ────────────┴─ bench    times, sizes, other compressors ── CSV, Markdown
//!                                                     └─ figures               ── SVG, PNG
//! whole                             whole programs, each run in a process of its own ── Markdown, JSON
//! policies                          what is kept under each policy, and what it takes ── Markdown, JSON
//! fidelity                          warps at trace points: untraced, traced, decoded ── CSV, Markdown
//! masks                             the simulator's events beside a card's ── Markdown
//! points                            automatic trace points beside those placed by hand ── Markdown
//! baseline                          untraced Rust beside CUDA C++ ── CSV, Markdown
//! ```
//!
//! A program is one file in [`subjects`]; a codec is one line in [`codecs`].

mod arguments;
mod baseline;
mod bench;
mod check;
mod codecs;
mod date;
mod fidelity;
mod figures;
mod machine;
mod markers;
mod memory;
mod points;
mod progress;
mod record;
mod soak;
mod subject;
mod subjects;
mod table;
mod thesis;
mod whole;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Check(command) => check::run(&command),
        Command::Bench(command) => bench::run(&command).map(|()| true),
        Command::Whole(command) => whole::run(&command),
        Command::Policies(command) => whole::compare_policies(&command),
        Command::WholeRun(command) => whole::run_child(&command).map(|()| true),
        Command::Baseline(command) => baseline::run(&command),
        Command::Markers(command) => markers::run(&command).map(|()| true),
        Command::Fidelity(command) => fidelity::run(&command),
        Command::FidelityRun(command) => fidelity::run_child(&command).map(|()| true),
        Command::Masks(command) => fidelity::run_masks(&command),
        Command::Points(command) => points::run(&command),
        Command::Soak(command) => soak::run(&command),
        Command::Figures(command) => figures::run(&command).map(|()| true),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(3),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
