//! Writes traces that resemble a job with many ranks, to benchmark readers.
//!
//! ```text
//! many_traces FOLDER FILES MILLIONS
//! ```
//!
//! Each file has `MILLIONS` million events, in launches of 256 warps. Each warp has one of 64 streams:
//! iterations of a loop with a branch, which lanes leave one after the other, as in a search or a traversal.
//! The same arguments produce the same files.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{ChunkRef, DeviceInfo, LaunchInfo, LocationInfo, Metadata, Origin};
use warptrace_host::writer::{TraceWriter, WriterOptions};

const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
const STREAMS: usize = 64;
const WARPS: u32 = 256;
/// Events of a stream; a launch has 2^20.
const EVENTS: usize = (1 << 20) / WARPS as usize;
/// Payload bytes of a chunk.
const PAYLOAD: u32 = 1000;

/// Random numbers by xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }
}

fn stream(random: &mut Random) -> Vec<Event> {
    let mut events = Vec::with_capacity(EVENTS);
    while events.len() < EVENTS {
        let mut mask = u32::MAX;
        events.push(Event { location: 1, mask });
        while mask != 0 && events.len() < EVENTS {
            for _ in 0..random.next() % 200 {
                events.push(Event { location: 2, mask });
            }
            let taken = mask & random.next() as u32;
            for (location, mask) in [(3, taken), (4, mask & !taken)] {
                if mask != 0 {
                    events.push(Event { location, mask });
                }
            }
            mask &= random.next() as u32 | random.next() as u32;
        }
        events.push(Event { location: 5, mask: u32::MAX });
    }
    events.truncate(EVENTS);
    events
}

fn write(path: &Path, rank: u32, launches: u32) -> Result<(), Box<dyn std::error::Error>> {
    let mut metadata = Metadata::new("many_traces", DeviceInfo::simulator("generator"), vec![PREDICT])
        .with_kernel("walk", "walk.cu");
    let names = ["enter", "step", "near", "far", "leave"];
    metadata.locations.extend((1..).zip(names).map(|(id, name)| LocationInfo {
        file: "walk.cu".to_owned(),
        line: 10 + u32::from(id),
        ..LocationInfo::new(id, name, "")
    }));
    let origin = Origin { rank: Some(rank), job: Some("measured".to_owned()), ..Origin::default() };
    metadata.origin = Some(Box::new(origin));
    let mut writer =
        TraceWriter::create(BufWriter::new(File::create(path)?), &metadata, WriterOptions::default())?;
    let mut random = Random(u64::from(rank) + 1);
    let streams: Vec<_> =
        (0..STREAMS).map(|_| encode_stream(PREDICT, &stream(&mut random), PAYLOAD)).collect();
    for number in 0..launches {
        writer.begin_launch(&LaunchInfo::new(number, 0, [WARPS / 8, 1, 1], [256, 1, 1], 0)?)?;
        let mut accounts = Vec::new();
        for warp in 0..WARPS {
            let chunks = &streams[random.next() as usize % STREAMS];
            for (sequence, (events, payload)) in (0..).zip(chunks) {
                writer.write_chunks(
                    number,
                    &[ChunkRef { track: 0, warp, sequence, events: *events, payload }],
                )?;
            }
            let (events, chunks) = (EVENTS as u64, chunks.len() as u32);
            accounts.push(WarpAccount { attempted: events, recorded: events, lost: 0, chunks, finished: 1 });
        }
        writer.end_launch(number, 0, &accounts)?;
    }
    writer.finish()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, files, millions] = &arguments[..] else { return Err("name FOLDER FILES MILLIONS".into()) };
    let launches = (millions.parse::<u64>()? * 1_000_000).div_ceil(1 << 20) as u32;
    fs::create_dir_all(folder)?;
    for rank in 0..files.parse()? {
        write(&Path::new(folder).join(format!("step.{rank}.wtrc")), rank, launches)?;
    }
    Ok(())
}
