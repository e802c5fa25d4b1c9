//! Where a warp first goes another way, found in runs and cycles: no loop is unrolled.
//!
//! A thread decodes the warp of each trace and gives stretches of items to the one that compares. Two items
//! with bodies of p and q events that agree in their first p + q events agree as far as both go (Fine and
//! Wilf, 1965), so no more of them is looked at.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use warptrace_decoder::{DecodeError, TraceFile, WarpFilter, WarpItem};
use warptrace_format::Event;

use crate::figures::WarpName;

/// Items of a stretch.
const STRETCH: usize = 1024;
/// Stretches that wait to be compared.
const WAITING: usize = 4;

/// Items of a warp, with their bodies one behind the other.
#[derive(Debug, Default)]
struct Stretch {
    events: Vec<Event>,
    /// Length of each body, and how often it comes.
    items: Vec<(u32, u32)>,
}

/// Number of an event that differs, and the event of each trace; `None` where the warp has no more.
type Difference = (u64, [Option<Event>; 2]);

type Stretches = Receiver<Result<Stretch, DecodeError>>;

/// The first event in which a warp of two traces, by its name in each, differs: its number, and the event of
/// each trace, `None` where the warp has no more. `rename` makes the second trace's events comparable. `None`
/// if all events are the same.
pub(crate) fn first_difference(
    traces: [&TraceFile; 2],
    warps: [WarpName; 2],
    rename: impl Fn(Event) -> Event,
) -> Result<Option<Difference>, DecodeError> {
    std::thread::scope(|scope| {
        let [old, new] = [0, 1].map(|which| {
            let (sender, receiver) = sync_channel(WAITING);
            scope.spawn(move || decode(traces[which], warps[which], &sender));
            receiver
        });
        compare(Cursor::new(old), Cursor::new(new), rename)
    })
}

/// Sends the items of a warp until the receiver is gone.
fn decode(trace: &TraceFile, warp: WarpName, sender: &SyncSender<Result<Stretch, DecodeError>>) {
    let WarpName { launch, warp } = warp;
    let mut stretch = Stretch::default();
    let ended = trace.items_in_order(launch, 0, &WarpFilter::warp(warp), &mut |found: WarpItem<'_>| {
        let body = found.item.body();
        stretch.events.extend_from_slice(body);
        // A body has at most 128 events.
        stretch.items.push((body.len() as u32, found.item.times()));
        if stretch.items.len() == STRETCH && sender.send(Ok(std::mem::take(&mut stretch))).is_err() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    // The receiver is gone once a difference was found.
    let _ = sender.send(Ok(stretch));
    if let Err(error) = ended {
        let _ = sender.send(Err(error));
    }
}

/// Goes through the items of a warp.
struct Cursor {
    stretches: Stretches,
    current: Stretch,
    /// The next item of the current stretch, and where its body begins.
    next: usize,
    next_body: usize,
    /// The body that is gone through: where it begins, and its length.
    body: (usize, usize),
    /// Events of the item that were passed, and that are still to come.
    passed: u64,
    rest: u64,
}

impl Cursor {
    fn new(stretches: Stretches) -> Self {
        let current = Stretch::default();
        Self { stretches, current, next: 0, next_body: 0, body: (0, 1), passed: 0, rest: 0 }
    }

    /// Goes to the next item if this one is over; false at the end of the warp.
    fn has_more(&mut self) -> Result<bool, DecodeError> {
        while self.rest == 0 {
            if let Some(&(length, times)) = self.current.items.get(self.next) {
                self.body = (self.next_body, length as usize);
                (self.passed, self.rest) = (0, u64::from(length) * u64::from(times));
                self.next += 1;
                self.next_body += length as usize;
                continue;
            }
            let Ok(stretch) = self.stretches.recv() else { return Ok(false) };
            (self.current, self.next, self.next_body) = (stretch?, 0, 0);
        }
        Ok(true)
    }

    /// The event that lies so far ahead in the item.
    fn ahead(&self, events: u64) -> Event {
        let (from, length) = self.body;
        // Less than the length of the body.
        self.current.events[from + ((self.passed + events) % length as u64) as usize]
    }

    fn pass(&mut self, events: u64) {
        self.passed += events;
        self.rest -= events;
    }
}

fn compare(
    mut old: Cursor,
    mut new: Cursor,
    rename: impl Fn(Event) -> Event,
) -> Result<Option<Difference>, DecodeError> {
    let mut number = 0;
    loop {
        match (old.has_more()?, new.has_more()?) {
            (true, true) => {}
            (false, false) => return Ok(None),
            (true, false) => return Ok(Some((number, [Some(old.ahead(0)), None]))),
            (false, true) => return Ok(Some((number, [None, Some(new.ahead(0))]))),
        }
        let both = old.rest.min(new.rest);
        let enough = both.min((old.body.1 + new.body.1) as u64);
        for ahead in 0..enough {
            let pair = [old.ahead(ahead), new.ahead(ahead)];
            if pair[0] != rename(pair[1]) {
                return Ok(Some((number + ahead, pair.map(Some))));
            }
        }
        old.pass(both);
        new.pass(both);
        number += both;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Items<'a> = &'a [(&'a [Event], u32)];

    fn cursor(items: Items<'_>) -> Cursor {
        let (sender, receiver) = sync_channel(items.len());
        for (body, times) in items {
            let stretch = Stretch { events: body.to_vec(), items: vec![(body.len() as u32, *times)] };
            sender.send(Ok(stretch)).expect("the channel has room");
        }
        Cursor::new(receiver)
    }

    fn difference(old: Items<'_>, new: Items<'_>) -> Option<Difference> {
        compare(cursor(old), cursor(new), |event| event).expect("nothing is decoded")
    }

    const A: Event = Event { location: 1, mask: 1 };
    const B: Event = Event { location: 2, mask: 1 };

    #[test]
    fn the_same_events_in_other_items_are_no_difference() {
        let old: Items<'_> = &[(&[A, B], 3), (&[A], 1)];
        for new in [&[(&[A, B, A, B, A, B, A][..], 1)][..], &[(&[A], 1), (&[B, A], 3)], old] {
            assert_eq!(difference(old, new), None);
        }
        assert_eq!(difference(&[], &[]), None);
    }

    #[test]
    fn the_first_other_event_is_found() {
        let billions = u32::MAX;
        let long: Items<'_> = &[(&[A], billions), (&[A], billions), (&[B], 1)];
        let other: Items<'_> = &[(&[A], billions), (&[A], billions), (&[A], 1)];
        assert_eq!(difference(long, other), Some((2 * u64::from(billions), [Some(B), Some(A)])));
        let cut: Items<'_> = &[(&[A], billions)];
        assert_eq!(difference(long, cut), Some((billions.into(), [Some(A), None])));
        assert_eq!(difference(cut, long), Some((billions.into(), [None, Some(A)])));
        // Periods 2 and 3: they agree in as many events as the shorter has, and then no more.
        assert_eq!(difference(&[(&[A, B], 9)], &[(&[A, B, A], 6)]), Some((3, [Some(B), Some(A)])),);
        assert_eq!(difference(&[(&[A, B, A, B, A], 4)], &[(&[A, B], 10)]), Some((5, [Some(A), Some(B)])));
    }
}
