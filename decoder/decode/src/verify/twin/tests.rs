use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const fn event(location: u16, mask: u32) -> Event {
    Event { location, mask }
}

const fn run(location: u16, mask: u32, times: u32) -> EventTimes {
    EventTimes { event: event(location, mask), times }
}

fn singles(events: &[Event]) -> Vec<EventTimes> {
    events.iter().map(|&event| EventTimes { event, times: 1 }).collect()
}

fn compare(trace: &[EventTimes], twin: &[EventTimes]) -> (Verdict, u64) {
    let mut comparison = TwinComparison::new(twin.iter().copied());
    trace.iter().for_each(|&run| comparison.push(run));
    comparison.finish()
}

const EQUAL: Verdict = Verdict::Fits { trace_left: false, twin_left: None };

fn misfit(number: u64, event: Event, expected: &[(u32, Option<Event>)]) -> Misfit {
    let expected = expected.iter().map(|&(lanes, event)| LanesNext { lanes, event }).collect();
    Misfit { number, event, expected }
}

#[test]
fn equal_tracks_are_equal_and_nothing_waits() {
    let runs = [run(1, u32::MAX, 1), run(2, 0xff, 70_000), run(3, 0xff00, 2), run(1, u32::MAX, 1)];
    assert_eq!(compare(&runs, &runs), (EQUAL, 70_004));
    assert_eq!(compare(&[], &[]), (EQUAL, 0));
    let mut comparison = TwinComparison::new(runs.into_iter());
    for run in runs {
        comparison.push(run);
        assert_eq!(comparison.waiting.runs(), 0);
    }
}

#[test]
fn counts_may_be_cut_differently() {
    let trace = [run(1, 3, 5), run(1, 3, 1), run(2, 3, 1), run(1, 3, 4)];
    let twin = [run(1, 3, 2), run(1, 3, 4), run(2, 3, 1), run(1, 3, 1), run(1, 3, 3)];
    assert_eq!(compare(&trace, &twin), (EQUAL, 11));
    assert_eq!(compare(&twin, &trace), (EQUAL, 11));
}

#[test]
fn a_run_stands_where_it_began_while_others_go_on() {
    let (low, high) = (0x0000_ffff, 0xffff_0000);
    let trace = [run(1, low, 1000), run(2, high, 2), run(3, high, 1), run(4, high, 1), run(5, u32::MAX, 1)];
    let mut twin = vec![run(1, low, 1), run(2, high, 1), run(1, low, 500), run(2, high, 1), run(3, high, 1)];
    twin.extend([run(1, low, 498), run(4, high, 1), run(1, low, 1), run(5, u32::MAX, 1)]);
    assert_eq!(compare(&trace, &twin), (EQUAL, 1005));
    // The same event of the same lanes again, in a second run after the other lanes' runs.
    let split = [
        run(1, low, 400),
        run(2, high, 2),
        run(1, low, 600),
        run(3, high, 1),
        run(4, high, 1),
        run(5, u32::MAX, 1),
    ];
    assert_eq!(compare(&split, &twin), (EQUAL, 1005));
    assert_eq!(compare(&trace, &split), (EQUAL, 1005));
}

#[test]
fn events_that_share_no_lane_may_change_places() {
    let trace = [run(1, 1, 1), run(2, 2, 1), run(3, 4, 1), run(4, 7, 1)];
    let twin = [run(3, 4, 1), run(2, 2, 1), run(1, 1, 1), run(4, 7, 1)];
    assert_eq!(compare(&trace, &twin), (EQUAL, 4));
}

#[test]
fn events_that_share_a_lane_may_not() {
    let (one, other) = (event(1, 0b011), event(2, 0b110));
    let (verdict, matched) = compare(&singles(&[one, other]), &singles(&[other, one]));
    assert_eq!((verdict, matched), (Verdict::Differs(misfit(0, other, &[(0b010, Some(one))])), 0));

    // Each of the three is first for a lane of the last event; only one disagrees.
    let [a, b, c, all] = [event(1, 1), event(2, 2), event(3, 4), event(9, 7)];
    let (verdict, matched) = compare(&singles(&[a, b, c, all]), &singles(&[c, b, all, a]));
    assert_eq!((verdict, matched), (Verdict::Differs(misfit(2, all, &[(1, Some(a))])), 2));
}

#[test]
fn a_run_that_waits_must_be_the_first_of_all_its_lanes() {
    // `two` is first for lane 0, but `one` is before it for lane 2. The twin's first event makes both wait.
    let [one, two, other] = [event(1, 0b0110), event(2, 0b0101), event(3, 0b1000)];
    let (verdict, matched) = compare(&singles(&[one, two, other]), &singles(&[other, two, one]));
    assert_eq!((verdict, matched), (Verdict::Differs(misfit(1, two, &[(0b0100, Some(one))])), 1));
}

#[test]
fn a_misfit_says_what_each_lane_expected() {
    let trace = [run(1, 0b0011, 2), run(2, 0b0100, 1), run(3, 0b1111, 1)];
    // Lanes 2 and 3 have nothing before it and do not count as disagreeing.
    let (verdict, matched) = compare(&trace, &[run(2, 0b0100, 1), run(1, 0b0011, 1), run(3, 0b1111, 1)]);
    assert_eq!(verdict, Verdict::Differs(misfit(2, event(3, 0b1111), &[(0b0011, Some(event(1, 0b0011)))])));
    assert_eq!(matched, 2);
    // The same location with other lanes is a different event. Lanes may expect different events.
    let (verdict, _) = compare(&trace, &[run(3, 0b1100, 1)]);
    let Verdict::Differs(found) = verdict else { panic!("{verdict:?}") };
    assert_eq!(found, misfit(0, event(3, 0b1100), &[(0b0100, Some(event(2, 0b0100)))]));
    let (verdict, _) = compare(&trace, &[run(2, 0b0100, 1), run(7, 0b0110, 1)]);
    assert_eq!(verdict, Verdict::Differs(misfit(1, event(7, 0b0110), &[(0b0010, Some(event(1, 0b0011)))])));
}

#[test]
fn missing_and_extra_events_are_left_over() {
    let (long, short) = ([run(1, 3, 3), run(2, 1, 1)], [run(1, 3, 3)]);
    assert_eq!(compare(&long, &short), (Verdict::Fits { trace_left: true, twin_left: None }, 3));
    let left = misfit(3, event(2, 1), &[(1, None)]);
    assert_eq!(compare(&short, &long).0, Verdict::Fits { trace_left: false, twin_left: Some(left) });
    assert_eq!(
        compare(&[run(1, 3, 3)], &[run(1, 3, 2)]).0,
        Verdict::Fits { trace_left: true, twin_left: None }
    );
    let left = misfit(2, event(1, 3), &[(3, None)]);
    assert_eq!(
        compare(&[run(1, 3, 2)], &[run(1, 3, 3)]).0,
        Verdict::Fits { trace_left: false, twin_left: Some(left) }
    );
    let (verdict, _) = compare(&[run(1, 3, 2), run(2, 3, 1)], &[run(1, 3, 3), run(2, 3, 1)]);
    assert_eq!(verdict, Verdict::Differs(misfit(2, event(1, 3), &[(3, Some(event(2, 3)))])));
    let left = misfit(0, event(2, 2), &[(2, None)]);
    assert_eq!(
        compare(&[run(1, 1, 1)], &[run(2, 2, 1)]).0,
        Verdict::Fits { trace_left: true, twin_left: Some(left) }
    );
}

#[test]
fn what_has_been_matched_waits_no_more() {
    // One endless run next to many others: only unmatched events take memory.
    let others: Vec<EventTimes> = (0..200_000).map(|number| run(1 + (number % 9) as u16, 2, 1)).collect();
    let twin = others.iter().flat_map(|&other| [run(1, 1, 1), other]);
    let mut comparison = TwinComparison::new(twin);
    comparison.push(run(1, 1, others.len() as u32));
    for &other in &others {
        comparison.push(other);
        assert!(comparison.waiting.runs() <= 2);
    }
    assert_eq!(comparison.finish(), (EQUAL, 400_000));
}

#[test]
fn tracks_too_far_apart_are_given_up() {
    let trace = |apart: usize| -> Vec<EventTimes> {
        let first = (0..apart).map(|number| run(1 + number as u16 % 2, 1, 1));
        first.chain([run(3, 2, 1)]).collect()
    };
    let twin = |mut runs: Vec<EventTimes>| {
        runs.rotate_right(1);
        runs
    };
    assert_eq!(compare(&trace(MAX_WAITING), &twin(trace(MAX_WAITING))).0, EQUAL);
    let apart = trace(MAX_WAITING + 1);
    let given_up = Verdict::TooFarApart { number: 0, waiting: MAX_WAITING };
    assert_eq!(compare(&apart, &twin(apart.clone())), (given_up, 0));
}

fn by_lane(events: &[Event]) -> Vec<Vec<Event>> {
    let lane = |lane: u32| events.iter().filter(move |event| event.mask >> lane & 1 == 1).copied().collect();
    (0..32).map(lane).collect()
}

fn expand(runs: &[EventTimes]) -> Vec<Event> {
    runs.iter().flat_map(|run| std::iter::repeat_n(run.event, run.times as usize)).collect()
}

/// Makes runs that stand where they began: extends an earlier run by an event if no later run shares a lane
/// with it and `extends` returns true.
fn extended(events: &[Event], extends: &mut impl FnMut() -> bool) -> Vec<EventTimes> {
    let mut runs: Vec<EventTimes> = Vec::new();
    for &event in events {
        let last = runs.iter_mut().rev().find(|run| run.event.mask & event.mask != 0);
        match last {
            Some(run) if run.event == event && extends() => run.times += 1,
            _ => runs.push(EventTimes { event, times: 1 }),
        }
    }
    runs
}

/// Few locations and few lanes, so that streams are often similar.
fn any_events(lanes: u32, most: usize) -> impl Strategy<Value = Vec<Event>> {
    vec((1..=2u16, 1..1u32 << lanes).prop_map(|(location, mask)| event(location, mask)), 0..most)
}

/// Pairs the events with others: arbitrary, with one removed, or with any neighbours swapped.
fn alike(events: Vec<Event>) -> impl Strategy<Value = (Vec<Event>, Vec<Event>)> {
    let (less, swapped) = (events.clone(), events.clone());
    let others = prop_oneof![
        any_events(5, 14),
        any::<prop::sample::Index>().prop_map(move |gone| {
            let mut less = less.clone();
            if !less.is_empty() {
                less.remove(gone.index(less.len()));
            }
            less
        }),
        vec(any::<prop::sample::Index>(), 1..12).prop_map(move |swaps| {
            let mut swapped = swapped.clone();
            let pairs = swapped.len().saturating_sub(1);
            for swap in swaps.iter().filter(|_| pairs > 0) {
                let at = swap.index(pairs);
                swapped.swap(at, at + 1);
            }
            swapped
        }),
    ];
    (Just(events), others)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn swapping_neighbours_that_share_no_lane_changes_nothing(
        mut events in any_events(5, 60),
        swaps in vec(any::<prop::sample::Index>(), 0..300),
        choices in vec(any::<bool>(), 60),
    ) {
        let mut choices = choices.into_iter();
        let trace = extended(&events, &mut || choices.next().unwrap_or(true));
        for swap in swaps {
            let Some(last) = events.len().checked_sub(1).filter(|last| *last > 0) else { break };
            let at = swap.index(last);
            if events[at].mask & events[at + 1].mask == 0 {
                events.swap(at, at + 1);
            }
        }
        prop_assert_eq!(compare(&trace, &singles(&events)).0, EQUAL);
        prop_assert_eq!(compare(&singles(&events), &trace).0, EQUAL);
        // A run may also stand where its last event is.
        let mut backwards = events;
        backwards.reverse();
        let trace: Vec<EventTimes> = trace.into_iter().rev().collect();
        prop_assert_eq!(compare(&trace, &singles(&backwards)).0, EQUAL);
    }

    #[test]
    fn the_verdict_is_that_of_the_lanes_sequences((one, other) in any_events(5, 14).prop_flat_map(alike)) {
        let trace = extended(&one, &mut || true);
        prop_assert_eq!(by_lane(&expand(&trace)), by_lane(&one));
        let verdict = compare(&trace, &singles(&other)).0;
        let (trace, twin) = (by_lane(&one), by_lane(&other));
        let longer = |a: &[Vec<Event>], b: &[Vec<Event>]| a.iter().zip(b).any(|(a, b)| a.len() > b.len());
        let differ = trace.iter().zip(&twin).any(|(a, b)| a.iter().zip(b).any(|(a, b)| a != b));
        match verdict {
            Verdict::Fits { trace_left, twin_left } => {
                prop_assert!(!differ);
                prop_assert_eq!(trace_left, longer(&trace, &twin));
                prop_assert_eq!(twin_left.is_some(), longer(&twin, &trace));
                prop_assert_eq!(trace == twin, !trace_left && twin_left.is_none());
            }
            Verdict::Differs(_) => prop_assert!(differ),
            Verdict::TooFarApart { .. } => prop_assert!(false, "a few events are not far apart"),
        }
    }
}
