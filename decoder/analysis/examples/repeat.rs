//! Makes a large trace from a small one, to measure read times. Repeats the first warps of its longest
//! launch, in equal launches, until the trace has the requested number of events.
//!
//! ```text
//! repeat small.wtrc EVENTS LAUNCHES WARPS LENGTH large.wtrc
//! ```
//!
//! Each launch has an equal share of EVENTS: the first LENGTH events of WARPS warps that have events,
//! repeated.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;

use warptrace_decoder::{TraceFile, WarpFilter, WarpItem};
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{ChunkRef, Compression, LaunchInfo};

use crate::sections::Sections;

#[path = "../../decode/tests/it/support/sections.rs"]
mod sections;

const CODEC: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);
/// Payload bytes of a chunk of 4 KiB.
const CAPACITY: u32 = 4064;
/// Uncompressed size of a frame, as in the recorder.
const FRAME_BYTES: u64 = 4 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, events, launches, warps, length, to] = &arguments[..] else {
        return Err("repeat FROM.wtrc EVENTS LAUNCHES WARPS LENGTH TO.wtrc".into());
    };
    let (trace, events, launches) =
        (TraceFile::open(from)?, events.parse::<u64>()?, launches.parse::<u32>()?);
    let (warps, length) = (warps.parse::<usize>()?, length.parse::<usize>()?);
    let longest = trace.launches().max_by_key(|info| trace.totals(info.number(), 0).events);
    let info = *longest.ok_or("the trace has no launch")?;
    let mut streams: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    let _ = trace.items_in_order(info.number(), 0, &WarpFilter::all(), &mut |found: WarpItem<'_>| {
        if streams.len() == warps && !streams.contains_key(&found.warp) {
            return ControlFlow::Break(());
        }
        let of_warp = streams.entry(found.warp).or_default();
        found.item.for_each(&mut |event| {
            if of_warp.len() < length {
                of_warp.push(event);
            }
        });
        ControlFlow::Continue(())
    })?;
    let once: usize = streams.values().map(Vec::len).sum();
    let chunks: Vec<_> = streams.values().map(|events| encode_stream(CODEC, events, CAPACITY)).collect();
    let times = (events / u64::from(launches)).div_ceil(once.max(1) as u64);
    let per_block = info.warps_per_block();
    let of_launch = u32::try_from(times * chunks.len() as u64)?.div_ceil(per_block) * per_block;

    let mut metadata = trace.metadata().clone();
    metadata.tracks = vec![CODEC];
    let (mut file, mut written) = (Sections::new(&metadata), 0);
    let mut out = std::fs::File::create(to)?;
    for number in 0..launches {
        let launch = LaunchInfo::new(number, info.kernel(), [of_launch / per_block, 1, 1], info.block(), 0)?;
        file.put(&launch.encode_section());
        let (mut refs, mut accounts) = (Vec::new(), Vec::new());
        for warp in 0..of_launch {
            let (mut recorded, of_warp) = (0, &chunks[warp as usize % chunks.len()]);
            for (sequence, (events, payload)) in (0..).zip(of_warp) {
                refs.push(ChunkRef { track: 0, warp, sequence, events: *events, payload });
                recorded += u64::from(*events);
            }
            written += recorded;
            let chunks = u32::try_from(of_warp.len())?;
            accounts.push(WarpAccount { attempted: recorded, recorded, lost: 0, chunks, finished: 1 });
        }
        file.put_chunks(number, &refs, (FRAME_BYTES, Compression::Suited));
        file.put_accounts(&launch, 0, &accounts, &[]);
    }
    let bytes = file.finish();
    out.write_all(&bytes)?;
    println!(
        "{to}: {written} events of {} warps, {} bytes",
        u64::from(of_launch) * u64::from(launches),
        bytes.len()
    );
    Ok(())
}
