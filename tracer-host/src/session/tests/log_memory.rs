//! How launches share log memory, and how it grows.

use warptrace_format::log::{ENTRY_BYTES, LaunchLogs, RESERVED_ENTRIES, slice_entries};

use super::fake::{FakeDevice, Script, script};
use super::output::Shared;
use super::{PROGRAM, launch, launch_warps, options};
use crate::DeviceError;
use crate::session::{Session, SessionError, SessionOptions};

#[test]
fn the_pool_is_drained_before_a_launch_that_may_not_find_log_memory() {
    // Kernels have 8 MiB of the smallest log memory: 524,288 entries, or 4,096 of the longest segments.
    let claims = |segments| Script { segments, ..script(&[(0, 0, 1)]) };
    let mut device = FakeDevice::of([1407, 0, 1328, 1, 3070, 1].map(claims));
    let mut session = Session::start(&mut device, &PROGRAM, &options(1000), Shared::default()).unwrap();
    for kernel in ["k", "other", "k", "other", "k", "other"] {
        launch(&mut session, kernel).unwrap();
    }
    assert_eq!(session.finish().unwrap().2.recorded, 6);
    assert!(device.launches.iter().all(|(logs, ..)| logs.segment_entries == 128));
    assert_eq!(
        device.launched,
        [
            "k",
            // Nobody knows yet what it needs.
            "other",
            // Twice what the first `k` has claimed is not there any more.
            "encode 2 of 4",
            "k",
            "other",
            // Nor is it now.
            "encode 2 of 4",
            "k",
            // More than three quarters are taken, which is worth a drain at once.
            "encode 1 of 2",
            "other",
            "encode 1 of 2"
        ]
    );
}

/// What a launch of so many warps is told, on a device whose largest allocation has so many bytes.
fn logs_for(warps: u64, dual: bool, largest: u64) -> Result<LaunchLogs, SessionError> {
    let mut device = FakeDevice::of([script(&[(1, 0, 1)])]);
    device.largest = largest;
    let options = SessionOptions { dual, ..options(40) };
    let mut session = Session::start(&mut device, &PROGRAM, &options, Shared::default()).unwrap();
    let launched = launch_warps(&mut session, "k", warps, 32);
    drop(session);
    assert!(device.memory.is_empty(), "all memory is given back");
    launched?;
    Ok(device.logs(0))
}

#[test]
fn log_memory_grows_with_the_launch() {
    let few = logs_for(2, false, u64::MAX).unwrap();
    assert_eq!((few.first_entries, few.claims_end * ENTRY_BYTES), (32, 8 << 20));
    let slices = 4000 * slice_entries(8);
    // Both tracks have slices.
    let [many, dual] =
        [(4000, false), (2000, true)].map(|(warps, dual)| logs_for(warps, dual, u64::MAX).unwrap());
    for many in [many, dual] {
        assert_eq!((many.first_entries, many.slices), (8, RESERVED_ENTRIES));
        let behind = many.claims_from - many.slices - slices;
        assert!(behind < 128, "{behind} entries behind the slices are nobody's");
        let free = many.claims_end - many.claims_from;
        assert!(free >= slices, "as much again as the slices: {free} entries");
    }
    // Where a device has not so much, there is less beside the slices.
    let narrow = logs_for(4000, false, 48 << 20).unwrap();
    assert_eq!((narrow.first_entries, narrow.claims_from), (8, many.claims_from));
    assert!(2 * u64::from(narrow.claims_end) * u64::from(ENTRY_BYTES) <= 48 << 20);
    let free = narrow.claims_end - narrow.claims_from;
    assert!(5 * free > slices, "a quarter of the slices: {free} entries");
    let error = logs_for(6000, false, 48 << 20).unwrap_err();
    assert!(matches!(error, SessionError::Device(DeviceError::OutOfMemory { .. })), "{error}");
}

#[test]
fn launches_share_log_memory_that_has_grown() {
    let mut device = FakeDevice::of(vec![script(&[(0, 0, 1)]); 3]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(12_500), Shared::default()).unwrap();
    for warps in [10, 9000, 10] {
        launch_warps(&mut session, "k", warps, 32).unwrap();
    }
    assert_eq!(session.finish().unwrap().2.recorded, 3);
    // The second does not fit behind the first, and then takes most of it.
    assert_eq!(device.launched, ["k", "encode 1 of 10", "k", "encode 1 of 9000", "k", "encode 1 of 10"]);
    let [first, second, third] = [0, 1, 2].map(|number| device.logs(number));
    assert!(second.claims_end > first.claims_end);
    assert_eq!((third.claims_end, third.logs), (second.claims_end, second.logs));
}

#[test]
fn a_blocks_last_warp_may_lack_lanes() {
    // The device compares what encoding is told of a launch with what it was launched with.
    let mut device = FakeDevice::of(vec![script(&[(0, 0, 1)]); 2]);
    let options = SessionOptions { dual: true, ..options(400) };
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
fn log_memory_that_entries_cannot_name_is_refused() {
    // The slices of six million warps have more entries than 32 bits can number.
    let error = logs_for(6_000_000, false, u64::MAX).unwrap_err();
    assert!(error.to_string().contains("launch smaller grids"), "{error}");
}
