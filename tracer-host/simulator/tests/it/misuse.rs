//! Behaviour that is undefined on a GPU is an error that names block, warp, lane and position.
#![expect(clippy::if_same_then_else, reason = "two barriers in one program are two places")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::common::{error_of, lanes};
use warptrace_device::simt;
use warptrace_device::simt::host;
use warptrace_sim::{Interaction, Launch, SimError, Simulator, Watchdog};

const ALL: u32 = u32::MAX;

/// Asserts that the text names this file and the line that is `above` lines above the caller's.
#[track_caller]
fn names_line(text: &str, above: u32) {
    let line = std::panic::Location::caller().line() - above;
    let place = format!("{}:{line}:", file!());
    assert!(text.contains(&place), "{text:?} does not contain {place:?}");
}

#[test]
fn a_barrier_that_part_of_a_warp_reaches() {
    let (error, text) = error_of(96, &|| {
        if simt::warp_in_block() == 1 && simt::lane() < 16 {
            lanes::sync_threads();
        } else {
            lanes::sync_threads();
        }
    });
    assert!(matches!(error, SimError::BarrierDivergence { block: [0, 0, 0], warp: 1, .. }), "{error:?}");
    assert!(text.starts_with("block (0, 0, 0), warp 1: "), "{text}");
    assert!(text.contains("lanes 0-15 wait at sync_threads"), "{text}");
    assert!(text.contains("lanes 16-31 wait at sync_threads"), "{text}");
    names_line(&text, 9);
    names_line(&text, 8);
}

#[test]
fn a_barrier_while_other_lanes_wait_for_the_warp() {
    let (error, text) = error_of(32, &|| {
        if simt::lane() == 3 {
            lanes::sync_threads();
        }
        lanes::sync_warp(ALL);
    });
    assert!(matches!(error, SimError::BarrierDivergence { .. }), "{error:?}");
    assert!(text.contains("lane 3 waits at sync_threads"), "{text}");
    assert!(text.contains("lanes 0-2, 4-31 wait at sync_warp for lanes 0-31"), "{text}");
    names_line(&text, 7);
    names_line(&text, 6);
}

#[test]
fn lanes_that_left_before_a_barrier_are_named() {
    let launch = Launch::new([5, 1, 1], [64, 1, 1]);
    let simulator = Simulator::new();
    // From block 2 on, half of the second warp returns early.
    let early = || {
        if simt::linear_block() >= 2 && simt::linear_thread() >= 48 {
            return;
        }
        lanes::sync_threads();
    };
    for interaction in [Interaction::Independent, Interaction::Global] {
        let report = simulator.launch(&launch.interaction(interaction), &early).unwrap();
        let text = report.left_before.unwrap().to_string();
        assert!(text.starts_with("block (2, 0, 0), warp 1: lanes 16-31 had left the kernel"), "{text}");
        names_line(&text, 6);
    }
    // A block that leaves entirely and lanes that do not exist are not reported.
    let whole = || {
        if simt::linear_block() != 2 {
            lanes::sync_threads();
        }
    };
    let report = simulator.launch(&Launch::new([5, 1, 1], [40, 1, 1]), &whole).unwrap();
    assert_eq!(report.left_before, None);
}

#[test]
fn warps_at_different_barriers() {
    let (error, text) = error_of(64, &|| {
        if simt::warp_in_block() == 0 {
            lanes::sync_threads();
        } else {
            lanes::sync_threads();
        }
    });
    assert!(matches!(error, SimError::BarrierMismatch { block: [0, 0, 0], .. }), "{error:?}");
    assert!(text.contains("warp 0 at") && text.contains("warp 1 at"), "{text}");
    names_line(&text, 7);
    names_line(&text, 6);
}

#[test]
fn lanes_that_wait_for_each_other_at_two_places() {
    let (error, text) = error_of(32, &|| {
        if simt::lane() < 10 {
            lanes::ballot(ALL, true);
        } else {
            lanes::sync_warp(ALL);
        }
    });
    assert!(matches!(error, SimError::Deadlock { block: [0, 0, 0], warp: 0, .. }), "{error:?}");
    assert!(text.contains("lanes 0-9 wait at ballot for lanes 0-31"), "{text}");
    assert!(text.contains("lanes 10-31 wait at sync_warp for lanes 0-31"), "{text}");
    names_line(&text, 8);
    names_line(&text, 7);
}

#[test]
fn masks_that_name_each_other_and_differ() {
    let (error, text) = error_of(32, &|| {
        let mask =
            if simt::lane() == 9 { ALL } else { !(1 << 9) & ALL | 1 << 9 & ALL >> (simt::lane() / 31) };
        lanes::ballot(mask & if simt::lane() == 4 { 0xffff } else { ALL }, true);
    });
    let SimError::MasksDiffer { place, mask, other_lane, other_mask, .. } = error else { panic!("{text}") };
    assert_eq!((place.block, place.warp, place.lane), ([0; 3], 0, 0));
    assert_eq!((mask, other_lane, other_mask), (ALL, 4, 0xffff));
    assert!(text.starts_with("block (0, 0, 0), warp 0, lane 0: the masks at ballot"), "{text}");
    names_line(&text, 6);
}

#[test]
fn a_lane_outside_its_own_mask() {
    let (error, text) = error_of(32, &|| {
        lanes::sync_warp(0xffff);
    });
    let SimError::NotInMask { place, mask: 0xffff, .. } = error else { panic!("{text}") };
    assert_eq!(place.lane, 16);
    assert!(text.contains("lane 16: is not in its own mask 0x0000ffff of sync_warp"), "{text}");
    names_line(&text, 5);
}

#[test]
fn a_shuffle_from_a_lane_that_takes_no_part() {
    let (error, text) = error_of(32, &|| {
        if simt::lane() < 8 {
            lanes::shuffle(0xff, 1, simt::lane() + 1);
        }
    });
    assert!(matches!(error, SimError::ShuffleSource { from: 8, left: false, mask: 0xff, .. }), "{error:?}");
    assert!(text.contains("warp 0, lane 7: the shuffle's source, lane 8, is outside its mask"), "{text}");
    names_line(&text, 5);
    let (error, text) = error_of(32, &|| {
        if simt::lane() != 31 {
            lanes::shuffle(ALL, 1, 31);
        }
    });
    assert!(matches!(error, SimError::ShuffleSource { from: 31, left: true, .. }), "{error:?}");
    assert!(text.contains("lane 31, has left the kernel"), "{text}");
}

#[test]
fn a_panic_is_an_error_with_its_place() {
    let values = [1, 2, 3];
    let (error, text) = error_of(64, &|| {
        simt::active_mask();
        let at = simt::linear_thread() as usize;
        assert!(values.len() > std::hint::black_box(at) / 20, "thread {at} has no value");
    });
    let SimError::Panicked { place, message, location, last_op } = error else { panic!("{text}") };
    assert_eq!((place.warp, place.lane), (1, 28));
    assert_eq!(message, "thread 60 has no value");
    assert_eq!(location.unwrap().file, file!());
    assert!(last_op.is_some());
    assert!(text.starts_with("block (0, 0, 0), warp 1, lane 28 panicked: thread 60"), "{text}");
    names_line(&text, 8);
}

#[test]
fn an_index_out_of_bounds_is_an_error_with_its_place() {
    let values = [0; 100];
    let (error, text) = error_of(128, &|| {
        std::hint::black_box(values[simt::linear_thread() as usize]);
    });
    assert!(matches!(error, SimError::Panicked { .. }));
    assert!(text.contains("warp 3, lane 4 panicked: index out of bounds: the len is 100"), "{text}");
    names_line(&text, 4);
}

#[test]
fn the_device_library_can_end_a_launch() {
    let (error, text) = error_of(32, &|| {
        if simt::lane() == 2 {
            let site = core::panic::Location::caller();
            host::with_lane(|lane| lane.fail("no such tree", site));
        }
    });
    assert!(matches!(error, SimError::Failed { .. }), "{error:?}");
    assert!(text.contains("warp 0, lane 2: no such tree (at "), "{text}");
}

#[test]
fn shared_memory_has_a_limit_and_one_size() {
    static KEY: u8 = 2;
    let key = std::ptr::from_ref(&KEY).addr();
    let (_, text) = error_of(32, &|| {
        host::with_lane(|lane| lane.shared(key, 300_000));
    });
    assert!(text.contains("300000 bytes of shared memory; the limit is 232448"), "{text}");
    let (_, text) = error_of(32, &|| {
        host::with_lane(|lane| lane.shared(key, 16 + simt::lane() as usize));
    });
    assert!(text.contains("lane 1: a shared static of 16 bytes is asked for again with 17 bytes"), "{text}");
}

#[test]
fn what_lanes_hold_is_dropped_when_another_fails() {
    struct Held<'a>(&'a AtomicU32);
    impl Drop for Held<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                // Operations of an unwinding lane do not involve other lanes.
                assert_eq!(simt::active_mask(), 1 << simt::lane());
                lanes::sync_threads();
            }
            self.0.fetch_add(1, Relaxed);
        }
    }
    let dropped = AtomicU32::new(0);
    let simulator = Simulator::new();
    for interaction in [Interaction::Independent, Interaction::Global] {
        dropped.store(0, Relaxed);
        let launch = Launch::new([3, 1, 1], [64, 1, 1]).interaction(interaction).threads(1);
        let started = AtomicU32::new(0);
        let error = simulator
            .launch(&launch, &|| {
                started.fetch_add(1, Relaxed);
                let text = String::from("heap");
                let _held = Held(&dropped);
                lanes::sync_threads();
                assert!(simt::linear_block() != 1 || simt::linear_thread() != 40, "{text}");
                lanes::sync_warp(ALL);
            })
            .unwrap_err();
        assert!(error.to_string().contains("block (1, 0, 0), warp 1, lane 8 panicked: heap"), "{error}");
        assert_eq!(dropped.load(Relaxed), started.load(Relaxed), "each lane that had started");
        // The simulator can still be used.
        simulator.launch(&launch, &|| lanes::sync_threads()).unwrap();
    }
}

#[test]
fn a_lane_may_catch_its_own_panic() {
    let caught = AtomicU32::new(0);
    crate::common::one_block(32, &|| {
        let result = std::panic::catch_unwind(|| {
            simt::active_mask();
            assert!(simt::lane() != 3, "caught");
        });
        lanes::sync_warp(ALL);
        caught.fetch_add(u32::from(result.is_err()), Relaxed);
    })
    .unwrap();
    assert_eq!(caught.into_inner(), 1);
}

#[test]
fn recursion_without_end_is_an_error() {
    fn recurse(levels: u64) -> u64 {
        simt::active_mask();
        if levels == 0 { 0 } else { std::hint::black_box(recurse(std::hint::black_box(levels - 1)) + 1) }
    }
    let (error, text) = error_of(32, &|| {
        recurse(u64::MAX);
    });
    assert!(matches!(error, SimError::Failed { .. }), "{error:?}");
    assert!(text.contains("the lane's stack is almost full"), "{text}");
}

#[test]
fn of_several_failures_the_lowest_block_is_named() {
    let simulator = Simulator::new();
    for threads in [1, 2, 4] {
        let launch = Launch::new([40, 5, 1], [32, 1, 1]).threads(threads);
        let error = simulator
            .launch(&launch, &|| {
                let block = simt::linear_block();
                // Higher blocks fail sooner.
                for _ in block..200 {
                    simt::active_mask();
                }
                assert!(block < 77, "block {block}");
            })
            .unwrap_err();
        assert!(error.to_string().contains("block (37, 1, 0), warp 0, lane 0 panicked: block 77"), "{error}");
    }
}

#[test]
fn blocks_that_wait_for_each_other_but_run_apart() {
    let flag = AtomicU32::new(0);
    let (launch, simulator) = (Launch::new([2, 1, 1], [32, 1, 1]).threads(1), Simulator::new());
    let kernel = || {
        if simt::block_idx()[0] == 0 {
            while flag.load(Relaxed) == 0 {
                simt::spin_hint();
            }
        }
        flag.store(1, Relaxed);
    };
    let error = simulator.launch(&launch, &kernel).unwrap_err();
    assert!(matches!(error, SimError::Livelock { block: [0, 0, 0], warp: 0, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("lanes 0-31 wait at spin_hint") && text.contains("Interaction::Global"), "{text}");
    names_line(&text, 9);
    flag.store(0, Relaxed);
    simulator.launch(&launch.interaction(Interaction::Global), &kernel).unwrap();
}

#[test]
fn spinning_with_trace_points_is_noticed_too() {
    let watchdog = Watchdog { spin_rounds: 5000, ..Watchdog::default() };
    let error = Simulator::new()
        .watchdog(watchdog)
        .launch(&Launch::new([1, 1, 1], [64, 1, 1]), &|| {
            loop {
                simt::active_mask();
                simt::spin_hint();
            }
        })
        .unwrap_err();
    assert!(matches!(error, SimError::Livelock { rounds: 5001, .. }), "{error:?}");
}

#[test]
fn steps_and_time_can_be_limited() {
    let endless = || {
        loop {
            simt::active_mask();
        }
    };
    let launch = Launch::new([1, 1, 1], [32, 1, 1]);
    let limited = |watchdog| Simulator::new().watchdog(watchdog).launch(&launch, &endless).unwrap_err();
    let error = limited(Watchdog { steps: Some(1000), ..Watchdog::default() });
    assert!(matches!(error, SimError::TooManySteps { limit: 1000, .. }), "{error:?}");
    let time = std::time::Duration::from_millis(20);
    let error = limited(Watchdog { time: Some(time), ..Watchdog::default() });
    assert!(matches!(error, SimError::TooLong { .. }), "{error:?}");
}

#[test]
fn panics_outside_lanes_still_reach_the_hook() {
    static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    // Installs the simulator's hook.
    crate::common::one_block(32, &|| ()).unwrap();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        SEEN.lock().unwrap().push(info.to_string());
        before(info);
    }));
    let result = std::panic::catch_unwind(|| panic!("on the host"));
    assert!(result.is_err());
    assert!(SEEN.lock().unwrap().iter().any(|text| text.contains("on the host")));
}
