//! `record`: runs a program and records what its warps do.

use std::io::Write;

use anyhow::Context;
use clap::{Args, Subcommand};
use warptrace_cli::recording::{Finished, Recordable, Recording};
use warptrace_format::file::COMMAND;
use warptrace_workloads::ptx;

use crate::programs::{dmr, fault, fractal, matmul, mis, mst, nbody, stress, triad};
use crate::subject::Case;

/// Arguments of `record`.
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The program.
    #[command(subcommand)]
    program: Program,
}

/// The programs.
#[derive(Debug, Subcommand)]
enum Program {
    /// The Mandelbrot set in double precision, one thread a pixel
    Fractal(Recorded<fractal::Options>),
    /// Gravity of all bodies, or of the first, on all; one thread a body
    Nbody(Recorded<nbody::Options>),
    /// A maximal independent set of a graph
    Mis(Recorded<mis::Options>),
    /// A minimum spanning forest of a graph
    Mst(Recorded<mst::Options>),
    /// Delaunay mesh refinement, until no angle is too sharp
    Dmr(Recorded<dmr::Options>),
    /// Multiplication of square matrices in single precision
    Matmul(Recorded<matmul::Options>),
    /// a = b + 3 c over long arrays, which waits for memory only
    Triad(Recorded<triad::Options>),
    /// Walks on which the lanes of a warp diverge, to try the tracer
    Stress(Recorded<stress::Options>),
    /// A kernel that fails or hangs, to see what a trace has of it
    Fault(Recorded<fault::Options>),
}

/// A program with its options, and how it is recorded.
#[derive(Debug, Args)]
struct Recorded<P: Args> {
    #[command(flatten)]
    program: P,
    #[command(flatten)]
    how: How,
}

/// How a program is recorded.
#[derive(Debug, Args)]
struct How {
    /// Trace every decision of the program's kernels, instead of their marks alone
    #[arg(long)]
    automatic: bool,

    /// Leave out the check of the program's result, which takes the CPU long for large inputs
    #[arg(long)]
    no_check: bool,

    #[command(flatten)]
    recording: Recording,
}

/// Runs a program, records it and checks its result. Writes a summary to `out` and losses to `notes`. Stores
/// the command line in the trace. Returns true if nothing was lost.
pub(crate) fn run(
    command: &Record,
    command_line: String,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> anyhow::Result<bool> {
    let (mut case, how) = match &command.program {
        Program::Fractal(Recorded { program, how }) => (program.case(), how),
        Program::Nbody(Recorded { program, how }) => (program.case(), how),
        Program::Mis(Recorded { program, how }) => (program.case(), how),
        Program::Mst(Recorded { program, how }) => (program.case(), how),
        Program::Dmr(Recorded { program, how }) => (program.case(), how),
        Program::Matmul(Recorded { program, how }) => (program.case(), how),
        Program::Triad(Recorded { program, how }) => (program.case(), how),
        Program::Stress(Recorded { program, how }) => (program.case(), how),
        Program::Fault(Recorded { program, how }) => (program.case(), how),
    };
    case.properties.push((COMMAND.to_owned(), command_line));
    record(case, how, out, notes)
}

fn record(mut case: Case, how: &How, out: &mut dyn Write, notes: &mut dyn Write) -> anyhow::Result<bool> {
    let info = if how.automatic {
        case.properties.push(("points".to_owned(), "automatic".to_owned()));
        case.info
            .automatic()
            .with_context(|| format!("{} has marks alone: record it without --automatic", case.program))?
    } else {
        *case.info
    };
    let program = Recordable {
        name: case.program,
        kernels: info.traced(),
        properties: case.properties.clone(),
        files: case.files.clone(),
    };
    let prepared = how.recording.prepare(&program)?;
    let subject = case.make()?;
    let (run, recorded) = prepared.record(ptx, |launcher| {
        if how.automatic {
            subject.run(&mut warptrace_workloads::Automatic(launcher))
        } else {
            subject.run(launcher)
        }
    })?;
    let checked = (!how.no_check).then(|| run.result.check()).transpose();
    let written = run.result.write()?;
    if let Some(warning) = recorded.warning() {
        writeln!(notes, "{warning}")?;
    }
    let result = checked.map_err(|error| anyhow::anyhow!("the program's result is wrong: {error}"))?;
    let input = subject.size().map_or_else(|| case.input.clone(), |size| format!("{}: {size}", case.input));
    let of = if how.automatic { ", every decision traced" } else { "" };
    let finished = Finished { recorded: &recorded, of, input: &input, result: result.as_deref() };
    // Standard output may contain the trace.
    let mut lines = vec![finished.to_string()];
    lines.extend(written);
    let lines = lines.join("\n");
    if recorded.is_printed() { writeln!(notes, "{lines}") } else { writeln!(out, "{lines}") }?;
    Ok(recorded.is_complete())
}
