//! Run times of launches, from their blocks, in nanoseconds of the global timer, which advances in steps.
//!
//! A multiprocessor is *busy* while a block runs on it. It *waits* from the end of its last block to the end
//! of the launch: the *tail* of the launch. Only blocks with recorded and selected warps count, and only if
//! each warp that began is known to have ended.

use std::cmp::Reverse;

use crate::order::OrderItems;
use serde::Serialize;
use warptrace_decoder::{DecodeError, LaunchEnd, TraceFile};
use warptrace_format::file::{LaunchInfo, TIMER_STEP};

use crate::blocks::{BlockRan, Read, Step};
use crate::counts::median;
use crate::figures::{WarpFigures, as_text};
use crate::selection::{Selection, kernel_name};

/// Where and when a warp ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WarpRan {
    /// Multiprocessor on which it began.
    pub sm: u32,
    /// Start time, relative to the first warp of the launch.
    pub begin_nanoseconds: u64,
    /// Run time; `None` if it did not end.
    pub nanoseconds: Option<u64>,
    /// Median run time of the selected warps of the launch that ended.
    pub median_nanoseconds: u64,
}

impl WarpRan {
    /// Returns the end time, relative to the start of the first warp of the launch.
    pub fn end_nanoseconds(self) -> Option<u64> {
        Some(self.begin_nanoseconds.saturating_add(self.nanoseconds?))
    }
}

/// Run times of the warps of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LaunchSchedule {
    /// Number of the launch.
    pub launch: u32,
    /// Name of its kernel.
    pub kernel: String,
    /// Start of the first warp, by the global timer. A string in JSON: readers may keep only 53 bits.
    #[serde(serialize_with = "as_text")]
    pub begin: u64,
    /// Time from then to the last known end of a warp.
    pub nanoseconds: u64,
    /// Outcome: `completed`, `failed`, `interrupted` or `unknown`.
    pub ended: &'static str,
    /// Time from the end of all earlier launches to this start; 0 for the first, or if they overlap.
    pub gap_nanoseconds: u64,
    /// Time during which launches that began earlier were still running.
    pub overlap_nanoseconds: u64,
    /// Warps that ended.
    pub warps: u64,
    /// Warps that began and did not end.
    pub unended_warps: u64,
    /// Warps that ended on a different multiprocessor.
    pub moved_warps: u64,
    /// Median run time of a warp.
    pub median_warp_nanoseconds: u64,
    /// Blocks that ended.
    pub blocks: u64,
    /// Median run time of a block.
    pub median_block_nanoseconds: u64,
    /// The largest wave.
    pub waves: u32,
    /// Multiprocessors on which these blocks ran.
    pub sms: u32,
    /// Busy time, summed over the multiprocessors.
    pub busy_nanoseconds: u64,
    /// Longest busy time of a multiprocessor.
    pub most_busy_nanoseconds: u64,
    /// Waiting time, summed over the multiprocessors.
    pub waiting_nanoseconds: u64,
    /// Block with the longest run time.
    pub longest: Option<BlockRan>,
    /// Block that ended last.
    pub last: Option<BlockRan>,
}

impl LaunchSchedule {
    /// Returns the time from start to end of the launch, summed over these multiprocessors.
    pub fn sm_nanoseconds(&self) -> u64 {
        self.nanoseconds.saturating_mul(self.sms.into())
    }

    /// Returns the share of this time that multiprocessors waited for the last block of the launch, 0 to 1.
    pub fn waiting_share(&self) -> f64 {
        crate::counts::share(self.waiting_nanoseconds, self.sm_nanoseconds())
    }

    /// Returns the longest busy time of a multiprocessor divided by the mean: 1 if all were equally busy.
    pub fn imbalance(&self) -> f64 {
        crate::counts::share(
            self.most_busy_nanoseconds.saturating_mul(self.sms.into()),
            self.busy_nanoseconds,
        )
    }
}

/// Run times of the launches of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Schedule {
    /// Launches with a warp that is known to have begun, by number.
    pub launches: Vec<LaunchSchedule>,
    /// Time from the start of the first launch to the end of the last one.
    pub nanoseconds: u64,
    /// Time in between without a running launch.
    pub gap_nanoseconds: u64,
    /// Time with more than one running launch, counted once for each additional one.
    pub overlap_nanoseconds: u64,
    /// Step of the global timer: measured at the start of the recording, otherwise the greatest common
    /// divisor of all differences between times, or 0 if fewer than 8 times differ from the first.
    pub timer_step_nanoseconds: u64,
}

impl Schedule {
    /// Returns a copy with the `most` launches that waited the longest, in descending order.
    #[must_use]
    pub fn longest_waits(&self, most: usize) -> Self {
        let mut launches: Vec<&LaunchSchedule> = self.launches.iter().collect();
        launches.order_by_key(|launch| Reverse(launch.waiting_nanoseconds));
        Self { launches: launches.into_iter().take(most).cloned().collect(), ..*self }
    }
}

/// Numbers of warps with run times in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpanSummary {
    /// Warps that began and ended.
    pub warps: u64,
    /// Warps that began and are not known to have ended.
    pub unended_warps: u64,
    /// Other warps that were recorded.
    pub unknown_warps: u64,
    /// Step of the global timer, as in [`Schedule::timer_step_nanoseconds`].
    pub timer_step_nanoseconds: u64,
}

impl SpanSummary {
    /// Reads the recorded spans of all launches. Damaged ones are unknown. Fails above the work limit.
    pub(crate) fn new(trace: &TraceFile) -> Result<Option<Self>, DecodeError> {
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

/// Reads the run times of the warps of these launches, and sets them in `warps`, which must be in order.
/// Returns them with the number of selected warps without a run time. Omits damaged spans. Memory: 32 bytes
/// for each block of one launch, and 8 for each of its warps. Fails if reading exceeds the work limit.
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
        let found = Read::new(trace, info, selection, step, of_launch)?;
        step = found.step;
        let selected = selection.selected(info);
        untimed += selected.saturating_sub(found.lengths.len() as u64);
        if let Some(launch) = of_blocks(trace, info, found, of_launch) {
            schedule.launches.push(launch);
        }
    }
    let measured = trace.metadata().property(TIMER_STEP).and_then(|step| step.parse().ok());
    schedule.timer_step_nanoseconds = measured.unwrap_or_else(|| step.nanoseconds());
    add_gaps(&mut schedule);
    Ok((schedule, untimed))
}

fn of_blocks(
    trace: &TraceFile,
    info: &LaunchInfo,
    mut found: Read,
    warps: &mut [WarpFigures],
) -> Option<LaunchSchedule> {
    let placed = found.placed()?;
    let median_warp = median(&mut found.lengths);
    for ran in warps.iter_mut().filter_map(|warp| warp.ran.as_mut()) {
        ran.begin_nanoseconds = ran.begin_nanoseconds.saturating_sub(placed.begin);
        ran.median_nanoseconds = median_warp;
    }
    let mut lengths: Vec<u64> = placed.blocks.iter().filter_map(|block| block.nanoseconds).collect();
    let mut launch = LaunchSchedule {
        launch: info.number(),
        kernel: kernel_name(trace, info).to_owned(),
        begin: placed.begin,
        nanoseconds: placed.nanoseconds,
        ended: trace.launch_end(info.number()).unwrap_or(LaunchEnd::Unknown).name(),
        gap_nanoseconds: 0,
        overlap_nanoseconds: 0,
        warps: found.lengths.len() as u64,
        unended_warps: found.unended,
        moved_warps: found.moved,
        median_warp_nanoseconds: median_warp,
        blocks: lengths.len() as u64,
        median_block_nanoseconds: median(&mut lengths),
        waves: 0,
        sms: 0,
        busy_nanoseconds: 0,
        most_busy_nanoseconds: 0,
        waiting_nanoseconds: 0,
        longest: None,
        last: None,
    };
    for of_sm in placed.blocks.chunk_by(|a, b| a.sm == b.sm) {
        add_sm(&mut launch, of_sm);
    }
    Some(launch)
}

/// Adds the blocks of a multiprocessor, ordered by start, to their launch.
fn add_sm(launch: &mut LaunchSchedule, blocks: &[BlockRan]) {
    let (mut busy, mut busy_until, mut ended) = (0u64, 0, 0u64);
    for block in blocks {
        let Some((length, end)) = block.nanoseconds.zip(block.end_nanoseconds()) else { continue };
        ended += 1;
        busy += end.saturating_sub(block.begin_nanoseconds.max(busy_until));
        busy_until = busy_until.max(end);
        launch.waves = launch.waves.max(block.wave);
        // Of equal blocks, the one with the lower number.
        let by_length = |ran: &BlockRan| (ran.nanoseconds, Reverse(ran.block));
        if launch.longest.as_ref().is_none_or(|than| (Some(length), Reverse(block.block)) > by_length(than)) {
            launch.longest = Some(*block);
        }
        let by_end = |ran: &BlockRan| (ran.end_nanoseconds(), Reverse(ran.block));
        if launch.last.as_ref().is_none_or(|last| by_end(block) > by_end(last)) {
            launch.last = Some(*block);
        }
    }
    if ended == 0 {
        return;
    }
    launch.sms += 1;
    launch.busy_nanoseconds = launch.busy_nanoseconds.saturating_add(busy);
    launch.most_busy_nanoseconds = launch.most_busy_nanoseconds.max(busy);
    let waiting = launch.nanoseconds.saturating_sub(busy_until);
    launch.waiting_nanoseconds = launch.waiting_nanoseconds.saturating_add(waiting);
}

fn add_gaps(schedule: &mut Schedule) {
    let mut order: Vec<&mut LaunchSchedule> = schedule.launches.iter_mut().collect();
    order.order_by_key(|launch| (launch.begin, launch.launch));
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
