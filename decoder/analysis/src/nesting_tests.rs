//! Compares trips with a separate stack for each lane, event by event.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::Item;

use super::*;
use crate::testing::{expand, items, repeated};

impl Nesting {
    fn push(&mut self, item: &Item<'_>) {
        match item {
            Item::Run { event, times } => self.run(*event, (*times).into()),
            Item::Cycle { body, times } => self.cycle(body, *times),
        }
    }
}

type FoundNesting = BTreeMap<u16, BTreeMap<u64, u64>>;

fn of_lane(locations: impl Iterator<Item = u16>, depth: usize, found: &mut FoundNesting) {
    let mut stack: Vec<(u16, u64)> = Vec::new();
    let mut over =
        |(location, trips): (u16, u64)| *found.entry(location).or_default().entry(trips).or_default() += 1;
    for location in locations {
        if let Some(at) = stack.iter().position(|entry| entry.0 == location) {
            stack.drain(at + 1..).for_each(&mut over);
            stack[at].1 += 1;
        } else {
            if stack.len() == depth {
                stack.drain(..depth / 2).for_each(&mut over);
            }
            stack.push((location, 1));
        }
    }
    stack.into_iter().for_each(over);
}

fn naive(events: &[Event], found: &mut FoundNesting) {
    for lane in 0..32 {
        let own = events.iter().filter(|event| event.mask >> lane & 1 == 1);
        of_lane(own.map(|event| event.location), MAX_DEPTH, found);
    }
}

fn distributions(found: &FoundNesting) -> BTreeMap<u16, Distribution> {
    let distribution = |trips: &BTreeMap<u64, u64>| {
        let mut all = Distribution::default();
        trips.iter().for_each(|(&number, &times)| all.add(number, times));
        all
    };
    found.iter().map(|(&location, trips)| (location, distribution(trips))).collect()
}

fn found(nesting: &Nesting) -> BTreeMap<u16, Distribution> {
    let all = nesting.visited.iter().map(|visited| (visited.location, nesting.trips(visited.location)));
    all.filter(|(_, trips)| trips.count() > 0).collect()
}

proptest! {
    #[test]
    fn trips_are_those_of_the_lanes(streams in proptest::collection::vec(repeated(), 1..4)) {
        let (mut nesting, mut expected) = (Nesting::default(), FoundNesting::default());
        for stream in &streams {
            nesting.begin(1);
            items(stream, &mut |item| nesting.push(&item));
            nesting.end();
            naive(&expand(stream), &mut expected);
        }
        prop_assert_eq!(found(&nesting), distributions(&expected));
    }

    #[test]
    fn stacks_that_are_too_high_forget_their_older_half(
        parts in proptest::collection::vec((1_u16..500, 1_u16..129, 1_u32..5), 1..12),
        mask in prop_oneof![Just(1_u32), Just(3)],
    ) {
        let (mut nesting, mut events) = (Nesting::default(), Vec::new());
        nesting.begin(1);
        for &(first, length, times) in &parts {
            let body: Vec<Event> = (first..first + length).map(|location| Event { location, mask }).collect();
            let item = match body[..] {
                [event] => Item::Run { event, times },
                _ => Item::Cycle { body: &body, times },
            };
            item.for_each(&mut |event| events.push(event));
            nesting.push(&item);
        }
        nesting.end();
        let mut expected = FoundNesting::default();
        naive(&events, &mut expected);
        prop_assert_eq!(found(&nesting), distributions(&expected));
    }
}

#[test]
fn loops_in_loops_begin_anew() {
    // 1; twice: 2, then 3 as often as given, then 4; 5.
    let mut nesting = Nesting::default();
    nesting.begin(1);
    let all = u32::MAX;
    for (location, times) in [(1, 1), (2, 1), (3, 7), (4, 1), (2, 1), (3, 1), (4, 1), (5, 1)] {
        nesting.push(&Item::Run { event: Event { location, mask: all }, times });
    }
    nesting.end();
    let trips = |location| {
        let trips = nesting.trips(location);
        (trips.count(), trips.min(), trips.max(), trips.sum())
    };
    assert_eq!((trips(2), trips(3)), ((32, 2, 2, 64), (64, 1, 7, 256)));
    assert_eq!((trips(4), trips(1)), ((64, 1, 1, 64), (32, 1, 1, 32)));
}

#[test]
fn long_cycles_cost_no_more_than_short_ones() {
    let body = [1, 2, 2, 3].map(|location| Event { location, mask: 1 });
    let mut nesting = Nesting::default();
    nesting.begin(1);
    nesting.push(&Item::Cycle { body: &body, times: u32::MAX });
    nesting.end();
    let n = u64::from(u32::MAX);
    assert_eq!((nesting.trips(1).max(), nesting.trips(1).count()), (n, 1));
    assert_eq!((nesting.trips(2).count(), nesting.trips(2).max(), nesting.trips(2).min()), (n, 2, 2));
    assert_eq!(nesting.trips(3).count(), n);
}

#[test]
fn lanes_of_an_event_share_an_entry() {
    let mut nesting = Nesting::default();
    nesting.begin(1);
    let run = |location, mask, times| Item::Run { event: Event { location, mask }, times };
    for item in [run(1, 0xff, 1), run(2, 0xff, 3), run(2, 0xf0, 5), run(4, 0xf0, 1), run(3, 0xff, 1)] {
        nesting.push(&item);
    }
    assert_eq!(nesting.entries, [0xff, 0xff, 0xf0, 0xff]);
    nesting.push(&run(1, 0xf, 1));
    assert_eq!(nesting.entries, [0xff, 0xf0, 0xf0, 0xf0]);
    nesting.push(&run(1, 0xff, 1));
    assert_eq!(nesting.entries, [0xff]);
}

fn diverged() -> impl Strategy<Value = Vec<Event>> {
    let mask =
        prop_oneof![8 => (0_u32..32).prop_map(|lane| 1 << lane), 1 => any::<u32>().prop_map(|m| m | 1)];
    let event = (1_u16..300, mask).prop_map(|(location, mask)| Event { location, mask });
    proptest::collection::vec(event, 1..3000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn lanes_may_have_hundreds_of_entries(events in diverged()) {
        let mut nesting = Nesting::default();
        nesting.begin(1);
        events.iter().for_each(|&event| nesting.push(&Item::Run { event, times: 1 }));
        nesting.end();
        let mut expected = FoundNesting::default();
        naive(&events, &mut expected);
        prop_assert_eq!(found(&nesting), distributions(&expected));
    }
}
