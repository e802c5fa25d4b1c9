//! All placements and recordings, on random lists in random order, with enough log memory.

use warptrace_format::Counting;
use warptrace_ptx::splice::{Placement, Recording};

use super::Extent;
use super::case::{Shape, Splicing, Traced};
use super::model::ModelRun;
use super::program::lane;
use warptrace_abi::log::FirstSegments;

const PLENTY: u32 = 1 << 13;

/// A whole warp; a whole and a partial warp, in several blocks; three dimensions.
const SHAPES: [([u32; 3], [u32; 3]); 4] =
    [([1, 1, 1], [32, 1, 1]), ([2, 1, 1], [70, 1, 1]), ([2, 2, 3], [5, 1, 1]), ([1, 3, 1], [3, 4, 5])];

pub(crate) fn splicings(placement: Placement, calls: bool) -> impl Iterator<Item = Splicing> {
    (0..16).map(move |bits: u32| {
        let bit = |bit: u32| bits >> bit & 1 != 0;
        let counting = if bit(0) { Counting::All } else { Counting::Never };
        let recording = Recording { counting, dual: bit(1), spans: bit(0) != bit(2), ..Recording::DEFAULT };
        let (marks, many) = if bit(3) { (true, 3) } else { (false, 20_000) };
        Splicing { placement, recording, sync: bit(2), marks, calls, many }
    })
}

pub(crate) fn shape(index: u64, segments: u32) -> Shape {
    let (grid, block) = SHAPES[(index % 4) as usize];
    // In some launches the recorded times wrap around.
    let clock = [0, 0x1234_5678_9abc, (1 << 36) - 5_000, (1 << 63) - 5_000][(index / 4 % 4) as usize];
    let first =
        if index.is_multiple_of(2) { FirstSegments::of_streams(8) } else { FirstSegments::of_lanes(8) };
    Shape { grid, block, first, segments, claimed: [0, 64, 8][(index % 3) as usize], clock }
}

fn check_all(extent: Extent, placement: Placement, calls: bool) {
    let (mut joins, mut splits, mut longest) = (0, 0, 0);
    for (number, splicing) in extent.choose(splicings(placement, calls)) {
        let traced = Traced::new(splicing);
        for round in 7 * number..7 * number + extent.rounds(7) {
            let mix = traced.mix(8 + 8 * (round % 6) as usize, round % 2 == 0, round % 3 != 0);
            let outcome = traced.check(round, mix, shape(round, PLENTY));
            assert!(outcome.tracks.iter().flatten().all(|track| track.lost == 0));
            joins += outcome.observed.joins;
            splits += outcome.observed.splits;
            longest =
                longest.max(outcome.tracks[0].iter().map(|track| track.entries.len()).max().unwrap_or(0));
        }
    }
    // The random cases must include many joins and splits, and a long log.
    let least = extent.least(1_000);
    assert!(joins > least && splits > least && longest > 100, "{joins} {splits} {longest}");
}

in_both_tiers! {
    records_in_registers_make_what_lanes_do: |extent| check_all(extent, Placement::Registers, false);
    records_in_shared_memory_make_what_lanes_do: |extent| check_all(extent, Placement::Shared, false);
    records_in_local_memory_make_what_lanes_do: |extent| check_all(extent, Placement::Local, false);
    functions_record_too: |extent| check_all(extent, Placement::Shared, true);
    long_first_segments_take_everything_without_a_claim: check_long_segments;
    a_counted_loop_is_a_run_for_each_step_of_its_counts: check_counted_loops;
}

fn check_long_segments(extent: Extent) {
    let all = [(Placement::Registers, false), (Placement::Shared, true), (Placement::Local, false)];
    let all = all.into_iter().flat_map(|(placement, calls)| extent.choose(splicings(placement, calls)));
    let (mut short_claimed, mut longest) = (0, 0);
    let step = if extent == Extent::Full { 1 } else { 3 };
    for (round, splicing) in (0..).zip(all.map(|(_, splicing)| splicing)).step_by(step) {
        let traced = Traced::new(splicing);
        let mix = traced.mix(48, round % 2 == 0, round % 3 != 0);
        let short = shape(round, PLENTY);
        let outcome = traced.check(
            round,
            mix,
            Shape {
                first: FirstSegments::of_lanes([256, 1024, 4096][round as usize % 3]),
                segments: 0,
                ..short
            },
        );
        assert_eq!(outcome.claimed, 0, "{splicing:?}");
        assert!(outcome.tracks.iter().flatten().all(|track| track.lost == 0));
        longest =
            longest.max(outcome.tracks.iter().flatten().map(|track| track.entries.len()).max().unwrap_or(0));
        let outcome = traced.check(round, mix, short);
        assert!(outcome.tracks.iter().flatten().all(|track| track.lost == 0));
        short_claimed += u64::from(outcome.claimed > 0);
    }
    assert!(short_claimed > extent.least(40) && longest > 1000, "{short_claimed} {longest}");
}

fn runs(placement: Placement, many: u16, counting: Counting, words: &[u16]) -> Vec<ModelRun> {
    let recording = Recording { counting, ..Recording::DEFAULT };
    let traced = Traced::new(Splicing { placement, recording, sync: true, marks: false, calls: false, many });
    let threads = vec![lane(words, traced.mix(48, true, true)); 32];
    let outcome = traced.check_threads(3, &threads, shape(0, PLENTY));
    outcome.tracks[0][0].entries.iter().map(ModelRun::from).collect()
}

#[test]
fn repetitions_are_one_entry_as_far_as_a_key_counts() {
    for placement in [Placement::Registers, Placement::Shared, Placement::Local] {
        let run = |location, count| ModelRun { mask: u32::MAX, location, count };
        assert_eq!(
            runs(placement, 20_000, Counting::Never, &[1, 1, 1, 1, 3, 1]),
            [run(1, 4), run(65535, 1), run(1, 1)]
        );
        // Two iterations, then seven times 20,000 ticks.
        let many = [run(20, 60_002), run(20, 60_000), run(20, 20_000)];
        assert_eq!(runs(placement, 20_000, Counting::Never, &[6, 2, 7]), many);
        assert_eq!(runs(placement, 13_107, Counting::Never, &[6, 0, 5]), [run(20, 65_535)]);
        assert_eq!(runs(placement, 16_384, Counting::Never, &[6, 0, 4]), [run(20, 49_152), run(20, 16_384)]);
        let pieces = [run(20, 65_535), run(20, 65_535), run(20, 8_932)];
        assert_eq!(runs(placement, 20_000, Counting::All, &[6, 2, 7]), pieces);
        assert_eq!(runs(placement, 20_000, Counting::All, &[1, 6, 0, 0, 1]), [run(1, 1), run(1, 1)]);
    }
}

fn check_counted_loops(extent: Extent) {
    let recording = Recording { counting: Counting::All, dual: true, ..Recording::DEFAULT };
    for (placement, sync) in
        [(Placement::Registers, false), (Placement::Shared, true), (Placement::Local, false)]
    {
        let traced =
            Traced::new(Splicing { placement, recording, sync, marks: false, calls: false, many: 20_000 });
        for (seed, trips) in (0..extent.rounds(24)).zip([0_u16, 1, 31, 40, 7, 9].into_iter().cycle()) {
            let mix = traced.mix(48, false, true);
            let threads: Vec<_> = (0..32)
                .map(|thread: u16| {
                    // None, all equal, all different, few different numbers, and some very large.
                    let count = match trips {
                        31 => thread,
                        40 => 40 - thread,
                        7 => thread * 5 % 7,
                        9 => thread % 9 / 4,
                        equal => equal,
                    };
                    lane(&[1, 6, count, u16::from(trips == 9 && thread.is_multiple_of(3)) * 5, 1], mix)
                })
                .collect();
            traced.check_threads(seed, &threads, shape(0, PLENTY));
        }
    }
}
