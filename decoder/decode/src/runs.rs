//! Runs: consecutive equal events of a warp.

use std::ops::ControlFlow;

use warptrace_format::Event;

use crate::items::WarpItem;

/// Consecutive equal events of one warp. A run has maximal length: it continues across chunks and items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventRun {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Number of the first event among the warp's events, from 0.
    pub first_event: u64,
    /// The event.
    pub event: Event,
    /// Number of events, at least 1.
    pub count: u64,
    /// Time of the first event, as in [`WarpItem::begin`]; `None` if the trace has no time for it.
    pub begin: Option<u64>,
    /// Start of the warp's next run, or of this run if later. `None` for the last run or unknown times.
    pub end: Option<u64>,
    /// Cycles from the latest start of this and earlier runs to the start of the next; `None` as for `end`.
    pub cycles: Option<u64>,
}

/// Joins the items of [`items_in_order`](crate::TraceFile::items_in_order) into runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunJoiner {
    current: Option<EventRun>,
    latest: u64,
}

impl RunJoiner {
    /// Takes the next item and passes the runs that it ends to `sink`. Different start times separate runs.
    #[inline]
    pub fn take(
        &mut self,
        found: &WarpItem<'_>,
        sink: &mut impl FnMut(EventRun) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (body, times) = (found.item.body(), found.item.times());
        if let [event] = *body {
            return self.push(found, found.first_event, event, times.into(), sink);
        }
        let mut first_event = found.first_event;
        for _ in 0..times {
            for &event in body {
                self.push(found, first_event, event, 1, sink)?;
                first_event += 1;
            }
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn push(
        &mut self,
        &WarpItem { warp, begin, .. }: &WarpItem<'_>,
        first_event: u64,
        event: Event,
        count: u64,
        sink: &mut impl FnMut(EventRun) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &mut self.current {
            // The parts of a run in two chunks have the same start time.
            Some(run) if (run.warp, run.event, run.begin) == (warp, event, begin) => {
                run.count += count;
                return ControlFlow::Continue(());
            }
            Some(run) if run.warp == warp => {
                run.end = run.begin.zip(begin).map(|(begin, end)| end.max(begin));
                run.cycles = run.end.and(begin).map(|end| end.saturating_sub(self.latest));
            }
            _ => self.latest = 0,
        }
        self.latest = self.latest.max(begin.unwrap_or(0));
        let next = EventRun { warp, first_event, event, count, begin, end: None, cycles: None };
        self.current.replace(next).map_or(ControlFlow::Continue(()), sink)
    }

    /// Passes the last run to `sink`. Call it after the last item and at marks, which lie between runs.
    pub fn end(&mut self, sink: &mut impl FnMut(EventRun) -> ControlFlow<()>) -> ControlFlow<()> {
        self.current.take().map_or(ControlFlow::Continue(()), sink)
    }
}
