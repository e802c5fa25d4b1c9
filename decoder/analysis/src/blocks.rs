//! Run times of blocks, from their warps, in nanoseconds of the global timer, which advances in steps.
//!
//! - A *block* runs from the start of its first warp to the end of its last one.
//! - The *wave* of a block is 1 plus the greatest wave of the blocks that ended on its multiprocessor before
//!   it began; 1 if there are none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::{ControlFlow, Range};

use rustc_hash::FxHashMap;
use serde::Serialize;
use warptrace_decoder::{DecodeError, TraceFile, WarpClass, WarpFilter, WarpItem};
use warptrace_format::file::LaunchInfo;

use crate::figures::WarpFigures;
use crate::schedule::WarpRan;
use crate::selection::Selection;

/// Where and when a block ran, as far as its warps are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockRan {
    /// Linear index of the block.
    pub block: u32,
    /// Multiprocessor on which it began.
    pub sm: u32,
    /// Wave, from 1.
    pub wave: u32,
    /// Start time, relative to the launch.
    pub begin_nanoseconds: u64,
    /// Run time; `None` if a warp is known to have begun and not to have ended.
    pub nanoseconds: Option<u64>,
}

impl BlockRan {
    /// Returns the end time, relative to the start of the launch.
    pub fn end_nanoseconds(&self) -> Option<u64> {
        Some(self.begin_nanoseconds.saturating_add(self.nanoseconds?))
    }
}

/// Where and when the blocks of a launch ran.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchBlocks {
    /// Start time of the first block, by the global timer.
    pub begin: u64,
    /// Time from then to the last end. A block that did not end counts up to its last known time.
    pub nanoseconds: u64,
    /// Blocks with a warp that began, by multiprocessor, then by start time.
    pub blocks: Vec<BlockRan>,
}

/// Reads the run times of the selected blocks of a launch; `None` if the trace has none. Omits damaged spans.
/// Memory: 40 bytes for each block, and 8 for each warp while reading. Fails above the work limit.
pub fn blocks(
    trace: &TraceFile,
    info: &LaunchInfo,
    selection: &Selection,
) -> Result<Option<LaunchBlocks>, DecodeError> {
    Ok(Read::new(trace, info, selection, Step::default(), &mut [])?.placed())
}

/// Finds the location where the selected warps of each block spent the most cycles or, in a trace without
/// times, the most visits. The first of equal locations wins. The cycles of a run last to the start of the
/// warp's next run. Omits blocks without events. Reads the launch once, on all cores. Fails if the trace is
/// damaged, or reading exceeds the work limit.
pub fn hottest_of_blocks(
    trace: &TraceFile,
    info: &LaunchInfo,
    selection: &Selection,
    blocks: &BTreeSet<u32>,
) -> Result<BTreeMap<u32, u16>, DecodeError> {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Ok(BTreeMap::new()) };
    let per_block = info.warps_per_block();
    let end = last.saturating_add(1).saturating_mul(per_block);
    let filter = WarpFilter::warps(first.saturating_mul(per_block)..end);
    let is_timed = trace.has_times();
    let group = |warps: Range<u32>| {
        let (block, (end, has_first)) = (warps.start / per_block, selection.has_first(info, &warps));
        let is_wanted = has_first && blocks.contains(&block);
        (end.min((block + 1).saturating_mul(per_block)), is_wanted.then_some(block.into()))
    };
    let take = |spent: &mut Spent, class: &WarpClass, item: WarpItem<'_>| {
        spent.take((item.warp / per_block, class.warps()), item, is_timed);
        ControlFlow::Continue(())
    };
    let spent = trace.fold_items((info.number(), 0), &filter, group, Spent::default, take, Spent::merge)?;
    let mut most: BTreeMap<u32, (u64, u16)> = BTreeMap::new();
    for ((block, location), weight) in spent.unwrap_or_default().at {
        let of_block = most.entry(block).or_insert((weight, location));
        if (weight, Reverse(location)) > (of_block.0, Reverse(of_block.1)) {
            *of_block = (weight, location);
        }
    }
    Ok(most.into_iter().map(|(block, (_, location))| (block, location)).collect())
}

#[derive(Default)]
struct Spent {
    at: FxHashMap<(u32, u16), u64>,
    /// Current warp, location of its last timed run, and start time of that run.
    warp: Option<u32>,
    last: Option<u16>,
    now: u64,
}

impl Spent {
    fn take(
        &mut self,
        (block, warps): (u32, u64),
        WarpItem { warp, item, begin, .. }: WarpItem<'_>,
        is_timed: bool,
    ) {
        if self.warp.replace(warp) != Some(warp) {
            (self.last, self.now) = (None, 0);
        }
        if !is_timed {
            for event in item.body() {
                self.add((block, event.location), warps.saturating_mul(item.times().into()));
            }
            return;
        }
        let (Some(begin), Some(event)) = (begin, item.body().first()) else {
            self.last = None;
            return;
        };
        let now = begin.max(self.now);
        if let Some(last) = self.last.replace(event.location) {
            self.add((block, last), now - self.now);
        }
        self.now = now;
    }

    fn add(&mut self, at: (u32, u16), more: u64) {
        let sum = self.at.entry(at).or_default();
        *sum = sum.saturating_add(more);
    }

    fn merge(mut self, other: Self) -> Self {
        other.at.into_iter().for_each(|(at, more)| self.add(at, more));
        self
    }
}

#[derive(Clone, Copy)]
struct Block {
    index: u32,
    sm: u32,
    begin: u64,
    end: u64,
    unended: bool,
}

#[derive(Default)]
pub(crate) struct Read {
    blocks: Vec<Block>,
    pub(crate) lengths: Vec<u64>,
    pub(crate) unended: u64,
    pub(crate) moved: u64,
    pub(crate) step: Step,
}

/// Minimum number of times that differ from the first. Fewer could have a larger common divisor by chance.
const ENOUGH_TIMES: u64 = 8;

/// Greatest common divisor of the differences between times.
#[derive(Clone, Copy, Default)]
pub(crate) struct Step {
    first: Option<u64>,
    divisor: u64,
    others: u64,
}

impl Step {
    fn add(&mut self, time: u64) {
        let (mut a, mut b) = (time.abs_diff(*self.first.get_or_insert(time)), self.divisor);
        self.others += u64::from(a != 0);
        while a != 0 {
            (a, b) = (b % a, a);
        }
        self.divisor = b;
    }

    pub(crate) const fn nanoseconds(self) -> u64 {
        if self.others < ENOUGH_TIMES { 0 } else { self.divisor }
    }
}

impl Read {
    /// Reads the spans of the launch's selected warps, and sets them in `warps`, which must be in order.
    pub(crate) fn new(
        trace: &TraceFile,
        info: &LaunchInfo,
        selection: &Selection,
        step: Step,
        warps: &mut [WarpFigures],
    ) -> Result<Self, DecodeError> {
        let mut found = Self { step, ..Self::default() };
        let mut next = 0;
        for span in trace.warp_spans(info.number()).readable() {
            let (warp, span) = span?;
            let Some(sm) = span.sm().filter(|_| selection.has_warp(info, warp)) else { continue };
            let length = span.nanoseconds();
            let (begin, unended) = (span.begin_timer, length.is_none());
            let end = begin.saturating_add(length.unwrap_or(0));
            let index = warp / info.warps_per_block();
            match found.blocks.last_mut().filter(|block| block.index == index) {
                Some(block) => {
                    block.begin = block.begin.min(begin);
                    block.end = block.end.max(end);
                    block.unended |= unended;
                }
                None => found.blocks.push(Block { index, sm, begin, end, unended }),
            }
            found.step.add(begin);
            if !unended {
                found.step.add(span.end_timer);
            }
            found.lengths.extend(length);
            found.unended += u64::from(unended);
            found.moved += u64::from(span.has_moved());
            while warps.get(next).is_some_and(|figures| figures.warp < warp) {
                next += 1;
            }
            if let Some(figures) = warps.get_mut(next).filter(|figures| figures.warp == warp) {
                let (begin_nanoseconds, nanoseconds) = (begin, length);
                figures.ran = Some(WarpRan { sm, begin_nanoseconds, nanoseconds, median_nanoseconds: 0 });
            }
        }
        Ok(found)
    }

    pub(crate) fn placed(&mut self) -> Option<LaunchBlocks> {
        let mut read = std::mem::take(&mut self.blocks);
        let begin = read.iter().map(|block| block.begin).min()?;
        let end = read.iter().map(|block| block.end).max()?;
        read.sort_unstable_by_key(|block| (block.sm, block.begin, block.index));
        let mut blocks = Vec::with_capacity(read.len());
        for of_sm in read.chunk_by(|a, b| a.sm == b.sm) {
            // Running blocks: end time and wave.
            let mut running = BinaryHeap::new();
            let mut ended_wave = 0;
            for block in of_sm {
                while let Some(&Reverse((end, wave))) = running.peek()
                    && end <= block.begin
                {
                    running.pop();
                    ended_wave = ended_wave.max(wave);
                }
                let wave = ended_wave + 1;
                let nanoseconds = (!block.unended).then(|| block.end - block.begin);
                if nanoseconds.is_some() {
                    running.push(Reverse((block.end, wave)));
                }
                let begin_nanoseconds = block.begin - begin;
                blocks.push(BlockRan {
                    block: block.index,
                    sm: block.sm,
                    wave,
                    begin_nanoseconds,
                    nanoseconds,
                });
            }
        }
        Some(LaunchBlocks { begin, nanoseconds: end - begin, blocks })
    }
}
