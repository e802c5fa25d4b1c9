//! Causes against a matrix of the last event that each two lanes shared.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::testing::{expand, items, repeated};

type Sums = BTreeMap<(u16, u16), (u64, u64)>;

#[derive(Debug, Default, PartialEq)]
struct Found {
    /// By cause and place: idle lane slots.
    charges: BTreeMap<(u16, u16), u64>,
    meetings: Sums,
    partings: BTreeMap<u16, u64>,
}

/// Goes through all events, and for each idle lane through all active ones.
fn add_naive(found: &mut Found, events: &[Event], lanes: u32) {
    // Number of the last event that two lanes shared, from 1; 0: the begin, which all share.
    let mut last = [[0_usize; 32]; 32];
    let location = |number: usize| if number == 0 { OUTSIDE } else { events[number - 1].location };
    let mask = |number: usize| if number == 0 { lanes } else { events[number - 1].mask };
    // Partings by their event: lanes ahead and behind, until they meet.
    let mut open: BTreeMap<usize, Option<(u32, u32)>> = BTreeMap::new();
    let is_in = |mask: u32, lane: &usize| mask >> *lane & 1 == 1;
    for (number, event) in (1..).zip(events) {
        for (&parted, sides) in &mut open {
            if let Some((ahead, behind)) = *sides
                && event.mask & ahead != 0
                && event.mask & behind != 0
            {
                *sides = None;
                let met = found.meetings.entry((location(parted), event.location)).or_default();
                *met = (met.0 + 1, met.1 + (number - parted - 1) as u64);
            }
        }
        let mut charged: BTreeMap<usize, u32> = BTreeMap::new();
        for idle in (0..32).filter(|lane| is_in(lanes & !event.mask, lane)) {
            let active = (0..32).filter(|lane| is_in(event.mask, lane));
            let cause = active.map(|lane| last[idle][lane]).max().unwrap();
            *charged.entry(cause).or_default() |= 1 << idle;
        }
        for (cause, idle) in charged {
            *found.charges.entry((location(cause), event.location)).or_default() +=
                u64::from(idle.count_ones());
            open.entry(cause).or_insert_with(|| {
                *found.partings.entry(location(cause)).or_default() += 1;
                Some((mask(cause) & event.mask, idle))
            });
        }
        for one in (0..32).filter(|lane| is_in(event.mask, lane)) {
            (0..32).filter(|lane| is_in(event.mask, lane)).for_each(|other| last[one][other] = number);
        }
    }
}

fn found(causes: &mut Causes) -> Found {
    let charges = causes.charges().unwrap().into_iter().map(|(ends, sum)| (ends, sum.amount)).collect();
    let meetings =
        causes.meetings().unwrap().into_iter().map(|(ends, sum)| (ends, (sum.times, sum.amount))).collect();
    let partings = (0..).zip(causes.partings.iter().copied()).filter(|(_, count)| *count > 0).collect();
    Found { charges, meetings, partings }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn charges_are_those_of_the_matrix(
        warps in proptest::collection::vec((repeated(), prop_oneof![Just(u32::MAX), Just(0xffff_u32)]), 1..3),
    ) {
        let (mut causes, mut expected) = (Causes::default(), Found::default());
        for (stream, lanes) in &warps {
            causes.begin(*lanes);
            items(stream, &mut |item| causes.push(&item));
            add_naive(&mut expected, &expand(stream), *lanes);
        }
        prop_assert_eq!(found(&mut causes), expected);
    }

    #[test]
    fn what_is_removed_is_needed_no_more(masks in proptest::collection::vec(any::<(u32, u32)>(), 200..400)) {
        let event = |(at, (one, other)): (u16, &(u32, u32))| Event { location: at % 9 + 1, mask: one & other | 1 };
        let events: Vec<Event> = (0..).zip(&masks).map(event).collect();
        let (mut causes, mut expected) = (Causes::default(), Found::default());
        causes.begin(u32::MAX);
        for &event in &events {
            causes.push(&Item::Run { event, times: 1 });
        }
        prop_assert!(causes.shared.len() <= MOST);
        add_naive(&mut expected, &events, u32::MAX);
        prop_assert_eq!(found(&mut causes), expected);
    }
}

fn event(location: u16, mask: u32) -> Event {
    Event { location, mask }
}

#[test]
fn a_loop_with_a_long_lane_is_charged_to_its_head() {
    let mut causes = Causes::default();
    causes.begin(0b11);
    for (event, times) in
        [(event(1, 0b11), 1), (event(2, 0b11), 3), (event(2, 0b01), 90), (event(3, 0b11), 1)]
    {
        causes.push(&Item::Run { event, times });
    }
    let expected = Found {
        charges: BTreeMap::from([((2, 2), 90)]),
        meetings: BTreeMap::from([((2, 3), (1, 90))]),
        partings: BTreeMap::from([(2, 1)]),
    };
    assert_eq!(found(&mut causes), expected);
}

#[test]
fn lanes_that_never_came_are_charged_to_the_begin() {
    let mut causes = Causes::default();
    causes.begin(0xf);
    causes.push(&Item::Run { event: event(1, 0b1), times: 2 });
    // A lane that the warp does not have.
    causes.push(&Item::Run { event: event(1, 0x10), times: 1 });
    let found = found(&mut causes);
    assert_eq!(found.charges, BTreeMap::from([((OUTSIDE, 1), 3 * 2 + 4)]));
    assert_eq!((found.partings[&OUTSIDE], found.meetings.len()), (1, 0));
}
