//! Runs and cycles of a file: expanded items equal the events, and counts match.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::support::{Recorder, Streams, decode, ecl, event};
use warptrace_decoder::{DecodeError, TraceFile, WarpFilter};
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_format::file::LaunchInfo;

fn streams() -> Streams {
    let loops = |first: u16, times: usize| -> Vec<Event> {
        let body = [event(first, u32::MAX), event(first + 1, 0xff), event(first + 2, 0xff00)];
        let once = [vec![event(1, u32::MAX)], body.repeat(times), vec![event(9, u32::MAX); times]].concat();
        once.repeat(2)
    };
    [(0, loops(2, 400)), (1, loops(2, 400)), (3, loops(3, 5)), (6, loops(2, 2000))].into()
}

fn file(codec: CodecSpec) -> TraceFile {
    let launch = LaunchInfo::new(1, 0, [8, 1, 1], [32, 1, 1], 0).unwrap();
    let recorder = Recorder::new(vec![codec]).frame_bytes(2000);
    TraceFile::from_bytes(recorder.record(&[(launch, streams())])).unwrap()
}

fn codecs() -> [CodecSpec; 3] {
    [CodecSpec::Raw, ecl(), CodecSpec::Predict(PredictParams::DEFAULT)]
}

#[test]
fn items_of_a_warp_expand_to_its_events() {
    for codec in codecs() {
        let trace = file(codec);
        let expected = decode(&trace, 1, 0).unwrap();
        assert_eq!(expected, streams());
        for warp in 0..8 {
            let mut events = Vec::new();
            let mut items = 0;
            let sink = |found: warptrace_decoder::WarpItem<'_>| {
                assert_eq!((found.warp, found.first_event), (warp, events.len() as u64));
                found.item.for_each(&mut |event| events.push(event));
                items += 1;
            };
            trace.decode_warp(1, warp, 0).unwrap().each_item(sink).unwrap();
            assert_eq!(events, expected.get(&warp).cloned().unwrap_or_default(), "{codec:?}, warp {warp}");
            assert!(items * 8 <= events.len() || events.len() < 100, "{codec:?}: {items} items");
        }
        let unknown = trace.decode_warp(1, 8, 0);
        assert!(matches!(unknown, Err(DecodeError::UnknownWarp { warp: 8, warps: 8, .. })));
    }
}

#[test]
fn items_in_order_are_those_of_each_warp() {
    for codec in codecs() {
        let trace = file(codec);
        for filter in [WarpFilter::all(), WarpFilter::warps(1..4), WarpFilter::warp(2)] {
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            let flow = trace.items_in_order(1, 0, &filter, &mut |item| {
                found.push(format!("{item:?}"));
                ControlFlow::Continue(())
            });
            assert!(flow.unwrap().is_continue());
            let range = if filter == WarpFilter::all() { 0..8 } else { 1..4 };
            for warp in range.filter(|warp| filter != WarpFilter::warp(2) || *warp == 2) {
                let of_warp = trace.decode_warp(1, warp, 0).unwrap();
                of_warp.each_item(|item| expected.push(format!("{item:?}"))).unwrap();
            }
            assert_eq!(found, expected, "{codec:?}");
        }
    }
    let trace = file(codecs()[0]);
    assert!(trace.items_in_order(0, 0, &WarpFilter::all(), &mut |_| ControlFlow::Continue(())).is_err());
}

#[test]
fn counts_are_those_of_the_events() {
    for codec in codecs() {
        let trace = file(codec);
        for filter in [WarpFilter::all(), WarpFilter::warps(1..4), WarpFilter::warp(2)] {
            let mut expected: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
            for (_, events) in crate::support::decode_filtered(&trace, 1, 0, &filter).unwrap() {
                for Event { location, mask } in events {
                    let count = expected.entry(location).or_default();
                    *count = (count.0 + 1, count.1 + u64::from(mask.count_ones()));
                }
            }
            let counts = trace.location_counts(1, 0, &filter).unwrap();
            let found: BTreeMap<_, _> =
                counts.into_iter().map(|(location, count)| (location, (count.events, count.lanes))).collect();
            assert_eq!(found, expected, "{codec:?}, {filter:?}");
        }
        assert!(matches!(
            trace.location_counts(7, 0, &WarpFilter::all()),
            Err(DecodeError::UnknownLaunch { launch: 7 })
        ));
    }
}

#[test]
fn damage_in_one_warp_is_an_error_that_names_it() {
    let launch = LaunchInfo::new(1, 0, [8, 1, 1], [32, 1, 1], 0).unwrap();
    let recorder = Recorder::new(vec![CodecSpec::Raw]);
    let mut bad = streams();
    bad.insert(5, vec![event(1, 0)]);
    let trace = TraceFile::from_bytes(recorder.record(&[(launch, bad)])).unwrap();
    let items = trace.decode_warp(1, 5, 0).unwrap().each_item(|_| {});
    for result in [trace.location_counts(1, 0, &WarpFilter::all()).map(|_| ()), items] {
        assert!(matches!(result, Err(DecodeError::Chunk { warp: 5, .. })), "{result:?}");
    }
    assert!(trace.location_counts(1, 0, &WarpFilter::warps(0..5)).is_ok());
}

#[test]
fn a_fold_ends_where_it_is_told_to() {
    for codec in codecs() {
        let trace = file(codec);
        let all = WarpFilter::all();
        let fold = |limit: u64| {
            trace.fold_items(
                (1, 0),
                &all,
                |warps| (warps.end, Some(0)),
                || 0,
                |events: &mut u64, class, found| {
                    *events += class.warps() * found.item.events();
                    if *events > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                },
                |left, right| left + right,
            )
        };
        let events: usize = streams().values().map(Vec::len).sum();
        assert_eq!(fold(u64::MAX).unwrap(), Some(events as u64));
        assert_eq!(fold(10).unwrap(), None);
    }
}
