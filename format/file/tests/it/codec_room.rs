//! `has_room` is a valid and tight bound.

use crate::common::{few_values, params, stream};
use proptest::prelude::*;
use warptrace_format::codec::ecl::encoder::MAX_PUSH_GROWTH;
use warptrace_format::codec::{EclParams, EclState, RawState};
use warptrace_format::{Event, SliceMemory};

fn largest_growth(params: EclParams, events: &[Event]) -> u32 {
    let mut work = vec![0; params.work_bytes() as usize];
    let mut out = vec![0; (events.len() + 1) * MAX_PUSH_GROWTH as usize];
    let mut state = EclState::new();
    state.begin_chunk(&params, &mut SliceMemory(&mut work));
    let mut largest = 0;
    for event in events {
        let before = state.to_words()[6];
        state.push(&params, &mut SliceMemory(&mut work), &mut SliceMemory(&mut out), *event);
        let mut copy = (state, work.clone(), out.clone());
        let length =
            copy.0.finish_chunk(&params, &mut SliceMemory(&mut copy.1), &mut SliceMemory(&mut copy.2));
        largest = largest.max(length - before);
    }
    largest
}

proptest! {
    #[test]
    fn a_push_and_a_finish_stay_below_the_bound(params in params(), events in stream()) {
        // Each event copies the whole state, so limit the events.
        let events = &events[..events.len().min(120)];
        prop_assert!(largest_growth(params, events) <= MAX_PUSH_GROWTH);
    }

    #[test]
    fn streams_of_few_values_stay_below_the_bound(params in params(), values in 2_u32..12, random: u32) {
        prop_assert!(largest_growth(params, &few_values(values, 60, random)) <= MAX_PUSH_GROWTH);
    }
}

#[test]
fn the_bound_is_reached() {
    let params = EclParams::new(16, 8, 12).unwrap();
    let largest = (0..40).map(|seed| largest_growth(params, &few_values(6, 100, seed))).max();
    assert_eq!(largest, Some(MAX_PUSH_GROWTH));
}

#[test]
fn room_ends_where_one_more_event_might_not_fit() {
    let params = EclParams::DEFAULT;
    let mut work = vec![0; params.work_bytes() as usize];
    let mut out = vec![0; 480];
    let mut state = EclState::new();
    state.begin_chunk(&params, &mut SliceMemory(&mut work));
    assert!(state.has_room(MAX_PUSH_GROWTH));
    assert!(!state.has_room(MAX_PUSH_GROWTH - 1));
    let events = few_values(200, 1000, 1);
    let mut taken = 0;
    while state.has_room(480) {
        state.push(&params, &mut SliceMemory(&mut work), &mut SliceMemory(&mut out), events[taken]);
        taken += 1;
    }
    let length = state.finish_chunk(&params, &mut SliceMemory(&mut work), &mut SliceMemory(&mut out));
    assert!((480 - MAX_PUSH_GROWTH..=480).contains(&length), "{length} bytes");
}

#[test]
fn room_ends_at_a_gibibyte_of_events() {
    // The words are position, base, …: chunks of almost 2^30 bytes, and with room for exactly one event.
    let with_taken = |taken: u32| EclState::from_words(&[7 + taken, 7, 0, 0, 0, 0, 0, 0]);
    assert!(with_taken((1 << 30) - 5).has_room(u32::MAX));
    assert!(!with_taken((1 << 30) - 4).has_room(u32::MAX));
}

#[test]
fn raw_has_room_for_whole_events_only() {
    let mut state = RawState::new();
    state.begin_chunk();
    let mut out = [0; 16];
    let mut taken = 0;
    while state.has_room(16) {
        state.push(&mut SliceMemory(&mut out), Event { location: 1, mask: 1 });
        taken += 1;
    }
    assert_eq!((taken, state.finish_chunk()), (2, 12));
}
