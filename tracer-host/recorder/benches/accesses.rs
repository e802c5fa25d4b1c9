//! Accesses per second: from the chunks of a drain to a file, and from a file to the warps.
//!
//! ```text
//! cargo bench -p warptrace-host --bench accesses -- [PART-OF-A-NAME | FILE.wtrc] [ROUNDS] [ENTRIES] [LAUNCHES]
//! ```
//!
//! With a file, only verifies that file. Prints a table with the best round, on all of rayon's threads
//! (`RAYON_NUM_THREADS`). `ENTRIES` is the size of the launch that is read; `LAUNCHES` is the number of
//! launches that are verified.
#![allow(missing_docs, reason = "not a library")]

use std::time::Instant;

use warptrace_decoder::{TraceFile, WarpAccesses, WarpFilter};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::data::{DataEntry, Owner};
use warptrace_format::file::{ChunkRef, DeviceInfo, LaunchInfo, Metadata, SiteInfo, SiteKind, SiteSpace};
use warptrace_host::HostMessage;
use warptrace_host::writer::{DataChunk, TraceWriter, WriterOptions};

const ENTRY_BYTES: usize = 16;
const CHUNK_ENTRIES: usize = 254;
const BATCH_ENTRIES: usize = 1 << 21;
const SITES: u16 = 18;
/// An event with all lanes at location 1, in the codec `raw`.
const EVENT: [u8; 6] = [1, 0, 255, 255, 255, 255];

struct Shape {
    name: &'static str,
    launches: u32,
    warps: u32,
    stream: fn(u32) -> Vec<u8>,
}

fn bytes(entries: impl IntoIterator<Item = DataEntry>) -> Vec<u8> {
    entries.into_iter().flat_map(|entry| entry.to_words().into_iter().flat_map(u32::to_le_bytes)).collect()
}

fn affine(site: u16, time: u32, base: u64) -> [DataEntry; 2] {
    let of = Owner::Group(32);
    [
        DataEntry::Header { mask: u32::MAX, site, time, spread: Some(124) },
        DataEntry::Values { site, of, count: 1, base, step: 0 },
    ]
}

fn generic(site: u16, time: u32, mask: u32, base: impl Fn(u32) -> u64) -> Vec<DataEntry> {
    let lanes = (0..32).filter(|lane| mask >> lane & 1 == 1);
    let values = lanes.map(|lane| {
        let of = Owner::Lane(lane);
        DataEntry::Values { site, of, count: 1, base: base(lane), step: 0 }
    });
    [DataEntry::Header { mask, site, time, spread: None }].into_iter().chain(values).collect()
}

/// Sum of two vectors: three sites, each accessed once.
fn sum(warp: u32) -> Vec<u8> {
    let site =
        |site: u16| affine(site, 40 * warp + u32::from(site), u64::from(site) << 32 | u64::from(warp) << 7);
    bytes((1..4).flat_map(site))
}

/// Product with sparse rows: a few lanes at each of many sites, at irregular addresses.
fn sparse(warp: u32) -> Vec<u8> {
    let site = |site: u16| {
        let mixed = (u64::from(warp) << 5 | u64::from(site)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mask = 0b101 << (mixed >> 60) | 1 << (mixed >> 33 & 31);
        generic(site, 90 * warp + 3 * u32::from(site), mask, |lane| {
            u64::from(site) << 32 | (mixed.rotate_left(lane) >> 44 << 2)
        })
    };
    bytes((1..=SITES).flat_map(site))
}

/// Product with sparse rows, a row a warp: a few lanes, once at each of few sites.
fn row_by_warp(warp: u32) -> Vec<u8> {
    let lanes = 1 + warp % 5;
    let mask = (1 << lanes) - 1;
    let start = 11 * u64::from(warp);
    let mut entries = affine(1, 90 * warp, u64::from(warp) << 2).to_vec();
    let time = 90 * warp + 20;
    entries.push(DataEntry::Header { mask, site: 2, time, spread: Some(4 * lanes as i32 - 4) });
    entries.push(DataEntry::Values { site: 2, of: Owner::Group(lanes), count: 1, base: start << 2, step: 0 });
    entries.extend(generic(3, time + 3, mask, |lane| {
        u64::from(warp ^ lane).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44 << 2
    }));
    bytes(entries)
}

/// One site in a loop, with a run for each access.
fn product(warp: u32) -> Vec<u8> {
    let turn = |turn: u32| {
        let base = u64::from(turn) << 14 | u64::from(warp % 64) << 7;
        generic(1, 20 * turn, u32::MAX, |lane| base | u64::from(lane / 4) << 40 | u64::from(lane) << 2)
    };
    bytes((0..31).flat_map(turn))
}

fn writer(warps: u32, launches: u32) -> TraceWriter<Vec<u8>> {
    let codec = vec![CodecSpec::Raw];
    let metadata = Metadata::new("bench", DeviceInfo::simulator("none"), codec)
        .with_kernel("k", "")
        .with_location(1, "begin", "");
    let mut writer =
        TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).expect("memory can be written");
    let sites = (1..=SITES).map(|site| SiteInfo::new(site, SiteKind::Load, SiteSpace::Global, 4));
    writer.write_message(&HostMessage::Sites(sites.collect())).expect("memory can be written");
    for launch in 0..launches {
        let info = LaunchInfo::new(launch, 0, [warps, 1, 1], [32, 1, 1], 0).expect("a shape that can be");
        writer.begin_launch(&info).expect("memory can be written");
    }
    writer
}

fn finish(mut writer: TraceWriter<Vec<u8>>, launches: u32, of_warps: &[(usize, u64)]) -> Vec<u8> {
    let one = WarpAccount { attempted: 1, recorded: 1, lost: 0, chunks: 1, finished: 1 };
    let account = |&(entries, recorded): &(usize, u64)| {
        let chunks = entries.div_ceil(CHUNK_ENTRIES) as u32;
        WarpAccount { attempted: recorded, recorded, lost: 0, chunks, finished: 1 }
    };
    let accounts: Vec<_> = of_warps.iter().map(account).collect();
    let event =
        |warp: usize| ChunkRef { track: 0, warp: warp as u32, sequence: 0, events: 1, payload: &EVENT };
    let events: Vec<_> = (0..accounts.len()).map(event).collect();
    for launch in 0..launches {
        writer.write_chunks(launch, &events).expect("memory can be written");
        writer.end_launch(launch, 0, &vec![one; accounts.len()]).expect("memory can be written");
        writer.end_data(launch, &accounts).expect("memory can be written");
    }
    writer.finish().expect("memory can be written").0
}

fn accesses(stream: &[u8]) -> u64 {
    let keys = stream.as_chunks::<ENTRY_BYTES>().0.iter().map(|entry| &entry[4..8]);
    keys.map(|key| {
        u64::from(warptrace_format::data::accesses(u32::from_le_bytes([key[0], key[1], key[2], key[3]])))
    })
    .sum()
}

fn chunks(warp: u32, stream: &[u8]) -> impl Iterator<Item = DataChunk<'_>> {
    let all = (0..).zip(stream.chunks(ENTRY_BYTES * CHUNK_ENTRIES));
    all.map(move |(sequence, entries)| DataChunk { warp, sequence, entries })
}

/// Wall-clock time of the best round, and its CPU time of all threads, in seconds.
#[derive(Clone, Copy)]
struct Seconds {
    passed: f64,
    of_threads: f64,
}

/// Returns the CPU time of this process in seconds, with a resolution of 0.01 s; 0 without Linux's `/proc`.
fn of_threads() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn best(rounds: u32, mut run: impl FnMut()) -> Seconds {
    let seconds = (0..rounds).map(|_| {
        let (started, before) = (Instant::now(), of_threads());
        run();
        Seconds { passed: started.elapsed().as_secs_f64(), of_threads: of_threads() - before }
    });
    let least = |a: Seconds, b: Seconds| if b.of_threads < a.of_threads { b } else { a };
    seconds.reduce(least).expect("there is a round")
}

fn row(name: &str, accesses: u64, bytes: usize, Seconds { passed, of_threads }: Seconds) {
    let million = accesses as f64 / 1e6;
    let rate = million / passed;
    println!("| {name} | {million:.1} | {bytes} | {passed:.3} | {of_threads:.2} | {rate:.1} |");
}

fn write(rounds: u32, shape: &Shape) {
    let streams: Vec<_> = (0..shape.warps).map(shape.stream).collect();
    let all: Vec<_> = (0..).zip(&streams).flat_map(|(warp, stream)| chunks(warp, stream)).collect();
    let each: u64 = streams.iter().map(|stream| accesses(stream)).sum();
    let mut length = 0;
    let seconds = best(rounds, || {
        let mut writer = writer(shape.warps, shape.launches);
        let launches = (0..shape.launches).map(|launch| (launch, all.clone()));
        writer.write_data_batch(launches.collect()).expect("memory can be written");
        length = writer.finish().expect("memory can be written").0.len();
    });
    row(shape.name, each * u64::from(shape.launches), length, seconds);
}

/// Returns a file with a launch of this many entries, drained in batches. Each batch has every second one of
/// the next warps, so that all sections overlap with sections of the batches before and after.
fn overlapping(entries: usize) -> Vec<u8> {
    let streams: Vec<_> = (0..64).map(product).collect();
    let each = streams[0].len() / ENTRY_BYTES;
    let warps = (entries / each) as u32;
    let at_once = (BATCH_ENTRIES / each) as u32;
    let mut writer = writer(warps, 1);
    let batches = warps.div_ceil(at_once) + 1;
    for batch in 0..batches {
        let reach = (batch * at_once).saturating_sub(at_once)..((batch + 1) * at_once).min(warps);
        let here = reach.filter(|warp| warp / at_once + warp % 2 == batch);
        let chunks: Vec<_> = here.flat_map(|warp| chunks(warp, &streams[warp as usize % 64])).collect();
        writer.write_data(0, &chunks).expect("memory can be written");
    }
    let of_warps = vec![(each, accesses(&streams[0])); warps as usize];
    finish(writer, 1, &of_warps)
}

fn read(rounds: u32, entries: usize) {
    let bytes = overlapping(entries);
    let (length, trace) =
        (bytes.len(), TraceFile::from_bytes(bytes).expect("the writer wrote it").unlimited());
    let count = trace.totals(0, trace.data_track()).events;
    let seconds = best(rounds, || {
        let add = |sum: &mut u64, warp: &WarpAccesses| *sum += warp.recorded;
        let found = trace.fold_accesses(0, &WarpFilter::all(), || 0, add, |a, b| a + b);
        assert_eq!(found.expect("the writer wrote it"), count);
    });
    row("read by `fold_accesses`: sections that overlap", count, length, seconds);
    let seconds = best(rounds, || {
        let report = trace.verify();
        assert!(report.is_ok(), "{report}");
    });
    row("verified: the same", count, length, seconds);
}

fn verify_many(rounds: u32, launches: u32, warps: u32) {
    let streams: Vec<_> = (0..warps).map(|warp| bytes(affine(1, 40 * warp, u64::from(warp) << 7))).collect();
    let all: Vec<_> = (0..).zip(&streams).flat_map(|(warp, stream)| chunks(warp, stream)).collect();
    let mut writer = writer(warps, launches);
    for launch in 0..launches {
        writer.write_data(launch, &all).expect("memory can be written");
    }
    let bytes = finish(writer, launches, &vec![(2, 32); warps as usize]);
    let (length, trace) =
        (bytes.len(), TraceFile::from_bytes(bytes).expect("the writer wrote it").unlimited());
    let count = u64::from(launches) * u64::from(warps) * 32;
    let seconds = best(rounds, || {
        let report = trace.verify();
        assert!(report.is_ok(), "{report}");
    });
    row(&format!("verified: {launches} launches of {warps} warps"), count, length, seconds);
}

fn main() {
    let arguments = || std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let numbers: Vec<usize> = arguments().filter_map(|argument| argument.parse().ok()).collect();
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (rounds, entries, launches) = (number(0, 3) as u32, number(1, 1 << 24), number(2, 200) as u32);
    let part = arguments().find(|argument| argument.parse::<usize>().is_err()).unwrap_or_default();
    let is_file = std::path::Path::new(&part).extension().is_some_and(|extension| extension == "wtrc");
    println!("| what | million accesses | bytes of the file | s | s of threads | million a second |");
    println!("| --- | --: | --: | --: | --: | --: |");
    if is_file {
        let trace = TraceFile::open(&part).expect("a trace");
        let launches = trace.launches().map(|launch| launch.number());
        let count = launches.map(|launch| trace.totals(launch, trace.data_track()).events).sum();
        let seconds = best(rounds, || {
            trace.renew_work();
            let report = trace.verify();
            assert!(report.is_ok(), "{report}");
        });
        row(
            &format!("verified: {part}"),
            count,
            std::fs::metadata(&part).map_or(0, |file| file.len()) as usize,
            seconds,
        );
    }
    for shape in [
        Shape { name: "written, a sum of vectors: 16 launches", launches: 16, warps: 31_250, stream: sum },
        Shape { name: "written, sparse rows: one launch", launches: 1, warps: 60_000, stream: sparse },
        Shape {
            name: "written, sparse rows, a row a warp: one launch",
            launches: 1,
            warps: 264_346,
            stream: row_by_warp,
        },
        Shape {
            name: "written, a run for each access: one launch",
            launches: 1,
            warps: 4_096,
            stream: product,
        },
    ] {
        if shape.name.contains(&part) {
            write(rounds, &shape);
        }
    }
    if "read: sections that overlap".contains(&part) {
        read(rounds, entries);
    }
    if "verified: many launches".contains(&part) {
        verify_many(rounds, launches, 16_384);
    }
}
