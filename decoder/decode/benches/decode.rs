//! Decoding speed in events per second: as items and expanded on one core, and through a file on all cores.
//!
//! ```text
//! cargo bench -p warptrace-decoder --bench decode
//! ```
//!
//! The fractal and N-body streams are generated here with one event for each iteration, as their kernels
//! would. BFS is a real trace from the real inputs (`WARPTRACE_INPUTS`, or `../shared/inputs`), if present.
#![allow(missing_docs, reason = "criterion's macros make public items")]

#[path = "../tests/it/support/sections.rs"]
mod sections;

use std::hint::black_box;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sections::Sections;
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, Decoder, EclParams, PredictParams, encode_stream};
use warptrace_format::file::{ChunkRef, Compression, DeviceInfo, LaunchInfo, Metadata};

/// Payload bytes of a chunk of 4 KiB.
const CAPACITY: u32 = 4064;
const PREDICT: CodecSpec = CodecSpec::Predict(PredictParams::DEFAULT);

fn event(location: u16, mask: u32) -> Event {
    Event { location, mask }
}

fn nbody() -> Vec<Vec<Event>> {
    let mut stream = vec![event(3, u32::MAX); 16_386];
    (stream[0], stream[16_385]) = (event(1, u32::MAX), event(4, u32::MAX));
    vec![stream; 256]
}

/// Warps of the default region, every eighth row: 32 neighbours, each iterating until it escapes.
fn fractal() -> Vec<Vec<Event>> {
    let (width, depth) = (512, 1024);
    let iterations = |pixel: u32| {
        let side = 0.00578 / f64::from(width);
        let (row, column) = (8 * (pixel / width), pixel % width);
        let (cx, cy) = (side.mul_add(f64::from(column), -0.74395), (-side).mul_add(f64::from(row), -0.10461));
        let (mut x, mut y, mut count) = (cx, cy, 0);
        while count < depth && x * x + y * y <= 5.0 {
            (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
            count += 1;
        }
        count
    };
    (0..width / 32 * (width / 8))
        .map(|warp| {
            let lanes: [u32; 32] = std::array::from_fn(|lane| iterations(warp * 32 + lane as u32));
            let longest = lanes.iter().max().copied().unwrap_or(0);
            let mask = |iteration: u32| {
                (0..32).filter(|&lane| lanes[lane] > iteration).fold(0, |mask, lane| mask | 1 << lane)
            };
            let iterations = (0..longest).map(|iteration| event(3, mask(iteration)));
            [event(1, u32::MAX)].into_iter().chain(iterations).chain([event(4, u32::MAX)]).collect()
        })
        .collect()
}

/// Reads the BFS trace. Moves locations to 1 and above and fills empty masks, as the format requires.
fn bfs() -> Option<Vec<Vec<Event>>> {
    let folder = std::env::var_os("WARPTRACE_INPUTS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/inputs")),
        PathBuf::from,
    );
    let packed = std::fs::read(folder.join("traces/bfs_warp_streams.bin.gz"))
        .inspect_err(|error| eprintln!("no BFS trace: {error}"))
        .ok()?;
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).ok()?;
    let mut rest = bytes.get(4..)?;
    let mut streams = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (stream, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let events = stream.as_chunks().0.iter().map(|bytes| Event::from_cut(*bytes));
        streams.push(events.map(|Event { location, mask }| event(location + 1, mask.max(1))).collect());
        rest = after;
    }
    Some(streams)
}

fn count(streams: &[Vec<Event>]) -> u64 {
    streams.iter().map(|stream| stream.len() as u64).sum()
}

fn one_core(criterion: &mut Criterion) {
    let programs = [("nbody", Some(nbody())), ("fractal", Some(fractal())), ("bfs", bfs())];
    for (program, streams) in programs {
        let Some(streams) = streams else { continue };
        let mut group = criterion.benchmark_group(format!("one core, {program}"));
        group.throughput(Throughput::Elements(count(&streams)));
        let mut specs = vec![CodecSpec::Ecl(EclParams::DEFAULT), PREDICT];
        if program != "bfs" {
            specs.push(CodecSpec::Raw);
        }
        for spec in specs {
            // The moved locations of `bfs` exceed 255.
            if streams.iter().flatten().any(|event| event.location > spec.max_location()) {
                continue;
            }
            let chunks: Vec<_> =
                streams.iter().flat_map(|events| encode_stream(spec, events, CAPACITY)).collect();
            let mut decoder = Decoder::new(spec);
            let mut decode = |sink: &mut dyn FnMut(&mut Decoder, u32, &[u8])| {
                chunks.iter().for_each(|(events, payload)| sink(&mut decoder, *events, payload));
            };
            group.bench_function(format!("{} as items", spec.name()), |bencher| {
                bencher.iter(|| {
                    let mut events = 0;
                    decode(&mut |decoder, count, payload| {
                        let result = decoder
                            .decode_items(payload, count, &mut |item| events += black_box(item).events());
                        result.expect("an encoder wrote it");
                    });
                    events
                });
            });
            group.bench_function(format!("{} expanded", spec.name()), |bencher| {
                let mut events: Vec<Event> = Vec::with_capacity(1 << 20);
                bencher.iter(|| {
                    decode(&mut |decoder, count, payload| {
                        events.clear();
                        decoder.decode_into(payload, count, &mut events).expect("an encoder wrote it");
                        black_box(&events);
                    });
                });
            });
        }
        group.finish();
    }
}

fn file(streams: &[Vec<Event>]) -> TraceFile {
    let metadata = Metadata::new("bench", DeviceInfo::simulator("none"), vec![PREDICT]).with_kernel("k", "");
    let mut file = Sections::new(&metadata);
    let blocks = streams.len() as u32;
    let launch = LaunchInfo::new(0, 0, [blocks, 1, 1], [32, 1, 1], 0).expect("a shape that can be");
    file.put(&launch.encode_section());
    let encoded: Vec<_> = streams.iter().map(|events| encode_stream(PREDICT, events, CAPACITY)).collect();
    let chunks: Vec<_> = (0..)
        .zip(&encoded)
        .flat_map(|(warp, chunks)| {
            (0..).zip(chunks).map(move |(sequence, (events, payload))| ChunkRef {
                track: 0,
                warp,
                sequence,
                events: *events,
                payload,
            })
        })
        .collect();
    // Frames have the size of the recorder's.
    file.put_chunks(0, &chunks, (256 << 10, Compression::Suited));
    TraceFile::from_bytes(file.finish()).expect("a sound file")
}

fn all_cores(criterion: &mut Criterion) {
    let streams = fractal();
    let trace = file(&streams);
    let mut group = criterion.benchmark_group("a file, fractal");
    group.throughput(Throughput::Elements(count(&streams)));
    group.bench_function("counts of locations, all cores", |bencher| {
        bencher.iter(|| trace.location_counts(0, 0, &WarpFilter::all()).expect("a sound file"));
    });
    group.bench_function("decode_all, all cores", |bencher| {
        bencher.iter(|| {
            let mut events = 0;
            let mut sink = |block: warptrace_decoder::EventBlock<'_>| {
                events += black_box(block.events).len();
                ControlFlow::Continue(())
            };
            let flow = trace.decode_all(0, 0, &WarpFilter::all(), &mut sink).expect("a sound file");
            (events, flow)
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300));
    targets = one_core, all_cores
}
criterion_main!(benches);
