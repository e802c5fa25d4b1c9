//! Addresses and values as rows of tables.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use warptrace_decoder::{TraceFile, VectorRun, WarpAccesses, WarpFilter};
use warptrace_format::data::SiteKind;
use warptrace_format::file::LaunchInfo;
use warptrace_format::file::data::lanes;

use super::{Accesses, accesses};
use crate::error::AnalysisError;
use crate::selection::Selection;

/// A table of addresses or values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTable {
    /// A row per stored run of addresses.
    Accesses,
    /// A row per stored run of values.
    Values,
    /// A row per address of a lane.
    LaneAccesses,
    /// A row per value of a lane.
    LaneValues,
}

impl AccessTable {
    /// All tables.
    pub const ALL: [Self; 4] = [Self::Accesses, Self::Values, Self::LaneAccesses, Self::LaneValues];

    /// Returns the name of the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accesses => "accesses",
            Self::Values => "values",
            Self::LaneAccesses => "lane_accesses",
            Self::LaneValues => "lane_values",
        }
    }

    /// Returns true for tables of named values, false for tables of addresses.
    #[must_use]
    pub const fn is_of_values(self) -> bool {
        matches!(self, Self::Values | Self::LaneValues)
    }

    /// Returns true if each access of a lane has a row, false if each stored run has one.
    #[must_use]
    pub const fn is_by_lane(self) -> bool {
        matches!(self, Self::LaneAccesses | Self::LaneValues)
    }
}

/// A run of a group of lanes, a run of a lane, or an access of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessRow {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Number of the site.
    pub site: u16,
    /// End of the group's last access, in units of 16 cycles since the warp's first group. In tables by lane,
    /// only for the last request of the group.
    pub time: Option<u64>,
    /// Number of the request, or of the run's first, at the site in this warp. Equal in all rows of a group.
    pub request: u64,
    /// Lanes of the group.
    pub mask: u32,
    /// Lane; `None` if the row is for all lanes of the group.
    pub lane: Option<u32>,
    /// First access. The access of the lowest lane if the row is for all lanes.
    pub base: u64,
    /// Difference from the lowest lane's base to the highest lane's; `None` if bases are not affine.
    pub spread: Option<i32>,
    /// Difference between successive accesses.
    pub step: i32,
    /// Number of accesses of each lane of the row.
    pub count: u32,
}

impl AccessRow {
    /// Returns the form of the group's bases: `uniform`, `affine` or `generic`.
    #[must_use]
    pub const fn form(&self) -> &'static str {
        match self.spread {
            Some(0) => "uniform",
            Some(_) => "affine",
            None => "generic",
        }
    }
}

/// Missing accesses of the warps that have rows, over all sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessLacks {
    /// Accesses in the file without rows, because other accesses of the same time were lost.
    pub left_out: u64,
    /// Accesses in the file that belong to no group: the file is damaged.
    pub unmatched: u64,
}

/// Calls `sink` with the rows of the selected warps of a launch, by warp and then by time, until it returns
/// `Break`. Memory: as for [`TraceFile::accesses_in_order`]. Fails if the trace does not have the launch, is
/// damaged, or exceeds the work limit for its length.
pub fn access_rows(
    trace: &TraceFile,
    info: &LaunchInfo,
    (filter, selection): (&WarpFilter, &Selection),
    table: AccessTable,
    sink: &mut dyn FnMut(&AccessRow) -> ControlFlow<()>,
) -> Result<(ControlFlow<()>, AccessLacks), AnalysisError> {
    let mut lacks = AccessLacks::default();
    if !trace.has_accesses() {
        return Ok((ControlFlow::Continue(()), lacks));
    }
    let flow = trace.accesses_in_order(info.number(), filter, &mut |warp| {
        if !selection.has_warp(info, warp.warp) {
            return ControlFlow::Continue(());
        }
        lacks.left_out += warp.left_out;
        lacks.unmatched += warp.unmatched;
        of_warp(trace, &warp, table, sink)
    })?;
    Ok((flow, lacks))
}

fn of_warp(
    trace: &TraceFile,
    warp: &WarpAccesses,
    table: AccessTable,
    sink: &mut dyn FnMut(&AccessRow) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut requests: BTreeMap<u16, u64> = BTreeMap::new();
    let is_value = |site| trace.site(site).is_some_and(|info| info.kind == SiteKind::Value);
    for vector in warp.in_order().iter().filter(|vector| is_value(vector.site) == table.is_of_values()) {
        let next = requests.entry(vector.site).or_default();
        let request = *next;
        *next += u64::from(vector.vectors());
        let (mask, spread) = (vector.group.mask, vector.group.spread);
        let all = AccessRow {
            warp: warp.warp,
            site: vector.site,
            time: Some(vector.time),
            request,
            mask,
            lane: None,
            base: 0,
            spread,
            step: 0,
            count: 1,
        };
        if table.is_by_lane() { each_access(vector, all, sink)? } else { each_run(vector, all, sink)? }
    }
    ControlFlow::Continue(())
}

fn each_run(
    vector: &VectorRun<'_>,
    all: AccessRow,
    sink: &mut dyn FnMut(&AccessRow) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let is_line = vector.group.spread.is_some();
    for (lane, run) in lanes(vector.group.mask).zip(vector.runs) {
        let lane = (!is_line).then_some(lane);
        sink(&AccessRow { lane, base: run.base, step: run.step, count: run.count, ..all })?;
    }
    ControlFlow::Continue(())
}

fn each_access(
    vector: &VectorRun<'_>,
    all: AccessRow,
    sink: &mut dyn FnMut(&AccessRow) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let vectors = vector.vectors();
    for number in 0..vectors {
        let time = all.time.filter(|_| number + 1 == vectors);
        let request = all.request + u64::from(number);
        for lane in lanes(vector.group.mask) {
            let Some(run) = vector.run(lane).filter(|run| number < run.count) else { continue };
            sink(&AccessRow { time, request, lane: Some(lane), base: run.nth(number), ..all })?;
        }
    }
    ControlFlow::Continue(())
}

/// Returns the selected launches with missing accesses, and their known accesses. Fails as [`accesses`].
pub fn access_losses(
    trace: &TraceFile,
    selection: &Selection,
) -> Result<Vec<(LaunchInfo, Accesses)>, AnalysisError> {
    let mut found = Vec::new();
    if !trace.has_accesses() {
        return Ok(found);
    }
    for (info, _) in selection.launches(trace)? {
        let of_launch = accesses(trace, &Selection { launch: Some(info.number()), ..selection.clone() })?;
        if !of_launch.is_whole() {
            found.push((info, of_launch));
        }
    }
    Ok(found)
}
