//! Where decoded events go: each form of delivery takes a run, a cycle and a single event in its cheapest
//! way.

use crate::codec::item::Item;
use crate::event::Event;

/// Hits from which on it is worth to look for a cycle among them, where one saves the events; and where it
/// saves only the way to them.
const WORTH_AN_ITEM: u32 = 16;
const WORTH_A_COPY: u32 = 128;

pub(super) trait Output {
    /// Hits from which on it is worth to look for a cycle among them.
    const WORTH_A_SEARCH: u32 = WORTH_A_COPY;

    /// One event.
    fn event(&mut self, event: Event);
    /// An event several times in a row.
    fn run(&mut self, event: Event, times: u32);
    /// Any item.
    fn item(&mut self, item: Item<'_>);
}

/// Items as they are found.
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

/// Events one by one.
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

/// Runs from which on a bulk copy is worth its call.
const LONG_RUN: u32 = 8;

/// A buffer grows with what was decoded, not with what a chunk announces.
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
