//! Compares causes with a matrix of the last event that each two lanes shared.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warptrace_format::codec::Item;

use super::*;
use crate::fuzzing::charges::ChargeSums;
use crate::testing::{expand, items, repeated};
use crate::transitions::Transitions;

#[derive(Default)]
struct Both {
    causes: Causes,
    edges: Transitions,
}

impl Both {
    fn begin(&mut self, lanes: u32) {
        self.causes.begin(lanes, 1);
        self.edges.begin(lanes, 1);
    }

    fn push(&mut self, item: &Item<'_>) {
        match item {
            Item::Run { event, times } => {
                let is_reconvergence = self.edges.run(*event, (*times).into(), None, |_, _| {});
                self.causes.run(*event, (*times).into(), is_reconvergence);
            }
            Item::Cycle { body, times } => {
                self.edges.cycle(body, *times);
                self.causes.cycle(body, *times);
            }
        }
    }
}

fn found(Both { causes, .. }: &mut Both) -> ChargeSums {
    let charges = causes.charges().unwrap().into_iter().map(|(ends, sum)| (ends, sum.amount)).collect();
    let reconvergences = causes
        .reconvergences()
        .unwrap()
        .into_iter()
        .map(|(ends, sum)| (ends, (sum.times, sum.amount)))
        .collect();
    let divergences =
        (0..).zip(causes.divergences.divergences().iter().copied()).filter(|(_, count)| *count > 0).collect();
    ChargeSums { charges, reconvergences, divergences }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn charges_are_those_of_the_matrix(
        warps in proptest::collection::vec((repeated(), prop_oneof![Just(u32::MAX), Just(0xffff_u32)]), 1..3),
    ) {
        let (mut causes, mut expected) = (Both::default(), ChargeSums::default());
        for (stream, lanes) in &warps {
            causes.begin(*lanes);
            items(stream, &mut |item| causes.push(&item));
            let has = |event: Event| Event { mask: event.mask & lanes, ..event };
            expected.add(&expand(stream).into_iter().map(has).collect::<Vec<_>>(), *lanes);
        }
        prop_assert_eq!(found(&mut causes), expected);
    }
}

fn masks() -> impl Strategy<Value = Vec<(u32, u32)>> {
    proptest::collection::vec(any::<(u32, u32)>(), 200..400)
}

fn assert_removes_what_is_needed_no_more(masks: &[(u32, u32)]) -> Result<(), TestCaseError> {
    let event =
        |(at, (one, other)): (u16, &(u32, u32))| Event { location: at % 9 + 1, mask: one & other | 1 };
    let events: Vec<Event> = (0..).zip(masks).map(event).collect();
    let (mut causes, mut expected) = (Both::default(), ChargeSums::default());
    causes.begin(u32::MAX);
    for &event in &events {
        causes.push(&Item::Run { event, times: 1 });
    }
    expected.add(&events, u32::MAX);
    prop_assert_eq!(found(&mut causes), expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_removed_is_needed_no_more(masks in masks()) {
        assert_removes_what_is_needed_no_more(&masks)?;
    }
}

fn diverging(mut state: u64, locations: u16, events: usize) -> Vec<(Event, u32)> {
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let mut groups = vec![u32::MAX];
    let mut next = || {
        let at = random() as usize % groups.len();
        let mask = groups.swap_remove(at);
        let [event, turn] = [random(), random()];
        match turn % 8 {
            0..4 => {
                let other = mask & random();
                groups.extend([other, mask & !other].into_iter().filter(|lanes| *lanes != 0));
            }
            4 if !groups.is_empty() => {
                let other = random() as usize % groups.len();
                groups[other] |= mask;
            }
            5 if turn % 64 == 5 => groups = vec![u32::MAX],
            _ => groups.push(mask),
        }
        let location = (event % u32::from(locations)) as u16 + 1;
        (Event { location, mask }, if turn.is_multiple_of(7) { turn % 5 + 1 } else { 1 })
    };
    (0..events).map(|_| next()).collect()
}

/// Checks warps with enough events to exhaust numbers and places: seed, locations, events.
fn assert_causes_of_long_warps(warps: &[(u64, u16, usize)]) {
    for &(seed, locations, events) in warps {
        let (mut causes, mut expected) = (Both::default(), ChargeSums::default());
        for (warp, lanes) in [u32::MAX, 0x3ff].into_iter().enumerate() {
            causes.begin(lanes);
            let mut all = Vec::new();
            let mut runs = diverging(seed + 10 * warp as u64, locations, events);
            runs[events / 2].1 = 1 << 16;
            let of_warp = |(event, times): (Event, u32)| {
                let mask = event.mask & lanes;
                (mask != 0).then_some((Event { mask, ..event }, times))
            };
            for (event, times) in runs.into_iter().filter_map(of_warp) {
                causes.push(&Item::Run { event, times });
                all.extend(std::iter::repeat_n(event, times as usize));
            }
            expected.add(&all, lanes);
        }
        assert_eq!(found(&mut causes), expected, "{locations} locations");
    }
}

#[test]
fn long_warps_have_the_causes_of_the_matrix() {
    assert_causes_of_long_warps(&[(3, 700, 9_000)]);
}

mod full {
    use super::*;

    #[test]
    fn long_warps_have_the_causes_of_the_matrix() {
        assert_causes_of_long_warps(&[(1, 9, 12_000), (2, 250, 9_000), (3, 700, 9_000)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn what_is_removed_is_needed_no_more(masks in masks()) {
            assert_removes_what_is_needed_no_more(&masks)?;
        }
    }
}

fn event(location: u16, mask: u32) -> Event {
    Event { location, mask }
}

#[test]
fn a_loop_with_a_long_lane_is_charged_to_its_head() {
    let mut causes = Both::default();
    causes.begin(0b11);
    for (event, times) in
        [(event(1, 0b11), 1), (event(2, 0b11), 3), (event(2, 0b01), 90), (event(3, 0b11), 1)]
    {
        causes.push(&Item::Run { event, times });
    }
    let expected = ChargeSums {
        charges: BTreeMap::from([((2, 2), 90)]),
        reconvergences: BTreeMap::from([((2, 3), (1, 90))]),
        divergences: BTreeMap::from([(2, 1)]),
    };
    assert_eq!(found(&mut causes), expected);
}

#[test]
fn lanes_that_never_came_are_charged_to_the_begin() {
    let mut causes = Both::default();
    causes.begin(0xf);
    causes.push(&Item::Run { event: event(1, 0b1), times: 2 });
    causes.push(&Item::Run { event: event(1, 0x10), times: 1 });
    let found = found(&mut causes);
    assert_eq!(found.charges, BTreeMap::from([((OUTSIDE, 1), 3 * 2 + 4)]));
    assert_eq!((found.divergences[&OUTSIDE], found.reconvergences.len()), (1, 0));
    let mut causes = Both::default();
    causes.begin(0xf);
    for mask in [0xf, 0x10, 0x7] {
        causes.push(&Item::Run { event: event(1, mask), times: 1 });
    }
    let charges = self::found(&mut causes).charges;
    assert_eq!(charges, BTreeMap::from([((OUTSIDE, 1), 4), ((1, 1), 1)]));
}
