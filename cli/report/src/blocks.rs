//! Block schedules: figures of each launch, and rows of blocks for each SM along a common time axis.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use warptrace_analysis::words::{self, count, percent, ratio};
use warptrace_analysis::{
    BlockRan, LaunchBlocks, LaunchSchedule, OrderItems, Schedule, Selection, blocks as read,
    hottest_of_blocks,
};
use warptrace_decoder::DecodeError;

use crate::guide::{Guide, LocationLink};
use crate::page::cut;
use crate::table::{Columns, PageTable};
use crate::warps::kernel_of;

/// Maximum number of rows of a multiprocessor: it runs at most this many blocks at the same time.
const MOST_ROWS: usize = 32;
/// Number of rows of a launch after which no further multiprocessors are drawn.
const ALL_ROWS: usize = 192;

#[derive(Debug)]
pub(crate) struct Blocks {
    /// Launches, longest waits of their multiprocessors first.
    pub(crate) launches: PageTable,
    pub(crate) drawn: Vec<Drawn>,
}

impl Blocks {
    pub(crate) fn locations(&self) -> impl Iterator<Item = u16> {
        let blocks = self.drawn.iter().flat_map(|drawn| &drawn.sms).flat_map(|sm| &sm.blocks);
        blocks.map(|block| block.location).filter(|location| *location > 0)
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Drawn {
    pub(crate) name: String,
    kernel: usize,
    launch: u32,
    grid: [u32; 3],
    warps_per_block: u32,
    nanoseconds: u64,
    /// Number of blocks that began, and of multiprocessors on which they began.
    blocks: usize,
    multiprocessors: usize,
    sms: Vec<Sm>,
}

#[derive(Debug, Serialize)]
struct Sm {
    sm: u32,
    /// Number of rows: the most blocks that ran at the same time.
    rows: usize,
    blocks: Vec<DrawnBlock>,
}

#[derive(Debug, Serialize)]
struct DrawnBlock {
    #[serde(flatten)]
    ran: BlockRan,
    row: usize,
    /// Location with the most cycles of its warps, or visits without times; 0 without events.
    location: u16,
}

pub(crate) fn blocks(guide: &Guide<'_>, selection: &Selection) -> Result<Option<Blocks>, DecodeError> {
    let Guide { trace, analysis, limits, .. } = *guide;
    let Some(schedule) = analysis.schedule.as_ref().filter(|found| !found.launches.is_empty()) else {
        return Ok(None);
    };
    let mut longest: Vec<&LaunchSchedule> = schedule.launches.iter().collect();
    longest.order_by_key(|launch| Reverse(launch.nanoseconds));
    let turns = guide.by_turns(longest, |launch| launch.launch);
    let drawn = turns.into_iter().take(limits.timelines).filter_map(|launch| {
        let info = trace.launch(launch.launch)?;
        let found = read(trace, info, selection).transpose()?;
        Some(found.and_then(|found| drawn(guide, selection, launch, found)))
    });
    Ok(Some(Blocks { launches: launch_table(guide, schedule), drawn: drawn.collect::<Result<_, _>>()? }))
}

/// Tabulates the launches, longest waits for their end first.
fn launch_table(guide: &Guide<'_>, schedule: &Schedule) -> PageTable {
    let Guide { trace, analysis, limits, .. } = *guide;
    let launches = schedule.longest_waits(usize::MAX).launches;
    Columns::new()
        .html("launch", |launch: &LaunchSchedule| LocationLink {
            name: cut(&launch.kernel, limits.text),
            line: format!("launch {}", launch.launch),
            rank: None,
        })
        .number("ran for", |launch| words::nanoseconds(launch.nanoseconds))
        .title("from the begin of its first warp to the end of its last")
        .number("gap before", |launch| words::nanoseconds(launch.gap_nanoseconds))
        .title("from the end of all launches before to its begin")
        .number("blocks", |launch| count(launch.blocks))
        .number("median block", |launch| words::nanoseconds(launch.median_block_nanoseconds))
        .number("waves", |launch| count(launch.waves.into()))
        .title("how many blocks followed each other on a multiprocessor, at most")
        .number("SMs", |launch| count(launch.sms.into()))
        .number("imbalance", |launch| ratio(launch.imbalance()))
        .title("how long the SM was busy that was busy for longest, over the mean: 1 if all were equally busy")
        .number("tail", |launch| percent(launch.waiting_nanoseconds, launch.sm_nanoseconds()))
        .title("part of the time of these SMs in which they waited for the launch's end, all of their blocks being done")
        .text("ended last", |launch| match launch.last {
            None => "none is known to have ended".to_owned(),
            Some(last) => {
                let block = words::block_at(trace, launch.launch, last.block);
                let length = words::nanoseconds(last.nanoseconds.unwrap_or(0));
                format!("block {block} on SM {}, {length}", last.sm)
            }
        })
        .table(launches.into_iter(), limits.kernels, |launch| {
            Some(kernel_of(trace, analysis, launch.launch).map_or_else(String::new, |at| at.to_string()))
        })
}

fn drawn(
    guide: &Guide<'_>,
    selection: &Selection,
    launch: &LaunchSchedule,
    found: LaunchBlocks,
) -> Result<Drawn, DecodeError> {
    let Guide { trace, analysis, limits, .. } = *guide;
    let LaunchBlocks { nanoseconds, blocks, .. } = found;
    let all: Vec<&[BlockRan]> = blocks.chunk_by(|one, other| one.sm == other.sm).collect();
    let (mut sms, mut room, mut height) = (BTreeMap::new(), limits.blocks, 0);
    for of_sm in in_order(&all, launch) {
        if !sms.is_empty() && (of_sm.len() > room || height >= ALL_ROWS) {
            break;
        }
        let sm = rows(&of_sm[..of_sm.len().min(room)], nanoseconds);
        (room, height) = (room - sm.blocks.len(), height + sm.rows);
        sms.insert(sm.sm, sm);
    }
    let info = trace.launch(launch.launch);
    let numbers: BTreeSet<u32> =
        sms.values().flat_map(|sm| &sm.blocks).map(|block| block.ran.block).collect();
    let hottest = match info {
        Some(info) => hottest_of_blocks(trace, info, selection, &numbers)?,
        None => BTreeMap::new(),
    };
    for block in sms.values_mut().flat_map(|sm| &mut sm.blocks) {
        block.location = hottest.get(&block.ran.block).copied().unwrap_or(0);
    }
    Ok(Drawn {
        name: cut(&format!("launch {}: {}", launch.launch, launch.kernel), limits.text),
        kernel: kernel_of(trace, analysis, launch.launch).unwrap_or(0),
        launch: launch.launch,
        grid: info.map_or([1; 3], |info| info.grid()),
        warps_per_block: info.map_or(1, |info| info.warps_per_block()),
        nanoseconds,
        blocks: blocks.len(),
        multiprocessors: all.len(),
        sms: sms.into_values().collect(),
    })
}

/// Orders multiprocessors: the one with the launch's last block, the one whose last block ended first, the
/// one whose last block ended last, then the others, evenly spread.
fn in_order<'a>(all: &[&'a [BlockRan]], launch: &LaunchSchedule) -> Vec<&'a [BlockRan]> {
    let until = |at: &usize| all[*at].iter().filter_map(BlockRan::end_nanoseconds).max();
    let last = launch.last.and_then(|last| all.iter().position(|blocks| blocks[0].sm == last.sm));
    let mut order: Vec<usize> = last.into_iter().collect();
    order.extend((0..all.len()).min_by_key(until));
    order.extend((0..all.len()).max_by_key(until));
    // Each step halves the distance between multiprocessors.
    let mut step = all.len().next_power_of_two();
    while step > 0 {
        order.extend((0..all.len()).step_by(step));
        step /= 2;
    }
    let mut seen = BTreeSet::new();
    order.into_iter().filter(|at| seen.insert(*at)).map(|at| all[at]).collect()
}

/// Assigns blocks of one multiprocessor, sorted by begin time, to as many rows as ran at the same time.
fn rows(blocks: &[BlockRan], launch_end: u64) -> Sm {
    let mut free: Vec<u64> = Vec::new();
    let block = |ran: &BlockRan| {
        let row = match free.iter().position(|free| *free <= ran.begin_nanoseconds) {
            Some(row) => row,
            None => {
                if free.len() < MOST_ROWS {
                    free.push(0);
                }
                free.len() - 1
            }
        };
        free[row] = ran.end_nanoseconds().unwrap_or(launch_end);
        DrawnBlock { ran: *ran, row, location: 0 }
    };
    let drawn = blocks.iter().map(block).collect();
    Sm { sm: blocks[0].sm, rows: free.len(), blocks: drawn }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(sm: u32, block: u32, begin_nanoseconds: u64, nanoseconds: Option<u64>) -> BlockRan {
        BlockRan { block, sm, wave: 1, begin_nanoseconds, nanoseconds }
    }

    #[test]
    fn blocks_that_run_at_once_stand_in_rows_of_their_own() {
        let blocks = [
            ran(5, 0, 0, Some(10)),
            ran(5, 1, 0, Some(4)),
            ran(5, 2, 4, None),
            ran(5, 3, 10, Some(5)),
            ran(5, 4, 12, Some(1)),
        ];
        let sm = rows(&blocks, 20);
        let found: Vec<usize> = sm.blocks.iter().map(|block| block.row).collect();
        assert_eq!((sm.rows, found), (3, vec![0, 1, 1, 0, 2]));
        let many: Vec<BlockRan> = (0..100).map(|block| ran(0, block, 0, Some(1))).collect();
        assert_eq!(rows(&many, 1).rows, MOST_ROWS);
    }
}
