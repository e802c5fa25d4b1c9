//! Sharing of log memory by launches.

use warptrace_abi::log::{FirstSegments, LaunchLogs, MAX_FIRST_ENTRIES, RESERVED_ENTRIES, SEGMENT_MULTIPLE};
use warptrace_format::LANES;

use super::fake::{FakeDevice, Script, script};
use super::output::Shared;
use super::{PROGRAM, launch, launch_warps, options};
use crate::RecordingSpec;
use crate::Session;

fn logs_for<const N: usize>(warps: [u64; N], kib: u64, dual: bool) -> [LaunchLogs; N] {
    let mut device = FakeDevice::new(vec![script(&[(0, 0, 1)]); N]);
    let options = RecordingSpec { dual, ..options(kib) };
    let mut session = Session::start(&mut device, &PROGRAM, &options, Shared::default()).unwrap();
    for warps in warps {
        launch_warps(&mut session, "k", warps, 32).unwrap();
    }
    drop(session);
    assert!(device.memory.is_empty(), "all memory is given back");
    std::array::from_fn(|number| device.logs(number))
}

#[test]
fn the_pool_is_drained_before_a_launch_that_may_not_find_log_memory() {
    let [logs] = logs_for([2], 16 << 10, false);
    let all = (logs.claims_end / 128) as f64;
    // Shares of log memory in segments. The small first segments of each launch come on top.
    let claims = |part: f64| Script { segments: (part * all) as u32, ..script(&[(0, 0, 1)]) };
    let mut device = FakeDevice::new([0.345, 0.0, 0.32, 0.0, 0.76, 0.0].map(claims));
    let mut session = Session::start(&mut device, &PROGRAM, &options(16 << 10), Shared::default()).unwrap();
    for kernel in ["k", "other", "k", "other", "k", "other"] {
        launch(&mut session, kernel).unwrap();
    }
    assert_eq!(session.finish().unwrap().2.recorded, 6);
    assert!(device.launches.iter().all(|(logs, ..)| logs.segment_entries == 128));
    assert_eq!(
        device.launched,
        [
            "k",
            // Its need is still unknown.
            "other",
            // Less than twice the claims of the first `k` is free.
            "encode 2 of 4",
            "k",
            "other",
            "encode 2 of 4",
            "k",
            // More than three quarters are used, which triggers a drain.
            "encode 1 of 2",
            "other",
            "encode 1 of 2"
        ]
    );
}

#[test]
fn a_launch_that_does_not_fit_behind_others_has_log_memory_for_itself() {
    let mut device = FakeDevice::new(vec![script(&[(0, 0, 1)]); 3]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(16 << 10), Shared::default()).unwrap();
    for warps in [10, 30_520, 10] {
        launch_warps(&mut session, "k", warps, 32).unwrap();
    }
    assert_eq!(session.finish().unwrap().2.recorded, 3);
    assert_eq!(device.launched, ["k", "encode 1 of 10", "k", "encode 1 of 30520", "k", "encode 1 of 10"]);
    let [first, second, third] = [0, 1, 2].map(|number| device.logs(number));
    assert_eq!(
        (second.first_segments, second.first()),
        (RESERVED_ENTRIES, FirstSegments::of_streams(SEGMENT_MULTIPLE))
    );
    assert_eq!((third.claims_end, third.logs), (second.claims_end, first.logs));
}

#[test]
fn a_launch_with_few_streams_leaves_as_much_for_what_is_merged() {
    let [few, more] = logs_for([8, 9], 16 << 10, false);
    let [few_dual, more_dual] = logs_for([4, 5], 16 << 10, true);
    assert_eq!((few.claims_end, more.claims_end), (few_dual.claims_end, more_dual.claims_end));
    let part = f64::from(few.claims_end) / f64::from(more.claims_end);
    assert!((part - 7.0 / 10.0).abs() < 0.01, "a half and five sevenths: {part}");
}

#[test]
fn a_blocks_last_warp_may_lack_lanes() {
    // The fake device compares encode jobs with the launches.
    let mut device = FakeDevice::new(vec![script(&[(0, 0, 1)]); 2]);
    let options = RecordingSpec { dual: true, ..options(4096) };
    let mut session = Session::start(&mut device, &PROGRAM, &options, Shared::default()).unwrap();
    launch_warps(&mut session, "k", 10, 50).unwrap();
    launch_warps(&mut session, "other", 3, 96).unwrap();
    session.finish().unwrap();
    let shapes: Vec<_> =
        device.launches.iter().map(|(logs, tracks, block)| (logs.warps, *tracks, *block)).collect();
    assert_eq!(shapes, [(14, 2, 50), (3, 2, 96)]);
    assert_eq!(device.launched, ["k", "other", "encode 2 of 34"]);
}

#[test]
fn small_launches_have_long_first_segments() {
    for (kib, warps) in [(16 << 10, [1, 2, 7, 40, 256, 1000]), (128 << 10, [1, 4, 9, 64, 512, 8000])] {
        for warps in warps {
            let [logs] = logs_for([warps], kib, false);
            // The longest segments for each lane within a quarter of log memory, or a 64th from 64 entries on;
            // otherwise the longest for each stream within a 1,024th.
            let lanes = u64::from(logs.first_lanes);
            let fits = |first: u32| {
                let of_lanes = if first >= 64 { 64 } else { 4 };
                let share = if logs.first_lanes == LANES { of_lanes } else { 1024 };
                first == SEGMENT_MULTIPLE
                    || lanes * warps * u64::from(first) <= u64::from(logs.claims_end / share)
            };
            assert_eq!(lanes == 32, 32 * warps * 8 <= u64::from(logs.claims_end / 4));
            let first = logs.first_entries;
            assert!(fits(first), "{warps} warps in {kib} KiB have {first}");
            assert!(
                first == MAX_FIRST_ENTRIES || !fits(2 * first),
                "{warps} warps in {kib} KiB have only {first}"
            );
        }
    }
}

#[test]
fn many_small_launches_with_long_first_segments_share_a_drain() {
    // Each takes at most a 64th of log memory; a drain follows at three quarters.
    let mut device = FakeDevice::new(vec![script(&[(0, 0, 1)]); 100]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(64 << 10), Shared::default()).unwrap();
    for _ in 0..100 {
        launch_warps(&mut session, "k", 3, 96).unwrap();
    }
    session.finish().unwrap();
    let of_each_drain: Vec<_> =
        device.launched.split(|name| name.starts_with("encode")).map(<[_]>::len).collect();
    assert!(of_each_drain[0] >= 48 && of_each_drain.len() <= 4, "{of_each_drain:?}");
    let logs = device.logs(0);
    assert!(logs.first_entries >= 128, "{logs:?}");
    // Lanes are then known not to diverge.
    assert_eq!(device.logs(99).first_lanes, 1);
}
