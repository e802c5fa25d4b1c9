//! Stress on the simulator: results and lanes' paths equal the CPU's for every seed of the simulator.

use crate::programs::{LaneCounts, RECORDINGS, assert_ids_are_unique, record_as, simulator};
use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Untraced;
use warptrace_workloads::stress::{self, StressOptions};

fn options(walks: u32, rounds: u32, block: u32) -> StressOptions {
    StressOptions { block, ..StressOptions::new(walks, rounds) }
}

#[test]
fn trace_points_stand_at_one_place_each() {
    assert_ids_are_unique(&stress::PROGRAM);
}

#[test]
fn the_simulator_walks_as_the_reference_does() {
    // One walk; whole warps; a warp with some lanes outside, and warps outside completely.
    for (walks, rounds, block) in [(1, 3, 32), (64, 9, 64), (77, 20, 128), (700, 5, 256)] {
        let options = options(walks, rounds, block);
        let expected = stress::reference(&options);
        for seed in 0..3 {
            let outcome = stress::run(&mut Untraced(&mut simulator(seed)), &options).unwrap();
            let checked = stress::check_against(&options, &expected, &outcome.result);
            assert!(checked.is_ok(), "{options:?}, seed {seed}: {checked:?}");
            assert_eq!(outcome.result, expected);
        }
    }
}

#[test]
fn traced_walks_are_the_same_and_each_lane_records_its_own_way() {
    let options = StressOptions { seed: 7, ..options(150, 40, 64) };
    let expected = stress::reference(&options);
    for recording in &RECORDINGS {
        let (outcome, file) = record_as(&mut simulator(1), &stress::PROGRAM, recording, |launcher| {
            stress::run(launcher, &options).unwrap()
        });
        assert_eq!(outcome.result, expected, "{recording:?}");
        let (mut lanes, mut events) = (0, 0);
        for stream in file.streams(0, 0).unwrap() {
            let stream = stream.unwrap();
            events += stream.events;
            let digests = file.lane_digests(0, stream.warp, 0).unwrap();
            for lane in 0..32 {
                let locations = stress::lane_locations(&options, u64::from(stream.warp) * 32 + lane);
                lanes += locations.len() as u64;
                assert_eq!(
                    digests.lane(lane as usize),
                    LaneDigest::new(locations),
                    "lane {lane} of {stream:?}"
                );
            }
        }
        assert_eq!(lanes, expected.lane_events(&options));
        // Lanes diverge: on average, fewer than half of them are active at a trace point.
        assert!(lanes < 16 * events, "{lanes} lanes in {events} events");
        let counts = LaneCounts::new(&file);
        for point in stress::PROGRAM.locations() {
            assert!(counts.at(point.id) > 0, "no walk passes {}", point.name);
        }
    }
}

#[test]
fn options_out_of_range_are_refused() {
    let mut device = simulator(0);
    for (name, options) in [
        ("walks is 0: ", options(0, 1, 32)),
        ("walks is 4294967295: ", options(u32::MAX, 1, 32)),
        ("rounds is 0: ", options(1, 0, 32)),
        ("block is 48: ", options(1, 1, 48)),
        ("block is 2048: ", options(1, 1, 2048)),
    ] {
        let message = stress::run(&mut Untraced(&mut device), &options).unwrap_err().to_string();
        assert!(message.starts_with(name), "{message}");
    }
}
