//! In structured code, the simulator forms the same groups as a GPU.
#![expect(clippy::manual_is_multiple_of, reason = "lane % 3 == 0 is how kernels are written")]

use crate::common::{Log, one_block};
use crate::device_memory::{AMPLE, DeviceMemory};
use warptrace_device::{KernelCall, simt};
use warptrace_encode::native::Schedule;
use warptrace_format::codec::CodecSpec;
use warptrace_macros::kernels;
use warptrace_sim::{Launch, Recording};

const ALL: u32 = u32::MAX;

fn lanes(chosen: impl Fn(u32) -> bool) -> u32 {
    (0..32).filter(|&lane| chosen(lane)).fold(0, |mask, lane| mask | 1 << lane)
}

#[test]
fn both_sides_of_a_branch_meet_after_it() {
    let log = Log::default();
    one_block(32, &|| {
        log.mark(1);
        if simt::lane() % 3 == 0 {
            log.mark(2);
        } else {
            log.mark(3);
        }
        log.mark(4);
    })
    .unwrap();
    let third = lanes(|lane| lane % 3 == 0);
    assert_eq!(log.of_warp(0), [(1, ALL), (2, third), (3, !third), (4, ALL)]);
}

#[test]
fn a_loop_runs_with_the_lanes_that_still_have_rounds() {
    let log = Log::default();
    let count = |lane: u32| (lane * 7) % 10;
    one_block(32, &|| {
        for _ in 0..count(simt::lane()) {
            log.mark(1);
        }
        log.mark(2);
    })
    .unwrap();
    let mut expected: Vec<(u32, u32)> = (0..9).map(|k| (1, lanes(|lane| count(lane) > k))).collect();
    expected.push((2, ALL));
    assert_eq!(log.of_warp(0), expected);
}

#[test]
fn nested_loops_meet_at_the_end_of_the_inner_one() {
    let log = Log::default();
    let (outer, inner) = (|lane: u32| 1 + lane % 3, |lane: u32, round: u32| (lane + round) % 4);
    one_block(32, &|| {
        let lane = simt::lane();
        for round in 0..outer(lane) {
            log.mark(1);
            for _ in 0..inner(lane, round) {
                log.mark(2);
            }
            log.mark(3);
        }
        log.mark(4);
    })
    .unwrap();
    let mut expected = Vec::new();
    for round in 0..3 {
        let here = |lane: u32| outer(lane) > round;
        expected.push((1, lanes(here)));
        for k in 0..3 {
            expected.push((2, lanes(|lane| here(lane) && inner(lane, round) > k)));
        }
        expected.push((3, lanes(here)));
    }
    expected.push((4, ALL));
    assert_eq!(log.of_warp(0), expected);
}

#[kernels(device = warptrace_device, only_marked)]
mod bodies {
    use super::*;

    /// Some lanes skip the last branches of a loop's body.
    #[kernel]
    pub fn skipping() {
        let lane = simt::lane();
        for round in 0..lane % 4 {
            trace!("ROUND" = 1);
            if (lane + round) % 3 == 0 {
                trace!("THIRD" = 2);
                if lane % 2 == 0 {
                    trace!("EVEN" = 3);
                }
            }
        }
        if lane % 8 == 0 {
            trace!("EIGHTH" = 4);
        }
        trace!("END" = 5);
    }

    /// Some lanes continue with the next round.
    #[kernel]
    pub fn continuing() {
        let lane = simt::lane();
        for round in 0..5 {
            trace!("BEGIN" = 6);
            if (lane + round) % 2 == 0 {
                continue;
            }
            trace!("REST" = 7);
        }
        trace!("AFTER" = 8);
    }
}

/// Returns the events of a warp that runs a kernel with marks: (location, mask).
fn traced(call: &KernelCall) -> Vec<(u32, u32)> {
    let mut memory = DeviceMemory::new(AMPLE, 1, 32, 1);
    memory.record(call, Recording::DEFAULT, Launch::new([1, 1, 1], [32, 1, 1]));
    let encoded = memory.encode_natively(CodecSpec::Raw, Schedule::Sequential);
    encoded.streams[0].events.iter().map(|event| (event.location.into(), event.mask)).collect()
}

#[test]
fn lanes_that_skip_the_end_of_a_body_wait_for_the_others() {
    let mut expected = Vec::new();
    for round in 0..3 {
        let third = |lane: u32| lane % 4 > round && (lane + round) % 3 == 0;
        expected.push((1, lanes(|lane| lane % 4 > round)));
        expected.push((2, lanes(third)));
        expected.push((3, lanes(|lane| third(lane) && lane % 2 == 0)));
    }
    expected.extend([(4, lanes(|lane| lane % 8 == 0)), (5, ALL)]);
    assert_eq!(
        traced(&bodies::skipping()),
        expected.into_iter().filter(|event| event.1 != 0).collect::<Vec<_>>()
    );
}

#[test]
fn lanes_that_break_meet_the_others_after_the_loop() {
    let log = Log::default();
    one_block(32, &|| {
        let lane = simt::lane();
        for round in 0.. {
            log.mark(1);
            if lane == round {
                log.mark(2);
                break;
            }
            if lane == round + 1 {
                break;
            }
            log.mark(3);
        }
        log.mark(4);
    })
    .unwrap();
    let mut expected = Vec::new();
    for round in (0..32).step_by(1) {
        // Lane 0 leaves in round 0, lane k in round k - 1.
        let here = lanes(|lane| lane > round || lane == 0 && round == 0);
        expected.extend([
            (1, here),
            (2, if round == 0 { 1 } else { 0 }),
            (3, lanes(|lane| lane > round + 1)),
        ]);
    }
    expected.push((4, ALL));
    assert_eq!(log.of_warp(0), expected.into_iter().filter(|event| event.1 != 0).collect::<Vec<_>>());
}

#[test]
fn lanes_that_continue_wait_at_the_end_of_the_body() {
    let mut expected = Vec::new();
    for round in 0..5 {
        expected.extend([(6, ALL), (7, lanes(|lane| (lane + round) % 2 == 1))]);
    }
    expected.push((8, ALL));
    assert_eq!(traced(&bodies::continuing()), expected);
}

/// Defined above its callers.
fn helper(rounds: u32, log: &Log) {
    log.mark(10);
    for _ in 0..rounds {
        log.mark(11);
    }
}

#[test]
fn a_function_above_its_caller_ends_before_the_caller_goes_on() {
    let log = Log::default();
    one_block(32, &|| {
        let lane = simt::lane();
        for round in 0..2 {
            log.mark(1);
            if lane % 2 == round {
                helper(lane % 4, &log);
            }
            log.mark(2);
        }
        helper(1, &log);
        log.mark(3);
    })
    .unwrap();
    let mut expected = Vec::new();
    for round in 0..2 {
        let here = |lane: u32| lane % 2 == round;
        expected.extend([(1, ALL), (10, lanes(here))]);
        expected.extend((0..3).map(|k| (11, lanes(|lane| here(lane) && lane % 4 > k))));
        expected.push((2, ALL));
    }
    expected.extend([(10, ALL), (11, ALL), (3, ALL)]);
    assert_eq!(log.of_warp(0), expected.into_iter().filter(|event| event.1 != 0).collect::<Vec<_>>());
}

#[test]
fn lanes_that_return_early_are_missing_later() {
    let log = Log::default();
    one_block(64, &|| {
        if simt::lane() >= 20 {
            log.mark(1);
            return;
        }
        log.mark(2);
        if simt::lane() < 4 {
            return;
        }
        log.mark(3);
    })
    .unwrap();
    let expected = [(1, lanes(|lane| lane >= 20)), (2, 0xf_ffff), (3, 0xf_fff0)];
    assert_eq!(log.of_warp(0), expected);
    assert_eq!(log.of_warp(1), expected);
}

#[test]
fn a_function_in_another_file_ends_before_its_caller_goes_on() {
    let log = Log::default();
    one_block(32, &|| {
        log.mark(1);
        if simt::lane() < 8 {
            crate::helper_file::count_down(simt::lane(), &log);
        }
        log.mark(2);
    })
    .unwrap();
    let mut expected = vec![(1, ALL)];
    expected.extend((0..7).map(|k| (100, lanes(|lane| lane < 8 && lane > k))));
    expected.push((2, ALL));
    assert_eq!(log.of_warp(0), expected);
}

#[test]
fn a_lane_that_goes_on_alone_is_caught_up_with() {
    let log = Log::default();
    let report = one_block(32, &|| {
        if simt::lane() == 5 {
            for _ in 0..1000 {
                log.mark(1);
            }
        }
        log.mark(2);
    })
    .unwrap();
    let mut expected = vec![(1, 1 << 5); 1000];
    expected.push((2, ALL));
    assert_eq!(log.of_warp(0), expected);
    assert_eq!((report.steps, report.lane_steps), (1001, 1000 + 32 + 32));
}

#[test]
fn the_last_warp_of_a_block_may_be_partial() {
    let log = Log::default();
    one_block(70, &|| log.mark(1)).unwrap();
    assert_eq!(log.by_warp(), [(0, 1, ALL), (1, 1, ALL), (2, 1, 0b11_1111)]);
}

#[test]
fn threads_of_a_block_are_numbered_x_first() {
    let log = Log::default();
    let simulator = warptrace_sim::Simulator::new();
    let launch = Launch::new([2, 3, 2], [4, 2, 5]);
    simulator
        .launch(&launch, &|| {
            let ([x, y, z], [bx, by, bz]) = (simt::thread_idx(), simt::block_idx());
            assert!(x < 4 && y < 2 && z < 5 && bx < 2 && by < 3 && bz < 2);
            assert_eq!((simt::block_size(), simt::grid_size()), ([4, 2, 5], [2, 3, 2]));
            assert_eq!(simt::linear_thread(), x + 4 * y + 8 * z);
            log.mark(1);
        })
        .unwrap();
    let expected: Vec<_> =
        (0..12).flat_map(|block| [(2 * block, 1, ALL), (2 * block + 1, 1, 0xff)]).collect();
    assert_eq!(log.by_warp(), expected);
}
