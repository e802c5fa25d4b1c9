//! Log memory with room for no, one, or few further segments.

use warptrace_format::Counting;
use warptrace_ptx::interpret::Schedule;
use warptrace_ptx::splice::{Placement, Recording};

use crate::case::{Shape, Splicing, Traced, time};
use crate::program::lane;
use crate::sequences::{shape, splicings};

/// Runs with little memory; returns how many warps' tracks lost something, and how many nothing.
fn check_all(splicings: impl Iterator<Item = Splicing>) {
    let (mut lost, mut whole, mut both) = (0, 0, 0);
    for (number, splicing) in (0..).zip(splicings) {
        let traced = Traced::new(splicing);
        for (round, segments) in (6 * number..).zip([0, 1, 2, 3, 30, 400]) {
            let mix = traced.mix(24 + 12 * (round % 3) as usize, round % 2 == 0, round % 4 < 2);
            let shape = shape(round + number, segments);
            let outcome = traced.check(round, mix, shape);
            for track in outcome.tracks.iter().flatten() {
                *(if track.lost == 0 { &mut whole } else { &mut lost }) += 1;
                let later = track.recorded(time(shape.clock)).len() < track.entries.len();
                both += usize::from(track.lost != 0 && later);
            }
        }
    }
    // Warps that lost nothing, that lost something, and that kept later entries which do not count.
    assert!(lost > 50 && whole > 30 && both > 20, "{lost} {whole} {both}");
}

#[test]
fn registers_with_little_memory_record_a_beginning() {
    check_all(splicings(Placement::Registers, false));
}

#[test]
fn shared_memory_with_little_memory_records_a_beginning() {
    check_all(splicings(Placement::Shared, true));
}

#[test]
fn local_memory_with_little_memory_records_a_beginning() {
    check_all(splicings(Placement::Local, false));
}

#[test]
fn claims_beyond_four_billion_entries_find_no_room() {
    let recording = Recording { counting: Counting::All, dual: true, ..Recording::DEFAULT };
    let placement = Placement::Registers;
    let traced =
        Traced::new(Splicing { placement, recording, sync: true, marks: true, calls: false, many: 3 });
    for (seed, claimed) in (0..4).zip([1 << 20, (1 << 32) - 8, 1 << 32, 1 << 40]) {
        let shape = Shape { claimed, ..shape(1, 0) };
        let outcome = traced.check(seed, traced.mix(48, false, true), shape);
        assert!(outcome.tracks.iter().flatten().any(|track| track.lost > 0));
    }
}

/// Two lanes that diverge, each of them interrupted at every instruction.
fn interrupt_everywhere(words: [&[u16]; 2], segments: u32, turns: &[u64]) {
    let shape = Shape { grid: [1; 3], block: [2, 1, 1], first: 8, segments, claimed: 0, clock: 77 };
    for placement in [Placement::Registers, Placement::Shared] {
        for (counting, dual) in [(Counting::Never, false), (Counting::All, true)] {
            let recording = Recording { counting, dual, ..Recording::DEFAULT };
            let traced = Traced::new(Splicing {
                placement,
                recording,
                sync: dual,
                marks: false,
                calls: false,
                many: 3,
            });
            let threads = words.map(|words| lane(words, traced.mix(48, false, true)));
            let steps = traced.traced(&threads, shape, &mut Schedule::switches(&[], false)).observed.steps;
            for first in 60..steps {
                for turn in turns {
                    let join = (first + turn) % 2 == 0;
                    let at = [first, first + turn, first + turn + first % 7 + 1];
                    let outcome = traced.traced(&threads, shape, &mut Schedule::switches(&at, join));
                    traced.check_outcome(&threads, shape, &outcome);
                }
            }
        }
    }
}

#[test]
fn two_groups_may_be_interrupted_anywhere() {
    interrupt_everywhere([&[1, 3, 1], &[3, 1, 6, 2, 0]], 8, &[1, 4, 16, 40]);
}

#[test]
fn two_groups_may_be_interrupted_where_memory_ends() {
    let (one, other) = ([1, 3, 1, 3, 1, 3, 1, 3, 1, 3], [3, 1, 3, 1, 3, 1, 3, 1, 3, 1]);
    interrupt_everywhere([&one, &other], 1, &[23]);
}
