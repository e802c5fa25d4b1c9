//! Runs and cycles of many warps: analyses that cost what the compressed trace costs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rayon::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::{Decoder, Item};

use crate::all::WarpFilter;
use crate::error::DecodeError;
use crate::feed::{ChunkFeed, FrameFeed, MemoryFeed, Sequence, Stream};
use crate::file::TraceFile;
use crate::times::Runs;
use crate::window::{Held, Windows};

/// An item of one warp.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
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
    /// Gives the items of the warps that `filter` selects to `fold`, on all cores of rayon's current pool.
    ///
    /// Each warp is gone through by one thread, in the order of its events. A thread begins with a value of
    /// `new`, keeps it for the warps that it takes, and `merge` joins the values in any order; with no warp
    /// the result is `new()`.
    ///
    /// Memory is bounded as the [crate's docs](crate#memory) say, less the events, which are not expanded.
    ///
    /// # Errors
    /// As [`TraceFile::decode_all`].
    pub fn fold_items<A: Send>(
        &self,
        launch: u32,
        track: u32,
        filter: &WarpFilter,
        new: impl Fn() -> A + Sync,
        fold: impl Fn(&mut A, WarpItem<'_>) + Sync,
        merge: impl Fn(A, A) -> A + Sync,
    ) -> Result<A, DecodeError> {
        let fold = |value: &mut A, item: WarpItem<'_>| {
            fold(value, item);
            ControlFlow::Continue(())
        };
        // It is never stopped.
        Ok(self.fold_items_while(launch, track, filter, &new, fold, merge)?.unwrap_or_else(new))
    }

    /// As [`fold_items`](Self::fold_items), until `fold` returns `Break` on any thread: then the others stop
    /// soon, and the answer is `None`.
    ///
    /// # Errors
    /// As [`TraceFile::decode_all`].
    pub fn fold_items_while<A: Send>(
        &self,
        launch: u32,
        track: u32,
        filter: &WarpFilter,
        new: impl Fn() -> A + Sync,
        fold: impl Fn(&mut A, WarpItem<'_>) -> ControlFlow<()> + Sync,
        merge: impl Fn(A, A) -> A + Sync,
    ) -> Result<Option<A>, DecodeError> {
        let (info, codec) = self.resolve(launch, track)?;
        let mut windows = Windows::new(self, launch, vec![track], filter.range(info.warps())).timed();
        let mut total = new();
        while let Some(window) = windows.next_window(&mut |_, error| Err(error))? {
            // An error of `None` ends the walk on `Break`.
            let of_window = window
                .held
                .par_iter()
                .try_fold(
                    || None,
                    |state: Option<(Decoder, A)>, (&warp, held)| {
                        let (mut decoder, mut value) = state.unwrap_or_else(|| (Decoder::new(codec), new()));
                        let stream = Stream { launch, track, warp };
                        let mut sink = |item: WarpItem<'_>| fold(&mut value, item);
                        let flow = match held {
                            Held::Chunks(tracks) => {
                                let chunks = tracks.first().map_or(&[][..], Vec::as_slice);
                                items_of(MemoryFeed::new(chunks), stream, &mut decoder, &mut sink)
                            }
                            Held::Huge => items_of(
                                FrameFeed::new(self, stream).timed(),
                                stream,
                                &mut decoder,
                                &mut sink,
                            ),
                        };
                        match flow {
                            Ok(ControlFlow::Continue(())) => Ok(Some((decoder, value))),
                            Ok(ControlFlow::Break(())) => Err(None),
                            Err(error) => Err(Some(error)),
                        }
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
                Err(None) => return Ok(None),
                Err(Some(error)) => return Err(error),
            }
        }
        Ok(Some(total))
    }

    /// Gives the items of one warp to `sink`, in the order of its events.
    ///
    /// # Errors
    /// As [`TraceFile::decode_warp`] and its iterator; items before the fault may have been given to `sink`.
    pub fn warp_items(
        &self,
        launch: u32,
        warp: u32,
        track: u32,
        sink: &mut dyn FnMut(WarpItem<'_>),
    ) -> Result<(), DecodeError> {
        let (info, codec) = self.resolve(launch, track)?;
        if warp >= info.warps() {
            return Err(DecodeError::UnknownWarp { launch, warp, warps: info.warps() });
        }
        let stream = Stream { launch, track, warp };
        let mut decoder = Decoder::new(codec);
        items_of(FrameFeed::new(self, stream).timed(), stream, &mut decoder, &mut all(sink)).map(|_| ())
    }

    /// Gives the items of the warps that `filter` selects to `sink`, in order of warp and, inside a warp, of
    /// its events. Everything runs on the calling thread, so that nothing is held for the order's sake.
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
        sink: &mut dyn FnMut(WarpItem<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let (info, codec) = self.resolve(launch, track)?;
        let mut windows = Windows::new(self, launch, vec![track], filter.range(info.warps())).timed();
        let mut decoder = Decoder::new(codec);
        let mut sink = |item: WarpItem<'_>| sink(item);
        while let Some(window) = windows.next_window(&mut |_, error| Err(error))? {
            for (&warp, held) in &window.held {
                let stream = Stream { launch, track, warp };
                let flow = match held {
                    Held::Chunks(tracks) => {
                        let chunks = tracks.first().map_or(&[][..], Vec::as_slice);
                        items_of(MemoryFeed::new(chunks), stream, &mut decoder, &mut sink)?
                    }
                    Held::Huge => {
                        items_of(FrameFeed::new(self, stream).timed(), stream, &mut decoder, &mut sink)?
                    }
                };
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
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
            launch,
            track,
            filter,
            Vec::new,
            |counts: &mut Vec<LocationCount>, WarpItem { item, .. }| {
                for &Event { location, mask } in item.body() {
                    let at = usize::from(location);
                    if counts.len() <= at {
                        counts.resize(at + 1, LocationCount::default());
                    }
                    counts[at].events += u64::from(item.times());
                    counts[at].lanes += u64::from(mask.count_ones()) * u64::from(item.times());
                }
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
        let passed = (0..).zip(counts).filter(|(_, count)| count.events > 0);
        Ok(passed.collect())
    }
}

/// Makes a sink that takes all items.
fn all(mut sink: impl FnMut(WarpItem<'_>)) -> impl FnMut(WarpItem<'_>) -> ControlFlow<()> {
    move |item| {
        sink(item);
        ControlFlow::Continue(())
    }
}

/// Gives the items of a warp's chunks to `sink`. After its `Break` it gets no more; the rest of the chunk is
/// decoded all the same.
fn items_of<F: ChunkFeed>(
    mut feed: F,
    stream: Stream,
    decoder: &mut Decoder,
    sink: &mut impl FnMut(WarpItem<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, DecodeError> {
    let warp = stream.warp;
    let mut sequence = Sequence::new(stream);
    let mut first_event = 0;
    let mut runs = Runs::of(warp);
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
                None => give(WarpItem { warp, first_event, item, begin: None }),
            }
            first_event += item.events();
        });
        if let Some(runs) = timed {
            runs.end(&mut give);
        }
        if flow.is_break() {
            return Ok(flow);
        }
        result.map_err(|error| chunk.error(stream, error))?;
    }
    Ok(ControlFlow::Continue(()))
}
