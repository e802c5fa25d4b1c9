//! Sharing of log memory by launches with ring logs.

use warptrace_abi::log::{
    FirstSegments, Fixed, LaunchLogs, MAX_FIRST_ENTRIES, MIN_RING_ENTRIES, RESERVED_ENTRIES,
};
use warptrace_format::LANES;

use super::fake::{FakeDevice, script};
use super::output::Shared;
use super::{PROGRAM, launch_warps};
use crate::Session;
use crate::session::SessionError;
use crate::{LogKind, Policy, Recording, RecordingSpec};

fn options(kib: u64, dual: bool) -> RecordingSpec {
    RecordingSpec { policy: Policy::Ring, dual, ..super::options(kib) }
}

fn recorded(warps: &[u64], options: &RecordingSpec) -> Result<(Vec<LaunchLogs>, Vec<String>), SessionError> {
    let mut device = FakeDevice::new(vec![script(&[(0, 0, 1)]); warps.len()]);
    let mut session = Session::start(&mut device, &PROGRAM, options, Shared::default())?;
    for &warps in warps {
        launch_warps(&mut session, "k", warps, 32)?;
    }
    assert_eq!(session.finish()?.2.recorded, warps.len() as u64);
    let is_ring = |(recording, _): (Recording, _)| recording.logs == LogKind::Ring;
    assert!(device.prepared[0].1.is_some_and(is_ring), "kernels are prepared for rings");
    assert!(device.memory.is_empty(), "all memory is given back");
    Ok((device.launches.iter().map(|(logs, ..)| *logs).collect(), device.launched))
}

#[test]
fn rings_are_as_long_as_fits() {
    let mut lengths = Vec::new();
    for (kib, dual) in [(4 << 10, false), (64 << 10, true), (256 << 10, false)] {
        for warps in [1, 8, 40, 300, 2000] {
            let Ok((logs, _)) = recorded(&[warps], &options(kib, dual)) else { continue };
            let logs = logs[0];
            assert_eq!((logs.ring, logs.segment_entries), (1, logs.first_entries / 2));
            let streams = warps * if dual { 2 } else { 1 };
            let fits = |entries| {
                let fixed = Fixed::place(RESERVED_ENTRIES.into(), streams, FirstSegments::of_lanes(entries));
                fixed.end <= u64::from(logs.claims_end)
            };
            let entries = logs.first_entries;
            assert!(fits(entries), "{warps} warps in {kib} KiB have {entries}");
            assert!(entries == MAX_FIRST_ENTRIES || !fits(2 * entries), "{warps} warps in {kib} KiB");
            lengths.push(entries);
        }
    }
    assert_eq!(lengths, [2048, 256, 64, 4096, 4096, 512, 64, 16, 4096, 4096, 4096, 512, 128]);
}

#[test]
fn a_launch_of_which_not_even_the_shortest_rings_fit_is_refused() {
    for (warps, dual) in [(3000, false), (1500, true), (20_000, false)] {
        let error = recorded(&[warps], &options(4 << 10, dual)).unwrap_err();
        let SessionError::Memory { streams, needed: Some(needed), limit } = error else { panic!("{error}") };
        assert_eq!((streams, limit), (warps * if dual { 2 } else { 1 }, 4 << 20));
        let (logs, _) = recorded(&[warps], &options(needed >> 10, dual)).unwrap();
        assert_eq!(logs[0].first_entries, MIN_RING_ENTRIES);
        assert!(recorded(&[warps], &options((needed >> 10) - 1024, dual)).is_err());
    }
}

#[test]
fn launches_share_a_drain_unless_their_rings_would_be_shorter() {
    // Rings of a large launch take most of memory; rings of small launches have the maximum length.
    let (logs, launched) = recorded(&[300, 300], &options(64 << 10, false)).unwrap();
    assert_eq!(launched, ["k", "encode 1 of 300", "k", "encode 1 of 300"]);
    assert!(logs.iter().all(|logs| logs.first_entries == 128));
    let (logs, launched) = recorded(&[2, 2, 2], &options(64 << 10, false)).unwrap();
    assert_eq!(launched, ["k", "k", "k", "encode 3 of 6"]);
    assert!(logs.iter().all(|logs| logs.first_entries == MAX_FIRST_ENTRIES));
}

#[test]
fn what_the_longest_ring_needs_to_be_merged_in_stays_free() {
    // A launch with few streams may use half of memory, and others may follow it.
    let mut shared = 0;
    for kib in [5 << 10, 6 << 10, 7 << 10, 12 << 10, 40 << 10] {
        for [first, second] in [[1, 40], [2, 9], [1, 300], [8, 9], [9, 1], [3, 3]] {
            let (logs, launched) = recorded(&[first, second, first], &options(kib, false)).unwrap();
            shared += launched.iter().filter(|what| !what.starts_with("encode 1") && *what != "k").count();
            let longest = logs.iter().map(|logs| u64::from(LANES * logs.first_entries)).max().unwrap();
            let end = logs.iter().map(|logs| u64::from(logs.claims_from)).max().unwrap();
            // 16 bytes per entry; accounts, chunks and other parts use some of the limit.
            assert!((end + longest) * 16 < kib << 10, "{first} and {second} in {kib} KiB");
        }
    }
    assert!(shared > 2, "launches share a drain {shared} times");
}
