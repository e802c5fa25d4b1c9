//! Logs that are rings: each lane keeps its latest runs.

use std::ops::Range;

use warptrace_abi::log::{ENTRY_BYTES, Entry, HEAD_BYTES};
use warptrace_format::LANES;
use warptrace_format::chosen::ChosenWarps;
use warptrace_ptx::splice::Placement;

use super::Extent;
use super::case::{Outcome, Shape, Splicing, Traced};
use super::logs::{ACCOUNT_BYTES, Layout, Reader, Track};
use super::sequences::{shape, splicings};

/// Reads all rings, and checks that nothing else was written. `clock` is the time at which the launch began.
pub(crate) fn read_rings(
    layout: &Layout,
    memory: &[u8],
    claims: &[u8],
    accounts: &[u8],
    clock: u32,
) -> Vec<Vec<Track>> {
    let Reader { mut written, words, .. } = Reader::new(memory);
    let launch = layout.launch;
    let half = launch.segment_entries;
    let mut tracks = Vec::new();
    for track in 0..layout.tracks {
        let mut warps = Vec::new();
        for warp in 0..launch.warps {
            let mut found = Track::default();
            for lane in (0..LANES).filter(|lane| layout.lanes(warp) >> lane & 1 != 0) {
                let head = launch.heads_of(track, warp) * ENTRY_BYTES + lane * HEAD_BYTES;
                let [end, lost] = [0, 1].map(|word| words[(head / 4 + word) as usize]);
                let first = launch.first_segment(track, warp, lane);
                let second = first + half;
                let mut mark = |from: u32, to: u32| written[from as usize..to as usize].fill(true);
                mark(head, head + HEAD_BYTES);
                let state = (second - 1) * ENTRY_BYTES;
                mark(state, state + 8);
                let mut mark = |from: u32, to: u32| mark(from * ENTRY_BYTES, to * ENTRY_BYTES);
                let (whole, rest) = match (end < second, lost) {
                    (true, 0) => (first..first, first..end),
                    (true, _) => (second..second + half - 1, first..end),
                    (false, _) => (first..second - 1, second..end),
                };
                assert!((rest.start..rest.start + half).contains(&end) && lost <= 1, "{end} {lost}");
                mark(whole.start, whole.end);
                mark(rest.start, rest.end);
                if lost != 0 {
                    mark(first, second - 1);
                    mark(second, second + half - 1);
                }
                let entry = |index: u32| {
                    let index = (index * 4) as usize;
                    Entry::from_words([0, 1, 2, 3].map(|word| words[index + word]))
                };
                let entries: Vec<Entry> =
                    whole.chain(rest).map(entry).filter(|entry| entry.is_run()).collect();
                assert!(entries.iter().all(|entry| entry.mask & !layout.lanes(warp) == 0 && entry.mask != 0));
                assert!(entries.is_sorted_by_key(|entry| entry.time.wrapping_sub(clock)), "{entries:?}");
                if lost != 0 {
                    assert!(entries.len() as u32 >= half - 1, "lane {lane} has less than half of its ring");
                    let [since, latest] = [entries[0].time, found.complete_from.unwrap_or(clock)]
                        .map(|time| time.wrapping_sub(clock));
                    found.complete_from = Some(clock.wrapping_add(since.max(latest)));
                }
                found.entries.extend(entries);
            }
            found.entries.sort_by_key(|entry| entry.time.wrapping_sub(clock));
            let account = (track * launch.warps + warp) as usize * ACCOUNT_BYTES;
            let [attempted, recorded, lost, rest] = [0, 8, 16, 24]
                .map(|at| u64::from_le_bytes(accounts[account + at..][..8].try_into().expect("8 bytes")));
            assert_eq!((attempted, recorded, rest), (lost, 0, 0), "account of warp {warp}");
            assert_eq!(lost != 0, found.complete_from.is_some(), "the heads say what is lost");
            found.lost = lost;
            warps.push(found);
        }
        tracks.push(warps);
    }
    let fill = layout.fill();
    for (byte, written) in written.iter().enumerate() {
        assert!(*written || memory[byte] == fill[byte], "entry {} was written", byte as u32 / ENTRY_BYTES);
    }
    assert_eq!(claims[..8], layout.claimed.to_le_bytes(), "nothing is claimed");
    tracks
}

/// What rings of a length have kept and lost.
#[derive(Debug, Default)]
struct Seen {
    whole: usize,
    lossy: usize,
    lost: u64,
    recorded: usize,
    /// Runs that were in a ring, but that began before the time from which on all are there.
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

/// Runs splicings with rings of this many entries.
fn check_all(splicings: impl Iterator<Item = (u64, Splicing)>, rounds: Range<u64>, length: u32) -> Seen {
    let mut seen = Seen::default();
    for (number, splicing) in splicings {
        let traced = Traced::ring(splicing, None);
        for round in rounds.clone().map(|round| 5 * number + round) {
            let shape = Shape { first: length, ..shape(round, 0) };
            let mix = traced.mix(16 + 8 * (round % 5) as usize, round % 2 == 0, round % 3 != 0);
            // Compares logs and results with what the lanes were told to do.
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
        // Or these runs show little.
        let least = |full| extent.least(full) as usize;
        assert!(seen.lossy > least(100) && seen.whole > least(20), "{placement:?}: {seen:?}");
        assert!(seen.lost > extent.least(5_000) && seen.recorded > least(2_000), "{placement:?}: {seen:?}");
        assert!(seen.passed_over > least(500), "{placement:?}: {seen:?}");
    }
}

fn check_lengths(extent: Extent) {
    let splicings = || extent.choose(splicings(Placement::Registers, false)).step_by(3);
    // The last ones have the most runs, which fill longer rings.
    let rounds = || if extent == Extent::Full { 0..5 } else { 3..5 };
    let [short, longer, longest] = [16, 32, 512].map(|length| check_all(splicings(), rounds(), length));
    assert!(short.lost > longer.lost && longer.lost > 0 && longest.lost == 0, "{short:?} {longer:?}");
    assert!(short.recorded < longer.recorded && longer.recorded < longest.recorded);
}

fn check_chosen(extent: Extent) {
    let mut seen = Seen::default();
    for (number, splicing) in extent.choose(splicings(Placement::Registers, false)) {
        let shape = Shape { first: 16, ..shape(number, 0) };
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
