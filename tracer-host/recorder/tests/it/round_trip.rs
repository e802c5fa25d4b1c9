//! Recordings read back unchanged, with any frame size, compression and order of drains.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use warptrace_decoder::{Completeness, TraceFile};
use warptrace_format::Event;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{Compression, LaunchInfo};

use crate::recordings::{Recorder, Streams, decode, ecl, event};
use crate::support::{record, small};

#[test]
fn a_small_trace_is_whole_and_gives_everything_back() {
    let (bytes, recording) = small();
    assert!(bytes.len() < 3072, "{} bytes", bytes.len());
    let trace = TraceFile::from_bytes(bytes.clone()).unwrap();
    assert_eq!(*trace.completeness(), Completeness::Complete);
    assert_eq!(trace.length(), bytes.len() as u64);
    assert_eq!(trace.launches().map(|launch| launch.number()).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(trace.launch(4).unwrap().dynamic_shared_bytes(), 64);
    assert_eq!(trace.metadata().location(7).unwrap().name, "point 7");
    for (&launch, streams) in &recording {
        for track in 0..2 {
            assert_eq!(&decode(&trace, launch, track).unwrap(), streams);
            for warp in 0..trace.launch(launch).unwrap().warps() {
                let single: Vec<Event> =
                    trace.decode_warp(launch, warp, track).unwrap().map(Result::unwrap).collect();
                assert_eq!(single, streams.get(&warp).cloned().unwrap_or_default());
            }
            let events: u64 = streams.values().map(|events| events.len() as u64).sum();
            assert_eq!(trace.totals(launch, track).events, events);
        }
    }
    let report = trace.verify();
    assert!(report.is_ok(), "{report}");
    let twin = report.twin.unwrap();
    assert_eq!((twin.equal_warps, twin.prefix_warps, twin.different_warps), (5, 0, 0));
    assert_eq!((report.launches, report.warps, report.accounts), (2, 5, 12));
}

#[test]
fn a_chunk_of_more_events_than_any_buffer_comes_back() {
    // One event repeated, with rare marks that reveal shifts.
    let events: Vec<Event> = (0..2_500_000)
        .map(|number| event(if number % 400_000 == 399_999 { 2 } else { 1 }, u32::MAX))
        .collect();
    let mut recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]);
    recorder.metadata.chunk_bytes = 1 << 16;
    recorder.capacity = recorder.metadata.payload_capacity();
    let launch = LaunchInfo::new(0, 0, [2, 1, 1], [32, 1, 1], 0).unwrap();
    let streams = Streams::from([(0, vec![event(9, 7)]), (1, events)]);
    let trace = TraceFile::from_bytes(record(&recorder, &[(launch, streams.clone())])).unwrap();
    assert_eq!(trace.totals(0, 0).chunks, 2, "the long warp is one chunk");
    assert_eq!(decode(&trace, 0, 0).unwrap(), streams);
    let single: Vec<Event> = trace.decode_warp(0, 1, 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(single, streams[&1]);
    let report = trace.verify();
    assert!(report.is_ok(), "{report}");
    assert_eq!(report.twin.unwrap().events, 2_500_001);
}

fn any_event() -> impl Strategy<Value = Event> {
    (1..=20u16, prop_oneof![Just(u32::MAX), 1..=u32::MAX]).prop_map(|(location, mask)| event(location, mask))
}

/// Short random streams, and long ones of few different events, like loops.
fn any_stream() -> impl Strategy<Value = Vec<Event>> {
    prop_oneof![
        vec(any_event(), 1..200),
        (vec(any_event(), 1..5), 1..300usize).prop_map(|(period, times)| period.repeat(times)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_recording_comes_back(
        streams in btree_map(0..24u32, any_stream(), 0..16),
        frame_bytes in prop_oneof![1..2000u32, Just(1 << 20)],
        batch in prop_oneof![1..4usize, Just(usize::MAX)],
        level in prop_oneof![Just(None), (1..5).prop_map(Some)],
    ) {
        let launch = LaunchInfo::new(1, 0, [4, 3, 1], [64, 1, 1], 0).unwrap();
        let compression = level.map_or(Compression::None, Compression::Zstd);
        let mut recorder =
            Recorder::new(vec![ecl(), CodecSpec::Raw]).frame_bytes(frame_bytes).compression(compression);
        recorder.batch = batch;
        let trace = TraceFile::from_bytes(record(&recorder, &[(launch, streams.clone())])).unwrap();
        for track in 0..2 {
            prop_assert_eq!(&decode(&trace, 1, track).unwrap(), &streams);
            for (&warp, events) in &streams {
                let single: Vec<Event> =
                    trace.decode_warp(1, warp, track).unwrap().map(Result::unwrap).collect();
                prop_assert_eq!(&single, events);
            }
        }
        let report = trace.verify();
        prop_assert!(report.is_ok(), "{}", report);
        prop_assert_eq!(report.twin.unwrap().equal_warps, streams.len() as u64);
    }
}
