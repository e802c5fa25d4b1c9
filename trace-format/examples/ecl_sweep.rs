//! Compression ratio of `ecl` over its parameters, as the Markdown of `results/ecl-sweep.md`.
//!
//! ```text
//! cargo run --release -p warptrace-format --example ecl_sweep > results/ecl-sweep.md
//! ```
//!
//! The BFS trace is read from the real inputs (`WARPTRACE_INPUTS`, or `../shared/inputs` beside the
//! checkout); without it, its columns stay empty.

use std::io::Read;
use std::path::PathBuf;

use warptrace_format::codec::{CodecSpec, EclParams, encode_stream};
use warptrace_format::{Event, RAW_EVENT_BYTES};

/// Payload of a 4 KiB chunk.
const CHUNK_CAPACITY: u32 = 4096 - 32;

type Streams = Vec<Vec<Event>>;

fn main() {
    let bfs = bfs();
    let joined = bfs.as_ref().map(|streams| vec![streams.concat()]);
    let inputs = [bfs, joined, Some(nbody()), Some(fractal(1 << 12))];
    println!(
        "# Ratios of `ecl` over its parameters\n\n\
         Made by `cargo run --release -p warptrace-format --example ecl_sweep > results/ecl-sweep.md`.\n\n\
         Raw bytes (5 an event) over payload bytes, chunk headers not counted. In each cell: chunks of 4 KiB \
         (4,064 bytes of payload), then one chunk a stream.\n\n\
         - BFS: 128 real warp streams, 159,509 events ({}).\n\
         - BFS joined: the same streams one after the other as one long stream, for what a chunk's fresh start \
         costs; the others compress into less than a chunk a stream.\n\
         - N-body-like: one stream of 50,000 equal events, every lane active.\n\
         - Fractal-like: 64 warps of the fractal at 2048 x 2048, depth 4,096: 32 pixels of a row each, iterated \
         in double precision on this machine; one event at entry, one an iteration with the lanes still in the \
         loop, one at each way out of it, one where all meet. {} events.\n\n\
         Work is the memory a warp's encoder needs: 4 x 2^L + W + 16 bytes.\n",
        if inputs[0].is_some() { "Rodinia, NVBit, sm_80" } else { "not found: columns empty" },
        inputs[3].as_ref().map_or(0, |streams| streams.iter().map(Vec::len).sum::<usize>()),
    );
    println!("| L | s | log2 W | work, bytes | BFS | BFS joined | N-body-like | fractal-like |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for hash_bits in [6, 7, 8, 9, 10, 14] {
        for window_bits in [6, 8, 10, 14] {
            for shift in 1..=8 {
                let params = EclParams::new(hash_bits, shift, window_bits).expect("in range");
                print!("| {hash_bits} | {shift} | {window_bits} | {} |", params.work_bytes());
                for streams in &inputs {
                    match streams {
                        Some(streams) => {
                            let [chunked, whole] =
                                [CHUNK_CAPACITY, u32::MAX].map(|capacity| ratio(params, streams, capacity));
                            print!(" {chunked:.2} / {whole:.2} |");
                        }
                        None => print!(" |"),
                    }
                }
                println!();
            }
        }
    }
}

fn ratio(params: EclParams, streams: &Streams, capacity: u32) -> f64 {
    let spec = CodecSpec::Ecl(params);
    let events: usize = streams.iter().map(Vec::len).sum();
    let bytes: usize = streams
        .iter()
        .flat_map(|stream| encode_stream(spec, stream, capacity))
        .map(|(_, payload)| payload.len())
        .sum();
    (events * RAW_EVENT_BYTES as usize) as f64 / bytes as f64
}

fn nbody() -> Streams {
    vec![vec![Event { location: 1, mask: u32::MAX }; 50_000]]
}

/// Warps of 32 neighbouring pixels of a row, taken evenly over the picture: the default region of the fractal
/// workload (a square of side 0.00578 from x = -0.74395, y = -0.10461 downwards), z = z^2 + c until the depth
/// or |z|^2 > 5.
fn fractal(depth: u32) -> Streams {
    const SIZE: u32 = 2048;
    const WARPS: u32 = 64;
    let step = 0.00578 / f64::from(SIZE);
    let mut streams = Streams::new();
    for warp in 0..WARPS {
        let first = warp * (SIZE * SIZE / WARPS / 32) * 32 + warp * 32 % SIZE;
        let (row, column) = (first / SIZE, first % SIZE);
        let counts: Vec<u32> = (0..32)
            .map(|lane| {
                let cx = -0.74395 + f64::from(column + lane) * step;
                let cy = -0.10461 - f64::from(row) * step;
                iterations(cx, cy, depth)
            })
            .collect();
        streams.push(loop_events(&counts));
    }
    streams
}

fn iterations(cx: f64, cy: f64, depth: u32) -> u32 {
    let (mut x, mut y, mut left) = (cx, cy, depth);
    loop {
        let (x2, y2) = (x * x, y * y);
        y = 2.0 * x * y + cy;
        x = x2 - y2 + cx;
        left -= 1;
        if left == 0 || x2 + y2 > 5.0 {
            return depth - left;
        }
    }
}

/// The events of a loop in which lane *i* stays for `counts[i]` iterations.
fn loop_events(counts: &[u32]) -> Vec<Event> {
    let lanes = |test: &dyn Fn(u32) -> bool| -> u32 {
        counts.iter().enumerate().filter(|(_, count)| test(**count)).map(|(lane, _)| 1 << lane).sum()
    };
    let mut events = vec![Event { location: 1, mask: u32::MAX }];
    for iteration in 1..=counts.iter().copied().max().unwrap_or(0) {
        events.push(Event { location: 2, mask: lanes(&|count| count >= iteration) });
        let leaving = lanes(&|count| count == iteration);
        if leaving != 0 {
            events.push(Event { location: 3, mask: leaving });
        }
    }
    events.push(Event { location: 4, mask: u32::MAX });
    events
}

/// The BFS trace: a stream count, then for each stream its length in bytes and its events.
fn bfs() -> Option<Streams> {
    let folder = std::env::var_os("WARPTRACE_INPUTS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/inputs")),
        PathBuf::from,
    );
    let packed = std::fs::read(folder.join("traces/bfs_warp_streams.bin.gz")).ok()?;
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("a gzip file");
    let mut rest = &bytes[..];
    let word = |rest: &mut &[u8]| {
        let (word, after) = rest.split_first_chunk().expect("a word");
        *rest = after;
        u32::from_le_bytes(*word) as usize
    };
    let streams = word(&mut rest);
    let take = |_| {
        let length = word(&mut rest);
        let (stream, after) = rest.split_at(length);
        rest = after;
        stream.as_chunks().0.iter().map(|event| Event::from_cut(*event)).collect()
    };
    Some((0..streams).map(take).collect())
}
