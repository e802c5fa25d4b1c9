//! Grids: limits, determinism, communicating blocks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::common::{Log, lanes};
use warptrace_device::simt;
use warptrace_sim::{Interaction, Launch, Progress, SimError, Simulator};

const ALL: u32 = u32::MAX;

#[test]
fn shapes_outside_cudas_limits_are_refused() {
    let refused = |grid, block| {
        let error = Simulator::new().launch(&Launch::new(grid, block), &|| unreachable!()).unwrap_err();
        assert!(matches!(error, SimError::Shape { .. }), "{error:?}");
        error.to_string()
    };
    assert_eq!(refused([1, 1, 1], [1025, 1, 1]), "block size x is 1025; it must be 1 to 1024");
    assert_eq!(refused([1, 1, 1], [1, 1, 65]), "block size z is 65; it must be 1 to 64");
    assert_eq!(refused([1, 1, 1], [32, 33, 1]), "threads per block is 1056; it must be 1 to 1024");
    assert_eq!(refused([0, 1, 1], [32, 1, 1]), "grid size x is 0; it must be 1 to 2147483647");
    assert_eq!(refused([1, 65536, 1], [32, 1, 1]), "grid size y is 65536; it must be 1 to 65535");
    assert_eq!(refused([1, 1, 1], [32, 0, 1]), "block size y is 0; it must be 1 to 1024");
    assert!(refused([1 << 20, 1 << 12, 1], [32, 1, 1]).starts_with("warps of the launch is 4294967296"));
    assert!(refused([u32::MAX >> 1, 65535, 65535], [1024, 1, 1]).starts_with("warps of the launch is"));
    let too_much = Launch::new([1, 1, 1], [1, 1, 1]).dynamic_shared(232_449);
    let error = Simulator::new().launch(&too_much, &|| unreachable!()).unwrap_err();
    assert_eq!(error.to_string(), "dynamic shared memory in bytes is 232449; it must be 0 to 232448");
}

#[test]
fn more_resident_lanes_than_memory_are_refused() {
    let launch = Launch::new([1 << 21, 1, 1], [1024, 1, 1]).interaction(Interaction::Global);
    let error = Simulator::new().stack_bytes(1 << 20).launch(&launch, &|| unreachable!()).unwrap_err();
    assert!(matches!(error, SimError::Stacks { .. }), "{error:?}");
}

#[test]
fn the_outcome_depends_on_neither_threads_nor_order() {
    let run = |threads, seed| {
        let (log, sum) = (Log::default(), AtomicU64::new(0));
        let launch = Launch::new([7, 3, 1], [80, 1, 1]).threads(threads).seed(seed);
        let report = Simulator::new()
            .launch(&launch, &|| {
                let mut state = simt::global_thread_x() + 977 * simt::block_idx()[1];
                for _ in 0..state % 13 {
                    log.mark(1);
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if state >> 16 & 1 == 0 {
                        log.mark(2);
                    }
                }
                lanes::sync_threads();
                sum.fetch_add(u64::from(state), Relaxed);
                log.mark(3);
            })
            .unwrap();
        (log.by_warp(), sum.into_inner(), report.steps, report.lane_steps, report.blocks, report.warps)
    };
    let one = run(1, 0);
    assert_eq!((one.4, one.5), (21, 63));
    for threads in [2, 3, 8] {
        assert_eq!(run(threads, 0), one);
    }
    assert_eq!(run(2, 99), one, "independent warps: the seed does not matter either");
}

#[test]
fn the_seed_chooses_the_interleaving_of_warps() {
    let run = |seed, interaction| {
        let log = Log::default();
        let launch = Launch::new([3, 1, 1], [96, 1, 1]).seed(seed).interaction(interaction).threads(1);
        Simulator::new()
            .quantum(4)
            .launch(&launch, &|| {
                for _ in 0..10 {
                    log.mark(1);
                }
            })
            .unwrap();
        (log.in_time(), log.by_warp())
    };
    for interaction in [Interaction::Independent, Interaction::Global] {
        let first = run(1, interaction);
        assert_eq!(run(1, interaction), first);
        let other = run(2, interaction);
        assert_ne!(other.0, first.0, "another order among warps");
        assert_eq!(other.1, first.1, "the same within each warp");
    }
    // Interacting blocks take turns; independent blocks run one after the other.
    let blocks =
        |interaction| -> Vec<u32> { run(1, interaction).0.iter().map(|event| event.0 / 3).collect() };
    assert!(blocks(Interaction::Independent).is_sorted());
    assert!(!blocks(Interaction::Global).is_sorted());
}

#[test]
fn shared_atomics_of_a_block_are_deterministic_for_a_seed() {
    let run = |seed, threads| {
        let tickets: Vec<AtomicU32> = (0..4 * 256).map(|_| AtomicU32::new(0)).collect();
        let next = [const { AtomicU32::new(0) }; 4];
        let launch = Launch::new([4, 1, 1], [256, 1, 1]).seed(seed).threads(threads);
        Simulator::new()
            .launch(&launch, &|| {
                let ticket = next[simt::linear_block() as usize].fetch_add(1, Relaxed);
                tickets[simt::global_thread_x() as usize].store(ticket, Relaxed);
            })
            .unwrap();
        tickets.into_iter().map(AtomicU32::into_inner).collect::<Vec<_>>()
    };
    assert_eq!(run(5, 1), run(5, 4));
    assert_ne!(run(5, 1), run(6, 1));
}

#[test]
fn atomics_add_up_across_blocks_and_threads() {
    let sum = AtomicU64::new(0);
    Simulator::new()
        .launch(&Launch::new([100, 1, 1], [128, 1, 1]), &|| {
            sum.fetch_add(u64::from(simt::global_thread_x()), Relaxed);
        })
        .unwrap();
    assert_eq!(sum.into_inner(), 12_800 * 12_799 / 2);
}

#[test]
fn blocks_pass_a_token_around() {
    let token = AtomicU32::new(0);
    let log = Log::default();
    let launch = Launch::new([20, 1, 1], [64, 1, 1]).interaction(Interaction::Global);
    for seed in 0..3 {
        token.store(0, Relaxed);
        Simulator::new()
            .launch(&launch.seed(seed), &|| {
                let block = simt::block_idx()[0];
                if simt::linear_thread() == 0 {
                    while token.load(Relaxed) != 19 - block {
                        simt::spin_hint();
                    }
                    token.fetch_add(1, Relaxed);
                }
                lanes::sync_threads();
                log.mark(block);
            })
            .unwrap();
        assert_eq!(token.load(Relaxed), 20);
    }
    assert!(log.in_time().iter().all(|event| event.2 == ALL), "the spinning lane is waited for");
    assert_eq!(log.in_time().len(), 3 * 40);
}

#[test]
fn a_persistent_kernel_of_192_blocks_of_256_keeps_all_lanes_resident() {
    const LANES: u32 = 192 * 256;
    let (arrived, sum) = (AtomicU32::new(0), AtomicU64::new(0));
    let launch = Launch::new([192, 1, 1], [256, 1, 1]).interaction(Interaction::Global);
    let simulator = Simulator::new();
    for _ in 0..2 {
        arrived.store(0, Relaxed);
        sum.store(0, Relaxed);
        let report = simulator
            .launch(&launch, &|| {
                lanes::sync_threads();
                if simt::linear_thread() == 0 {
                    arrived.fetch_add(1, Relaxed);
                    while arrived.load(Relaxed) < 192 {
                        simt::spin_hint();
                    }
                }
                lanes::sync_threads();
                let mut item = simt::global_thread_x();
                while item < 100_000 {
                    simt::active_mask();
                    sum.fetch_add(u64::from(item), Relaxed);
                    item += simt::grid_threads_x();
                }
            })
            .unwrap();
        assert_eq!(sum.load(Relaxed), 100_000 * 99_999 / 2);
        assert_eq!(report.warps, 1536);
        assert!(report.lane_steps >= 100_000 + 3 * u64::from(LANES));
    }
}

#[test]
fn progress_counts_the_blocks() {
    let seen: Mutex<Vec<Progress>> = Mutex::default();
    let note = |progress: Progress| seen.lock().unwrap().push(progress);
    for interaction in [Interaction::Independent, Interaction::Global] {
        seen.lock().unwrap().clear();
        let launch =
            Launch::new([1000, 1, 1], [32, 1, 1]).threads(2).interaction(interaction).progress(&note);
        Simulator::new().launch(&launch, &|| ()).unwrap();
        let mut seen = seen.lock().unwrap();
        seen.sort_by_key(|progress| progress.blocks_done);
        assert!(seen.len() <= 257 && seen.len() > 100, "{}", seen.len());
        let last = seen.last().map(|progress: &Progress| (progress.blocks_done, progress.blocks));
        assert_eq!(last, Some((1000, 1000)));
    }
}

#[test]
fn launches_may_run_at_the_same_time_on_one_simulator() {
    let simulator = Simulator::new();
    let sum = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let launch = Launch::new([5, 1, 1], [100, 1, 1]);
                    simulator
                        .launch(&launch, &|| {
                            lanes::sync_threads();
                            sum.fetch_add(1, Relaxed);
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), 4 * 10 * 500);
}
