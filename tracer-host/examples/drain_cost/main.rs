//! What the host's side of a recording costs: everything but the kernels and the copies from the device.
//!
//! ```text
//! cargo run --release -p warptrace-host --example drain_cost -- [TRACE.wtrc ...]
//! ```
//!
//! Records what traces hold once more, from a device that has it ready; without traces, three kinds of
//! launches that are made up. Prints Markdown: milliseconds, the median and the least of so many recordings.

mod data;
mod device;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use warptrace_device::KernelCall;
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_host::{Blocks, LaunchReport, LaunchShape, MemorySize, RecordingSpec, Session, TracedProgram};

use data::Launch;
use device::Replay;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Recordings of each.
const RECORDINGS: usize = 21;

fn main() -> Outcome<()> {
    println!("| launches | chunks | payload | in file | copy | least | write | least | whole | least |");
    println!("| --- |{}", " ---: |".repeat(9));
    let traces: Vec<_> = std::env::args_os().skip(1).collect();
    if traces.is_empty() {
        measure("many warps", &data::many_warps())?;
        measure("full chunks", &data::full_chunks())?;
        measure("many launches", &data::many_launches())?;
    }
    for path in &traces {
        let path = Path::new(path);
        measure(&path.file_stem().unwrap_or_default().to_string_lossy(), &data::read(path)?)?;
    }
    Ok(())
}

fn measure(name: &str, launches: &[Launch]) -> Outcome<()> {
    let mut device = Replay::new(launches);
    let mut times: [Vec<Duration>; 3] = Default::default();
    let (mut bytes, mut chunks, mut payload) = (0, 0, 0);
    for _ in 0..RECORDINGS {
        let (report, file_bytes, whole) = record(&mut device, launches)?;
        let LaunchReport { copy, write, .. } = report;
        times.iter_mut().zip([copy, write, whole]).for_each(|(times, time)| times.push(time));
        (bytes, chunks, payload) = (file_bytes, report.chunks, report.payload_bytes);
    }
    let times = times.map(|mut times| {
        times.sort_unstable();
        format!("{:.2} | {:.2}", milliseconds(times[RECORDINGS / 2]), milliseconds(times[0]))
    });
    println!("| {name} | {chunks} | {payload} | {bytes} | {} |", times.join(" | "));
    Ok(())
}

/// The report, the bytes of the file, and the time from the last launch's end to the end of the file, but
/// without giving memory back.
fn record(device: &mut Replay, launches: &[Launch]) -> Outcome<(LaunchReport, u64, Duration)> {
    let mut options = RecordingSpec::new(CodecSpec::Predict(PredictParams::DEFAULT));
    // There is none; it is as much as all chunks of a trace need.
    options.memory = Some(MemorySize(256 << 30));
    let program = TracedProgram { kernels: &[("k", "")], points: &[], modules: &[] };
    let output = std::io::BufWriter::with_capacity(1 << 20, tempfile::tempfile()?);
    device.rewind();
    let mut session = Session::start(device, &program, &options, output)?;
    let call = KernelCall::new("k", Vec::new(), || {});
    // A device takes as long to get ready, and meanwhile the threads that compress do so.
    std::thread::sleep(Duration::from_millis(20));
    let started = Instant::now();
    for Launch { info, .. } in launches {
        let (grid, block) = (info.grid(), info.block());
        let shape = LaunchShape { grid, block, dynamic_shared: 0, blocks: Blocks::Independent };
        // SAFETY: the kernel has no arguments.
        unsafe { session.record(&call, &shape) }?;
    }
    session.flush()?;
    let (whole, written) = (started.elapsed(), session.total().write);
    let (_, summary, report) = session.finish()?;
    Ok((report, summary.bytes, whole + report.write.saturating_sub(written)))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
