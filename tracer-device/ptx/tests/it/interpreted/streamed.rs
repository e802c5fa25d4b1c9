//! Streamed logs: all placements and recordings, on random lists, with a host that empties them concurrently.

use warptrace_format::Counting;
use warptrace_ptx::interpret::Schedule;
use warptrace_ptx::splice::{Placement, Recording};

use super::Extent;
use super::case::{Shape, Splicing, Traced};
use super::drainer::{Habit, Streaming};
use super::program::lane;
use super::sequences::{shape, splicings};
use super::streams::Seen;
use warptrace_abi::log::FirstSegments;

/// Returns the minimum number of segments for waiting lanes to make progress: one for each log, and one more.
fn least(traced: &Traced, shape: Shape) -> u32 {
    shape.threads() * shape.blocks() * traced.tracks() + 1
}

/// `streaming` makes the parameters from the round and the minimum number of segments.
fn check(
    splicings: impl Iterator<Item = (u64, Splicing)>,
    rounds: u64,
    streaming: impl Fn(u64, u32) -> Streaming,
) -> Seen {
    let mut seen = Seen::default();
    for (number, splicing) in splicings {
        let traced = Traced::streamed(splicing);
        for round in rounds * number..rounds * (number + 1) {
            let mix = traced.mix(16 + 16 * (round % 3) as usize, round % 2 == 0, round % 5 < 3);
            let shape = shape(round + number, 0);
            traced.stream(round, mix, shape, streaming(round, least(&traced, shape)), &mut seen);
        }
    }
    seen
}

/// Lanes wait without limit.
fn check_patient(extent: Extent, placement: Placement, calls: bool) {
    let splicings = extent.choose(splicings(placement, calls));
    let seen = check(splicings, extent.rounds(2), |round, least| match round % 4 {
        0 => Streaming::patient(least),
        // Laps wrap around.
        1 => {
            let first_ticket = 254 * u64::from(least.next_power_of_two());
            Streaming { entries: 8, first_ticket, ..Streaming::patient(least) }
        }
        2 => Streaming { first_ticket: (1 << 32) - 9, pace: 1_000, ..Streaming::patient(least) },
        _ => Streaming { entries: 16, ..Streaming::patient(4 * least) },
    });
    assert_eq!((seen.lost, seen.broken, seen.in_vain), (0, 0, 0), "{seen:?}");
    let least = extent.least(500);
    assert!(seen.uses > 10 * least && seen.holes > least && seen.copies > least, "{seen:?}");
}

/// Lanes wait for a limited time, and hosts do not free everything.
fn check_impatient(extent: Extent, placement: Placement, calls: bool) {
    let splicings = extent.choose(splicings(placement, calls));
    let seen = check(splicings, extent.rounds(3), |round, least| {
        let (segments, habit) = match round % 5 {
            0 => (least, Habit::Lazy),
            1 => (4 * least, Habit::Lazy),
            // Fewer than all lanes need.
            2 => (least / 8 + 1, Habit::Busy),
            3 => (least, Habit::Sleepy { snapshots: 4, times: 20 }),
            _ => (least / 2, Habit::Sleepy { snapshots: 2, times: 200 }),
        };
        Streaming { habit, stall: [0, 5_000, 40_000][(round % 3) as usize], ..Streaming::patient(segments) }
    });
    let least = |full| extent.least(full);
    assert!(seen.whole > least(30) && seen.broken > least(100) && seen.in_vain > least(500), "{seen:?}");
    assert!(seen.resumed > least(50) && seen.kept > least(10_000) && seen.lost > least(1_000), "{seen:?}");
}

/// Two diverged lanes, each interrupted at every instruction, or at some for a part of the cases.
fn interrupt_everywhere(
    extent: Extent,
    words: [&[u16]; 2],
    streaming: impl Fn(u32) -> Streaming,
    turns: &[u64],
) -> Seen {
    let shape = Shape {
        grid: [1; 3],
        block: [2, 1, 1],
        segments: 0,
        first: FirstSegments::of_lanes(8),
        claimed: 0,
        clock: 77,
    };
    let mut seen = Seen::default();
    for placement in [Placement::Registers, Placement::Shared] {
        for (counting, dual) in [(Counting::Never, false), (Counting::All, true)] {
            let recording = Recording { counting, dual, ..Recording::DEFAULT };
            let splicing = Splicing { placement, recording, sync: dual, marks: false, calls: false, many: 3 };
            let traced = Traced::streamed(splicing);
            let streaming = streaming(least(&traced, shape));
            let threads = words.map(|words| lane(words, traced.mix(48, false, true)));
            let mut run = |seed, at: &[u64], join| {
                let schedule = &mut Schedule::switches(at, join);
                traced.stream_threads(seed, &threads, shape, streaming, schedule, &mut seen)
            };
            let steps = run(0, &[], false);
            for first in (60..steps).step_by(extent.step()) {
                for turn in turns {
                    let at = [first, first + turn, first + turn + first % 7 + 1];
                    run(first, &at, (first + turn) % 2 == 0);
                }
            }
        }
    }
    seen
}

const ALTERNATING: [&[u16]; 2] = [&[1, 3, 1, 3, 1, 3, 1, 3, 1, 3], &[3, 1, 3, 1, 3, 1, 6, 2, 0]];

in_both_tiers! {
    registers_lose_nothing: |extent| check_patient(extent, Placement::Registers, false);
    shared_memory_loses_nothing: |extent| check_patient(extent, Placement::Shared, true);
    local_memory_loses_nothing: |extent| check_patient(extent, Placement::Local, false);
    registers_keep_what_there_is_room_for: |extent| check_impatient(extent, Placement::Registers, false);
    shared_memory_keeps_what_there_is_room_for: |extent| check_impatient(extent, Placement::Shared, true);
    local_memory_keeps_what_there_is_room_for: |extent| check_impatient(extent, Placement::Local, false);
    two_groups_may_be_interrupted_where_the_host_frees_memory: check_interrupted;
    two_groups_may_be_interrupted_where_the_host_stops_for_a_while: check_interrupted_long;
}

fn check_interrupted(extent: Extent) {
    let seen = interrupt_everywhere(extent, ALTERNATING, Streaming::patient, &[23]);
    assert_eq!((seen.lost, seen.in_vain), (0, 0), "{seen:?}");
}

fn check_interrupted_long(extent: Extent) {
    let habit = Habit::Sleepy { snapshots: 2, times: 3 };
    let streaming = |least| Streaming { habit, stall: 3_000, ..Streaming::patient(least) };
    let seen = interrupt_everywhere(extent, ALTERNATING, streaming, &[23]);
    let least = extent.least(100);
    assert!(seen.resumed > least && seen.broken > least, "{seen:?}");
}
