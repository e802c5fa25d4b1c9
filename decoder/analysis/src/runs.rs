//! Runs of one warp, in the order of its events.

use std::ops::ControlFlow;

use serde::Serialize;
use warptrace_decoder::{DecodeError, EventRun, RunJoiner, TraceFile, WarpFilter, WarpItem};
use warptrace_format::Event;

/// Equal consecutive events of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WarpRun {
    /// Location of the events.
    pub location: u16,
    /// Active lanes; bit i is lane i.
    pub mask: u32,
    /// Number of events.
    pub times: u64,
}

/// First runs of a warp, and its total number of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarpRuns {
    /// First runs.
    pub first: Vec<WarpRun>,
    /// Number of all runs of the warp.
    pub all: u64,
    last: Option<Event>,
    limit: usize,
    joiner: RunJoiner,
}

impl WarpRuns {
    /// Reads the first `limit` runs of a warp and counts the rest. Fails if it does not exist or is damaged.
    pub fn read(trace: &TraceFile, launch: u32, warp: u32, limit: usize) -> Result<Self, DecodeError> {
        let mut found = Self { limit, ..Self::default() };
        trace.decode_warp(launch, warp, 0)?.each_item(|item| found.take(item))?;
        Ok(found.ended())
    }

    /// Reads the runs of many warps of a launch in one pass, in order. `limit` returns how many runs to keep
    /// of a warp, or `None` to skip it. Calls `sink` with each warp and its runs until `sink` breaks. Fails
    /// if the trace has no such launch, or is damaged.
    pub fn read_many(
        trace: &TraceFile,
        launch: u32,
        limit: &mut dyn FnMut(u32) -> Option<usize>,
        sink: &mut dyn FnMut(u32, Self) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let mut current: Option<(u32, Option<Self>)> = None;
        let flow = trace.items_in_order(launch, 0, &WarpFilter::all(), &mut |found| {
            if current.as_ref().is_none_or(|(number, _)| *number != found.warp) {
                let next = limit(found.warp).map(|limit| Self { limit, ..Self::default() });
                if let Some((number, Some(runs))) = current.replace((found.warp, next)) {
                    sink(number, runs.ended())?;
                }
            }
            if let Some((_, Some(runs))) = &mut current {
                runs.take(found);
            }
            ControlFlow::Continue(())
        })?;
        match current {
            Some((number, Some(runs))) if flow.is_continue() => Ok(sink(number, runs.ended())),
            _ => Ok(flow),
        }
    }

    fn take(&mut self, mut found: WarpItem<'_>) {
        let (body, times) = (found.item.body(), u64::from(found.item.times()));
        let (Some(&first), Some(&last)) = (body.first(), body.last()) else { return };
        let changes = body.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
        let more = u64::from(self.last != Some(first))
            + changes.saturating_mul(times)
            + u64::from(first != last) * times.saturating_sub(1);
        self.all = self.all.saturating_add(more);
        self.last = Some(last);
        if self.first.len() < self.limit {
            // Equal events form one run here, independent of their start times.
            found.begin = None;
            let _ = self.joiner.take(&found, &mut |run| push(&mut self.first, run, self.limit));
        }
    }

    fn ended(mut self) -> Self {
        if self.first.len() < self.limit {
            let _ = self.joiner.end(&mut |run| push(&mut self.first, run, self.limit));
        }
        self
    }
}

fn push(first: &mut Vec<WarpRun>, run: EventRun, limit: usize) -> ControlFlow<()> {
    let Event { location, mask } = run.event;
    first.push(WarpRun { location, mask, times: run.count });
    if first.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

#[cfg(test)]
mod tests {
    use warptrace_format::codec::Item;

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
                let item = match body[..] {
                    [event] => Item::Run { event, times },
                    _ => Item::Cycle { body: &body, times },
                };
                found.take(WarpItem { warp: 0, first_event: 0, item, begin: None, missing: None });
            }
            let found = found.ended();
            assert_eq!(found.all, all.len() as u64, "{limit}");
            assert_eq!(found.first, all[..limit.min(all.len())], "{limit}");
        }
    }
}
