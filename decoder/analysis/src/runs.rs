//! The runs of one warp, in the order of its events.

use std::ops::ControlFlow;

use serde::Serialize;
use warptrace_decoder::{DecodeError, TraceFile, WarpFilter, WarpItem};
use warptrace_format::codec::Item;

/// Equal events of a warp, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WarpRun {
    /// Their location.
    pub location: u16,
    /// Their active lanes; bit i is lane i.
    pub mask: u32,
    /// How many events.
    pub times: u64,
}

/// The first runs of a warp, and the number of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarpRuns {
    /// The first runs.
    pub first: Vec<WarpRun>,
    /// Runs of the whole warp.
    pub all: u64,
    last: Option<(u16, u32)>,
    limit: usize,
}

impl WarpRuns {
    /// Reads the first `limit` runs of a warp. Goes through all of its items, without expanding them.
    ///
    /// # Errors
    /// The trace has no such warp, or is damaged.
    pub fn read(trace: &TraceFile, launch: u32, warp: u32, limit: usize) -> Result<Self, DecodeError> {
        let mut found = Self { limit, ..Self::default() };
        trace.warp_items(launch, warp, 0, &mut |WarpItem { item, .. }| found.take(&item))?;
        Ok(found)
    }

    /// Reads the runs of many warps of a launch in one pass, in order of warp: of those for which `limit`
    /// returns how many, and gives them to `sink` until it breaks off.
    ///
    /// # Errors
    /// The trace has no such launch, or is damaged.
    pub fn read_many(
        trace: &TraceFile,
        launch: u32,
        limit: &mut dyn FnMut(u32) -> Option<usize>,
        sink: &mut dyn FnMut(u32, Self) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let mut current: Option<(u32, Option<Self>)> = None;
        let flow =
            trace.items_in_order(launch, 0, &WarpFilter::all(), &mut |WarpItem { warp, item, .. }| {
                if current.as_ref().is_none_or(|(number, _)| *number != warp) {
                    let next = limit(warp).map(|limit| Self { limit, ..Self::default() });
                    if let Some((number, Some(runs))) = current.replace((warp, next)) {
                        sink(number, runs)?;
                    }
                }
                if let Some((_, Some(runs))) = &mut current {
                    runs.take(&item);
                }
                ControlFlow::Continue(())
            })?;
        match current {
            Some((number, Some(runs))) if flow.is_continue() => Ok(sink(number, runs)),
            _ => Ok(flow),
        }
    }

    fn push(&mut self, location: u16, mask: u32, times: u64) {
        if self.last == Some((location, mask)) {
            let is_shown = self.first.len() as u64 == self.all;
            if let Some(run) = self.first.last_mut().filter(|_| is_shown) {
                run.times = run.times.saturating_add(times);
            }
            return;
        }
        self.last = Some((location, mask));
        if self.first.len() as u64 == self.all && self.first.len() < self.limit {
            self.first.push(WarpRun { location, mask, times });
        }
        self.all = self.all.saturating_add(1);
    }

    /// Takes an item without expanding what is not shown.
    fn take(&mut self, item: &Item<'_>) {
        let (body, times) = (item.body(), u64::from(item.times()));
        if let [event] = body {
            return self.push(event.location, event.mask, times);
        }
        for time in 1..=times {
            let before = self.all;
            body.iter().for_each(|event| self.push(event.location, event.mask, 1));
            let (more, rest) = (self.all - before, times - time);
            // From the second time on each adds as much as the one before.
            if time > 1 && (more == 0 || self.all > self.first.len() as u64) {
                self.all = self.all.saturating_add(more.saturating_mul(rest));
                if let (0, Some(event)) = (more, body.last()) {
                    self.push(event.location, event.mask, rest.saturating_mul(body.len() as u64));
                }
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use warptrace_format::Event;

    use super::*;

    fn event(location: u16) -> Event {
        Event { location, mask: 1 }
    }

    #[test]
    fn runs_are_counted_as_if_items_were_expanded() {
        let bodies: [(&[u16], u32); 6] =
            [(&[1], 4), (&[1], 2), (&[1, 2], 5), (&[2, 2], 7), (&[2, 3, 2], 6), (&[5, 6], 1_000)];
        let mut all: Vec<WarpRun> = Vec::new();
        for (body, times) in bodies {
            for &location in (0..times).flat_map(|_| body) {
                match all.last_mut().filter(|run| run.location == location) {
                    Some(run) => run.times += 1,
                    None => all.push(WarpRun { location, mask: 1, times: 1 }),
                }
            }
        }
        for limit in [1, 2, 3, 5, 9, 12, 20, 200, 10_000] {
            let mut found = WarpRuns { limit, ..WarpRuns::default() };
            for (body, times) in bodies {
                let body: Vec<Event> = body.iter().copied().map(event).collect();
                found.take(&match body[..] {
                    [event] => Item::Run { event, times },
                    _ => Item::Cycle { body: &body, times },
                });
            }
            assert_eq!(found.all, all.len() as u64, "{limit}");
            assert_eq!(found.first, all[..limit.min(all.len())], "{limit}");
        }
    }
}
