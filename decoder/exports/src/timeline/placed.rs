//! Warps on the shared axis: where and when each ran, with its runs.

use std::io::Write;
use std::iter::Peekable;
use std::ops::Range;

use warptrace_decoder::{DecodeError, EventRun};
use warptrace_format::file::LaunchInfo;
use warptrace_format::span::{Axis, WarpSpan};

use super::load::Loads;
use super::order::Order;
use super::{Open, Perfetto, Ran, Waiting, Written};
use crate::axis::spans;
use crate::error::ExportError;
use crate::nest::Nest;
use crate::source::{ExportSource, Step};

/// Draws the warps of a source that have spans, from the global timer's `zero` on, with their runs if these
/// have times. Returns the load of each multiprocessor up to the end of the axis.
pub(super) fn draw<W: Write>(
    source: &ExportSource<'_>,
    (zero, until): (u64, u64),
    has_runs: bool,
    tracks: &mut Perfetto<W>,
    written: &mut Written,
    sliced: &mut dyn FnMut(u64),
) -> Result<Loads, ExportError> {
    let (mut loads, order) = (Loads::new(until, has_runs), Order::new(source)?);
    let nest = if has_runs { Some(Nest::new(source, |id| source.label(id))?) } else { None };
    for info in source.launches() {
        written.unplaced += source.selection().selected(info);
        let mut launch = Launch {
            source,
            info,
            zero,
            nest: nest.as_ref(),
            spans: spans(source, info).peekable(),
            tracks: &mut *tracks,
            written: &mut *written,
            sliced: &mut *sliced,
            open: Open::default(),
            waits: Waiting::new(source),
            loads: &mut loads,
            order: &order,
            at: None,
            warp: None,
            block: None,
        };
        if has_runs {
            source.walk(info.number(), &mut |step| launch.step(&step))?;
        }
        launch.go_to(None)?;
        launch.end_block()?;
    }
    Ok(loads)
}

struct Launch<'a, W, I: Iterator> {
    source: &'a ExportSource<'a>,
    info: &'a LaunchInfo,
    zero: u64,
    /// The names around runs, if runs are drawn.
    nest: Option<&'a Nest>,
    spans: Peekable<I>,
    tracks: &'a mut Perfetto<W>,
    written: &'a mut Written,
    sliced: &'a mut dyn FnMut(u64),
    open: Open,
    waits: Waiting,
    loads: &'a mut Loads,
    order: &'a Order,
    /// The current warp, and its data if it has a span.
    at: Option<u32>,
    warp: Option<Warp>,
    block: Option<Block>,
}

struct Warp {
    span: WarpSpan,
    lasts: Option<Range<u64>>,
    axis: Option<Axis>,
    /// The last run with a time, and its start. It is drawn when its end is known.
    run: Option<(EventRun, u64)>,
    is_whole: bool,
}

struct Block {
    place: (u32, u32),
    lasts: Range<u64>,
    has_ended: bool,
}

impl<'a, W: Write, I: Iterator<Item = Result<(u32, WarpSpan), DecodeError>>> Launch<'a, W, I> {
    fn step(&mut self, step: &Step) -> Result<(), ExportError> {
        match step {
            Step::Run(run) => {
                self.go_to(Some(run.warp))?;
                self.run(run)
            }
            Step::Missing { missing, .. } => {
                self.go_to(Some(missing.first))?;
                self.draw_run(false)?;
                let Some(warp) = &self.warp else { return Ok(()) };
                let begin = warp.span.begin_timer.saturating_sub(self.zero);
                self.tracks.missing(missing, self.open.end.max(begin))
            }
        }
    }

    /// Draws the warps before `at`, or all remaining warps, and begins warp `at`.
    fn go_to(&mut self, at: Option<u32>) -> Result<(), ExportError> {
        if at.is_some() && self.at == at {
            return Ok(());
        }
        self.end_warp()?;
        self.at = at;
        let is_next = |found: &I::Item| match (found, at) {
            (Ok((warp, _)), Some(at)) => *warp <= at,
            _ => true,
        };
        while let Some(found) = self.spans.next_if(is_next) {
            let (warp, span) = found?;
            self.begin_warp(warp, span)?;
            if at != Some(warp) {
                self.end_warp()?;
            }
        }
        Ok(())
    }

    fn begin_warp(&mut self, warp: u32, span: WarpSpan) -> Result<(), ExportError> {
        let (Some(id), Some(sm)) = (self.info.stream_id(warp), span.sm()) else { return Ok(()) };
        let begin = span.begin_timer.saturating_sub(self.zero);
        let lasts = span.nanoseconds().map(|length| begin..begin.saturating_add(length));
        let (to, has_ended) = (lasts.as_ref().map_or(begin, |lasts| lasts.end), lasts.is_some());
        let place = (warp / self.info.warps_per_block(), sm);
        if let Some(block) = self.block.as_mut().filter(|block| block.place == place) {
            block.lasts = block.lasts.start.min(begin)..block.lasts.end.max(to);
            block.has_ended &= has_ended;
        } else {
            self.end_block()?;
            self.tracks.block_on(sm, self.source, self.info, &id)?;
            self.block = Some(Block { place, lasts: begin..to, has_ended });
        }
        self.tracks.warp(&id)?;
        self.written.warps += 1;
        self.open.end = begin;
        self.waits.begin();
        if let Some(lasts) = lasts.clone() {
            if !span.has_moved() {
                self.loads.warp(sm, &lasts);
            }
            let moved_to = span.end_sm.checked_sub(1).filter(|_| span.has_moved());
            let ran = Ran { cycles: span.cycles(), moved_to, ..self.ran(lasts) };
            self.tracks.warp_runs(&ran)?;
            if self.nest.is_none() {
                self.slice();
            }
        } else {
            self.tracks.unended(begin)?;
        }
        self.warp = Some(Warp { span, lasts, axis: None, run: None, is_whole: has_ended });
        Ok(())
    }

    fn end_warp(&mut self) -> Result<(), ExportError> {
        self.draw_run(true)?;
        self.open.go_to(&[], self.open.end, self.tracks)?;
        let Some(warp) = self.warp.take() else { return Ok(()) };
        if let Some(lasts) = warp.lasts {
            self.tracks.warp_ran(lasts.end)?;
        }
        // `unplaced` started with all selected warps.
        self.written.unplaced = self.written.unplaced.saturating_sub(warp.is_whole.into());
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), ExportError> {
        match self.block.take() {
            Some(block) if block.has_ended => {
                let (launch, number) = (self.info.number(), block.place.0);
                let (follows, followed_by) =
                    (self.order.follows(launch, number), self.order.followed_by(launch, number));
                let ran = Ran { follows, followed_by, ..self.ran(block.lasts) };
                self.tracks.block_ran(&ran)
            }
            _ => Ok(()),
        }
    }

    fn ran(&self, lasts: Range<u64>) -> Ran<'a> {
        let (kernel, launch) = (self.source.kernel(self.info), self.info.number());
        Ran { kernel, launch, lasts, cycles: None, moved_to: None, follows: None, followed_by: Vec::new() }
    }

    fn run(&mut self, run: &EventRun) -> Result<(), ExportError> {
        self.draw_run(false)?;
        let Some(warp) = &mut self.warp else { return Ok(()) };
        let Some((begin, lasts)) = run.begin.zip(warp.lasts.clone()) else {
            warp.is_whole = false;
            return Ok(());
        };
        warp.axis = warp.axis.or_else(|| self.source.trace().axis(&warp.span, begin));
        match warp.axis {
            Some(axis) => {
                let from = axis.nanoseconds(begin).saturating_sub(self.zero);
                let from = from.clamp(lasts.start, lasts.end).max(self.open.end);
                warp.run = Some((*run, from));
                self.waits.push(self.source, run, from, self.tracks)?;
            }
            None => warp.is_whole = false,
        }
        Ok(())
    }

    /// Draws the last run. It lasts until the next run begins, or until the warp ends.
    fn draw_run(&mut self, is_last: bool) -> Result<(), ExportError> {
        let Some(warp) = &mut self.warp else { return Ok(()) };
        let (Some((run, from)), Some(axis), Some(lasts)) = (warp.run.take(), warp.axis, warp.lasts.clone())
        else {
            return Ok(());
        };
        let to = match run.end {
            Some(end) => axis.nanoseconds(end).saturating_sub(self.zero),
            None if is_last => lasts.end,
            None => from.saturating_add(1),
        };
        let to = to.min(lasts.end).max(from);
        let around =
            self.nest.map_or(&[][..], |nest| nest.around(self.source, self.info, run.event.location));
        self.open.go_to(around, from, self.tracks)?;
        self.open.end = to;
        if let Some(sm) = warp.span.sm() {
            self.loads.run(sm, &(from..to), run.event.mask.count_ones());
        }
        self.tracks.run(self.source, &run, from..to)?;
        self.slice();
        Ok(())
    }

    fn slice(&mut self) {
        self.written.slices += 1;
        (self.sliced)(self.written.slices);
    }
}
