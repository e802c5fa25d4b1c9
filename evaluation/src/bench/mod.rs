//! `bench`: how long tracing takes and how small traces become.

mod compressors;
mod overview;
mod row;
mod summary;
mod writer;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use warptrace_format::RAW_EVENT_BYTES;

pub(crate) use self::compressors::COMPRESSORS;
pub(crate) use self::overview::{Program, programs};
pub(crate) use self::row::{Kind, Row, read};
pub(crate) use self::summary::{Measurements, Subject, median};
use self::writer::{Measured, Writer};
use crate::codecs::{Codec, RAW};
use crate::machine::Machine;
use crate::memory;
use crate::record::{Bench, Recorded, Times};
use crate::subject::Case;
use crate::subjects::{self, Selection};
use crate::{arguments, codecs, progress, table};

/// Measures all cases and writes the tables.
pub(crate) fn run(arguments: &arguments::Bench) -> anyhow::Result<()> {
    let target = &arguments.target;
    let cases = subjects::measured(&Selection::of(target))?;
    let codecs = codecs::chosen(&target.codecs)?;
    let out = &arguments.out;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let mut bench = Bench::open(target)?;
    let machine = Machine::of(&*bench.device);
    println!("device     {} (driver {})", machine.name, machine.driver);
    let mut writer = Writer::create(&out.join("bench.csv"), &machine, &arguments.commit)?;

    memory::give_back_at_once();
    let started = Instant::now();
    let time_limit = arguments.time_limit.map(Duration::from_secs);
    let device_deadline = time_limit.map(|limit| started + limit * 3 / 5);
    let limit = arguments.prefix_mib.unwrap_or(if target.quick { 8 } else { 256 }) << 20;
    let bar = progress::steps(cases.len() as u64);
    let mut traces = Vec::new();
    for case in &cases {
        bar.set_message(case.name());
        if is_past(device_deadline) {
            println!("{}: left out, the time limit is reached", case.name());
            continue;
        }
        // One program that fails does not take the others' numbers with it.
        match measure(&mut bench, case, &codecs, arguments.runs, device_deadline, &mut writer) {
            Ok((path, events)) if !arguments.no_compressors => {
                let bytes = compressors::raw_prefix(&path, usize::try_from(limit)?)?;
                traces.push((case, events, bytes));
            }
            Ok(_) => {}
            Err(error) => eprintln!("error: {}: {error:#}", case.name()),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();

    compress(&traces, arguments.jobs, time_limit.map(|limit| started + limit), &mut writer)?;
    anyhow::ensure!(!writer.rows.is_empty(), "nothing could be measured");
    let path = out.join("bench.md");
    let text = Measurements::new(writer.rows).markdown();
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("\ntables     {} and {}", out.join("bench.csv").display(), path.display());
    println!(
        "pictures   warptrace-evaluation figures --csv {} --out {}",
        out.join("bench.csv").display(),
        out.display()
    );
    Ok(())
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// Runs a case untraced and with each codec, in turns so that what drifts hits all alike; fewer turns than `runs`,
/// but at least one, if the deadline passes. Answers the raw trace of the last turn and its number of events.
fn measure(
    bench: &mut Bench,
    case: &Case,
    codecs: &[&'static Codec],
    runs: u32,
    deadline: Option<Instant>,
    writer: &mut Writer,
) -> anyhow::Result<(PathBuf, u64)> {
    let subject = &*case.make()?;
    let name = case.name();
    let mut raw = (bench.folder().join(format!("{RAW}.wtrc")), 0);
    // Turn 0 warms up: it loads the kernels, finds pools that are large enough, and fills the host's caches.
    for turn in 0..=runs {
        if turn > 1 && is_past(deadline) {
            println!("{name}: {} runs, the time limit is reached", turn - 1);
            break;
        }
        let (run, times) = bench.untraced(subject)?;
        if turn > 0 {
            writer.add(case, Measured::untraced(turn, run.launches, times))?;
        }
        for (number, codec) in codecs.iter().enumerate() {
            let file = if codec.name == RAW { format!("{RAW}.wtrc") } else { format!("codec-{number}.wtrc") };
            let Recorded { run, report, summary, times, path } =
                bench.traced_whole(&name, subject, codec, false, &file)?;
            if codec.name == RAW {
                raw = (path, report.recorded);
            }
            if turn > 0 {
                let raw_bytes = report.recorded * u64::from(RAW_EVENT_BYTES);
                writer.add(
                    case,
                    Measured {
                        kind: Kind::Run,
                        codec: codec.name,
                        repetition: turn,
                        launches: run.launches,
                        events: report.recorded,
                        raw_bytes,
                        bytes: report.payload_bytes,
                        file_bytes: summary.bytes,
                        times,
                    },
                )?;
            }
        }
    }
    println!("{}", Measurements::new(writer.rows.clone()).line(case.program, &case.input));
    Ok(raw)
}

/// The other compressors on all raw traces, after the last run on the device, so that they disturb nothing.
fn compress(
    traces: &[(&Case, u64, Vec<u8>)],
    jobs: Option<u32>,
    deadline: Option<Instant>,
    writer: &mut Writer,
) -> anyhow::Result<()> {
    if traces.is_empty() {
        return Ok(());
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = jobs.map_or((cores / 2).max(1), |jobs| jobs as usize);
    println!("\nother compressors, {jobs} at a time");
    let inputs: Vec<&[u8]> = traces.iter().map(|(_, _, bytes)| bytes.as_slice()).collect();
    let bar = progress::steps((inputs.len() * COMPRESSORS.len()) as u64);
    compressors::run_all(&inputs, jobs, deadline, |input, compressor, found| {
        let (case, events, prefix) = &traces[input];
        bar.inc(1);
        let Some((bytes, time)) = found else {
            bar.suspend(|| {
                println!("{}: {}: left out, the time limit is reached", case.name(), compressor.name);
            });
            return Ok(());
        };
        let raw_bytes = prefix.len() as u64;
        let line = format!(
            "{}: {}: {} to {} bytes in {}",
            case.name(),
            compressor.name,
            table::count(raw_bytes),
            table::count(bytes),
            table::time(time)
        );
        bar.suspend(|| println!("{line}"));
        writer.add(
            case,
            Measured {
                kind: Kind::Compressor,
                codec: compressor.name,
                repetition: 1,
                launches: 0,
                events: *events,
                raw_bytes,
                bytes,
                file_bytes: 0,
                times: Times { kernel: time, whole: time, ..Times::default() },
            },
        )
    })?;
    bar.finish_and_clear();
    Ok(())
}
