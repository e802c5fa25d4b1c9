//! Positions of the warps of a launch that failed, or that had not ended at the end of the recording.
//!
//! A recorder that drains logs while a kernel runs notes the last location of each lane. The code determines
//! the activity of lanes there: they iterate a loop or wait at a barrier. If some lanes have left a run, the
//! remaining lanes wait for them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use warptrace_decoder::TraceFile;
use warptrace_format::LocationKind;
use warptrace_format::file::{CopyPlace, EarlyEnd, LanesAt, LaunchInfo, LocationInfo, LossReason, WarpsAt};

use crate::order::OrderItems;
use crate::selection::kernel_name;

const MOST_IN_BLOCKS: u64 = 1 << 22;

/// A launch that failed or had not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hang {
    /// Number of the launch.
    pub launch: u32,
    /// Name of the kernel.
    pub kernel: String,
    /// True if it failed; false if it was still running.
    pub failed: bool,
    /// Warps that were recorded.
    pub warps: u64,
    /// Recorded warps that have ended.
    pub ended: u64,
    /// Recorded warps that have not begun.
    pub not_started: u64,
    /// Recorded warps without a position in the file.
    pub unknown: u64,
    /// Groups of the other warps, by number of warps, descending.
    pub groups: Vec<HangGroup>,
}

/// Warps whose lanes are at the same places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HangGroup {
    /// Number of warps.
    pub warps: u64,
    /// Lowest warp of the group.
    pub first: u32,
    /// Places of their lanes, by number of lanes, descending. Lanes that wait for other lanes come last.
    pub places: Vec<HangPlace>,
    /// If they wait at a block barrier: ended warps of the same blocks.
    pub ended: u64,
    /// Warps of the same blocks that have not ended and are not at the barrier.
    pub not_arrived: u64,
    /// Lowest of these warps.
    pub first_not_arrived: Option<u32>,
}

/// Activity of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// They iterate a loop.
    Loop,
    /// They wait at a barrier.
    Barrier,
    /// They are at their last location.
    At,
    /// They wait for other lanes of their warp that shared their last location.
    Behind,
    /// They have not visited any location.
    Begun,
}

/// Lanes with the same activity at the same place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HangPlace {
    /// Activity.
    pub doing: Doing,
    /// The location, or the head of the loop; 0 if there is none.
    pub location: u16,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Barrier, as in [`WaitInfo::barrier`](warptrace_format::file::WaitInfo::barrier); empty if none.
    pub barrier: String,
    /// Number of these lanes in all warps of the group.
    pub lanes: u64,
}

/// Returns the positions of the warps of a launch at the end of its recording; `None` if the file has none.
pub fn hang(trace: &TraceFile, launch: u32) -> Option<Hang> {
    let end = trace.early_end(launch)?;
    let failed = matches!(end, EarlyEnd::Failed { .. });
    let positions = end.positions();
    if *end == EarlyEnd::Interrupted || failed && positions.is_empty() {
        return None;
    }
    let info = trace.launch(launch)?;
    let rows: Vec<Row<'_>> = positions.iter().map(|at| Row::new(trace, at, failed)).collect();
    let count = |warps: &[(u32, u32)]| warps.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
    let (mut not_started, mut known) = (0_u64, 0_u64);
    let mut groups: BTreeMap<&[HangPlace], HangGroup> = BTreeMap::new();
    for row in &rows {
        let warps = count(row.warps);
        if warps == 0 {
            continue;
        }
        known = known.saturating_add(warps);
        if row.lanes.is_empty() {
            not_started = not_started.saturating_add(warps);
            continue;
        }
        let group = groups.entry(&row.places).or_insert_with(|| HangGroup::new(&row.places));
        group.warps = group.warps.saturating_add(warps);
        group.first = row.warps.iter().map(|(first, _)| *first).fold(group.first, u32::min);
        for (place, lanes) in group.places.iter_mut().zip(&row.lanes) {
            place.lanes = place.lanes.saturating_add(lanes.saturating_mul(warps));
        }
    }
    if known > u64::from(info.warps()) {
        // The file is damaged: it lists warps twice, or warps that the launch does not have.
        return None;
    }
    if known <= MOST_IN_BLOCKS {
        find_missing(info, &rows, &mut groups);
    }
    let mut groups: Vec<HangGroup> = groups.into_values().collect();
    for group in &mut groups {
        // A barrier releases its warps when all have arrived, so these warps iterate the loop around it.
        if group.not_arrived + group.ended == 0 {
            let of_block = group.places.iter_mut().filter(|place| place.is_of_block());
            of_block.for_each(|place| place.pass(trace));
        }
    }
    for group in &mut groups {
        group.places.order_by_key(|place| (place.doing == Doing::Behind, Reverse(place.lanes)));
    }
    groups.order_by_key(|group| Reverse(group.warps));
    let losses = trace.losses(launch, 0).map(|losses| losses.losses).unwrap_or_default();
    let died = losses.iter().filter(|loss| loss.reason == LossReason::Died).map(|loss| loss.warps);
    let died = died.sum::<u64>().max(known);
    let warps = u64::from(info.chosen().count());
    Some(Hang {
        launch,
        kernel: kernel_name(trace, info).to_owned(),
        failed,
        warps,
        ended: warps.saturating_sub(died),
        not_started,
        unknown: died - known,
        groups,
    })
}

struct Row<'a> {
    warps: &'a [(u32, u32)],
    places: Vec<HangPlace>,
    lanes: Vec<u64>,
}

impl<'a> Row<'a> {
    /// Creates a row. Lanes of a launch that `failed` do not wait: places have lines, not loops and barriers.
    fn new(trace: &TraceFile, at: &'a WarpsAt, failed: bool) -> Self {
        let mut found: BTreeMap<HangPlace, u64> = BTreeMap::new();
        for lanes in &at.lanes {
            *found.entry(place(trace, lanes, failed)).or_default() += u64::from(lanes.mask.count_ones());
        }
        let (places, lanes) = found.into_iter().unzip();
        Self { warps: &at.warps, places, lanes }
    }

    fn all(&self, info: &LaunchInfo) -> impl Iterator<Item = u32> {
        let most = info.warps();
        let range =
            move |&(first, count): &(u32, u32)| first.min(most)..first.saturating_add(count).min(most);
        self.warps.iter().flat_map(range)
    }

    fn barriers(&self) -> impl Iterator<Item = &str> {
        let at_barrier = |place: &&HangPlace| place.doing == Doing::Barrier && place.barrier != "warp";
        self.places.iter().filter(at_barrier).map(|place| place.barrier.as_str())
    }
}

impl HangPlace {
    fn is_of_block(&self) -> bool {
        self.doing == Doing::Barrier && self.barrier.starts_with("bar ")
    }

    fn pass(&mut self, trace: &TraceFile) {
        let Some(head) = location(trace, self.location).and_then(|info| head(trace, info)) else { return };
        let (doing, barrier, lanes) = (Doing::Loop, String::new(), self.lanes);
        *self = Self { doing, barrier, lanes, location: head.id, file: head.file.clone(), line: head.line };
    }
}

impl HangGroup {
    fn new(places: &[HangPlace]) -> Self {
        let (warps, first) = (0, u32::MAX);
        Self { warps, first, places: places.to_vec(), ended: 0, not_arrived: 0, first_not_arrived: None }
    }
}

/// Finds the warps that are missing at block barriers: those that have ended, and those that are elsewhere.
fn find_missing<'r>(
    info: &LaunchInfo,
    rows: &'r [Row<'_>],
    groups: &mut BTreeMap<&'r [HangPlace], HangGroup>,
) {
    if rows.iter().all(|row| row.barriers().next().is_none()) {
        return;
    }
    let each = info.warps_per_block().max(1);
    // Warps of each block that have not ended. Waiting warps by block and barrier, and their groups.
    let mut running: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let mut waiting: BTreeMap<(u32, &str), BTreeSet<u32>> = BTreeMap::new();
    let mut with_barrier: BTreeSet<(u32, &str, &[HangPlace])> = BTreeSet::new();
    for row in rows {
        for warp in row.all(info) {
            let block = warp / each;
            running.entry(block).or_default().insert(warp);
            for barrier in row.barriers() {
                waiting.entry((block, barrier)).or_default().insert(warp);
                with_barrier.insert((block, barrier, &row.places));
            }
        }
    }
    for (block, barrier, places) in with_barrier {
        let (Some(all), Some(come)) = (running.get(&block), waiting.get(&(block, barrier))) else { continue };
        let Some(group) = groups.get_mut(places) else { continue };
        let mut elsewhere = all.difference(come).peekable();
        let first = elsewhere.peek().map(|warp| **warp);
        group.first_not_arrived = group.first_not_arrived.into_iter().chain(first).min();
        group.not_arrived += elsewhere.count() as u64;
        let recorded = info.chosen_in(&(block * each..(block + 1) * each));
        group.ended += u64::from(recorded).saturating_sub(all.len() as u64);
    }
}

fn location(trace: &TraceFile, id: u16) -> Option<&LocationInfo> {
    let all = &trace.metadata().locations;
    let near = all.get(usize::from(id).wrapping_sub(1)).filter(|info| info.id == id);
    near.or_else(|| all.iter().find(|info| info.id == id))
}

fn place(trace: &TraceFile, at: &LanesAt, failed: bool) -> HangPlace {
    let none = HangPlace {
        doing: Doing::Begun,
        location: 0,
        file: String::new(),
        line: 0,
        barrier: String::new(),
        lanes: 0,
    };
    let Some(info) = location(trace, at.location) else {
        let doing = if at.location == 0 { Doing::Begun } else { Doing::At };
        return HangPlace { doing, location: at.location, ..none };
    };
    let of = |doing, info: &LocationInfo| HangPlace {
        doing,
        location: info.id,
        file: info.file.clone(),
        line: info.line,
        ..none.clone()
    };
    if at.left_behind {
        return of(Doing::Behind, info);
    }
    if failed {
        return of(Doing::At, info);
    }
    let wait = info.wait.as_deref().filter(|wait| !wait.barrier.is_empty());
    if wait.is_some() || info.kind == LocationKind::Barrier {
        let mut found = of(Doing::Barrier, info);
        if let Some(wait) = wait {
            found.barrier.clone_from(&wait.barrier);
            if let Some(CopyPlace { file, line, .. }) = &wait.at {
                (found.file, found.line) = (file.clone(), *line);
            }
        }
        return found;
    }
    head(trace, info).map_or_else(|| of(Doing::At, info), |head| of(Doing::Loop, head))
}

fn head<'a>(trace: &'a TraceFile, info: &'a LocationInfo) -> Option<&'a LocationInfo> {
    let mut inner = Some(info);
    while let Some(around) = inner {
        if around.kind == LocationKind::LoopBody {
            return Some(around);
        }
        // Parents have smaller ids.
        inner = location(trace, around.parent).filter(|parent| parent.id < around.id);
    }
    None
}
