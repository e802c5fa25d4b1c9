//! Runs of events, and when they began.

use rayon::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::{CodecError, Decoder};
use warptrace_format::file::{FrameTimes, IndexEntry, RunWalk, SECTION_HEADER_BYTES, SectionKind, TIMES};

use crate::all::WarpFilter;
use crate::error::DecodeError;
use crate::feed::{ChunkData, ChunkFeed, FrameFeed, MemoryFeed, Sequence, Stream};
use crate::file::TraceFile;
use crate::window::{Held, Windows};

/// An event that its lanes repeated, or a part of it: a run that two chunks share is two, which began at one
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarpRun {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Number of the run's first event among the warp's events, from 0.
    pub first_event: u64,
    /// The event.
    pub event: Event,
    /// How often it came.
    pub events: u32,
    /// When the first one came, in cycles of the multiprocessor's clock, in steps of
    /// [`step`](TraceFile::time_step). The clock of a warp's first run is known modulo 2^32 steps; from there
    /// on it goes on, as long as no two runs of a warp are further apart than 2^31 steps. Runs stand in the
    /// order in which they began; one may be less than a step of the recorder's clock before the one that it
    /// stands behind.
    pub begin: u64,
}

/// Units of time since a warp's first run, out of times that wrap.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    last: Option<u32>,
    units: u64,
}

impl Clock {
    fn at(&mut self, time: u32) -> u64 {
        self.units = match self.last {
            None => time.into(),
            Some(last) => self.units.wrapping_add_signed((time.wrapping_sub(last) as i32).into()),
        };
        self.last = Some(time);
        self.units
    }
}

impl TraceFile {
    /// Whether it was recorded when runs began.
    pub fn has_times(&self) -> bool {
        self.metadata().property(TIMES).is_some_and(|times| times == "runs")
    }

    /// Reads the section behind a frame that says when the runs of its chunks began.
    pub(crate) fn load_times(&self, frame: &IndexEntry, chunks: usize) -> Result<FrameTimes, DecodeError> {
        let offset = frame.end();
        let none = || DecodeError::NoTimes { frame_offset: frame.offset };
        if self.length.saturating_sub(offset) < SECTION_HEADER_BYTES as u64 {
            return Err(none());
        }
        let header = self.header_at(offset)?;
        if header.kind(offset)? != Some(SectionKind::Times) {
            return Err(none());
        }
        if header.total_bytes() > self.length - offset {
            return Err(none());
        }
        let entry = IndexEntry { kind: SectionKind::Times, offset, length: header.total_bytes(), ..*frame };
        let times = FrameTimes::decode(
            &self.load_body(&entry)?,
            offset.saturating_add(SECTION_HEADER_BYTES as u64),
            chunks,
        )?;
        self.work.spend(times.runs() as u64)?;
        Ok(times)
    }

    /// Gives the runs of the warps that `filter` selects to `fold`, with the times at which they began, on
    /// all cores of rayon's current pool, as [`fold_items`](Self::fold_items) does with items. Times are
    /// those of track 0.
    ///
    /// Memory is bounded as the [crate's docs](crate#memory) say, less the events, which are not expanded,
    /// and with 8 bytes for each run of a window.
    ///
    /// # Errors
    /// As [`TraceFile::decode_all`]; a trace without times, a frame whose times are missing or damaged, or
    /// are not those of its events.
    pub fn fold_runs<A: Send>(
        &self,
        launch: u32,
        filter: &WarpFilter,
        new: impl Fn() -> A + Sync,
        fold: impl Fn(&mut A, WarpRun) + Sync,
        merge: impl Fn(A, A) -> A + Sync,
    ) -> Result<A, DecodeError> {
        let (info, codec) = self.resolve(launch, 0)?;
        let mut windows = Windows::new(self, launch, vec![0], filter.range(info.warps())).timed();
        let mut total = new();
        while let Some(window) = windows.next_window(&mut |_, error| Err(error))? {
            let of_window = window
                .held
                .par_iter()
                .try_fold(
                    || None,
                    |state: Option<(Decoder, A)>, (&warp, held)| {
                        let (mut decoder, mut value) = state.unwrap_or_else(|| (Decoder::new(codec), new()));
                        let stream = Stream { launch, track: 0, warp };
                        let mut sink = |run| fold(&mut value, run);
                        match held {
                            Held::Chunks(tracks) => {
                                let chunks = tracks.first().map_or(&[][..], Vec::as_slice);
                                runs_of(MemoryFeed::new(chunks), stream, &mut decoder, &mut sink)
                            }
                            Held::Huge => {
                                runs_of(FrameFeed::new(self, stream).timed(), stream, &mut decoder, &mut sink)
                            }
                        }?;
                        Ok(Some((decoder, value)))
                    },
                )
                .try_reduce(
                    || None,
                    |left, right| {
                        Ok::<_, DecodeError>(match (left, right) {
                            (Some((decoder, left)), Some((_, right))) => Some((decoder, merge(left, right))),
                            (one, other) => one.or(other),
                        })
                    },
                )?;
            if let Some((_, value)) = of_window {
                total = merge(total, value);
            }
        }
        Ok(total)
    }

    /// Gives the runs of one warp to `sink`, in their order.
    ///
    /// # Errors
    /// As [`fold_runs`](Self::fold_runs), and where the launch has no such warp; runs before the fault may
    /// have been given to `sink`.
    pub fn warp_runs(
        &self,
        launch: u32,
        warp: u32,
        sink: &mut dyn FnMut(WarpRun),
    ) -> Result<(), DecodeError> {
        let (info, codec) = self.resolve(launch, 0)?;
        if warp >= info.warps() {
            return Err(DecodeError::UnknownWarp { launch, warp, warps: info.warps() });
        }
        let stream = Stream { launch, track: 0, warp };
        runs_of(FrameFeed::new(self, stream).timed(), stream, &mut Decoder::new(codec), &mut |run| sink(run))
    }
}

/// Gives the runs of a warp's chunks to `sink`.
fn runs_of<F: ChunkFeed>(
    mut feed: F,
    stream: Stream,
    decoder: &mut Decoder,
    sink: &mut impl FnMut(WarpRun),
) -> Result<(), DecodeError> {
    let mut sequence = Sequence::new(stream);
    let mut runs = Runs { warp: stream.warp, clock: Clock::default(), step: 1, next: 0, open: None };
    while let Some(chunk) = feed.next_chunk()? {
        sequence.check(chunk)?;
        let Some((step, times)) = &chunk.times else {
            return Err(DecodeError::NoTimes { frame_offset: chunk.frame_offset });
        };
        runs.step = u64::from(*step);
        let mut walk = times.walk();
        let mut fits = true;
        let result = decoder.decode_items(&chunk.payload, chunk.events, &mut |item| {
            if fits && item.body().len() == 1 {
                fits = runs.take(&mut walk, item.body()[0], item.times(), sink);
            } else {
                item.for_each(&mut |event| fits = fits && runs.take(&mut walk, event, 1, sink));
            }
        });
        result.map_err(|error: CodecError| chunk.error(stream, error))?;
        runs.end(sink);
        if !fits || !walk.is_done() {
            return Err(foreign_times(stream, chunk));
        }
    }
    Ok(())
}

/// The error of a chunk whose times are not those of its events.
fn foreign_times(stream: Stream, chunk: &ChunkData) -> DecodeError {
    let Stream { launch, warp, .. } = stream;
    DecodeError::ForeignTimes { launch, warp, sequence: chunk.sequence, frame_offset: chunk.frame_offset }
}

/// The runs of a warp, as its events come.
struct Runs {
    warp: u32,
    clock: Clock,
    step: u64,
    /// Events before.
    next: u64,
    open: Option<WarpRun>,
}

impl Runs {
    /// Takes events; returns whether there are times for them.
    fn take(
        &mut self,
        walk: &mut RunWalk<'_>,
        event: Event,
        count: u32,
        sink: &mut impl FnMut(WarpRun),
    ) -> bool {
        walk.take(event, count, |events, begins| {
            if let Some(time) = begins {
                let begin = self.clock.at(time).wrapping_mul(self.step);
                let run = WarpRun { warp: self.warp, first_event: self.next, event, events: 0, begin };
                if let Some(before) = self.open.replace(run) {
                    sink(before);
                }
            }
            if let Some(run) = &mut self.open {
                run.events += events;
            }
            self.next += u64::from(events);
        })
    }

    /// Gives the last run of a chunk.
    fn end(&mut self, sink: &mut impl FnMut(WarpRun)) {
        self.open.take().into_iter().for_each(sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on_where_times_wrap() {
        let mut clock = Clock::default();
        let times = [u32::MAX - 1, 3, 2, 1 << 31, 1, 0];
        let found = times.map(|time| clock.at(time));
        let wrap = 1 << 32;
        assert_eq!(found, [wrap - 2, wrap + 3, wrap + 2, wrap + (1 << 31), 2 * wrap + 1, 2 * wrap]);
    }
}
