//! When launches, blocks and warps ran, and on which multiprocessor: from where and when each warp began and
//! ended. All times are nanoseconds of the global timer, which goes in steps.
//!
//! - A *block* runs from when the first of its warps begins to when the last one ends.
//! - A block's *wave* is 1 more than that of the blocks that ended on its multiprocessor before it began; 1 if
//!   none did.
//! - A multiprocessor is *busy* while a block runs on it, and *waits* from the end of its last block to the end
//!   of the launch: the launch's *tail*.
//!
//! Of the program's blocks only those count of which a warp was recorded and looked at, and of which no warp
//! is known to have begun and not ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;
use warptrace_decoder::{DecodeError, LaunchEnd, TraceFile};
use warptrace_format::file::{LaunchInfo, TIMER_STEP};

use crate::counts::median;
use crate::figures::{WarpFigures, as_text};
use crate::selection::{Selection, kernel_name};

/// Where and when a warp ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WarpRan {
    /// The multiprocessor on which it began.
    pub sm: u32,
    /// When it began, since the first of its launch's warps did.
    pub begin_nanoseconds: u64,
    /// How long it ran; `None` if it did not end.
    pub nanoseconds: Option<u64>,
    /// How long the median warp of its launch ran, of those that are looked at and ended.
    pub median_nanoseconds: u64,
}

/// Where and when a block ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockRan {
    /// Its linear index.
    pub block: u32,
    /// The multiprocessor on which it began.
    pub sm: u32,
    /// Its wave, from 1.
    pub wave: u32,
    /// When it began, since the launch did.
    pub begin_nanoseconds: u64,
    /// How long it ran.
    pub nanoseconds: u64,
}

/// When the warps of a launch ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LaunchSchedule {
    /// Number of the launch.
    pub launch: u32,
    /// Name of its kernel.
    pub kernel: String,
    /// When the first warp began, by the global timer. In JSON a text, since readers there keep only 53 bits
    /// of a number.
    #[serde(serialize_with = "as_text")]
    pub begin: u64,
    /// From then to when the last warp ended that is known to have ended.
    pub nanoseconds: u64,
    /// How it ended: `completed`, `failed`, `interrupted` or `unknown`.
    pub ended: &'static str,
    /// From the end of all launches that began before to the begin of this one; 0 if it overlaps with one of
    /// them, and for the first.
    pub gap_nanoseconds: u64,
    /// For how long it ran beside launches that began before.
    pub overlap_nanoseconds: u64,
    /// Warps that ended.
    pub warps: u64,
    /// Warps that began and did not end.
    pub unended_warps: u64,
    /// Warps that ended on another multiprocessor than they began on.
    pub moved_warps: u64,
    /// How long the median warp ran.
    pub median_warp_nanoseconds: u64,
    /// Blocks that ended.
    pub blocks: u64,
    /// How long the median block ran.
    pub median_block_nanoseconds: u64,
    /// The largest wave.
    pub waves: u32,
    /// Multiprocessors on which these blocks ran.
    pub sms: u32,
    /// For how long they were busy, summed over them.
    pub busy_nanoseconds: u64,
    /// For how long the one was that was busy for longest.
    pub most_busy_nanoseconds: u64,
    /// For how long they waited, summed over them.
    pub waiting_nanoseconds: u64,
    /// The block that ran for longest.
    pub longest: Option<BlockRan>,
    /// The block that ended last.
    pub last: Option<BlockRan>,
}

impl LaunchSchedule {
    /// Returns the time of all of these multiprocessors from the launch's begin to its end.
    pub fn sm_nanoseconds(&self) -> u64 {
        self.nanoseconds.saturating_mul(self.sms.into())
    }

    /// Returns how much of it they waited for the launch's last block, from 0 to 1.
    pub fn waiting_share(&self) -> f64 {
        crate::counts::share(self.waiting_nanoseconds, self.sm_nanoseconds())
    }

    /// Returns how long the multiprocessor that was busy for longest was, over their mean: 1 if all were
    /// equally busy.
    pub fn imbalance(&self) -> f64 {
        crate::counts::share(
            self.most_busy_nanoseconds.saturating_mul(self.sms.into()),
            self.busy_nanoseconds,
        )
    }
}

/// When the launches of a trace ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Schedule {
    /// Launches of which a warp is known to have begun, by number.
    pub launches: Vec<LaunchSchedule>,
    /// From the begin of the first launch to the end of the last one.
    pub nanoseconds: u64,
    /// For how long none of them ran in between.
    pub gap_nanoseconds: u64,
    /// For how long more than one did, counted once for each further one.
    pub overlap_nanoseconds: u64,
    /// Steps in which the global timer went, as measured when the recording began; of files that do not say it what all
    /// of the times are multiples of, but for one offset, or 0 if fewer than 8 of them differ from the first: few times have
    /// larger divisors than the timer.
    pub timer_step_nanoseconds: u64,
}

/// Of how many warps a trace says where and when they ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpanSummary {
    /// Warps that began and ended.
    pub warps: u64,
    /// Warps that began and are not known to have ended.
    pub unended_warps: u64,
    /// Other warps that were recorded.
    pub unknown_warps: u64,
    /// Steps in which the global timer went, as [`Schedule::timer_step_nanoseconds`].
    pub timer_step_nanoseconds: u64,
}

impl SpanSummary {
    /// Reads the spans of all launches; `None` if the trace was recorded without.
    ///
    /// # Errors
    /// The file asks for too much work. What is damaged counts as not known.
    pub(crate) fn of(trace: &TraceFile) -> Result<Option<Self>, DecodeError> {
        if !trace.has_spans() {
            return Ok(None);
        }
        let (schedule, untimed) = read(trace, trace.launches(), &Selection::default(), &mut [])?;
        let sum = |count: fn(&LaunchSchedule) -> u64| schedule.launches.iter().map(count).sum();
        let unended_warps: u64 = sum(|launch| launch.unended_warps);
        Ok(Some(Self {
            warps: sum(|launch| launch.warps),
            unended_warps,
            unknown_warps: untimed.saturating_sub(unended_warps),
            timer_step_nanoseconds: schedule.timer_step_nanoseconds,
        }))
    }
}

/// A block, while its launch is read.
#[derive(Clone, Copy)]
struct Block {
    index: u32,
    sm: u32,
    begin: u64,
    end: u64,
    unended: bool,
}

/// The blocks of a launch of which a warp began, and what is known of its warps.
#[derive(Default)]
struct Read {
    blocks: Vec<Block>,
    lengths: Vec<u64>,
    unended: u64,
    moved: u64,
    step: Step,
}

/// Other times that tell the timer's step: that so few as these are all multiples of a larger one is
/// unlikely.
const ENOUGH_TIMES: u64 = 8;

/// The greatest common divisor of the differences between times.
#[derive(Clone, Copy, Default)]
struct Step {
    first: Option<u64>,
    divisor: u64,
    /// Times that are not the first.
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
}

/// Reads when the warps of these launches ran, and notes it with `warps`, which are in order. Returns it with
/// how many of the selected warps have no such time.
///
/// Takes 32 bytes for each block of one launch at a time, and 8 for each of its warps.
///
/// # Errors
/// The file asks for too much work. What is damaged only lacks.
pub(crate) fn read<'a>(
    trace: &TraceFile,
    launches: impl Iterator<Item = &'a LaunchInfo>,
    selection: &Selection,
    warps: &mut [WarpFigures],
) -> Result<(Schedule, u64), DecodeError> {
    let (mut schedule, mut untimed, mut rest) = (Schedule::default(), 0u64, warps);
    let mut step = Step::default();
    for info in launches {
        let number = info.number();
        let first = rest.partition_point(|warp| warp.launch < number);
        let count = rest.partition_point(|warp| warp.launch <= number) - first;
        let (of_launch, after) = std::mem::take(&mut rest).split_at_mut(first + count);
        rest = after;
        let of_launch = &mut of_launch[first..];
        let found = read_launch(trace, info, selection, step, of_launch)?;
        step = found.step;
        let selected = selection.selected(info);
        untimed += selected.saturating_sub(found.lengths.len() as u64);
        if let Some(launch) = of_blocks(trace, info, found, of_launch) {
            schedule.launches.push(launch);
        }
    }
    let measured = trace.metadata().property(TIMER_STEP).and_then(|step| step.parse().ok());
    let derived = if step.others < ENOUGH_TIMES { 0 } else { step.divisor };
    schedule.timer_step_nanoseconds = measured.unwrap_or(derived);
    add_gaps(&mut schedule);
    Ok((schedule, untimed))
}

fn read_launch(
    trace: &TraceFile,
    info: &LaunchInfo,
    selection: &Selection,
    step: Step,
    warps: &mut [WarpFigures],
) -> Result<Read, DecodeError> {
    let mut found = Read { step, ..Read::default() };
    let mut next = 0;
    for span in trace.warp_spans(info.number()).readable() {
        let (warp, span) = span?;
        let Some(sm) = span.sm().filter(|_| selection.has_warp(info, warp)) else { continue };
        let length = span.nanoseconds();
        let end = span.begin_timer.saturating_add(length.unwrap_or(0));
        let index = warp / info.warps_per_block();
        match found.blocks.last_mut().filter(|block| block.index == index) {
            Some(block) => {
                block.begin = block.begin.min(span.begin_timer);
                block.end = block.end.max(end);
                block.unended |= length.is_none();
            }
            None => {
                let unended = length.is_none();
                found.blocks.push(Block { index, sm, begin: span.begin_timer, end, unended });
            }
        }
        found.step.add(span.begin_timer);
        if length.is_some() {
            found.step.add(span.end_timer);
        }
        found.lengths.extend(length);
        found.unended += u64::from(length.is_none());
        found.moved += u64::from(span.has_moved());
        while warps.get(next).is_some_and(|figures| figures.warp < warp) {
            next += 1;
        }
        if let Some(figures) = warps.get_mut(next).filter(|figures| figures.warp == warp) {
            let (begin_nanoseconds, nanoseconds) = (span.begin_timer, length);
            figures.ran = Some(WarpRan { sm, begin_nanoseconds, nanoseconds, median_nanoseconds: 0 });
        }
    }
    Ok(found)
}

/// What the blocks of a launch tell; `None` if there is none.
fn of_blocks(
    trace: &TraceFile,
    info: &LaunchInfo,
    mut found: Read,
    warps: &mut [WarpFigures],
) -> Option<LaunchSchedule> {
    let begin = found.blocks.iter().map(|block| block.begin).min()?;
    let end = found.blocks.iter().map(|block| block.end).max()?;
    let median_warp = median(&mut found.lengths);
    for ran in warps.iter_mut().filter_map(|warp| warp.ran.as_mut()) {
        ran.begin_nanoseconds = ran.begin_nanoseconds.saturating_sub(begin);
        ran.median_nanoseconds = median_warp;
    }
    let mut blocks = found.blocks;
    blocks.retain(|block| !block.unended);
    let mut lengths: Vec<u64> = blocks.iter().map(|block| block.end - block.begin).collect();
    let mut launch = LaunchSchedule {
        launch: info.number(),
        kernel: kernel_name(trace, info).to_owned(),
        begin,
        nanoseconds: end - begin,
        ended: trace.launch_end(info.number()).unwrap_or(LaunchEnd::Unknown).name(),
        gap_nanoseconds: 0,
        overlap_nanoseconds: 0,
        warps: found.lengths.len() as u64,
        unended_warps: found.unended,
        moved_warps: found.moved,
        median_warp_nanoseconds: median_warp,
        blocks: blocks.len() as u64,
        median_block_nanoseconds: median(&mut lengths),
        waves: 0,
        sms: 0,
        busy_nanoseconds: 0,
        most_busy_nanoseconds: 0,
        waiting_nanoseconds: 0,
        longest: None,
        last: None,
    };
    blocks.sort_unstable_by_key(|block| (block.sm, block.begin, block.index));
    for of_sm in blocks.chunk_by(|a, b| a.sm == b.sm) {
        add_sm(&mut launch, of_sm, end);
    }
    Some(launch)
}

/// Adds the blocks of a multiprocessor, in the order in which they began, to a launch that ended then.
fn add_sm(launch: &mut LaunchSchedule, blocks: &[Block], launch_end: u64) {
    // Blocks that run, by their end, and with their wave.
    let mut running = BinaryHeap::new();
    let (mut ended_wave, mut busy, mut busy_until) = (0, 0u64, 0);
    for block in blocks {
        while let Some(&Reverse((end, wave))) = running.peek()
            && end <= block.begin
        {
            running.pop();
            ended_wave = ended_wave.max(wave);
        }
        let wave = ended_wave + 1;
        running.push(Reverse((block.end, wave)));
        busy += block.end.saturating_sub(block.begin.max(busy_until));
        busy_until = busy_until.max(block.end);
        launch.waves = launch.waves.max(wave);
        let begin_nanoseconds = block.begin - launch.begin;
        let nanoseconds = block.end - block.begin;
        let ran = BlockRan { block: block.index, sm: block.sm, wave, begin_nanoseconds, nanoseconds };
        // Of equal ones the one with the lower number.
        let longer =
            |than: &BlockRan| (nanoseconds, Reverse(block.index)) > (than.nanoseconds, Reverse(than.block));
        if launch.longest.as_ref().is_none_or(longer) {
            launch.longest = Some(ran);
        }
        let end = |ran: &BlockRan| (ran.begin_nanoseconds + ran.nanoseconds, Reverse(ran.block));
        if launch.last.as_ref().is_none_or(|last| end(&ran) > end(last)) {
            launch.last = Some(ran);
        }
    }
    launch.sms += 1;
    launch.busy_nanoseconds = launch.busy_nanoseconds.saturating_add(busy);
    launch.most_busy_nanoseconds = launch.most_busy_nanoseconds.max(busy);
    let waiting = launch_end.saturating_sub(busy_until);
    launch.waiting_nanoseconds = launch.waiting_nanoseconds.saturating_add(waiting);
}

/// Finds the gaps between launches, and for how long they overlap.
fn add_gaps(schedule: &mut Schedule) {
    let mut order: Vec<&mut LaunchSchedule> = schedule.launches.iter_mut().collect();
    order.sort_by_key(|launch| (launch.begin, launch.launch));
    let Some(first) = order.first().map(|launch| launch.begin) else { return };
    let mut until = None;
    for launch in order {
        let end = launch.begin.saturating_add(launch.nanoseconds);
        if let Some(until) = until {
            launch.gap_nanoseconds = launch.begin.saturating_sub(until);
            launch.overlap_nanoseconds = until.min(end).saturating_sub(launch.begin);
        }
        schedule.gap_nanoseconds += launch.gap_nanoseconds;
        schedule.overlap_nanoseconds =
            schedule.overlap_nanoseconds.saturating_add(launch.overlap_nanoseconds);
        until = until.max(Some(end));
    }
    schedule.nanoseconds = until.unwrap_or(first) - first;
}
