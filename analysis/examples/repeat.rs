//! Makes a large trace of a small one: the warps of its longest launch, repeated until there are so many events.
//!
//! ```text
//! warptrace-bench record fractal --width 362 --depth 4096 --device sim -o fractal.wtrc
//! cargo run --release -p warptrace-analysis --example repeat -- fractal.wtrc 1000000000 large.wtrc
//! ```
//!
//! What is read of the large trace costs what a recording of this size costs: nothing is shared between warps.

use std::fs::File;
use std::io::BufWriter;

use warptrace_decoder::{TraceFile, WarpFilter, WarpItem};
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{ChunkRef, LaunchInfo};
use warptrace_format::pool::WarpAccount;
use warptrace_host::writer::{TraceWriter, WriterOptions};

const CODEC: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
/// Payload bytes of a chunk of 4 KiB.
const CAPACITY: u32 = 4064;
/// Warps that are given to the writer at once.
const BATCH: usize = 1 << 14;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, events, to] = &arguments[..] else { return Err("repeat FROM.wtrc EVENTS TO.wtrc".into()) };
    let (trace, events) = (TraceFile::open(from)?, events.parse::<u64>()?);
    let longest = trace.launches().max_by_key(|info| trace.totals(info.number(), 0).events);
    let info = *longest.ok_or("the trace has no launch")?;
    let mut streams: Vec<(u32, Vec<Event>)> = Vec::new();
    let _ = trace.items_in_order(info.number(), 0, &WarpFilter::all(), &mut |found: WarpItem<'_>| {
        if streams.last().is_none_or(|(warp, _)| *warp != found.warp) {
            streams.push((found.warp, Vec::new()));
        }
        if let Some((_, events)) = streams.last_mut() {
            found.item.for_each(&mut |event| events.push(event));
        }
        std::ops::ControlFlow::Continue(())
    })?;
    if streams.is_empty() {
        return Err("the trace has no events".into());
    }
    let once: u64 = streams.iter().map(|(_, events)| events.len() as u64).sum();
    let chunks: Vec<_> = streams.iter().map(|(_, events)| encode_stream(CODEC, events, CAPACITY)).collect();
    let times = u128::from(events).div_ceil(u128::from(once));
    let [x, y, z] = info.block();
    let per_block = info.warps_per_block();
    let warps = u32::try_from(times * chunks.len() as u128)?.div_ceil(per_block) * per_block;
    let mut metadata = trace.metadata().clone();
    metadata.tracks = vec![CODEC];
    let file = BufWriter::new(File::create(to)?);
    let mut writer = TraceWriter::create(file, &metadata, WriterOptions::default())?;
    writer.begin_launch(&LaunchInfo::new(0, info.kernel(), [warps / per_block, 1, 1], [x, y, z], 0)?)?;
    let (mut written, mut accounts) = (0_u64, Vec::new());
    let all: Vec<u32> = (0..warps).collect();
    for batch in all.chunks(BATCH) {
        let mut refs = Vec::new();
        for &warp in batch {
            let (mut recorded, of_warp) = (0, &chunks[warp as usize % chunks.len()]);
            for (sequence, (events, payload)) in (0..).zip(of_warp) {
                refs.push(ChunkRef { track: 0, warp, sequence, events: *events, payload });
                recorded += u64::from(*events);
            }
            written += recorded;
            let chunks = u32::try_from(of_warp.len())?;
            accounts.push(WarpAccount { attempted: recorded, recorded, lost: 0, chunks, finished: 1 });
        }
        writer.write_chunks(0, &refs)?;
    }
    writer.end_launch(0, 0, &accounts)?;
    writer.finish()?;
    println!("{to}: {written} events of {warps} warps, {} bytes", std::fs::metadata(to)?.len());
    Ok(())
}
