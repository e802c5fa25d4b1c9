//! Streams of items for property tests.

use proptest::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::Item;

pub(crate) type Stream = Vec<(Vec<Event>, u32)>;

/// Generates runs and cycles over few locations, with masks that overlap in arbitrary ways.
pub(crate) fn repeated() -> impl Strategy<Value = Stream> {
    let mask =
        prop_oneof![Just(u32::MAX), 1_u32..16, Just(0xff), Just(0xff00), any::<u32>().prop_map(|m| m | 1)];
    let event = (1_u16..7, mask).prop_map(|(location, mask)| Event { location, mask });
    let body = proptest::collection::vec(event, 1..6);
    proptest::collection::vec((body, prop_oneof![Just(1_u32), 1_u32..6]), 1..12)
}

pub(crate) fn items(stream: &Stream, sink: &mut impl FnMut(Item<'_>)) {
    for (body, times) in stream {
        sink(match body[..] {
            [event] => Item::Run { event, times: *times },
            _ => Item::Cycle { body, times: *times },
        });
    }
}

pub(crate) fn expand(stream: &Stream) -> Vec<Event> {
    let mut events = Vec::new();
    items(stream, &mut |item| item.for_each(&mut |event| events.push(event)));
    events
}
