//! Times an analysis of a large trace, made here: how long, how much of the cores' time, how much memory.
//!
//! ```text
//! cargo run --release -p warptrace-analysis --example speed -- loops 1000000000
//! cargo run --release -p warptrace-analysis --example speed -- walks 10000000
//! ```
//!
//! `loops`: each lane goes round a loop for a number of turns of its own, as in fractal. `walks`: lanes of a
//! warp go ways of their own and meet seldom, as in stress. 4,096 warps are made, and repeated as often as the
//! number of events asks for.

use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Instant;

use warptrace_analysis::{Selection, analyse};
use warptrace_decoder::TraceFile;
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{ChunkRef, DeviceInfo, LaunchInfo, Metadata};
use warptrace_host::writer::{TraceWriter, WriterOptions};

const CODEC: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
/// Payload bytes of a chunk of 4 KiB.
const CAPACITY: u32 = 4064;
/// Different warps.
const WARPS: u64 = 4096;
/// Warps that are given to the writer at once.
const BATCH: usize = 1 << 14;

type Chunks = Vec<(u32, Vec<u8>)>;

/// A number from 0 to 2^32 - 1, by hashing (SplitMix64's finaliser: Steele, Lea, Flood, 2014).
fn random(seed: u64) -> u64 {
    let mixed = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
}

fn loops(warp: u64) -> Vec<Event> {
    let turns: Vec<u64> =
        (0..32).map(|lane| 600 + 100 * (random(warp) % 10) + random(warp * 32 + lane) % 64).collect();
    let longest = turns.iter().copied().max().unwrap_or(0);
    let mask = |turn: u64| (0..32).filter(|&lane| turns[lane] > turn).fold(0, |mask, lane| mask | 1 << lane);
    let body = (0..longest).map(|turn| Event { location: 3, mask: mask(turn) });
    let ends = [1, 4].map(|location| Event { location, mask: u32::MAX });
    [ends[0]].into_iter().chain(body).chain([ends[1]]).collect()
}

fn walks(warp: u64) -> Vec<Event> {
    let event = |number: u64| {
        let draw = random(warp << 20 | number);
        let mask = if draw & 63 == 0 {
            u32::MAX
        } else {
            (1 << (draw >> 8 & 31)) | (draw >> 13 & draw >> 14 & draw >> 15 & draw >> 16) as u32
        };
        Event { location: 1 + (draw >> 24 & 15) as u16, mask }
    };
    (0..4096).map(event).collect()
}

fn write(
    path: &PathBuf,
    make: fn(u64) -> Vec<Event>,
    events: u64,
) -> Result<u64, Box<dyn std::error::Error>> {
    let streams: Vec<Vec<Event>> = (0..WARPS).map(make).collect();
    let once: u64 = streams.iter().map(|events| events.len() as u64).sum();
    let chunks: Vec<Chunks> = streams.iter().map(|events| encode_stream(CODEC, events, CAPACITY)).collect();
    let warps = (u128::from(WARPS) * u128::from(events)).div_ceil(u128::from(once)) as u32;
    let metadata = Metadata::new("speed", DeviceInfo::simulator("none"), vec![CODEC]).with_kernel("k", "");
    let metadata = (1..=16).fold(metadata, |metadata, id| metadata.with_location(id, format!("at {id}"), ""));
    let mut writer = TraceWriter::create(
        BufWriter::new(std::fs::File::create(path)?),
        &metadata,
        WriterOptions::default(),
    )?;
    writer.begin_launch(&LaunchInfo::new(0, 0, [warps.div_ceil(8), 1, 1], [256, 1, 1], 0)?)?;
    let all: Vec<u32> = (0..warps).collect();
    let mut written = 0;
    for batch in all.chunks(BATCH) {
        let mut refs = Vec::new();
        for &warp in batch {
            for (sequence, (events, payload)) in (0..).zip(&chunks[warp as usize % WARPS as usize]) {
                refs.push(ChunkRef { track: 0, warp, sequence, events: *events, payload });
                written += u64::from(*events);
            }
        }
        writer.write_chunks(0, &refs)?;
    }
    writer.finish()?;
    Ok(written)
}

/// Seconds that cores spent on this process, as Linux says: less disturbed by other programs than the time
/// that it took.
fn core_seconds() -> Option<f64> {
    let times = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Fields 14 and 15, in ticks of 1/100 s; the second field may have spaces, and ends with a parenthesis.
    let fields: Vec<&str> = times.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(14)? + ticks(15)?) / 100.0)
}

/// The most memory that this process had, as Linux says.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().to_owned())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "speed loops|walks EVENTS, or speed FILE";
    let (path, made) = match &arguments[..] {
        [kind, events] => {
            let make = match kind.as_str() {
                "loops" => loops,
                "walks" => walks,
                _ => return Err(usage.into()),
            };
            let path = std::env::temp_dir().join(format!("warptrace-speed-{kind}.wtrc"));
            let events = write(&path, make, events.parse()?)?;
            println!("{}: {events} events, {} bytes", path.display(), path.metadata()?.len());
            // Another process, so that its memory is that of the analysis.
            let answer = std::process::Command::new(std::env::current_exe()?).arg(&path).status()?;
            std::fs::remove_file(&path)?;
            return if answer.success() { Ok(()) } else { Err("the analysis failed".into()) };
        }
        [path] => (PathBuf::from(path), Instant::now()),
        _ => return Err(usage.into()),
    };
    let trace = TraceFile::open(path)?;
    let analysis = analyse(&trace, &Selection::default())?;
    let seconds = made.elapsed().as_secs_f64();
    println!(
        "{} events of {} warps in {seconds:.2} s, {:.2} s of cores; {} edges, {} paths; peak memory {}",
        analysis.counts.visits,
        analysis.warps.len(),
        core_seconds().unwrap_or_default(),
        analysis.edges.len(),
        analysis.paths.len(),
        peak_memory().unwrap_or_default()
    );
    Ok(())
}
