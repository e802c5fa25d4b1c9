//! `baseline`: the untraced programs in Rust beside the same kernels in CUDA C++, on one device in one run.

mod cuda;
mod table;

use std::fs;

use anyhow::Context;
use warptrace_host::{Device, Prepare, Untraced};

use self::table::{Table, Timing};
use crate::arguments;
use crate::machine::{self, Machine};
use crate::programs::{fractal, matmul, nbody};
use crate::subject::Case;
use crate::table::seconds;

/// Threads of a block, as the programs' defaults have them.
const FRACTAL_BLOCK: u32 = 256;
const NBODY_BLOCK: u32 = 128;

/// A program on an input, in both languages.
struct Pair {
    /// In Rust.
    case: Case,
    /// Arguments of the CUDA program before the number of runs: what it is to compute, and the threads of a
    /// block.
    arguments: Vec<u32>,
    /// The argument after the number of runs, if there is one.
    last: Option<u32>,
    /// Whether the result is a picture, whose sum tells how much work was done.
    is_picture: bool,
}

fn pairs(quick: bool) -> Vec<Pair> {
    let fractal = fractal::sizes(quick).into_iter().map(|(width, depth)| Pair {
        case: fractal::case(width, depth),
        arguments: vec![width, depth, FRACTAL_BLOCK],
        last: None,
        is_picture: true,
    });
    let nbody = nbody::sizes(quick).into_iter().map(|size| Pair {
        case: nbody::case(size),
        arguments: vec![size.bodies, size.steps, NBODY_BLOCK],
        last: size.sources,
        is_picture: false,
    });
    let rows = matmul::size(quick);
    let matmul = Pair { case: matmul::case(rows), arguments: vec![rows], last: None, is_picture: false };
    fractal.chain(nbody).chain([matmul]).collect()
}

/// Times all pairs and writes the tables; answers whether both did the same work everywhere.
pub(crate) fn run(arguments: &arguments::Baseline) -> anyhow::Result<bool> {
    let out = &arguments.out;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let mut device = machine::open(arguments.device)?;
    let machine = Machine::of(&*device);
    println!("device     {} (driver {})", machine.name, machine.driver);
    let mut table = Table::new(&machine, &arguments.commit);
    for pair in pairs(arguments.quick) {
        // One after the other, so that both meet the same clocks and temperature.
        let rust = in_rust(&mut *device, &pair, arguments.runs)
            .with_context(|| format!("{} in Rust", pair.case.name()))?;
        let cuda = match &arguments.cuda {
            Some(folder) => {
                Some(cuda::run(folder, pair.case.program, &pair.arguments, arguments.runs, pair.last)?)
            }
            None => None,
        };
        let line = cuda.as_ref().map_or_else(
            || seconds(rust.median),
            |cuda| format!("{} in Rust, {} in CUDA C++", seconds(rust.median), seconds(cuda.median)),
        );
        println!("{}: {line}", pair.case.name());
        table.add(&pair.case, rust, cuda);
    }
    for (name, text) in [("baseline.csv", table.csv()?), ("baseline.md", table.markdown())] {
        let path = out.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("table      {}", path.display());
    }
    for name in table.different_work() {
        eprintln!("error: {name}: the two programs did not do the same work");
    }
    Ok(table.different_work().is_empty())
}

/// Runs the kernels without tracing, once more than is counted.
fn in_rust(device: &mut dyn Device, pair: &Pair, runs: u32) -> anyhow::Result<Timing> {
    let subject = &*pair.case.make()?;
    let kernels: Vec<&str> = subject.program().kernels().collect();
    device.prepare(&Prepare { kernels: &kernels, ..Prepare::default() })?;
    let mut times = Vec::new();
    let mut work = None;
    for turn in 0..=runs {
        let run = subject.run(&mut Untraced(&mut *device))?;
        if turn > 0 {
            times.push(run.kernel.as_secs_f64());
        } else if pair.is_picture {
            let bytes = run.result.bytes();
            let steps = bytes.as_chunks::<4>().0.iter().map(|pixel| u64::from(u32::from_le_bytes(*pixel)));
            work = Some(steps.sum());
        }
    }
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let median = crate::bench::median(times).context("there was no run")?;
    Ok(Timing { median, least, runs, work })
}
