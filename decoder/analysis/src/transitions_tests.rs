//! Compares edges and splits with each lane's sequence of events.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::Item;

use super::*;
use crate::testing::{expand, items, repeated};

impl Transitions {
    fn push(&mut self, item: &Item<'_>) {
        match item {
            Item::Run { event, times } => {
                self.run(*event, (*times).into(), None, |_, _| {});
            }
            Item::Cycle { body, times } => self.cycle(body, *times),
        }
    }
}

type FoundTransitions = (BTreeMap<(u16, u16), (u64, u64)>, BTreeMap<u16, u64>, BTreeMap<u16, u64>);

fn naive(events: &[Event], lanes: u32, is_whole: bool) -> FoundTransitions {
    let (mut edges, mut splits, mut cut) = FoundTransitions::default();
    let mut pairs: BTreeMap<(Option<usize>, Option<usize>), u64> = BTreeMap::new();
    let mut next: BTreeMap<usize, BTreeSet<u16>> = BTreeMap::new();
    for lane in 0..32 {
        let own = (0..events.len()).filter(|&at| events[at].mask >> lane & 1 == 1);
        let own: Vec<Option<usize>> =
            std::iter::once(None).chain(own.map(Some)).chain(std::iter::once(None)).collect();
        if own.len() == 2 {
            continue;
        }
        assert!(lanes >> lane & 1 == 1);
        for pair in own.windows(2) {
            let [from, to] = [pair[0], pair[1]];
            let location = to.map_or(OUTSIDE, |to| events[to].location);
            if let (Some(from), None, false) = (from, to, is_whole) {
                *cut.entry(events[from].location).or_default() += 1;
                continue;
            }
            *pairs.entry((from, to)).or_default() += 1;
            if let Some(from) = from {
                next.entry(from).or_default().insert(location);
            }
        }
    }
    for ((from, to), lanes) in pairs {
        let location = |at: Option<usize>| at.map_or(OUTSIDE, |at| events[at].location);
        let edge = edges.entry((location(from), location(to))).or_insert((0, 0));
        *edge = (edge.0 + 1, edge.1 + lanes);
    }
    for (from, to) in next {
        if to.len() > 1 {
            *splits.entry(events[from].location).or_default() += 1;
        }
    }
    (edges, splits, cut)
}

fn by_location(counts: &[u64]) -> BTreeMap<u16, u64> {
    (0..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
}

proptest! {
    #[test]
    fn edges_and_splits_are_those_of_the_lanes(
        warps in proptest::collection::vec((repeated(), any::<bool>()), 1..4),
    ) {
        let mut transitions = Transitions::default();
        let mut expected = FoundTransitions::default();
        for (stream, is_whole) in &warps {
            transitions.begin(u32::MAX, 1);
            items(stream, &mut |item| transitions.push(&item));
            transitions.end(*is_whole);
            let (edges, splits, cut) = naive(&expand(stream), u32::MAX, *is_whole);
            for (ends, (visits, lanes)) in edges {
                let edge = expected.0.entry(ends).or_default();
                *edge = (edge.0 + visits, edge.1 + lanes);
            }
            splits.into_iter().for_each(|(at, count)| *expected.1.entry(at).or_default() += count);
            cut.into_iter().for_each(|(at, count)| *expected.2.entry(at).or_default() += count);
        }
        let edges = transitions.edges().unwrap();
        let edges = edges.into_iter().map(|(ends, steps)| (ends, (steps.times, steps.amount))).collect();
        prop_assert_eq!((edges, by_location(&transitions.splits), by_location(&transitions.cut)), expected);
    }
}

#[test]
fn a_split_counts_once_and_repeats_count_as_often() {
    let event = |location, mask| Event { location, mask };
    let mut transitions = Transitions::default();
    transitions.begin(0b111, 1);
    // The three lanes diverge three times, to 2, 3 and 4, and reconverge at 1.
    let body = [event(1, 0b111), event(2, 0b001), event(3, 0b010), event(4, 0b100)];
    transitions.push(&Item::Cycle { body: &body, times: 3 });
    transitions.end(true);
    assert_eq!(by_location(&transitions.splits), BTreeMap::from([(1, 3)]));
    let edges: BTreeMap<_, _> = transitions.edges().unwrap().into_iter().collect();
    let steps = |times, amount| Sum { times, amount };
    assert_eq!(edges[&(OUTSIDE, 1)], steps(1, 3));
    assert_eq!(
        (edges[&(1, 2)], edges[&(2, 1)], edges[&(2, OUTSIDE)]),
        (steps(3, 3), steps(2, 2), steps(1, 1))
    );
}

#[test]
fn lanes_that_the_warp_lacks_begin_where_they_come_first() {
    let mut transitions = Transitions::default();
    transitions.begin(1, 1);
    transitions.push(&Item::Run { event: Event { location: 5, mask: 0b11 }, times: 2 });
    transitions.end(true);
    let edges = transitions.edges().unwrap();
    let lanes = |from, to| edges.iter().find(|(ends, _)| *ends == (from, to)).unwrap().1.amount;
    assert_eq!((lanes(OUTSIDE, 5), lanes(5, 5), lanes(5, OUTSIDE)), (2, 2, 2));
}

#[test]
fn counts_stop_instead_of_overflowing() {
    let mut steps = Sum { times: u64::MAX, amount: 1 };
    steps.add(Sum { times: 1, amount: u64::MAX });
    assert_eq!(steps, Sum { times: u64::MAX, amount: u64::MAX });
}
