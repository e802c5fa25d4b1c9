//! All ways to read a file return its contents.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::ops::ControlFlow;

use crate::support::{Recorder, Streams, decode, decode_filtered, ecl, event, small};
use warptrace_decoder::lanes::{LaneDigest, LaneDigests};
use warptrace_decoder::{DecodeError, TraceFile, WarpFilter};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::LaunchInfo;

#[test]
fn files_readers_and_bytes_give_the_same() {
    let (bytes, recording) = small();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    for trace in
        [TraceFile::open(file.path()).unwrap(), TraceFile::from_reader(std::io::Cursor::new(bytes)).unwrap()]
    {
        assert_eq!(decode(&trace, 3, 0).unwrap(), recording[&3]);
    }
    let error = TraceFile::open("/no/such/trace.wtrc").unwrap_err().to_string();
    assert!(error.contains("/no/such/trace.wtrc"), "{error}");
}

#[test]
fn streams_say_what_each_warp_recorded() {
    let (bytes, recording) = small();
    let complete = TraceFile::from_bytes(bytes.clone()).unwrap();
    let found: Vec<_> = complete.streams(3, 0).unwrap().map(Result::unwrap).collect();
    let summary: Vec<_> = found.iter().map(|stream| (stream.warp, stream.events)).collect();
    assert_eq!(summary, [(0, 10), (1, 11), (3, 13)]);
    assert_eq!((found[2].id.block, found[2].id.warp_in_block, found[2].id.kernel), ([1, 0, 0], 1, 0));
    assert!(found.iter().all(|stream| stream.account.is_some_and(|account| account.finished == 1)));

    let accounts = bytes.windows(4).position(|bytes| bytes == b"ACCT").unwrap();
    let cut = TraceFile::from_bytes(bytes[..accounts].to_vec()).unwrap();
    let counted: Vec<_> = cut.streams(3, 0).unwrap().map(Result::unwrap).collect();
    for (counted, accounted) in counted.iter().zip(&found) {
        assert_eq!((counted.warp, counted.id), (accounted.warp, accounted.id));
        assert_eq!((counted.chunks, counted.events), (accounted.chunks, accounted.events));
        assert_eq!(counted.account, None);
    }
    assert_eq!(counted.len(), recording[&3].len());
}

#[test]
fn filters_select_warps_and_blocks() {
    let launch = LaunchInfo::new(0, 0, [3, 2, 1], [64, 1, 1], 0).unwrap();
    let streams: Streams = (0..12).map(|warp| (warp, vec![event(1 + warp as u16, u32::MAX); 300])).collect();
    let recorder = Recorder::new(vec![ecl()]).frame_bytes(200);
    let trace = TraceFile::from_bytes(recorder.record(&[(launch, streams.clone())])).unwrap();
    let warps = |filter: &WarpFilter| -> Vec<u32> {
        let found = decode_filtered(&trace, 0, 0, filter).unwrap();
        assert!(found.iter().all(|(warp, events)| streams[warp] == *events));
        found.into_keys().collect()
    };
    assert_eq!(warps(&WarpFilter::all()), (0..12).collect::<Vec<_>>());
    assert_eq!(warps(&WarpFilter::warp(7)), [7]);
    assert_eq!(warps(&WarpFilter::warps(3..6)), [3, 4, 5]);
    assert_eq!(warps(&WarpFilter::warps(11..99)), [11]);
    assert!(warps(&WarpFilter::warps(12..99)).is_empty());
    assert!(warps(&WarpFilter::warp(u32::MAX)).is_empty());
    assert_eq!(warps(&WarpFilter::block(&launch, [1, 1, 0]).unwrap()), [8, 9]);
    assert_eq!(WarpFilter::block(&launch, [3, 0, 0]), None);
}

#[test]
fn a_break_ends_decoding() {
    let (bytes, _) = small();
    let trace = TraceFile::from_bytes(bytes).unwrap();
    let mut calls = 0;
    let flow = trace.decode_all(3, 0, &WarpFilter::all(), &mut |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert_eq!((flow.unwrap(), calls), (ControlFlow::Break(()), 1));
}

#[test]
fn events_come_in_order_from_any_number_of_threads() {
    // More events than a few threads decode at once, so that decoding and delivery overlap.
    let launch = LaunchInfo::new(0, 0, [40, 1, 1], [32, 1, 1], 0).unwrap();
    let streams: Streams = (0..40_u32)
        .map(|warp| {
            (warp, (0..10_000).map(|number| event(1 + (number % 7) as u16, warp + 1 + number)).collect())
        })
        .collect();
    let bytes = Recorder::new(vec![CodecSpec::Raw]).record(&[(launch, streams.clone())]);
    let trace = TraceFile::from_bytes(bytes).unwrap();
    for threads in 1..4 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert!(pool.install(|| decode(&trace, 0, 0)).unwrap() == streams, "{threads} threads");
        let (flow, seen) = pool.install(|| {
            let mut seen = 0;
            let flow = trace.decode_all(0, 0, &WarpFilter::all(), &mut |block| {
                seen += block.events.len();
                if block.warp == 25 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            (flow, seen)
        });
        assert_eq!(flow.unwrap(), ControlFlow::Break(()));
        assert!((250_000..260_000).contains(&seen), "{seen}");
    }
    assert!(decode(&trace, 0, 0).unwrap() == streams);
}

#[test]
fn what_is_not_there_is_named() {
    let (bytes, _) = small();
    let trace = TraceFile::from_bytes(bytes).unwrap();
    assert!(matches!(trace.decode_warp(9, 0, 0), Err(DecodeError::UnknownLaunch { launch: 9 })));
    assert!(matches!(trace.decode_warp(3, 0, 2), Err(DecodeError::UnknownTrack { track: 2, tracks: 2 })));
    let error = trace.decode_warp(3, 4, 0).unwrap_err();
    assert_eq!(error.to_string(), "launch 3 has no warp 4; its warps are 0 to 3");
    assert!(trace.streams(9, 0).is_err());
    assert!(trace.decode_all(9, 0, &WarpFilter::all(), &mut |_| ControlFlow::Continue(())).is_err());
    assert_eq!(trace.totals(9, 0).frames, 0);
}

#[test]
fn lanes_give_their_own_sequences() {
    let (bytes, recording) = small();
    let trace = TraceFile::from_bytes(bytes).unwrap();
    let events = &recording[&3][&0];
    let digests = trace.lane_digests(3, 0, 0).unwrap();
    assert_eq!(digests, events.iter().copied().collect::<LaneDigests>());
    for lane in 0..32 {
        let expected: Vec<u16> =
            events.iter().filter(|event| event.mask >> lane & 1 == 1).map(|event| event.location).collect();
        let found: Vec<u16> = trace.lane_locations(3, 0, 0, lane).unwrap().map(Result::unwrap).collect();
        assert_eq!(found, expected);
        assert_eq!(digests.lane(lane as usize), LaneDigest::new(expected));
    }
    // FNV-1a of the bytes 1, 0, from another implementation.
    assert_eq!(LaneDigest::new([1]).hash, 0x082f_2207_b4e8_8cc4);
    assert_ne!(LaneDigest::new([1, 2]), LaneDigest::new([2, 1]));
}
