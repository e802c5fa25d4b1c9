//! Runs and cycles of many warps: analyses that cost what the compressed trace costs.

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

/// An item of one warp.
#[derive(Clone, Copy, Debug)]
pub struct WarpItem<'a> {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Number of the item's first event among the warp's events, from 0.
    pub first_event: u64,
    /// The events.
    pub item: Item<'a>,
    /// When the first of them came, in cycles of the multiprocessor's clock; `None` if the trace has no times, or none
    /// that can be read.
    ///
    /// Of traces with times each item is a run, or the part of one that is in a chunk: equal events, of which the first came at
    /// this time. The clock of a warp's first run is known modulo 2^32 units, of 16 cycles on a GPU; from there on it goes on, if
    /// no two runs of the warp that follow each other are 2^31 units apart. Runs stand in the order in which they began.
    pub begin: Option<u64>,
    /// Events missing before `first_event`, if the filter asks for [marks](crate#losses). Such an item has no events.
    pub missing: Option<LossyWarps>,
}

/// How often a trace point was passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocationCount {
    /// Events: groups of lanes that passed it at the same time.
    pub events: u64,
    /// Lanes in these groups, in all.
    pub lanes: u64,
}

impl TraceFile {
    /// Gives the items of the warps that `filter` selects of a launch and track to `fold`, on all cores of
    /// rayon's current pool: for figures that need no order of warps. `None` if `fold` returns `Break` on any thread: then the others stop
    /// soon.
    ///
    /// Warps are taken by *class*. The warps of a class have equal payloads in the file, and the same number from
    /// `group`. `fold` gets the items of a class once, as if they were its first warp's, with all warps of the class.
    /// `group` gives the number of the first warp of a range, and the end of the warps that surely have the same one:
    /// it is asked for runs of warps, not for each. Warps for which it gives `None` are left out. Warps with equal
    /// events can be in several classes; in a trace with times each warp is a class.
    ///
    /// Each class is gone through by one thread, in the order of its events. A thread begins with a value of
    /// `new`, keeps it for the classes that it takes, and `merge` joins the values in any order; with no warp
    /// the result is `new()`. There are no marks.
    ///
    /// Memory is bounded as the [crate's docs](crate#memory) say, less the events, which are not expanded.
    ///
    /// # Errors
    /// As [`TraceFile::decode_all`].
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
            let of_window = window
                .classes(&group)
                .par_iter()
                .try_fold(
                    || None,
                    |state: Option<(Decoder, A)>, (held, class)| {
                        let (mut decoder, mut value) = state.unwrap_or_else(|| (Decoder::new(codec), new()));
                        let stream = Stream { launch, track, warp: class.first() };
                        let fold = &mut |item: WarpItem<'_>| fold(&mut value, class, item);
                        self.items_of_held(held, stream, &mut decoder, fold)?;
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

    /// Gives the items of the warps that `filter` selects to `sink`, in order of warp and, inside a warp, of
    /// its events: for tables and files, which have an order; [`RunJoiner`](crate::RunJoiner) makes runs of
    /// them. Everything runs on the calling thread, so that nothing is held for the order's sake.
    /// `Break` from `sink` ends the walk early, and comes back.
    ///
    /// Memory is bounded as the [crate's docs](crate#memory) say, less the events, which are not expanded.
    ///
    /// # Errors
    /// As [`TraceFile::decode_all`].
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

    /// Gives the items of a warp of a window to `sink`; returns the number of its events.
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

    /// How often each trace point was passed by the warps that `filter` selects; only those that were.
    ///
    /// ```no_run
    /// use warptrace_decoder::{TraceFile, WarpFilter};
    /// let trace = TraceFile::open("run.wtrc")?;
    /// for (location, count) in trace.location_counts(0, 0, &WarpFilter::all())? {
    ///     println!("{location}: {} lanes in {} events", count.lanes, count.events);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`TraceFile::decode_all`].
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

/// Makes marks items without events.
fn mark_items(
    sink: &mut impl FnMut(WarpItem<'_>) -> ControlFlow<()>,
) -> impl FnMut(LossyWarps, u64) -> ControlFlow<()> {
    |missing, first_event| {
        let (warp, item) = (missing.first, Item::Cycle { body: &[], times: 0 });
        sink(WarpItem { warp, first_event, item, begin: None, missing: Some(missing) })
    }
}

/// Gives the items of a warp's chunks to `sink`; returns the number of its events. After `Break` it gets no
/// more; the rest of the chunk is decoded all the same.
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
