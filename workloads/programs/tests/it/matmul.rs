//! Matrix multiplication on the simulator: exact products, and lanes and events as computed by the formulas.

use crate::programs::{RECORDINGS, assert_ids_are_unique, record_as, simulator};
use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Untraced;
use warptrace_workloads::matmul::{self, Matrices};

#[test]
fn trace_points_stand_at_one_place_each() {
    assert_ids_are_unique(&matmul::PROGRAM);
}

#[test]
fn the_simulator_computes_the_exact_product() {
    // Less than a tile, one tile, tiles with a remainder, and a remainder that splits quadrants.
    for size in [8, 72, 128, 144, 264] {
        let matrices = Matrices::random(size, 5).unwrap();
        let outcome = matmul::run(&mut Untraced(&mut simulator(0)), &matrices).unwrap();
        assert_eq!(outcome.product, matmul::reference(&matrices), "{size} rows");
        let checked = matmul::check(&matrices, &outcome.product);
        assert!(checked.is_ok(), "{size} rows: {checked:?}");
        assert_eq!(outcome.launches, 1);
    }
}

#[test]
fn traced_runs_compute_the_same_and_record_what_the_formula_says() {
    for size in [8, 128, 152] {
        let matrices = Matrices::random(size, 6).unwrap();
        let expected = matmul::reference(&matrices);
        for recording in &RECORDINGS {
            let (outcome, file) = record_as(&mut simulator(0), &matmul::PROGRAM, recording, |launcher| {
                matmul::run(launcher, &matrices).unwrap()
            });
            assert_eq!(outcome.product, expected, "{size} rows under {recording:?}");
            let mut total = 0;
            for stream in file.streams(0, 0).unwrap() {
                let stream = stream.unwrap();
                let warp = u64::from(stream.warp);
                assert_eq!(stream.events, matmul::warp_events(size, warp), "warp {warp}, {size} rows");
                total += stream.events;
                let digests = file.lane_digests(0, stream.warp, 0).unwrap();
                for lane in 0..32 {
                    let thread = warp * 32 + lane;
                    let locations = matmul::lane_locations(size, thread);
                    assert_eq!(digests.lane(lane as usize), LaneDigest::new(locations), "thread {thread}");
                }
            }
            assert_eq!(total, matmul::expected_events(size), "{size} rows");
        }
    }
}
