//! `bench`: measures tracing times and trace sizes.

mod compressors;
mod overview;
mod row;
mod summary;
mod writer;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use warptrace_format::RAW_EVENT_BYTES;

pub(crate) use self::compressors::COMPRESSORS;
pub(crate) use self::overview::{Program, programs};
pub(crate) use self::row::{BenchRow, Kind};
pub(crate) use self::summary::{Measurements, Subject, median, percent, spread};
use self::writer::Writer;
use crate::codecs::{Codec, RAW, UNTRACED};
use crate::machine::{self, Machine};
use crate::memory;
use crate::programs::{self, Selection};
use crate::runs::{Bench, Recorded, Times};
use crate::subject::Case;
use crate::{arguments, codecs, figures, files, progress, table};

/// Minimum total kernel time of a sample, if enough runs are affordable: means of shorter samples are noise.
const MIN_SAMPLE_KERNEL: Duration = Duration::from_millis(20);
/// Maximum total time of a sample, unless a single run takes longer.
const MAX_SAMPLE: Duration = Duration::from_millis(250);
/// Maximum number of runs in a sample.
const MAX_AVERAGED: u32 = 64;

pub(crate) fn run(arguments: &arguments::Bench) -> anyhow::Result<()> {
    let target = &arguments.target;
    let cases = programs::measured(&Selection::new(target))?;
    let codecs = codecs::chosen(&target.codecs)?;
    let out = &arguments.out;
    files::make_folder(out)?;
    let mut bench = Bench::open(target)?;
    let machine = Machine::new(&*bench.device);
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
        // A program that fails must not discard the other programs' numbers.
        match measure(&mut bench, case, &codecs, arguments.runs, device_deadline, &mut writer) {
            Ok((path, events)) if !arguments.no_compressors => {
                let bytes = compressors::raw_prefix(&path, usize::try_from(limit)?)?;
                traces.push((case, events, bytes));
            }
            Ok(_) => {}
            Err(error) => eprintln!("error: {}: {error:#}", case.name()),
        }
        write_tables(out, &writer.rows)?;
        bar.inc(1);
    }
    bar.finish_and_clear();

    compress(&traces, arguments.jobs, time_limit.map(|limit| started + limit), &mut writer)?;
    anyhow::ensure!(!writer.rows.is_empty(), "nothing could be measured");
    write_tables(out, &writer.rows)?;
    figures::draw(&Measurements::new(writer.rows), out)?;
    println!("\ntables     {} and {}", out.join("bench.csv").display(), out.join("bench.md").display());
    println!("figures    {}", out.join("*.svg").display());
    Ok(())
}

/// Writes the tables of the measurements so far, so that an interrupted run leaves them.
fn write_tables(folder: &Path, rows: &[BenchRow]) -> anyhow::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let path = folder.join("bench.md");
    let text = Measurements::new(rows.to_vec()).markdown();
    files::write(&path, text)
}

/// Returns the number of runs in a sample, from the first run's kernel time and total time.
fn averaged(kernel: Duration, whole: Duration) -> u32 {
    let times = |wanted: Duration, one: Duration| wanted.as_secs_f64() / one.as_secs_f64().max(1e-9);
    let (wanted, affordable) = (times(MIN_SAMPLE_KERNEL, kernel).ceil(), times(MAX_SAMPLE, whole).floor());
    // The cast saturates.
    (wanted.min(affordable) as u32).clamp(1, MAX_AVERAGED)
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// Runs a case untraced and with each codec, in turns, so that drift affects all of them equally. A turn
/// takes a sample of each: one run, or the mean of several short ones. Takes a warm-up turn and `runs` more,
/// or fewer (at least one) if the deadline passes. Returns the last turn's raw trace and its number of
/// events.
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
    let is_gpu = machine::is_gpu(&*bench.device);
    // Runs per sample, untraced and with each codec. One is enough on the simulator, which measures nothing.
    let mut samples = vec![1; codecs.len() + 1];
    let enough = |times: &Times| if is_gpu { averaged(times.kernel, times.whole) } else { 1 };
    // Turn 0 warms up: it loads the kernels, finds enough memory, and fills the host's caches.
    for turn in 0..=runs {
        if turn > 1 && is_past(deadline) {
            println!("{name}: {} samples, the time limit is reached", turn - 1);
            break;
        }
        let (mut times, mut launches) = (Vec::new(), 0);
        for _ in 0..samples[0] {
            let (run, of_run) = bench.untraced(subject)?;
            launches = run.launches;
            times.push(of_run);
        }
        let mean = Times::mean(&times);
        if turn == 0 {
            samples[0] = enough(&mean);
        } else {
            let row = writer.row(case, UNTRACED, &mean);
            writer.add(BenchRow { repetition: turn, launches, averaged: samples[0], ..row })?;
        }
        for (number, codec) in codecs.iter().enumerate() {
            let file = if codec.name == RAW { format!("{RAW}.wtrc") } else { format!("codec-{number}.wtrc") };
            let averaged = &mut samples[number + 1];
            let (mut times, mut last) = (Vec::new(), None);
            for _ in 0..*averaged {
                let recorded = bench.traced_whole(&name, subject, codec, false, &file)?;
                times.push(recorded.times);
                last = Some(recorded);
            }
            let Some(Recorded { run, report, summary, path, .. }) = last else { continue };
            if codec.name == RAW {
                raw = (path, report.recorded);
            }
            let mean = Times::mean(&times);
            if turn == 0 {
                *averaged = enough(&mean);
                continue;
            }
            writer.add(BenchRow {
                repetition: turn,
                launches: run.launches,
                averaged: *averaged,
                events: report.recorded,
                raw_bytes: report.recorded * u64::from(RAW_EVENT_BYTES),
                bytes: report.payload_bytes,
                file_bytes: summary.bytes,
                ..writer.row(case, codec.name, &mean)
            })?;
        }
    }
    println!("{}", Measurements::new(writer.rows.clone()).line(case.program, &case.input));
    Ok(raw)
}

/// Runs the other compressors after the last run on the device, so that they do not disturb measurements.
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
        let times = Times { kernel: time, whole: time, ..Times::default() };
        let row = writer.row(case, compressor.name, &times);
        writer.add(BenchRow {
            kind: Kind::Compressor,
            repetition: 1,
            events: *events,
            raw_bytes,
            bytes,
            ..row
        })
    })?;
    bar.finish_and_clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_kernels_run_often_in_a_sample() {
        let of =
            |kernel_us, whole_us| averaged(Duration::from_micros(kernel_us), Duration::from_micros(whole_us));
        assert_eq!(of(30_000, 40_000), 1);
        assert_eq!(of(5_000, 10_000), 4);
        assert_eq!(of(50, 1_000), 64);
        assert_eq!(of(50, 10_000), 25);
        assert_eq!(of(50, 1_000_000), 1);
        assert_eq!(of(0, 0), 64);
    }
}
