//! What each step of the second stage saves in a file: the table of `results/at-rest.md`.
//!
//! ```text
//! cargo run --release -p warptrace-decoder --example at_rest -- TRACE.wtrc ...
//! ```
//!
//! Each trace is recorded with `raw`, so that other compressors can be given the same events. Its streams are
//! encoded again with every codec, as warps would do in chunks of 4 KiB, laid out in the ways of [`layouts`],
//! and written with the library.

mod layouts;

use std::error::Error;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use layouts::{Chunk, Launch};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, EclParams, PredictParams, encode_stream};
use warptrace_format::file::{ChunkRef, Compression};
use warptrace_format::pool::WarpAccount;
use warptrace_host::writer::{TraceWriter, WriterOptions};

type Outcome<T> = Result<T, Box<dyn Error>>;
/// The warps of a launch that have events, with these.
type Streams = Vec<(u32, Vec<Event>)>;

/// Payload bytes of the chunks that a pool has by default.
const CAPACITY: u32 = 4096 - 32;
/// Levels of zstd that files are written with.
const LEVELS: [i32; 5] = [1, 3, 6, 12, 19];

const CODECS: [CodecSpec; 3] =
    [CodecSpec::Raw, CodecSpec::Ecl(EclParams::DEFAULT), CodecSpec::Predict(PredictParams::DEFAULT)];

fn main() -> Outcome<()> {
    println!(
        "| trace | codec | raw events | xz -9 | zstd -19 | payload | 16-byte table | columns | distinct | sorted | accounts, 32 bytes | accounts | {} |",
        LEVELS.map(|level| format!("file, zstd {level} | MB/s")).join(" | ")
    );
    println!("|{}", " --- |".repeat(12 + 2 * LEVELS.len()));
    for path in std::env::args_os().skip(1) {
        measure(Path::new(&path))?;
    }
    Ok(())
}

fn measure(path: &Path) -> Outcome<()> {
    let trace = TraceFile::open(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let streams = streams(&trace)?;
    let raw = raw_bytes(&streams);
    let (xz, zstd) = (xz(&raw)?, zstd::bulk::compress(&raw, 19)?.len());
    for codec in CODECS {
        let launches = encode(&trace, &streams, codec);
        let chunks = || launches.iter().flat_map(|launch| &launch.chunks);
        let payload: usize = chunks().map(|chunk| chunk.payload.len()).sum();
        let mut row = vec![name.to_string(), codec.name().to_owned()];
        row.extend([raw.len(), xz, zstd, payload].map(grouped));
        for layout in layouts::LAYOUTS {
            row.push(grouped(layouts::size(&launches, layout)?));
        }
        row.push(grouped(layouts::accounts_of_32_bytes(&launches)?));
        row.push(grouped(layouts::accounts(&launches)?));
        for level in LEVELS {
            let started = Instant::now();
            let bytes = write(&trace, &launches, codec, Compression::Zstd(level))?;
            let rate = payload as f64 / started.elapsed().as_secs_f64() / 1e6;
            row.extend([grouped(bytes), format!("{rate:.0}")]);
        }
        println!("| {} |", row.join(" | "));
    }
    Ok(())
}

/// The events of each warp of each launch.
fn streams(trace: &TraceFile) -> Outcome<Vec<Streams>> {
    let mut launches = Vec::new();
    for launch in trace.launches() {
        let mut streams: Streams = Vec::new();
        let _all = trace.decode_all(launch.number(), 0, &WarpFilter::all(), &mut |block| {
            match streams.last_mut() {
                Some((warp, events)) if *warp == block.warp => events.extend_from_slice(block.events),
                _ => streams.push((block.warp, block.events.to_vec())),
            }
            ControlFlow::Continue(())
        })?;
        launches.push(streams);
    }
    Ok(launches)
}

fn raw_bytes(streams: &[Streams]) -> Vec<u8> {
    let events = streams.iter().flatten().flat_map(|(_, events)| events);
    events.flat_map(|event| event.cut()).collect()
}

fn xz(bytes: &[u8]) -> Outcome<usize> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 9);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

fn encode(trace: &TraceFile, streams: &[Streams], codec: CodecSpec) -> Vec<Launch> {
    let launches = trace.launches().zip(streams);
    launches
        .map(|(info, streams)| {
            let finished = WarpAccount { finished: 1, ..WarpAccount::default() };
            let mut accounts = vec![finished; info.warps() as usize];
            let mut chunks = Vec::new();
            for (warp, events) in streams {
                let encoded = encode_stream(codec, events, CAPACITY);
                let account = &mut accounts[*warp as usize];
                (account.recorded, account.attempted) = (events.len() as u64, events.len() as u64);
                account.chunks = encoded.len() as u32;
                for (sequence, (events, payload)) in (0..).zip(encoded) {
                    chunks.push(Chunk { warp: *warp, sequence, events, payload });
                }
            }
            Launch { info: *info, chunks, accounts }
        })
        .collect()
}

/// Bytes of the whole file.
fn write(
    trace: &TraceFile,
    launches: &[Launch],
    codec: CodecSpec,
    compression: Compression,
) -> Outcome<usize> {
    let mut metadata = trace.metadata().clone();
    metadata.tracks = vec![codec];
    let options = WriterOptions::default().with_compression(compression);
    let mut writer = TraceWriter::create(Vec::new(), &metadata, options)?;
    for Launch { info, chunks, accounts } in launches {
        writer.begin_launch(info)?;
        let chunks: Vec<_> = chunks
            .iter()
            .map(|&Chunk { warp, sequence, events, ref payload }| ChunkRef {
                track: 0,
                warp,
                sequence,
                events,
                payload,
            })
            .collect();
        writer.write_chunks(info.number(), &chunks)?;
        writer.end_launch(info.number(), 0, accounts)?;
    }
    Ok(writer.finish()?.0.len())
}

fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let parts: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    parts.join(",")
}
