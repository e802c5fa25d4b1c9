//! Runs: equal events of a warp that follow each other.

use std::ops::ControlFlow;

use warptrace_format::Event;

use crate::items::WarpItem;

/// Equal events of one warp that follow each other: as many as there are, whatever chunks and codecs made of
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventRun {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Number of the first event among the warp's events, from 0.
    pub first_event: u64,
    /// The event.
    pub event: Event,
    /// How often: at least once.
    pub count: u64,
    /// When the first one came, as [`WarpItem::begin`]; `None` if the trace does not say.
    pub begin: Option<u64>,
    /// When the warp's next run began, or this one if that was later; `None` of a warp's last run, and where
    /// one of both times is not known.
    pub end: Option<u64>,
    /// Cycles from when this run, and all before it, had begun to when the next one began. `None` where the end
    /// is.
    pub cycles: Option<u64>,
}

/// Joins the items of [`items_in_order`](crate::TraceFile::items_in_order) to runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunJoiner {
    current: Option<EventRun>,
    /// The latest time at which a run of the current warp began.
    latest: u64,
}

impl RunJoiner {
    /// Takes the next item; gives the runs that end with it. Equal events with other begins are other runs.
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
            // One that two chunks share began at one time.
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

    /// Gives the last run: at the end, and at marks, which stand between runs.
    pub fn end(&mut self, sink: &mut impl FnMut(EventRun) -> ControlFlow<()>) -> ControlFlow<()> {
        self.current.take().map_or(ControlFlow::Continue(()), sink)
    }
}
