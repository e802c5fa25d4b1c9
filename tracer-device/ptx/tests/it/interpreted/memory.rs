//! Log memory with room for no, one, or few further segments.

use warptrace_format::Counting;
use warptrace_ptx::interpret::Schedule;
use warptrace_ptx::splice::{Placement, Recording};

use super::Extent;
use super::case::{Shape, Splicing, Traced, time};
use super::program::lane;
use super::sequences::{shape, splicings};
use warptrace_abi::log::FirstSegments;

fn check_all(extent: Extent, placement: Placement, calls: bool) {
    let (mut lost, mut whole, mut both) = (0, 0, 0);
    for (number, splicing) in extent.choose(splicings(placement, calls)) {
        let traced = Traced::new(splicing);
        for (round, segments) in (6 * number..).zip([0, 1, 2, 3, 30, 400]) {
            // A part of the cases tests each amount of memory with some of its splicings.
            if extent == Extent::Part && (round + number) % 3 != 0 {
                continue;
            }
            let mix = traced.mix(24 + 12 * (round % 3) as usize, round % 2 == 0, round % 4 < 2);
            let shape = shape(round + number, segments);
            // The first loss is the earliest clock value, so the clock must not wrap (after centuries in reality).
            let shape = Shape { clock: shape.clock.min(1 << 36), ..shape };
            let outcome = traced.check(round, mix, shape);
            for track in outcome.tracks.iter().flatten() {
                *(if track.lost == 0 { &mut whole } else { &mut lost }) += 1;
                let later = track.recorded(time(shape.clock)).len() < track.entries.len();
                both += u64::from(track.lost != 0 && later);
            }
        }
    }
    // Warps without losses, with losses, and with later entries that do not count.
    let [few, fewer, fewest] = [50, 30, 20].map(|full| extent.least(full));
    assert!(lost > few && whole > fewer && both > fewest, "{lost} {whole} {both}");
}

in_both_tiers! {
    registers_with_little_memory_record_a_beginning: |extent| check_all(extent, Placement::Registers, false);
    shared_memory_with_little_memory_records_a_beginning: |extent| check_all(extent, Placement::Shared, true);
    local_memory_with_little_memory_records_a_beginning: |extent| check_all(extent, Placement::Local, false);
    two_groups_may_be_interrupted_anywhere: |extent| {
        interrupt_everywhere(extent, [&[1, 3, 1], &[3, 1, 6, 2, 0]], 8, &[1, 4, 16, 40]);
    };
    two_groups_may_be_interrupted_where_memory_ends: |extent| {
        let (one, other) = ([1, 3, 1, 3, 1, 3, 1, 3, 1, 3], [3, 1, 3, 1, 3, 1, 3, 1, 3, 1]);
        interrupt_everywhere(extent, [&one, &other], 1, &[23]);
    };
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

/// Two diverged lanes, each interrupted at every instruction, or at some for a part of the cases.
fn interrupt_everywhere(extent: Extent, words: [&[u16]; 2], segments: u32, turns: &[u64]) {
    let shape = Shape {
        grid: [1; 3],
        block: [2, 1, 1],
        first: FirstSegments::of_streams(8),
        segments,
        claimed: 0,
        clock: 77,
    };
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
            for first in (60..steps).step_by(extent.step()) {
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
