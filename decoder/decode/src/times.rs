//! Start times of runs of events.

use warptrace_format::Event;
use warptrace_format::codec::Item;
use warptrace_format::file::{FrameTimes, IndexEntry, Metadata, RunWalk, SectionKind, TIMES};

use crate::error::DecodeError;
use crate::feed::ChunkData;
use crate::file::TraceFile;
use crate::items::WarpItem;
use crate::spans::Behind;

/// A warp's clock, unwrapped from 32-bit times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    last: Option<u32>,
    units: u64,
}

impl Clock {
    pub(crate) const fn beginning_at(time: u32) -> Self {
        Self { last: Some(time), units: 0 }
    }

    /// Returns the units up to a time; at first, the time itself. Saturates at 0, only for damaged times.
    pub(crate) fn at(&mut self, time: u32) -> u64 {
        self.units = match self.last {
            None => time.into(),
            Some(last) => self.units.saturating_add_signed((time.wrapping_sub(last) as i32).into()),
        };
        self.last = Some(time);
        self.units
    }
}

pub(crate) fn records(metadata: &Metadata, kind: SectionKind) -> bool {
    match metadata.property(TIMES) {
        Some("runs") => kind == SectionKind::Times,
        Some("blocks") => kind == SectionKind::Spans,
        Some("all") => true,
        _ => false,
    }
}

impl TraceFile {
    /// Returns true if start times of runs were recorded.
    pub fn has_times(&self) -> bool {
        records(self.metadata(), SectionKind::Times)
    }

    fn times_behind(&self, frame: &IndexEntry) -> Result<Behind, DecodeError> {
        let behind = self.section_behind(frame, SectionKind::Times)?;
        behind.ok_or(DecodeError::NoTimes { frame_offset: frame.offset })
    }

    /// Reads the times after a frame of `chunks` chunks. Fails if they are missing or damaged.
    pub(crate) fn load_times(&self, frame: &IndexEntry, chunks: usize) -> Result<FrameTimes, DecodeError> {
        let Behind { entry, version, tie, body_at } = self.times_behind(frame)?;
        let times = FrameTimes::decode((version, &self.load_body(&entry)?), body_at, tie, chunks)?;
        self.work.spend(times.runs() as u64)?;
        Ok(times)
    }

    /// Checks that a sound section of times follows a frame and is tied to it. Does not decode the times.
    pub(crate) fn find_times(&self, frame: &IndexEntry) -> Result<(), DecodeError> {
        let Behind { entry, version, tie, body_at } = self.times_behind(frame)?;
        let body = self.load_body(&entry)?;
        let start = &body[..FrameTimes::TIE_BYTES.min(body.len())];
        Ok(FrameTimes::is_of(version, start, body_at, tie)?)
    }
}

pub(crate) struct Runs {
    warp: u32,
    clock: Clock,
}

impl Runs {
    pub(crate) fn new(warp: u32) -> Self {
        Self { warp, clock: Clock::default() }
    }

    pub(crate) fn chunk<'a>(&'a mut self, chunk: &'a ChunkData) -> Option<ChunkRuns<'a>> {
        let (step, times) = chunk.times.as_ref()?;
        Some(ChunkRuns {
            warp: self.warp,
            clock: &mut self.clock,
            step: (*step).into(),
            walk: times.walk(),
            open: TimedRun::default(),
        })
    }
}

pub(crate) struct ChunkRuns<'a> {
    warp: u32,
    clock: &'a mut Clock,
    step: u64,
    walk: RunWalk<'a>,
    open: TimedRun,
}

#[derive(Clone, Copy, Default)]
struct TimedRun {
    first: u64,
    event: Event,
    /// Number of its events; 0 if there is no run.
    times: u32,
    begin: Option<u64>,
}

impl ChunkRuns<'_> {
    /// Takes an item whose first event has this number. Passes the completed runs to `sink`.
    #[inline(always)]
    pub(crate) fn take(&mut self, first_event: u64, item: &Item<'_>, sink: &mut impl FnMut(WarpItem<'_>)) {
        match *item {
            Item::Run { event, times } => {
                self.push(TimedRun { first: first_event, event, times, begin: None }, sink);
            }
            Item::Cycle { .. } => self.cycle(first_event, item, sink),
        }
    }

    #[inline(never)]
    fn cycle(&mut self, first_event: u64, item: &Item<'_>, sink: &mut impl FnMut(WarpItem<'_>)) {
        let mut first = first_event;
        item.for_each(&mut |event| {
            self.push(TimedRun { first, event, times: 1, begin: None }, sink);
            first += 1;
        });
    }

    fn push(&mut self, next: TimedRun, sink: &mut impl FnMut(WarpItem<'_>)) {
        let Self { warp, clock, step, walk, open } = self;
        let (mut first, mut left) = (next.first, next.times);
        let fits = walk.take(next.event, next.times, |times, time| {
            if time.is_none() && open.times > 0 && open.event == next.event {
                open.times += times;
            } else {
                open.give(*warp, sink);
                let begin = time.map(|time| clock.at(time).saturating_mul(*step));
                *open = TimedRun { first, times, begin, ..next };
            }
            first += u64::from(times);
            left = left.saturating_sub(times);
        });
        // The times belong to other events.
        if !fits && left > 0 {
            open.give(*warp, sink);
            *open = TimedRun { first, times: left, begin: None, ..next };
        }
    }

    pub(crate) fn end(self, sink: &mut impl FnMut(WarpItem<'_>)) {
        self.open.give(self.warp, sink);
    }
}

impl TimedRun {
    #[inline(always)]
    fn give(&self, warp: u32, sink: &mut impl FnMut(WarpItem<'_>)) {
        let Self { first: first_event, event, times, begin } = *self;
        if times > 0 {
            sink(WarpItem { warp, first_event, item: Item::Run { event, times }, begin, missing: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on_where_times_wrap() {
        let mut clock = Clock::default();
        let times = [u32::MAX - 1, 3, 2, 1 << 31, 3 << 30, 0];
        let found = times.map(|time| clock.at(time));
        let wrap = 1 << 32;
        assert_eq!(found, [wrap - 2, wrap + 3, wrap + 2, wrap + (1 << 31), wrap + (3 << 30), 2 * wrap]);
    }

    #[test]
    fn clocks_do_not_go_back_before_their_beginning() {
        let mut clock = Clock::default();
        assert_eq!([5, u32::MAX, 1].map(|time| clock.at(time)), [5, 0, 2]);
    }
}
