//! Ring logs: each lane keeps its latest runs.

use std::ops::Range;

use warptrace_format::chosen::ChosenWarps;
use warptrace_ptx::splice::Placement;

use super::Extent;
use super::case::{Outcome, Shape, Splicing, Traced};
use super::sequences::{shape, splicings};
use warptrace_abi::log::FirstSegments;

/// Kept and lost events of rings of one length.
#[derive(Debug, Default)]
struct Seen {
    whole: usize,
    lossy: usize,
    lost: u64,
    recorded: usize,
    /// Runs in a ring that began before the time from which on the log is complete.
    passed_over: usize,
}

impl Seen {
    fn add(&mut self, outcome: &Outcome, shape: Shape) {
        for track in outcome.tracks.iter().flatten() {
            let recorded = track.recorded((shape.clock >> 4) as u32).len();
            *(if track.lost == 0 { &mut self.whole } else { &mut self.lossy }) += 1;
            self.lost += track.lost;
            self.recorded += recorded;
            self.passed_over += track.entries.len() - recorded;
        }
    }
}

fn check_all(splicings: impl Iterator<Item = (u64, Splicing)>, rounds: Range<u64>, length: u32) -> Seen {
    let mut seen = Seen::default();
    for (number, splicing) in splicings {
        let traced = Traced::ring(splicing, None);
        for round in rounds.clone().map(|round| 5 * number + round) {
            let shape = Shape { first: FirstSegments::of_lanes(length), ..shape(round, 0) };
            let mix = traced.mix(16 + 8 * (round % 5) as usize, round % 2 == 0, round % 3 != 0);
            seen.add(&traced.check(round, mix, shape), shape);
        }
    }
    seen
}

in_both_tiers! {
    the_shortest_rings_keep_the_end_of_what_lanes_do: check_shortest;
    longer_rings_keep_more: check_lengths;
    chosen_warps_keep_the_end_of_what_lanes_do: check_chosen;
}

fn check_shortest(extent: Extent) {
    for (placement, calls) in [
        (Placement::Registers, false),
        (Placement::Local, false),
        (Placement::Shared, false),
        (Placement::Shared, true),
    ] {
        let seen = check_all(extent.choose(splicings(placement, calls)), 0..extent.rounds(5), 16);
        let least = |full| extent.least(full) as usize;
        assert!(seen.lossy > least(100) && seen.whole > least(20), "{placement:?}: {seen:?}");
        assert!(seen.lost > extent.least(5_000) && seen.recorded > least(2_000), "{placement:?}: {seen:?}");
        assert!(seen.passed_over > least(500), "{placement:?}: {seen:?}");
    }
}

fn check_lengths(extent: Extent) {
    let splicings = || extent.choose(splicings(Placement::Registers, false)).step_by(3);
    // The last rounds have the most runs, which fill longer rings.
    let rounds = || if extent == Extent::Full { 0..5 } else { 3..5 };
    let [short, longer, longest] = [16, 32, 512].map(|length| check_all(splicings(), rounds(), length));
    assert!(short.lost > longer.lost && longer.lost > 0 && longest.lost == 0, "{short:?} {longer:?}");
    assert!(short.recorded < longer.recorded && longer.recorded < longest.recorded);
}

fn check_chosen(extent: Extent) {
    let mut seen = Seen::default();
    for (number, splicing) in extent.choose(splicings(Placement::Registers, false)) {
        let shape = Shape { first: FirstSegments::of_lanes(16), ..shape(number, 0) };
        let all = ChosenWarps::all(shape.blocks(), shape.block_warps());
        let chosen = ChosenWarps { first_block: shape.blocks() - 1, blocks: 1, ..all };
        let traced = Traced::ring(splicing, Some(chosen));
        let mix = traced.mix(40, number % 2 == 0, number % 3 != 0);
        let outcome = traced.check(number, mix, shape);
        assert!(outcome.tracks.iter().all(|track| track.len() as u32 == chosen.count()));
        seen.add(&outcome, shape);
    }
    assert!(seen.lossy as u64 > extent.least(10) && seen.lost > extent.least(500), "{seen:?}");
}
