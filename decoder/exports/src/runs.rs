//! Runs of warps: equal events that follow each other.

use std::ops::ControlFlow;

use warptrace_decoder::{Missing, Piece, TraceFile, WarpFilter, WarpItem};
use warptrace_format::Event;
use warptrace_format::file::{LaunchInfo, StreamId};

use crate::error::ExportError;

/// Equal events of one warp that follow each other: as many as there are, whatever chunks and codecs made of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Launch, kernel, block and warp in block.
    pub id: StreamId,
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
    /// Its warp-cycles, as [`Time`](warptrace_analysis::Time) defines them: a run that began before the one
    /// ahead of it counts as begun with that. `None` where the end is.
    pub cycles: Option<u64>,
}

/// What a walk over a launch comes to next.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Step {
    /// A run.
    Run(Run),
    /// Events of a warp are missing here or, if they may be missing anywhere, in what follows.
    Missing {
        /// The warp.
        id: StreamId,
        /// What is missing.
        missing: Missing,
        /// Number that the warp's next event in the trace has, or would have.
        next_event: u64,
    },
}

/// Gives the runs and marks of a launch to `sink`, in order of warp and event.
pub(crate) fn walk(
    trace: &TraceFile,
    info: &LaunchInfo,
    filter: &WarpFilter,
    is_selected: &dyn Fn(u32) -> bool,
    sink: &mut dyn FnMut(Step) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut joiner = Joiner { info, current: None, latest: 0, sink };
    let mut result = Ok(());
    let flow = trace.items_with_losses(info.number(), 0, filter, &mut |piece| {
        if !is_selected(piece.warp()) {
            return ControlFlow::Continue(());
        }
        result = match piece {
            Piece::Item(item) => joiner.item(&item),
            Piece::Missing { missing, next_event } => joiner.missing(missing, next_event),
            _ => Ok(()),
        };
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    result?;
    if flow.is_continue() { joiner.flush() } else { Ok(()) }
}

/// Joins equal events across items.
struct Joiner<'a> {
    info: &'a LaunchInfo,
    current: Option<Run>,
    /// The latest time at which a run of the current warp began.
    latest: u64,
    sink: &'a mut dyn FnMut(Step) -> Result<(), ExportError>,
}

impl Joiner<'_> {
    fn item(&mut self, item: &WarpItem<'_>) -> Result<(), ExportError> {
        let (body, times) = (item.item.body(), item.item.times());
        if let [event] = *body {
            return self.push(item, item.first_event, event, times.into());
        }
        let mut first_event = item.first_event;
        for _ in 0..times {
            for &event in body {
                self.push(item, first_event, event, 1)?;
                first_event += 1;
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        &WarpItem { warp, begin, .. }: &WarpItem<'_>,
        first_event: u64,
        event: Event,
        count: u64,
    ) -> Result<(), ExportError> {
        let id = match &mut self.current {
            // One that two chunks share began at one time.
            Some(run) if (run.warp, run.event, run.begin) == (warp, event, begin) => {
                run.count += count;
                return Ok(());
            }
            Some(run) if run.warp == warp => {
                run.end = run.begin.zip(begin).map(|(begin, end)| end.max(begin));
                run.cycles = run.end.and(begin).map(|end| end.saturating_sub(self.latest));
                run.id
            }
            _ => {
                self.latest = 0;
                self.id(warp)
            }
        };
        self.flush()?;
        self.latest = self.latest.max(begin.unwrap_or(0));
        self.current = Some(Run { warp, id, first_event, event, count, begin, end: None, cycles: None });
        Ok(())
    }

    fn missing(&mut self, missing: Missing, next_event: u64) -> Result<(), ExportError> {
        self.flush()?;
        let id = self.id(missing.warp);
        (self.sink)(Step::Missing { id, missing, next_event })
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        self.current.take().map_or(Ok(()), |run| (self.sink)(Step::Run(run)))
    }

    fn id(&self, warp: u32) -> StreamId {
        self.info.stream_id(warp).expect("the decoder gives warps of this launch")
    }
}
