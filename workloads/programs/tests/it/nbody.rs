//! N-body on the simulator: bit-exact with the reference, close to double precision, events by the formula.

use crate::programs::{RECORDINGS, assert_ids_are_unique, record, record_as, simulator};
use warptrace_decoder::lanes::LaneDigest;
use warptrace_format::codec::CodecSpec;
use warptrace_host::Untraced;
use warptrace_workloads::WorkloadError;
use warptrace_workloads::nbody::{self, Bodies, EventCounts, Float4, NbodyOptions};

fn in_blocks(steps: u32, block: u32) -> NbodyOptions {
    NbodyOptions { block, ..NbodyOptions::new(steps) }
}

#[test]
fn trace_points_stand_at_one_place_each() {
    assert_ids_are_unique(&nbody::PROGRAM);
}

#[test]
fn the_simulator_computes_the_reference_bit_for_bit() {
    for (count, steps, block) in [(1, 3, 32), (32, 2, 32), (100, 3, 64), (301, 2, 128)] {
        let bodies = nbody::plummer(count, 11);
        let options = in_blocks(steps, block);
        let outcome = nbody::run(&mut Untraced(&mut simulator(0)), &bodies, &options).unwrap();
        let (moved, accelerations) = nbody::reference(&bodies, &options);
        assert_eq!(outcome.bodies, moved, "{count} bodies");
        assert_eq!(outcome.accelerations, accelerations, "{count} bodies");
        assert_eq!(outcome.launches, 2 * steps);
    }
}

#[test]
fn single_precision_stays_near_the_truth() {
    let bodies = nbody::plummer(1_000, 1);
    let options = NbodyOptions::new(5);
    let (mut moved, accelerations) = nbody::reference(&bodies, &options);
    let deviation = nbody::deviation(&bodies, &options, &moved, &accelerations);
    assert!(deviation.is_small(), "{deviation:?}");
    // The deviation detects a wrong position, and a NaN.
    moved.positions[7].x += 0.01;
    assert!(!nbody::deviation(&bodies, &options, &moved, &accelerations).is_small());
    moved.positions[7].x = f32::NAN;
    assert!(!nbody::deviation(&bodies, &options, &moved, &accelerations).is_small());
}

#[test]
fn two_bodies_on_a_circle_come_back() {
    let at = |x: f32, w: f32| Float4 { x, y: 0.0, z: 0.0, w };
    let speed = |y: f32| Float4 { x: 0.0, y, z: 0.0, w: 0.0 };
    // Masses of 1/2 at distance 1: each body moves with v = 1/2 and returns after 2 pi.
    let bodies =
        Bodies { positions: vec![at(-0.5, 0.5), at(0.5, 0.5)], velocities: vec![speed(-0.5), speed(0.5)] };
    let steps = 1_000;
    let options = NbodyOptions {
        time_step: std::f32::consts::TAU / steps as f32,
        softening: 1e-4,
        ..in_blocks(steps, 32)
    };
    let (moved, _) = nbody::reference(&bodies, &options);
    for (before, after) in bodies.positions.iter().zip(&moved.positions) {
        assert!((before.x - after.x).hypot(before.y - after.y) < 1e-3, "{before:?} came to {after:?}");
    }
}

#[test]
fn traced_runs_compute_the_same_and_record_what_the_formula_says() {
    for (count, steps, block) in [(1, 1, 32), (64, 2, 64), (77, 3, 64), (130, 2, 128)] {
        let bodies = nbody::plummer(count, 2);
        let options = in_blocks(steps, block);
        let n = count as u32;
        let expected = nbody::reference(&bodies, &options);
        for recording in &RECORDINGS {
            let (outcome, file) = record_as(&mut simulator(0), &nbody::PROGRAM, recording, |launcher| {
                nbody::run(launcher, &bodies, &options).unwrap()
            });
            assert_eq!((outcome.bodies, outcome.accelerations), expected);
            let mut total = 0;
            for launch in file.launches() {
                let (step, is_force) = (launch.number() / 2, launch.number() % 2 == 0);
                for stream in file.streams(launch.number(), 0).unwrap() {
                    let stream = stream.unwrap();
                    let warp = u64::from(stream.warp);
                    let events = if is_force {
                        nbody::force_warp_events(n, warp)
                    } else {
                        nbody::integrate_warp_events(n, warp)
                    };
                    assert_eq!(stream.events, events, "warp {warp} of launch {}", launch.number());
                    total += events;
                    let digests = file.lane_digests(launch.number(), stream.warp, 0).unwrap();
                    for lane in 0..32 {
                        let thread = warp * 32 + lane;
                        let locations = if is_force {
                            nbody::force_lane_locations(n, step, thread)
                        } else {
                            nbody::integrate_lane_locations(n, thread)
                        };
                        assert_eq!(
                            digests.lane(lane as usize),
                            LaneDigest::new(locations),
                            "thread {thread}"
                        );
                    }
                }
            }
            assert_eq!(total, nbody::expected_events(n, steps, block));
        }
    }
}

#[test]
fn few_sources_pull_on_all_bodies() {
    // Less than a round of the inner loop, whole rounds, and rounds with a remainder.
    for sources in [1, 3, 4, 8, 30, 77] {
        let bodies = nbody::plummer(77, 4);
        let options = NbodyOptions { sources: Some(sources), ..in_blocks(2, 64) };
        let counts = EventCounts::new(77, &options);
        let (outcome, file) = record(&mut simulator(0), &nbody::PROGRAM, CodecSpec::Raw, false, |launcher| {
            nbody::run(launcher, &bodies, &options).unwrap()
        });
        let deviation = nbody::deviation(&bodies, &options, &outcome.bodies, &outcome.accelerations);
        assert!(deviation.is_small(), "{sources} sources: {deviation:?}");
        // The result matches the reference with these sources, and not the one in which all bodies attract.
        assert!(
            !nbody::deviation(&bodies, &in_blocks(2, 64), &outcome.bodies, &outcome.accelerations).is_small()
                || sources == 77
        );
        let expected = nbody::reference(&bodies, &options);
        assert_eq!((outcome.bodies, outcome.accelerations), expected, "{sources} sources");
        let mut total = 0;
        for launch in file.launches() {
            for stream in file.streams(launch.number(), 0).unwrap() {
                let stream = stream.unwrap();
                total += stream.events;
                let digests = file.lane_digests(launch.number(), stream.warp, 0).unwrap();
                for lane in 0..32 {
                    let thread = u64::from(stream.warp) * 32 + lane;
                    let locations = if launch.number() % 2 == 0 {
                        counts.force_lane(launch.number() / 2, thread)
                    } else {
                        counts.integrate_lane(thread)
                    };
                    assert_eq!(digests.lane(lane as usize), LaneDigest::new(locations), "thread {thread}");
                }
            }
        }
        assert_eq!(total, counts.total(), "{sources} sources");
    }
}

#[test]
fn options_out_of_range_are_refused() {
    let bodies = nbody::plummer(10, 0);
    let mut device = simulator(0);
    let mut refusal = |bodies: &Bodies, options: NbodyOptions| {
        nbody::run(&mut Untraced(&mut device), bodies, &options).unwrap_err()
    };
    let good = NbodyOptions::new(1);
    assert!(refusal(&nbody::plummer(0, 0), good).to_string().starts_with("bodies is 0: "));
    for (name, options) in [
        ("steps is 0: ", NbodyOptions::new(0)),
        ("sources is 0: ", NbodyOptions { sources: Some(0), ..good }),
        ("sources is 11: ", NbodyOptions { sources: Some(11), ..good }),
        ("block is 0: ", in_blocks(1, 0)),
        ("block is 48: ", in_blocks(1, 48)),
        ("block is 2048: ", in_blocks(1, 2048)),
        ("time step is NaN: ", NbodyOptions { time_step: f32::NAN, ..good }),
        ("softening is 0: ", NbodyOptions { softening: 0.0, ..good }),
        ("softening is inf: ", NbodyOptions { softening: f32::INFINITY, ..good }),
    ] {
        let message = refusal(&bodies, options).to_string();
        assert!(message.starts_with(name), "{message}");
    }
    let mut short = bodies;
    short.velocities.pop();
    assert!(matches!(refusal(&short, good), WorkloadError::Input { .. }));
}
