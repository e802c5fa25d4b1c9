//! Expected claims of launches, and the number of launches that share an arena as a result.

use warptrace_abi::log::FirstSegments;
use warptrace_format::LANES;
use warptrace_format::file::LaunchInfo;

use super::super::fake::FakeDevice;
use crate::session::classes::Behavior;
use crate::session::memory::Division;
use crate::session::pool::{Effort, Pool, Stay};

const WARPS: u32 = 4096;

fn info(number: u32, kernel: u32) -> LaunchInfo {
    LaunchInfo::new(number, kernel, [WARPS, 1, 1], [LANES, 1, 1], 0).unwrap()
}

fn reserve(pool: &mut Pool, info: LaunchInfo) -> Option<(Stay, u32)> {
    let (stay, logs) = pool.reserve(&[info], Effort::Ample).ok()?;
    Some((stay, logs[0].first_lanes))
}

/// Runs the first launch of each kernel alone, with these claims.
fn pool(claims: [u64; 2]) -> Pool {
    pool_with(claims, 0)
}

fn pool_with(claims: [u64; 2], data_track: u32) -> Pool {
    let division = Division::new(4 << 30, 1024, Pool::arenas(true), FirstSegments::of_streams(8)).unwrap();
    let division = Division { data_track, ..division };
    let mut pool = Pool::new(&mut FakeDevice::new([]), division, 1, false, true).unwrap();
    for (kernel, claimed) in (0..).zip(claims) {
        let first = info(kernel, kernel);
        let (stay, _) = reserve(&mut pool, first).unwrap();
        pool.settle(stay.at, claimed, &[(stay, vec![first])]);
        pool.close_filling();
        assert!(pool.next_filled().is_some());
        pool.emptied(stay.at, 0);
    }
    pool
}

/// Returns how many launches of a kernel have room in the next arena, and the lanes with first segments.
fn shared(pool: &mut Pool, kernel: u32) -> (usize, u32) {
    let mut launches = (100..200).map(|number| reserve(pool, info(number, kernel)).unwrap());
    let (first, lanes) = launches.next().unwrap();
    (1 + launches.take_while(|(stay, _)| stay.at == first.at).count(), lanes)
}

#[test]
fn claims_of_other_kernels_are_not_expected_of_a_kernel() {
    let mut pool = pool([4_000_000, 0]);
    let both = [0, 1].map(|kernel| (reserve(&mut pool, info(50 + kernel, kernel)).unwrap().0, kernel));
    let at = both[0].0.at;
    let stays: Vec<_> =
        both.into_iter().map(|(stay, kernel)| (stay, vec![info(50 + kernel, kernel)])).collect();
    // As many as the first kernel has claimed before.
    pool.settle(at, 4_000_000, &stays);
    pool.close_filling();
    let few = shared(&mut pool.clone(), 0).0;
    assert!(shared(&mut pool, 1).0 > 2 * few, "{few}");
}

#[test]
fn claims_without_first_segments_for_each_lane_are_not_expected_with_them() {
    let mut pool = pool([0, 0]);
    pool.note_behavior(0, Behavior { parts: false, repeats: true });
    let (stay, lanes) = reserve(&mut pool, info(50, 0)).unwrap();
    assert_eq!(lanes, 1);
    pool.settle(stay.at, 8_000_000, &[(stay, vec![info(50, 0)])]);
    let (before, _) = shared(&mut pool.clone(), 0);
    pool.note_behavior(0, Behavior { parts: true, repeats: false });
    let (after, lanes) = shared(&mut pool, 0);
    assert_eq!(lanes, LANES);
    assert!(after > 2 * before, "{before} {after}");
}

#[test]
fn with_addresses_the_first_launch_without_first_segments_for_each_lane_is_alone() {
    for data_track in [0, 1] {
        let mut pool = pool_with([0, 0], data_track);
        pool.note_behavior(0, Behavior { parts: false, repeats: true });
        assert_eq!(reserve(&mut pool, info(50, 0)).unwrap().1, 1);
        assert_eq!(reserve(&mut pool, info(51, 0)).is_some(), data_track == 0);
    }
}
