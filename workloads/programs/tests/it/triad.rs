//! Triad on the simulator: exact results, and lanes and events as computed by the formulas.

use crate::programs::{RECORDINGS, assert_ids_are_unique, record_as, simulator};
use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::{Device, Untraced};
use warptrace_workloads::triad::{self, Arrays, TriadOptions};

#[test]
fn trace_points_stand_at_one_place_each() {
    assert_ids_are_unique(&triad::PROGRAM);
}

#[test]
fn any_grid_computes_all_elements() {
    // Fewer elements than threads, a warp with idle lanes, and many elements per thread.
    for (elements, grid) in [(1, "2x64"), (77, "1x32"), (5_000, "3x96")] {
        let arrays = Arrays::new(elements).unwrap();
        let options = TriadOptions { passes: 2, grid: Some(grid.parse().unwrap()) };
        let outcome = triad::run(&mut Untraced(&mut simulator(0)), &arrays, &options).unwrap();
        assert!(triad::check(&arrays, &outcome.a).is_ok(), "{elements} on {grid}");
        assert_eq!((outcome.launches, outcome.grid.to_string().as_str()), (2, grid));
    }
}

#[test]
fn the_usual_grid_is_as_many_threads_as_fit() {
    let mut device = simulator(0);
    let arrays = Arrays::new(10).unwrap();
    let outcome = triad::run(&mut Untraced(&mut device), &arrays, &TriadOptions::default()).unwrap();
    let threads = u64::from(outcome.grid.blocks()) * u64::from(outcome.grid.threads());
    // The simulator has no limit on resident threads, so the grid has as many blocks as for other programs.
    assert_eq!(threads, u64::from(device.facts().multiprocessors) * 4 * 256);
}

#[test]
fn traced_runs_compute_the_same_and_record_what_the_formula_says() {
    let arrays = Arrays::new(1_000).unwrap();
    let options = TriadOptions { passes: 2, grid: Some("2x96".parse().unwrap()) };
    for recording in &RECORDINGS {
        let (outcome, file) = record_as(&mut simulator(0), &triad::PROGRAM, recording, |launcher| {
            triad::run(launcher, &arrays, &options).unwrap()
        });
        assert!(triad::check(&arrays, &outcome.a).is_ok(), "{recording:?}");
        for launch in 0..2 {
            let mut total = 0;
            for stream in file.streams(launch, 0).unwrap() {
                let stream = stream.unwrap();
                total += stream.events;
                let digests = file.lane_digests(launch, stream.warp, 0).unwrap();
                for lane in 0..32 {
                    let thread = u64::from(stream.warp) * 32 + lane;
                    let locations = triad::lane_locations(1_000, outcome.grid, thread);
                    assert_eq!(digests.lane(lane as usize), LaneDigest::new(locations), "thread {thread}");
                }
            }
            assert_eq!(total, triad::expected_events(1_000, outcome.grid), "{recording:?}");
        }
    }
}
