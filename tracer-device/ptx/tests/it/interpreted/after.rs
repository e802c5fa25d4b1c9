//! Lanes that are recorded from a visit of a location on.

use std::num::NonZeroU32;

use warptrace_format::Counting;
use warptrace_format::chosen::{After, ChosenWarps};
use warptrace_ptx::splice::{LogKind, Options, Placement, Recording, SpliceError, splice};

use super::Extent;
use super::case::{Splicing, Traced, text};
use super::drainer::Streaming;
use super::sequences::{shape, splicings};
use super::streams::Seen;
use warptrace_abi::log::FirstSegments;

/// From the visit `count` of a location on.
fn after(location: u16, count: u32) -> After {
    After { location, count: NonZeroU32::new(count).expect("visits are counted from 1") }
}

/// Without marks, which also count unrecorded events. A part of the cases uses every fourth splicing.
fn without_counts(extent: Extent, placement: Placement, calls: bool) -> impl Iterator<Item = Splicing> {
    splicings(placement, calls)
        .filter(|splicing| splicing.recording.counting != Counting::All && !splicing.marks)
        .map(|splicing| Splicing { many: 3, ..splicing })
        .step_by(if extent == Extent::Full { 1 } else { 4 })
}

/// Locations visited often, rarely, several times at one marker, in a function, and never.
fn cases(extent: Extent) -> impl Iterator<Item = After> {
    let locations = [(1, 1), (1, 3), (50, 2), (3, 1), (2, 3), (41, 4), (60, 1), (20, 5), (77, 1)];
    let step = if extent == Extent::Full { 1 } else { 4 };
    locations.into_iter().step_by(step).map(|(location, count)| after(location, count))
}

/// Returns the numbers of recorded events and of groups' arrivals at markers.
fn check_all(extent: Extent, placement: Placement, calls: bool, ring: bool) -> (u64, u64) {
    let (mut recorded, mut all) = (0, 0);
    for (number, splicing) in (0..).zip(without_counts(extent, placement, calls)) {
        for (case, after) in (0..).zip(cases(extent)) {
            let logs = if ring { LogKind::Ring } else { LogKind::Kept };
            let recording = Recording { logs, after: Some(after), ..splicing.recording };
            let shape = shape(number + case, 1 << 12);
            let chosen = ChosenWarps { blocks: 1, ..ChosenWarps::all(1, shape.block_warps()) };
            let chosen = (case % 3 == 0).then_some(chosen);
            let shape = if ring {
                super::case::Shape { first: FirstSegments::of_lanes(4096), ..shape }
            } else {
                shape
            };
            let traced = Traced::spliced(splicing, recording, chosen);
            let mix = traced.mix(48, (number + case) % 2 == 0, case % 2 == 0);
            let outcome = traced.check(100 * number + case, mix, shape);
            assert!(outcome.tracks.iter().flatten().all(|track| track.lost == 0));
            let entries = outcome.tracks[0].iter().flat_map(|track| &track.entries);
            recorded += entries.map(|entry| u64::from(entry.count)).sum::<u64>();
            all += outcome.observed.markers.len() as u64;
        }
    }
    (recorded, all)
}

in_both_tiers! {
    lanes_are_recorded_from_a_visit_on: check_recorded;
    rings_keep_what_is_recorded_from_a_visit_on: |extent| {
        check_all(extent, Placement::Registers, false, true);
        check_all(extent, Placement::Shared, true, true);
    };
    lanes_stream_from_a_visit_on: check_streamed;
}

fn check_recorded(extent: Extent) {
    for (placement, calls) in [
        (Placement::Registers, false),
        (Placement::Shared, false),
        (Placement::Shared, true),
        (Placement::Local, false),
    ] {
        let (recorded, all) = check_all(extent, placement, calls, false);
        let share = recorded as f64 / all as f64;
        assert!(
            all > extent.least(10_000) && (0.1..0.9).contains(&share),
            "{placement:?}: {recorded} of {all}"
        );
    }
}

fn check_streamed(extent: Extent) {
    let mut seen = Seen::default();
    for (placement, calls) in
        [(Placement::Registers, false), (Placement::Shared, true), (Placement::Local, false)]
    {
        for (number, splicing) in (0..).zip(without_counts(extent, placement, calls)) {
            for (case, after) in (0..).zip(cases(extent)) {
                let logs = LogKind::Streamed;
                let recording = Recording { logs, after: Some(after), ..splicing.recording };
                let shape = shape(number + case, 0);
                let traced = Traced::spliced(splicing, recording, None);
                let mix = traced.mix(48, (number + case) % 2 == 0, case % 2 == 0);
                let least = shape.threads() * shape.blocks() * traced.tracks() + 1;
                traced.stream(100 * number + case, mix, shape, Streaming::patient(least), &mut seen);
            }
        }
    }
    let enough = seen.kept > extent.least(5_000) && seen.copies > extent.least(100);
    assert!(seen.lost == 0 && enough, "{seen:?}");
}

#[test]
fn a_kernel_that_is_recorded_from_its_start_on_is_the_same_as_without_the_question() {
    let splicing = without_counts(Extent::Part, Placement::Registers, false).next().expect("there is one");
    let with = |after| {
        let recording = Some(Recording { after, ..Recording::DEFAULT });
        let options = Options { recording, ..Options::default() };
        splice(&text(splicing), &options).expect("it is spliced").text
    };
    assert_ne!(with(None), with(Some(after(1, 2))));
    // With another location, only the counting of its visits differs.
    let lines = |text: &str| text.lines().filter(|line| line.contains("%wt_tl, %wt_tl,")).count();
    assert_eq!((lines(&with(None)), lines(&with(Some(after(77, 2))))), (0, 0));
    assert!(lines(&with(Some(after(1, 2)))) > 0);
}

#[test]
fn what_is_not_recorded_event_by_event_is_refused() {
    let splicing = without_counts(Extent::Part, Placement::Registers, false).next().expect("there is one");
    let recording = Recording { after: Some(after(1, 1)), counting: Counting::All, ..Recording::DEFAULT };
    let options = Options { recording: Some(recording), ..Options::default() };
    assert_eq!(splice(&text(splicing), &options).unwrap_err(), SpliceError::After);
}
