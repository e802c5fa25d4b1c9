//! Writes a trace whose warps repeat, or whose warps all differ, to benchmark readers.
//!
//! ```text
//! class_traces FILE LAUNCHES WARPS CLASSES    launches of 20 kernels with CLASSES classes; frames of runs
//! class_traces FILE LAUNCHES WARPS 0          each warp has 1,000 different events
//! ```
//!
//! `WARPS` per launch must be a multiple of 8. Warps that repeat have 1 to 17 events, in runs of 1 to 31
//! warps. The same arguments produce the same file.

use std::fs::{self, File};
use std::io::BufWriter;

use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{
    ChunkRef, ClassChunk, Compression, DeviceInfo, LaunchInfo, LocationInfo, Metadata, WarpRun,
    encode_frame_of_runs,
};
use warptrace_host::writer::{TraceWriter, WriterOptions};

#[path = "../../../decoder/decode/tests/it/support/sections.rs"]
mod sections;

const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
const KERNELS: u32 = 20;
/// Payload bytes of a chunk.
const PAYLOAD: u32 = 1000;

/// Returns the next number of xorshift64*.
fn random(state: &mut u64) -> u32 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
}

/// Returns events of a loop with a branch, which lanes leave one after the other.
fn stream(state: &mut u64, count: usize) -> Vec<Event> {
    let mut events = vec![Event { location: 1, mask: u32::MAX }];
    let mut mask = u32::MAX;
    while events.len() < count {
        let taken = mask & random(state);
        let round = [(2, mask), (3, taken), (4, mask & !taken)];
        events
            .extend(round.map(|(location, mask)| Event { location, mask }).iter().filter(|it| it.mask != 0));
        mask &= random(state) | random(state) | random(state);
        if mask == 0 || random(state).is_multiple_of(16) {
            mask = u32::MAX;
            events.push(Event { location: 5, mask });
        }
    }
    events.truncate(count);
    events
}

fn account(chunks: &[(u32, Vec<u8>)]) -> WarpAccount {
    let recorded = chunks.iter().map(|(events, _)| u64::from(*events)).sum();
    WarpAccount { attempted: recorded, recorded, lost: 0, chunks: chunks.len() as u32, finished: 1 }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, launches, warps, classes] = &arguments[..] else { return Err("see the source".into()) };
    let (launches, warps, classes): (u32, u32, usize) = (launches.parse()?, warps.parse()?, classes.parse()?);
    let mut metadata = Metadata::new("class_traces", DeviceInfo::simulator("generator"), vec![PREDICT]);
    metadata = (0..KERNELS).fold(metadata, |all, number| all.with_kernel(format!("kernel{number}"), "k.cu"));
    metadata.locations.extend((1..).zip(["enter", "head", "near", "far", "leave"]).map(|(id, name)| {
        LocationInfo { file: "k.cu".to_owned(), line: 10 + u32::from(id), ..LocationInfo::new(id, name, "") }
    }));
    let launch = |number| LaunchInfo::new(number, number % KERNELS, [warps / 8, 1, 1], [256, 1, 1], 0);
    let mut state = 1;
    if classes == 0 {
        let out = BufWriter::new(File::create(path)?);
        let mut writer = TraceWriter::create(out, &metadata, WriterOptions::default())?;
        for number in 0..launches {
            writer.begin_launch(&launch(number)?)?;
            let streams: Vec<_> =
                (0..warps).map(|_| encode_stream(PREDICT, &stream(&mut state, 1000), PAYLOAD)).collect();
            let mut chunks = Vec::new();
            for (warp, of_warp) in (0..).zip(&streams) {
                for (sequence, (events, payload)) in (0..).zip(of_warp) {
                    chunks.push(ChunkRef { track: 0, warp, sequence, events: *events, payload });
                }
            }
            writer.write_chunks(number, &chunks)?;
            writer.end_launch(
                number,
                0,
                &streams.iter().map(|chunks| account(chunks)).collect::<Vec<_>>(),
            )?;
        }
        println!("{:?}", writer.finish()?.1);
        return Ok(());
    }
    let mut streams = (1..=classes * KERNELS as usize)
        .map(|number| encode_stream(PREDICT, &stream(&mut state, 1 + number * 7 % 17), PAYLOAD));
    let kernels: Vec<Vec<_>> = (0..KERNELS).map(|_| streams.by_ref().take(classes).collect()).collect();
    let (mut file, mut events) = (sections::Sections::new(&metadata), 0);
    for number in 0..launches {
        let (info, of_kernel) = (launch(number)?, &kernels[(number % KERNELS) as usize]);
        let (mut runs, mut kinds, mut accounts) = (Vec::new(), Vec::new(), Vec::new());
        while accounts.len() < warps as usize {
            let (first, kind) = (accounts.len() as u32, random(&mut state) as usize % classes);
            let count = (1 + random(&mut state) % 31).min(warps - first);
            let class = kinds.iter().position(|known| *known == kind).unwrap_or(kinds.len());
            if class == kinds.len() {
                kinds.push(kind);
            }
            runs.push(WarpRun { first, warps: count, class: class as u32 });
            accounts.resize(accounts.len() + count as usize, account(&of_kernel[kind]));
        }
        let chunks = |&kind: &usize| {
            let chunks: &Vec<(u32, Vec<u8>)> = &of_kernel[kind];
            chunks.iter().map(|(events, payload)| ClassChunk { events: *events, payload }).collect::<Vec<_>>()
        };
        let lists: Vec<_> = kinds.iter().map(chunks).collect();
        let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
        file.put(&info.encode_section());
        file.put(&encode_frame_of_runs(number, 0, &runs, &lists, Compression::Suited)?.section);
        file.put_accounts(&info, 0, &accounts, &[]);
        events += accounts.iter().map(|account| account.recorded).sum::<u64>();
    }
    println!("{events} events");
    Ok(fs::write(path, file.finish())?)
}
