//! Votes, shuffles, barriers and shared memory behave as in CUDA.
#![expect(clippy::manual_is_multiple_of, reason = "lane % 5 == 0 is how kernels are written")]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::common::{lanes, one_block};
use warptrace_device::simt;
use warptrace_device::simt::host;
use warptrace_sim::{Launch, Simulator};

const ALL: u32 = u32::MAX;

/// Returns a shared array of `N` words, named by the address of `key` as in the device library.
fn shared_words<const N: usize>(lane: &dyn host::Lane, key: &'static u8) -> *mut u32 {
    lane.shared(std::ptr::from_ref(key).addr(), 4 * N).cast()
}

#[test]
fn a_ballot_sees_the_votes_of_its_mask() {
    one_block(32, &|| {
        let lane = simt::lane();
        assert_eq!(lanes::ballot(ALL, lane % 5 == 0), 0b0100_0010_0001_0000_1000_0100_0010_0001);
        if lane < 16 {
            assert_eq!(lanes::ballot(0xffff, lane >= 12), 0xf000);
        } else {
            assert_eq!(lanes::ballot(0xffff_0000, true), 0xffff_0000);
        }
    })
    .unwrap();
}

#[test]
fn shuffles_move_values_between_lanes() {
    one_block(32, &|| {
        let lane = simt::lane();
        assert_eq!(lanes::shuffle(ALL, lane * 10, 7), 70);
        assert_eq!(lanes::shuffle(ALL, lane, lane + 1), (lane + 1) % 32, "the source counts mod 32");
        assert_eq!(lanes::shuffle_xor(ALL, lane, 5), lane ^ 5);
        assert_eq!(lanes::shuffle_up(ALL, lane, 3), if lane >= 3 { lane - 3 } else { lane });
        let mut sum = lane;
        for step in [16, 8, 4, 2, 1] {
            sum += lanes::shuffle_xor(ALL, sum, step);
        }
        assert_eq!(sum, 31 * 32 / 2);
    })
    .unwrap();
}

#[test]
fn match_any_finds_the_lanes_with_the_same_value() {
    one_block(32, &|| {
        let lane = simt::lane();
        let expected = (0..32).filter(|other| other % 3 == lane % 3).fold(0, |mask, other| mask | 1 << other);
        let peers = lanes::match_any(ALL, lane % 3);
        assert_eq!(peers, expected);
        // Each group of peers continues with a separate mask at the same source position.
        assert_eq!(lanes::ballot(peers, lane >= 16), peers & 0xffff_0000);
        lanes::sync_warp(peers);
        lanes::sync_warp(ALL);
    })
    .unwrap();
}

#[test]
fn lanes_of_a_mask_wait_for_those_that_are_behind() {
    let log = crate::common::Log::default();
    one_block(32, &|| {
        if simt::lane() < 4 {
            for _ in 0..3 {
                log.mark(1);
            }
        }
        lanes::sync_warp(ALL);
        log.mark(2);
    })
    .unwrap();
    assert_eq!(log.of_warp(0), [(1, 0xf), (1, 0xf), (1, 0xf), (2, ALL)]);
}

#[test]
fn a_mask_holds_without_the_lanes_that_have_left_or_never_were() {
    one_block(40, &|| {
        let (warp, lane) = (simt::warp_in_block(), simt::lane());
        if lane % 2 == 1 {
            return;
        }
        let here = if warp == 0 { 0x5555_5555 } else { 0x55 };
        assert_eq!(lanes::ballot(ALL, true), here);
        lanes::sync_warp(ALL);
        assert_eq!(lanes::match_any(ALL, 1), here);
    })
    .unwrap();
}

#[test]
fn a_block_reduces_in_shared_memory() {
    static KEY: u8 = 1;
    const THREADS: usize = 1024;
    let sums = [const { AtomicU32::new(0) }; 6];
    Simulator::new()
        .launch(&Launch::new([6, 1, 1], [THREADS as u32, 1, 1]), &|| {
            let thread = simt::linear_thread() as usize;
            let words = host::with_lane(|lane| shared_words::<THREADS>(lane, &KEY));
            // SAFETY: within the array; the barriers order the accesses of different threads.
            unsafe {
                assert_eq!(
                    words.add(thread).read(),
                    0xa5a5_a5a5,
                    "shared memory starts as poison in each block"
                );
                words.add(thread).write(thread as u32 + simt::block_idx()[0]);
                let mut half = THREADS / 2;
                while half > 0 {
                    lanes::sync_threads();
                    if thread < half {
                        *words.add(thread) += words.add(thread + half).read();
                    }
                    half /= 2;
                }
                if thread == 0 {
                    sums[simt::block_idx()[0] as usize].store(words.read(), Relaxed);
                }
            }
        })
        .unwrap();
    for (block, sum) in sums.iter().enumerate() {
        assert_eq!(sum.load(Relaxed) as usize, THREADS * (THREADS - 1) / 2 + THREADS * block);
    }
}

#[test]
fn dynamic_shared_memory_is_the_blocks_own() {
    let launch = Launch::new([4, 1, 1], [64, 1, 1]).dynamic_shared(256);
    Simulator::new()
        .launch(&launch, &|| {
            let (start, bytes) = host::with_lane(|lane| lane.dynamic_shared());
            assert_eq!(bytes, 256);
            let (words, thread) = (start.cast::<u32>(), simt::linear_thread() as usize);
            // SAFETY: a word for each of 64 threads; the barrier orders the accesses.
            unsafe {
                assert_eq!(words.add(thread).read(), 0xa5a5_a5a5);
                words.add(thread).write(simt::block_idx()[0]);
                lanes::sync_threads();
                assert_eq!(words.add(63 - thread).read(), simt::block_idx()[0]);
            }
        })
        .unwrap();
}

#[test]
fn a_barrier_separates_what_warps_do_before_and_after() {
    let (before, phases) = (AtomicU32::new(0), 20);
    one_block(1024, &|| {
        for phase in 1..=phases {
            before.fetch_add(1, Relaxed);
            lanes::sync_threads();
            assert_eq!(before.load(Relaxed), phase * 1024);
            lanes::sync_threads();
        }
    })
    .unwrap();
}

#[test]
fn threads_that_have_left_do_not_count_at_a_barrier() {
    let passed = AtomicU32::new(0);
    one_block(96, &|| {
        let thread = simt::linear_thread();
        if (16..64).contains(&thread) {
            return;
        }
        lanes::sync_threads();
        if thread == 0 {
            return;
        }
        lanes::sync_threads();
        passed.fetch_add(1, Relaxed);
    })
    .unwrap();
    assert_eq!(passed.into_inner(), 96 - 48 - 1);
}

#[test]
#[expect(clippy::if_same_then_else, reason = "two ways to one barrier")]
fn warps_may_pass_one_barrier_in_a_loop_and_in_a_helper() {
    fn wait() {
        lanes::sync_threads();
    }
    let rounds = AtomicU64::new(0);
    one_block(256, &|| {
        // The same barrier, reached through two branches that are uniform in each warp.
        for _ in 0..5 {
            if simt::warp_in_block() % 2 == 0 {
                wait();
            } else {
                wait();
            }
            rounds.fetch_add(1, Relaxed);
        }
    })
    .unwrap();
    assert_eq!(rounds.into_inner(), 5 * 256);
}

#[test]
fn a_lock_within_a_warp_is_passed_on() {
    let (lock, count) = (AtomicU32::new(0), AtomicU32::new(0));
    one_block(64, &|| {
        while lock.compare_exchange(0, 1, Relaxed, Relaxed).is_err() {
            simt::spin_hint();
        }
        let seen = count.load(Relaxed);
        // Another lane runs here. Without the lock, an increment would be lost.
        simt::active_mask();
        count.store(seen + 1, Relaxed);
        lock.store(0, Relaxed);
        simt::active_mask();
    })
    .unwrap();
    assert_eq!(count.into_inner(), 64);
}

#[test]
fn a_traced_spin_that_waits_for_two_groups_of_its_warp_ends() {
    let flags = [const { AtomicU32::new(0) }; 2];
    one_block(32, &|| {
        let lane = simt::lane() as usize;
        if lane == 0 {
            while flags[1].load(Relaxed) == 0 {
                simt::active_mask();
                simt::spin_hint();
            }
        } else if lane == 1 {
            while flags[0].load(Relaxed) == 0 {
                simt::active_mask();
                simt::spin_hint();
            }
            flags[1].store(1, Relaxed);
        } else {
            for _ in 0..50 {
                simt::active_mask();
            }
            flags[0].store(1, Relaxed);
        }
        lanes::sync_warp(ALL);
    })
    .unwrap();
}
