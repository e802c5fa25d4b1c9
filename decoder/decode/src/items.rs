//! Runs and cycles of many warps. Analyses of items take time in proportion to the compressed trace.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use rayon::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::{Decoder, Item};

use crate::all::{Stop, WarpFilter};
use crate::error::DecodeError;
use crate::feed::{ChunkFeed, FrameFeed, MemoryFeed, Sequence, Stream};
use crate::file::TraceFile;
use crate::losses::LossyWarps;
use crate::marks::Marks;
use crate::times::Runs;
use crate::window::{Held, HeldRun, WarpClass, Windows};

/// Minimum bytes of chunks for a separate value of a fold, because values can be large. A chunk counts as at
/// least [`CHUNK_OVERHEAD`](crate::feed::CHUNK_OVERHEAD) bytes.
const LEAST_BYTES_OF_FOLD: usize = 1 << 16;

/// An item of one warp.
#[derive(Clone, Copy, Debug)]
pub struct WarpItem<'a> {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Number of the item's first event among the warp's events, from 0.
    pub first_event: u64,
    /// The events.
    pub item: Item<'a>,
    /// Time of the first event, in cycles of the multiprocessor's clock; `None` if it cannot be read.
    ///
    /// In traces with times, each item is a run of equal events, or the part of a run inside one chunk, in
    /// order of start time. The time of a warp's first run is known modulo 2^32 units; a unit is 16 cycles on
    /// a GPU. Later times continue from it: consecutive runs must be less than 2^31 units apart.
    pub begin: Option<u64>,
    /// Events missing before `first_event`, if the filter asks for [marks](crate#losses). No events then.
    pub missing: Option<LossyWarps>,
}

/// Executions of a trace point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocationCount {
    /// Number of events: groups of lanes that passed it at the same time.
    pub events: u64,
    /// Sum of the lanes in these groups.
    pub lanes: u64,
}

impl TraceFile {
    /// Folds the items of the warps that `filter` selects of a launch and track, on all cores of rayon's
    /// current pool, for results that do not depend on the order of warps. Returns `None` if `fold` returns
    /// `Break` on any thread; the other threads then stop soon.
    ///
    /// Warps are processed by *class*: warps with equal payloads in the file and the same group. `fold`
    /// receives the items of a class once, as items of its first warp, with all warps of the class. `group`
    /// returns the group of the first warp of a range, `None` to leave it out, and the end of the warps known
    /// to have the same group. Warps with equal events can be in several classes; in a trace with times each
    /// warp is a class.
    ///
    /// One thread processes a class, in the order of its events, with one value of `new` for all its classes.
    /// `merge` joins the values in any order; without warps, the result is `new()`. There are no marks.
    /// Memory as in the [crate's docs](crate#memory), without expanded events. Fails as
    /// [`TraceFile::decode_all`].
    pub fn fold_items<A: Send>(
        &self,
        (launch, track): (u32, u32),
        filter: &WarpFilter,
        group: impl Fn(Range<u32>) -> (u32, Option<u64>) + Sync,
        new: impl Fn() -> A + Sync,
        fold: impl Fn(&mut A, &WarpClass, WarpItem<'_>) -> ControlFlow<()> + Sync,
        merge: impl Fn(A, A) -> A + Sync,
    ) -> Result<Option<A>, DecodeError> {
        let (info, codec) = self.resolve(launch, track)?;
        let mut windows = Windows::new(self, launch, vec![track], filter.range(info.warps())).timed();
        let mut total = new();
        while let Some(window) = windows.next_window(&mut |_, error| Err(error))? {
            let classes = window.classes(&group);
            let of_window = parts(&classes)
                .par_iter()
                .try_fold(
                    || None,
                    |state: Option<(Decoder, A)>, part| {
                        let (mut decoder, mut value) = state.unwrap_or_else(|| (Decoder::new(codec), new()));
                        for (held, class) in *part {
                            let stream = Stream { launch, track, warp: class.first() };
                            let fold = &mut |item: WarpItem<'_>| fold(&mut value, class, item);
                            self.items_of_held(held, stream, &mut decoder, fold)?;
                        }
                        Ok(Some((decoder, value)))
                    },
                )
                .try_reduce(
                    || None,
                    |left, right| {
                        Ok(match (left, right) {
                            (Some((decoder, left)), Some((_, right))) => Some((decoder, merge(left, right))),
                            (one, other) => one.or(other),
                        })
                    },
                );
            match of_window {
                Ok(Some((_, value))) => total = merge(total, value),
                Ok(None) => {}
                Err(Stop::Asked) => return Ok(None),
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
        Ok(Some(total))
    }

    /// Passes the items of the warps that `filter` selects to `sink`, in order of warp and, inside a warp, of
    /// its events; [`RunJoiner`](crate::RunJoiner) joins the items into runs. Runs on the calling thread, so
    /// no results wait in memory. If `sink` returns `Break`, the walk ends and returns it. Memory as in the
    /// [crate's docs](crate#memory), without expanded events. Fails as [`TraceFile::decode_all`].
    pub fn items_in_order(
        &self,
        launch: u32,
        track: u32,
        filter: &WarpFilter,
        sink: &mut impl FnMut(WarpItem<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        Stop::flow(self.walk_items((launch, track), filter, sink))
    }

    fn walk_items(
        &self,
        (launch, track): (u32, u32),
        filter: &WarpFilter,
        sink: &mut impl FnMut(WarpItem<'_>) -> ControlFlow<()>,
    ) -> Result<(), Stop> {
        let (info, codec) = self.resolve(launch, track)?;
        let mut windows = Windows::new(self, launch, vec![track], filter.range(info.warps())).timed();
        let mut marks = Marks::new(self, info, track, filter);
        let mut decoder = Decoder::new(codec);
        while let Some(window) = windows.next_window(&mut |_, error| Err(error))? {
            for (warp, held) in window.held.iter().flat_map(HeldRun::each) {
                if let Some(marks) = &mut marks {
                    marks.go_to(warp, 0, &mut mark_items(sink))?;
                }
                let stream = Stream { launch, track, warp };
                let events = self.items_of_held(held, stream, &mut decoder, sink)?;
                if let Some(marks) = &mut marks {
                    marks.go_to(warp, events, &mut mark_items(sink))?;
                }
            }
        }
        marks.map_or(Ok(()), |marks| marks.finish(&mut mark_items(sink)))
    }

    fn items_of_held(
        &self,
        held: &Held,
        stream: Stream,
        decoder: &mut Decoder,
        sink: &mut impl FnMut(WarpItem<'_>) -> ControlFlow<()>,
    ) -> Result<u64, Stop> {
        match held {
            Held::Chunks(_) => items_of(MemoryFeed::new(held.chunks(0)), stream, decoder, sink),
            Held::Huge => items_of(FrameFeed::new(self, stream).timed(), stream, decoder, sink),
        }
    }

    /// Counts the executions of each trace point by the warps that `filter` selects. Leaves out trace points
    /// that were not executed. Errors: as for [`TraceFile::decode_all`].
    ///
    /// ```no_run
    /// use warptrace_decoder::{TraceFile, WarpFilter};
    /// let trace = TraceFile::open("run.wtrc")?;
    /// for (location, count) in trace.location_counts(0, 0, &WarpFilter::all())? {
    ///     println!("{location}: {} lanes in {} events", count.lanes, count.events);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn location_counts(
        &self,
        launch: u32,
        track: u32,
        filter: &WarpFilter,
    ) -> Result<BTreeMap<u16, LocationCount>, DecodeError> {
        let counts = self.fold_items(
            (launch, track),
            filter,
            |warps| (warps.end, Some(0)),
            Vec::new,
            |counts: &mut Vec<LocationCount>, class, WarpItem { item, .. }| {
                let times = u64::from(item.times()) * class.warps();
                for &Event { location, mask } in item.body() {
                    let at = usize::from(location);
                    if counts.len() <= at {
                        counts.resize(at + 1, LocationCount::default());
                    }
                    counts[at].events += times;
                    counts[at].lanes += u64::from(mask.count_ones()) * times;
                }
                ControlFlow::Continue(())
            },
            |mut left, mut right| {
                if left.len() < right.len() {
                    std::mem::swap(&mut left, &mut right);
                }
                for (left, right) in left.iter_mut().zip(right) {
                    left.events += right.events;
                    left.lanes += right.lanes;
                }
                left
            },
        )?;
        let passed = (0..).zip(counts.unwrap_or_default()).filter(|(_, count)| count.events > 0);
        Ok(passed.collect())
    }
}

/// Divides classes into parts of at least [`LEAST_BYTES_OF_FOLD`], but for the last.
fn parts<'c>(mut classes: &'c [(&'c Held, WarpClass)]) -> Vec<&'c [(&'c Held, WarpClass)]> {
    let mut parts = Vec::new();
    while !classes.is_empty() {
        let mut bytes = 0;
        let is_enough = |(held, _): &(&Held, WarpClass)| {
            bytes += held.bytes();
            bytes >= LEAST_BYTES_OF_FOLD
        };
        let last = classes.iter().position(is_enough).unwrap_or(classes.len() - 1);
        let (part, rest) = classes.split_at(last + 1);
        parts.push(part);
        classes = rest;
    }
    parts
}

fn mark_items(
    sink: &mut impl FnMut(WarpItem<'_>) -> ControlFlow<()>,
) -> impl FnMut(LossyWarps, u64) -> ControlFlow<()> {
    |missing, first_event| {
        let (warp, item) = (missing.first, Item::Cycle { body: &[], times: 0 });
        sink(WarpItem { warp, first_event, item, begin: None, missing: Some(missing) })
    }
}

/// Passes the items of a warp's chunks to `sink`. Returns the number of events. After `Break`, the rest of
/// the chunk is decoded but not passed on.
pub(crate) fn items_of<F: ChunkFeed>(
    mut feed: F,
    stream: Stream,
    decoder: &mut Decoder,
    sink: &mut impl FnMut(WarpItem<'_>) -> ControlFlow<()>,
) -> Result<u64, Stop> {
    let warp = stream.warp;
    let mut sequence = Sequence::new(stream);
    let mut first_event = 0;
    let mut runs = Runs::new(warp);
    while let Some(chunk) = feed.next_chunk()? {
        sequence.check(chunk)?;
        let mut flow = ControlFlow::Continue(());
        let mut give = |item: WarpItem<'_>| {
            if flow.is_continue() {
                flow = sink(item);
            }
        };
        let mut timed = runs.chunk(chunk);
        let result = decoder.decode_items(&chunk.payload, chunk.events, &mut |item| {
            match &mut timed {
                Some(runs) => runs.take(first_event, &item, &mut give),
                None => give(WarpItem { warp, first_event, item, begin: None, missing: None }),
            }
            first_event += item.events();
        });
        if let Some(runs) = timed {
            runs.end(&mut give);
        }
        Stop::asked(flow)?;
        result.map_err(|error| chunk.error(stream, error))?;
    }
    Ok(first_event)
}
