//! Output of decoded events. Each implementation delivers runs, cycles and events in its cheapest way.

use crate::codec::item::Item;
use crate::event::Event;

/// Number of hits from which a search for a cycle pays off, if it gives an item or only saves decoding.
const WORTH_AN_ITEM: u32 = 16;
const WORTH_A_COPY: u32 = 128;

pub(super) trait Output {
    const WORTH_A_SEARCH: u32 = WORTH_A_COPY;

    fn event(&mut self, event: Event);
    fn run(&mut self, event: Event, times: u32);
    fn item(&mut self, item: Item<'_>);
}

pub(super) struct EachItem<'a, S>(pub(super) &'a mut S);

impl<S: FnMut(Item<'_>)> Output for EachItem<'_, S> {
    const WORTH_A_SEARCH: u32 = WORTH_AN_ITEM;

    #[inline(always)]
    fn event(&mut self, event: Event) {
        self.run(event, 1);
    }

    #[inline(always)]
    fn run(&mut self, event: Event, times: u32) {
        self.item(Item::Run { event, times });
    }

    #[inline(always)]
    fn item(&mut self, item: Item<'_>) {
        (self.0)(item);
    }
}

pub(super) struct EachEvent<'a, S>(pub(super) &'a mut S);

impl<S: FnMut(Event)> Output for EachEvent<'_, S> {
    #[inline(always)]
    fn event(&mut self, event: Event) {
        (self.0)(event);
    }

    #[inline(always)]
    fn run(&mut self, event: Event, times: u32) {
        (0..times).for_each(|_| (self.0)(event));
    }

    #[inline(always)]
    fn item(&mut self, item: Item<'_>) {
        item.for_each(self.0);
    }
}

const LONG_RUN: u32 = 8;

/// The buffer grows with the decoded events, not with the number that a chunk announces.
impl Output for Vec<Event> {
    #[inline(always)]
    fn event(&mut self, event: Event) {
        self.push(event);
    }

    #[inline(always)]
    fn run(&mut self, event: Event, times: u32) {
        if times < LONG_RUN {
            (0..times).for_each(|_| self.push(event));
        } else {
            self.resize(self.len() + times as usize, event);
        }
    }

    #[inline(always)]
    fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Run { event, times } => self.run(event, times),
            Item::Cycle { body, times } => (0..times).for_each(|_| self.extend_from_slice(body)),
        }
    }
}
