//! Recordings that begin at a given visit of a location, compared with whole recordings.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::ops::ControlFlow;

use crate::programs::simulator;
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::chosen::After;
use warptrace_format::codec::CodecSpec;
use warptrace_host::{
    DEVICE_PREDICT, LaunchReport, MemorySize, Policy, RecordingSpec, Session, Visits, Window,
};
use warptrace_kernels::stress::at;
use warptrace_workloads::stress::{self, StressOptions};

const OPTIONS: StressOptions = StressOptions::new(200, 6);
const POLICIES: [Policy; 3] = [Policy::Stop, Policy::Ring, Policy::Stream];

/// Locations and masks of a lane's events.
type Way = Vec<(u16, u32)>;

fn record(policy: Policy, dual: bool, after: Option<After>) -> (TraceFile, LaunchReport) {
    let options = RecordingSpec {
        policy,
        dual,
        window: Window { after: after.map(Visits::from), ..Window::default() },
        memory: Some(MemorySize(64 << 20)),
        ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT))
    };
    let mut device = simulator(0);
    let mut session = Session::start(&mut device, &stress::PROGRAM.traced(), &options, Vec::new()).unwrap();
    let outcome = stress::run(&mut session, &OPTIONS).unwrap();
    assert!(stress::check(&OPTIONS, &outcome.result).is_ok());
    let (bytes, _, report) = session.finish().unwrap();
    let file = TraceFile::from_bytes(bytes).unwrap();
    let verified = file.verify();
    assert!(verified.is_ok(), "{verified:?}");
    (file, report)
}

fn ways(file: &TraceFile, track: u32) -> BTreeMap<(u32, u32), Way> {
    let mut ways: BTreeMap<_, Way> = BTreeMap::new();
    for launch in file.launches() {
        let flow = file.decode_all(launch.number(), track, &WarpFilter::all(), &mut |block| {
            for event in block.events {
                for lane in (0..32).filter(|lane| event.mask >> lane & 1 != 0) {
                    ways.entry((block.warp, lane)).or_default().push((event.location, event.mask));
                }
            }
            ControlFlow::Continue(())
        });
        assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
    }
    ways
}

/// Returns the expected rest. Records an event if any of its lanes is recorded, so processes events in order.
fn end_of(whole: &BTreeMap<(u32, u32), Way>, after: After) -> BTreeMap<(u32, u32), Way> {
    let mut ends = BTreeMap::new();
    let warps: BTreeSet<u32> = whole.keys().map(|(warp, _)| *warp).collect();
    for warp in warps {
        let of = |lane: u32| whole.get(&(warp, lane)).map_or(&[][..], Vec::as_slice);
        let (mut next, mut remaining) = ([0; 32], [after.count.get(); 32]);
        loop {
            let come = |lane: u32| of(lane).get(next[lane as usize]).copied();
            let ready = (0..32).find_map(|lane| {
                let (location, mask) = come(lane)?;
                let mut lanes = (0..32).filter(|lane| mask >> lane & 1 != 0);
                lanes.all(|lane| come(lane) == Some((location, mask))).then_some((location, mask))
            });
            let Some((location, mask)) = ready else { break };
            let lanes = (0..32_u32).filter(|lane| mask >> lane & 1 != 0);
            let least = lanes.clone().map(|lane| remaining[lane as usize]).min().unwrap();
            let visits = u32::from(location == after.location);
            for lane in lanes {
                next[lane as usize] += 1;
                let remaining = &mut remaining[lane as usize];
                *remaining = if least <= visits { 0 } else { *remaining - visits };
                if least <= visits {
                    ends.entry((warp, lane)).or_insert_with(Way::new).push((location, mask));
                }
            }
        }
        assert!((0..32).all(|lane| next[lane as usize] == of(lane).len()), "warp {warp} has an order");
    }
    ends
}

#[test]
fn a_trace_from_a_visit_on_is_the_end_of_a_whole_one() {
    for (turn, policy) in POLICIES.into_iter().enumerate() {
        let (whole, all) = record(policy, false, None);
        let whole = ways(&whole, 0);
        let visits = [(at::ROUND, 3), (at::CELL, 5), (at::CLIMB, 1), (at::DONE, 1), (at::QUIT, 2)];
        for (number, (location, count)) in visits.into_iter().enumerate() {
            let after = After { location, count: NonZeroU32::new(count).unwrap() };
            let dual = (number + turn) % 2 == 0;
            let (file, report) = record(policy, dual, Some(after));
            let expected = end_of(&whole, after);
            assert!(ways(&file, 0) == expected, "{policy:?} {after:?} {dual}");
            if dual {
                assert!(ways(&file, 1) == expected, "{policy:?} {after:?}, the twin");
            }
            assert_eq!((report.attempted, report.lost), (report.recorded, 0));
            assert!(report.recorded < all.recorded, "{report:?}");
        }
    }
}
