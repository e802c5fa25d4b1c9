//! Finds the first difference between two paths of a warp in runs and cycles, without unrolling loops.
//!
//! One thread per trace decodes the warp and sends stretches of items to the comparing thread. If two items
//! with bodies of p and q events agree in their first p + q events, they agree to the end of the shorter one
//! (Fine and Wilf, 1965), so no further events are compared.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use warptrace_decoder::{DecodeError, TraceFile, WarpFilter, WarpItem};
use warptrace_format::Event;

use crate::figures::WarpName;

const STRETCH: usize = 1024;
const WAITING: usize = 4;

/// Items of a warp, with their bodies one after another.
#[derive(Debug, Default)]
struct Stretch {
    events: Vec<Event>,
    /// Length and repetitions of each body.
    items: Vec<(u32, u32)>,
}

/// Number of the differing event, and the event in each trace; `None` if the warp has no more events.
type Difference = (u64, [Option<Event>; 2]);

type Stretches = Receiver<Result<Stretch, DecodeError>>;

/// Returns the first difference between two event sequences. `rename` maps locations of the second trace.
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
    // The receiver is closed after a difference was found.
    let _ = sender.send(Ok(stretch));
    if let Err(error) = ended {
        let _ = sender.send(Err(error));
    }
}

struct Cursor {
    stretches: Stretches,
    current: Stretch,
    /// Next item of the current stretch, and the start of its body.
    next: usize,
    next_body: usize,
    body: (usize, usize),
    /// Events of the item before and after the cursor.
    passed: u64,
    rest: u64,
}

impl Cursor {
    fn new(stretches: Stretches) -> Self {
        let current = Stretch::default();
        Self { stretches, current, next: 0, next_body: 0, body: (0, 1), passed: 0, rest: 0 }
    }

    /// Moves to the next item at the end of the current one. Returns false at the end of the warp.
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

    fn ahead(&self, events: u64) -> Event {
        let (from, length) = self.body;
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
        // Periods 2 and 3: the items agree in as many events as the shorter body has.
        assert_eq!(difference(&[(&[A, B], 9)], &[(&[A, B, A], 6)]), Some((3, [Some(B), Some(A)])),);
        assert_eq!(difference(&[(&[A, B, A, B, A], 4)], &[(&[A, B], 10)]), Some((5, [Some(A), Some(B)])));
    }
}
