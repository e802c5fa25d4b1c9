//! How launches share log memory, and how it grows.

use warptrace_format::log::{ENTRY_BYTES, Fixed, LANES, LaunchLogs, RESERVED_ENTRIES};

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
    assert_eq!((few.first_entries, few.claims_end * ENTRY_BYTES), (128, 8 << 20));
    let fixed = Fixed::place(RESERVED_ENTRIES.into(), 4000, 8);
    let taken = (fixed.end - fixed.heads) as u32;
    // Both tracks have heads and first segments.
    let [many, dual] =
        [(4000, false), (2000, true)].map(|(warps, dual)| logs_for(warps, dual, u64::MAX).unwrap());
    for many in [many, dual] {
        assert_eq!((many.first_entries, many.heads), (8, RESERVED_ENTRIES));
        assert_eq!((many.first_segments.into(), many.claims_from.into()), (fixed.first_segments, fixed.end));
        let free = many.claims_end - many.claims_from;
        assert!(free >= taken, "as much again as the first segments: {free} entries");
    }
    // Where a device has not so much, there is less beside the first segments.
    let narrow = logs_for(4000, false, 48 << 20).unwrap();
    assert_eq!((narrow.first_entries, narrow.claims_from), (8, many.claims_from));
    assert!(2 * u64::from(narrow.claims_end) * u64::from(ENTRY_BYTES) <= 48 << 20);
    let free = narrow.claims_end - narrow.claims_from;
    assert!(5 * free > taken, "a quarter of the first segments: {free} entries");
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
    // The first segments of sixteen million warps have more entries than 32 bits can number.
    let error = logs_for(16_000_000, false, u64::MAX).unwrap_err();
    assert!(error.to_string().contains("launch smaller grids"), "{error}");
}

/// What a launch of so many warps is told of a session with a pool of so many MiB.
fn first_entries(warps: u64, pool_mib: u64) -> u32 {
    let mut device = FakeDevice::of([script(&[(1, 0, 1)])]);
    let mut session =
        Session::start(&mut device, &PROGRAM, &options(pool_mib << 10), Shared::default()).unwrap();
    launch_warps(&mut session, "k", warps, 32).unwrap();
    drop(session);
    let logs = device.logs(0);
    let taken = warps as u32 * LANES * logs.first_entries / (logs.claims_end >> 8);
    let most = if logs.first_entries > 32 { 256 / 64 } else { 256 / 4 };
    assert!(taken <= most, "{warps} warps take {taken} 256ths of log memory");
    logs.first_entries
}

#[test]
fn small_launches_have_long_first_segments() {
    // Kernels have twice the pool: 32 MiB, of which a launch may take half a MiB for long segments, and 8 for others.
    let warps = [1, 2, 7, 8, 9, 16, 17, 512, 513, 1000];
    let lengths = warps.map(|warps| first_entries(warps, 16));
    assert_eq!(lengths, [1024, 512, 128, 128, 64, 64, 32, 32, 16, 16]);
    assert_eq!([1, 2].map(|warps| first_entries(warps, 128)), [4096; 2]);
}

#[test]
fn many_small_launches_with_long_first_segments_share_a_drain() {
    // Each takes a 64th of log memory at most; at three quarters it is drained.
    let mut device = FakeDevice::of(vec![script(&[(0, 0, 1)]); 100]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(12_500), Shared::default()).unwrap();
    for _ in 0..100 {
        launch_warps(&mut session, "k", 3, 96).unwrap();
    }
    session.finish().unwrap();
    let of_each_drain: Vec<_> =
        device.launched.split(|name| name.starts_with("encode")).map(<[_]>::len).collect();
    assert!(of_each_drain[0] >= 48 && of_each_drain.len() <= 4, "{of_each_drain:?}");
    let logs = device.logs(0);
    assert!(logs.first_entries >= 128, "{logs:?}");
    assert!(
        100 * LANES * 3 * logs.first_entries > logs.claims_end,
        "all launches together take more than there is"
    );
}
