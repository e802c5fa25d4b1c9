//! Frames of version 2 yield the same data as frames of version 1.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::ops::ControlFlow;
use std::path::Path;

use crate::support::sections::Sections;
use crate::support::{Streams, decode, decode_filtered, ecl, event, metadata};
use warptrace_decoder::{Completeness, TraceFile, WarpFilter};
use warptrace_format::Event;
use warptrace_format::account::WarpAccount;
use warptrace_format::chunk::{DeviceTimes, SPLIT};
use warptrace_format::codec::{CodecSpec, PredictParams, encode_stream};
use warptrace_format::file::{
    ChunkRef, ClassChunk, Compression, FrameTimes, LaunchInfo, TIMES, Tie, WarpRun, encode_frame_of_runs,
};

/// Two classes in three runs; warps 4 and 7 have no events.
const RUNS: [WarpRun; 3] = [
    WarpRun { first: 0, warps: 3, class: 0 },
    WarpRun { first: 3, warps: 1, class: 1 },
    WarpRun { first: 5, warps: 2, class: 0 },
];

fn classes() -> [Vec<Event>; 2] {
    let many = (0..300u16).map(|number| event(1 + number % 7 * (number % 2), u32::MAX >> (number % 5)));
    [many.collect(), vec![event(2, 1), event(9, 0xff)]]
}

fn streams() -> Streams {
    let warps = |run: WarpRun| (run.first..=run.last()).map(move |warp| (warp, run.class));
    RUNS.into_iter().flat_map(warps).map(|(warp, class)| (warp, classes()[class as usize].clone())).collect()
}

/// Makes a file of one launch with one frame for each track, of version 2 or 1.
fn file(tracks: &[CodecSpec], by_runs: bool, is_timed: bool, compression: Compression) -> Sections {
    let mut metadata = metadata(tracks.to_vec());
    if is_timed {
        metadata = metadata.with_property(TIMES, "runs");
    }
    let mut file = Sections::new(&metadata);
    let launch = LaunchInfo::new(3, 0, [4, 1, 1], [64, 1, 1], 0).unwrap();
    file.put(&launch.encode_section());
    for (track, &codec) in (0..).zip(tracks) {
        let encoded = classes().map(|events| encode_stream(codec, &events, 90));
        let classes = encoded.each_ref().map(|chunks| {
            chunks.iter().map(|(events, payload)| ClassChunk { events: *events, payload }).collect::<Vec<_>>()
        });
        let mut chunks = Vec::new();
        let mut accounts = [WarpAccount { finished: 1, ..WarpAccount::default() }; 8];
        for run in RUNS {
            for warp in run.first..=run.last() {
                let of_warp = &classes[run.class as usize];
                for (sequence, &ClassChunk { events, payload }) in (0..).zip(of_warp) {
                    chunks.push(ChunkRef { track, warp, sequence, events, payload });
                }
                let recorded = of_warp.iter().map(|chunk| u64::from(chunk.events)).sum();
                let account = &mut accounts[warp as usize];
                (account.attempted, account.recorded) = (recorded, recorded);
                account.chunks = of_warp.len() as u32;
            }
        }
        let frame = file.bytes.len();
        if by_runs {
            let classes = classes.each_ref().map(Vec::as_slice);
            file.put(&encode_frame_of_runs(3, track, &RUNS, &classes, compression).unwrap().section);
        } else {
            file.put_chunks(3, &chunks, (u64::MAX, compression));
        }
        if is_timed && track == 0 {
            // Runs of one event are never split here; each begins one unit after the previous one.
            let times: Vec<Vec<u8>> = chunks.iter().map(|chunk| chunk_times(codec, chunk)).collect();
            let (tie, times) =
                (Tie::to_encoded(&file.bytes[frame..]), times.iter().map(|it| DeviceTimes::new(SPLIT, it)));
            file.put(&FrameTimes::encode_section(tie, times, 16, Compression::None).unwrap());
        }
        file.put_accounts(&launch, track, &accounts, &[]);
    }
    file
}

/// Makes the times of a chunk's runs, as the device writes them. Each warp has different times.
fn chunk_times(codec: CodecSpec, chunk: &ChunkRef<'_>) -> Vec<u8> {
    let mut events = Vec::new();
    let mut decoder = warptrace_format::codec::Decoder::new(codec);
    decoder.decode(chunk.payload, chunk.events, &mut |event| events.push(event)).unwrap();
    events.dedup();
    let first = 1000 * (chunk.warp + 1) + 300 * chunk.sequence;
    (first..).zip(&events).flat_map(|(time, _)| [time, 0]).flat_map(u32::to_le_bytes).collect()
}

fn open(file: Sections) -> TraceFile {
    let trace = TraceFile::from_bytes(file.finish()).unwrap();
    assert_eq!(*trace.completeness(), Completeness::Complete);
    trace
}

fn items(trace: &TraceFile, track: u32) -> Vec<(u32, u64, Vec<Event>, Option<u64>)> {
    let mut found = Vec::new();
    let flow = trace.items_in_order(3, track, &WarpFilter::all(), &mut |item| {
        let mut events = Vec::new();
        item.item.for_each(&mut |event| events.push(event));
        found.push((item.warp, item.first_event, events, item.begin));
        ControlFlow::Continue(())
    });
    assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
    found
}

fn assert_equal(by_runs: &TraceFile, listed: &TraceFile) {
    for track in 0..listed.metadata().tracks.len() as u32 {
        let totals = |trace: &TraceFile| {
            let totals = trace.totals(3, track);
            (totals.frames, totals.chunks, totals.events)
        };
        assert_eq!(totals(by_runs), totals(listed));
        assert_eq!(decode(by_runs, 3, track).unwrap(), streams());
        assert_eq!(decode(listed, 3, track).unwrap(), streams());
        assert_eq!(items(by_runs, track), items(listed, track));
        let summaries =
            |trace: &TraceFile| trace.streams(3, track).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(summaries(by_runs), summaries(listed));
        let counts = |trace: &TraceFile| trace.location_counts(3, track, &WarpFilter::all()).unwrap();
        assert_eq!(counts(by_runs), counts(listed));
        for warp in 0..8 {
            let events = by_runs.decode_warp(3, warp, track).unwrap().collect::<Result<Vec<_>, _>>();
            assert_eq!(events.unwrap(), streams().get(&warp).cloned().unwrap_or_default());
            let digests = |trace: &TraceFile| trace.lane_digests(3, warp, track).unwrap();
            assert_eq!(digests(by_runs), digests(listed));
        }
        let filter = WarpFilter::warps(2..6);
        let part = |trace| decode_filtered(trace, 3, track, &filter).unwrap();
        assert_eq!(part(by_runs), part(listed));
    }
    let page = |trace: &TraceFile| {
        let report = trace.verify();
        let bytes = report.bytes;
        report.to_string().replace(&format!("{bytes} bytes"), "")
    };
    assert_eq!(page(by_runs), page(listed));
}

#[test]
fn a_file_of_runs_holds_what_a_file_of_chunks_does() {
    let predict = CodecSpec::Predict(PredictParams::DEFAULT);
    for tracks in [vec![ecl(), CodecSpec::Raw], vec![predict], vec![CodecSpec::Raw]] {
        for compression in [Compression::None, Compression::Suited] {
            let [by_runs, listed] =
                [true, false].map(|by_runs| open(file(&tracks, by_runs, false, compression)));
            assert!(listed.verify().is_ok());
            assert_equal(&by_runs, &listed);
        }
    }
}

#[test]
fn times_of_a_frame_of_runs_are_those_of_its_chunks() {
    for codec in [CodecSpec::Raw, ecl()] {
        let [by_runs, listed] =
            [true, false].map(|by_runs| open(file(&[codec], by_runs, true, Compression::None)));
        assert!(listed.verify().is_ok(), "{}", listed.verify());
        assert!(listed.verify().timed_runs > 100 && items(&by_runs, 0).iter().all(|item| item.3.is_some()));
        assert_equal(&by_runs, &listed);
    }
}

#[test]
fn a_frame_of_runs_is_found_without_an_index() {
    let whole = file(&[ecl(), CodecSpec::Raw], true, false, Compression::None);
    let trace = TraceFile::from_bytes(whole.bytes).unwrap();
    assert_ne!(*trace.completeness(), Completeness::Complete);
    assert_eq!([0, 1].map(|track| decode(&trace, 3, track).unwrap()), [streams(), streams()]);
    assert_eq!(trace.totals(3, 0).events, 5 * 300 + 2);
}

#[test]
fn a_golden_file_of_runs_is_written_and_read_as_ever() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/runs-v2.wtrc");
    let written = file(&[ecl(), CodecSpec::Raw], true, false, Compression::None).finish();
    if std::env::var_os("WARPTRACE_OVERWRITE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(&path, &written).unwrap();
    }
    let golden = std::fs::read(&path).unwrap();
    assert!(written == golden, "what is written has changed; see docs/reference/format/evolution.md");
    let trace = TraceFile::from_bytes(golden).unwrap();
    assert_eq!([0, 1].map(|track| decode(&trace, 3, track).unwrap()), [streams(), streams()]);
    let report = trace.verify();
    assert!(report.is_ok(), "{report}");
}
