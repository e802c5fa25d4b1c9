//! Tables of figures and metadata: small, made whole or in stretches.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, StringArray, UInt8Array, UInt16Array,
    UInt32Array, UInt64Array,
};
use arrow_schema::SchemaRef;
use warptrace_analysis::{
    Analysis, AnalysisError, Cause, Edge, KernelFigures, LineFigures, LocationFigures, Selection, Time,
    WarpEnd, WarpFigures, WarpRan, blocks, kernel_name,
};
use warptrace_decoder::{LaunchEnd, TraceFile};
use warptrace_format::file::LaunchInfo;

use crate::error::TableError;
use crate::{BATCH, Sink, schema};

pub(crate) type Result<T> = std::result::Result<T, TableError>;

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A row for each warp with events.
    Warps,
    /// A row for each trace point.
    Locations,
    /// A row for each head of a loop.
    Loops,
    /// A row for each launch.
    Launches,
    /// A row for each kernel with launches.
    Kernels,
    /// A row for each line of the source that warps came to.
    Lines,
    /// A row for each cause of idle lanes, the most idle slots first.
    Causes,
    /// A row for each edge.
    Edges,
    /// A row for each site: an instruction that touches memory, or a named value.
    Sites,
    /// A row for each launch of which accesses are not known.
    AccessLosses,
}

impl Table {
    /// Returns the columns.
    pub fn schema(self) -> SchemaRef {
        match self {
            Self::Warps => schema::warps(),
            Self::Locations => schema::locations(),
            Self::Loops => schema::loops(),
            Self::Launches => schema::launches(),
            Self::Kernels => schema::kernels(),
            Self::Lines => schema::lines(),
            Self::Causes => schema::causes(),
            Self::Edges => schema::edges(),
            Self::Sites => schema::sites(),
            Self::AccessLosses => schema::access_losses(),
        }
    }
}

/// A trace, and where its figures are from.
#[derive(Clone, Copy)]
pub struct Figures<'a> {
    /// What the column `trace` calls it.
    pub name: &'a str,
    /// The trace.
    pub trace: &'a TraceFile,
    /// What is looked at, for tables that `analysis` has no figures of.
    pub selection: &'a Selection,
    /// Returns the figures; called only by tables that need them.
    pub analysis: &'a dyn Fn() -> std::result::Result<Arc<Analysis>, Arc<AnalysisError>>,
}

impl std::fmt::Debug for Figures<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Figures").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Figures<'_> {
    /// Gives the rows of a table to `sink`; returns whether it broke off. `columns` are the numbers, in the
    /// table, of the columns in `schema`.
    ///
    /// # Errors
    /// The trace is damaged.
    pub fn rows(
        &self,
        table: Table,
        (columns, schema): (&[usize], &SchemaRef),
        sink: &mut Sink<'_>,
    ) -> Result<ControlFlow<()>> {
        for stretch in stretches(table, self)? {
            let (rows, columns) = columns_of(table, self, stretch, columns)?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
            if batch.num_rows() > 0 && sink(batch).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn analysis(&self) -> Result<Arc<Analysis>> {
        Ok((self.analysis)()?)
    }
}

type Stretch = std::ops::Range<usize>;

/// The stretches of rows that become a batch each.
fn stretches(table: Table, named: &Figures<'_>) -> Result<Vec<Stretch>> {
    let rows = match table {
        Table::Warps => named.analysis()?.warps.len(),
        Table::Edges => named.analysis()?.edges.len(),
        Table::Launches => named.trace.launches().len(),
        // At most a row for each location.
        _ => return Ok(std::iter::once(0..usize::MAX).collect()),
    };
    Ok((0..rows).step_by(BATCH).map(|from| from..rows.min(from + BATCH)).collect())
}

/// Makes the columns that were asked for, and says how many rows they have.
fn columns_of(
    table: Table,
    named: &Figures<'_>,
    rows: Stretch,
    columns: &[usize],
) -> Result<(usize, Vec<ArrayRef>)> {
    match table {
        Table::Warps => {
            let analysis = named.analysis()?;
            let rows = &analysis.warps[rows];
            Ok((rows.len(), columns.iter().map(|&column| warp_column(named, rows, column)).collect()))
        }
        Table::Edges => {
            let analysis = named.analysis()?;
            let rows = &analysis.edges[rows];
            Ok((rows.len(), columns.iter().map(|&column| edge_column(named, rows, column)).collect()))
        }
        Table::Kernels => {
            let rows = &named.analysis()?.kernels;
            Ok((rows.len(), columns.iter().map(|&column| kernel_column(named, rows, column)).collect()))
        }
        Table::Lines => {
            let rows = &named.analysis()?.lines;
            Ok((rows.len(), columns.iter().map(|&column| line_column(named, rows, column)).collect()))
        }
        Table::Causes => {
            let rows = &named.analysis()?.causes;
            Ok((rows.len(), columns.iter().map(|&column| cause_column(named, rows, column)).collect()))
        }
        Table::Locations => locations(named, columns),
        Table::Sites => crate::sites::sites(named, columns),
        Table::AccessLosses => crate::sites::losses(named, columns),
        Table::Loops => {
            let analysis = named.analysis()?;
            let heads: Vec<&LocationFigures> = analysis.loops().collect();
            Ok((heads.len(), columns.iter().map(|&column| loop_column(named, &heads, column)).collect()))
        }
        Table::Launches => {
            let launches: Vec<&LaunchInfo> =
                named.trace.launches().skip(rows.start).take(rows.len()).collect();
            let columns = columns.iter().map(|&column| launch_column(named, &launches, column));
            Ok((launches.len(), columns.collect::<Result<_>>()?))
        }
    }
}

pub(crate) fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Texts; an empty one is not known.
pub(crate) fn known<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(values.map(|text| Some(text).filter(|text| !text.is_empty())).collect::<StringArray>())
}

pub(crate) fn u32s(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

/// Numbers from 1; 0 is not known.
pub(crate) fn known_u32s(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(values.map(|number| Some(number).filter(|number| *number > 0)).collect::<UInt32Array>())
}

pub(crate) fn u64s(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

pub(crate) fn u16s(values: impl Iterator<Item = u16>) -> ArrayRef {
    Arc::new(UInt16Array::from_iter_values(values))
}

/// Numbers of which the trace may not know any.
pub(crate) fn known_u64s(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.collect::<UInt64Array>())
}

/// A column of [`schema::TIME`].
fn time_column(times: impl Iterator<Item = Option<Time>>, column: usize) -> ArrayRef {
    let of = |time: Time| match column {
        0 => time.lane_cycles,
        1 => time.warp_cycles,
        2 => time.active_lane_cycles,
        3 => time.idle_lane_cycles,
        _ => time.timed_visits,
    };
    known_u64s(times.map(|time| time.map(of)))
}

fn f64s(values: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn warp_column(named: &Figures<'_>, warps: &[WarpFigures], column: usize) -> ArrayRef {
    let launch = |warp: &WarpFigures| named.trace.launch(warp.launch);
    let kernel = |warp| launch(warp).map_or("?", |info| kernel_name(named.trace, info));
    let id = |warp: &WarpFigures| launch(warp).and_then(|info| info.stream_id(warp.warp));
    let block = |axis: usize| u32s(warps.iter().map(|warp| id(warp).map_or(0, |id| id.block[axis])));
    let end = |warp: &WarpFigures| match warp.end {
        WarpEnd::Whole => "whole",
        WarpEnd::Lossy => "lossy",
        WarpEnd::Unfinished => "unfinished",
        _ => "unknown",
    };
    match column {
        0 => texts(warps.iter().map(|_| named.name)),
        1 => u32s(warps.iter().map(|warp| warp.launch)),
        2 => texts(warps.iter().map(kernel)),
        3..=5 => block(column - 3),
        6 => u32s(warps.iter().map(|warp| id(warp).map_or(0, |id| id.warp_in_block))),
        7 => u32s(warps.iter().map(|warp| warp.warp)),
        8 => u64s(warps.iter().map(|warp| warp.counts.visits)),
        9 => u64s(warps.iter().map(|warp| warp.counts.lanes)),
        10 => u64s(warps.iter().map(|warp| warp.counts.idle)),
        11 => u64s(warps.iter().map(|warp| warp.path)),
        12 => u16s(warps.iter().map(|warp| warp.last)),
        13 => texts(warps.iter().map(end)),
        14 => known_u64s(warps.iter().map(|warp| warp.time.map(|time| time.cycles))),
        15 => Arc::new(warps.iter().map(|warp| Some(warp.ran?.sm)).collect::<UInt32Array>()),
        16 => known_u64s(warps.iter().map(|warp| Some(warp.ran?.begin_nanoseconds))),
        17 => known_u64s(warps.iter().map(|warp| warp.ran.and_then(WarpRan::end_nanoseconds))),
        _ => Arc::new(warps.iter().map(|warp| warp.role).collect::<UInt8Array>()),
    }
}

/// The table of locations, and those that it does not have but warps came to. Events are counted only if a
/// column asks for that.
fn locations(named: &Figures<'_>, columns: &[usize]) -> Result<(usize, Vec<ArrayRef>)> {
    let table = &named.trace.metadata().locations;
    let mut ids: Vec<u16> = table.iter().map(|info| info.id).collect();
    let is_counted = columns.iter().any(|&column| column >= schema::LOCATION_FIGURES);
    let analysis = if is_counted || table.is_empty() { Some(named.analysis()?) } else { None };
    if let Some(analysis) = &analysis {
        ids.extend(analysis.locations.iter().map(|found| found.point.location));
    }
    ids.sort_unstable();
    ids.dedup();
    let info = |id: &u16| table.iter().find(|info| info.id == *id);
    let rows: Vec<_> = ids
        .iter()
        .map(|id| (*id, info(id), analysis.as_ref().and_then(|analysis| analysis.location(*id))))
        .collect();
    // Where no warp came no time was spent.
    let none = analysis.as_ref().and_then(|analysis| analysis.time).map(|_| Time::default());
    let time = |found: Option<&LocationFigures>| found.map_or(none, |found| found.time);
    let figure = |of: fn(&LocationFigures) -> u64| u64s(rows.iter().map(|row| row.2.map_or(0, of)));
    let array = |&column: &usize| match column {
        0 => texts(rows.iter().map(|_| named.name)),
        1 => u16s(rows.iter().map(|row| row.0)),
        2 => texts(rows.iter().map(|row| row.1.map_or("?", |info| &info.name))),
        3 => known(rows.iter().map(|row| row.1.map_or("", |info| &info.description))),
        4 => known(rows.iter().map(|row| row.1.map_or("", |info| &info.file))),
        5 => known_u32s(rows.iter().map(|row| row.1.map_or(0, |info| info.line))),
        6 => known_u32s(rows.iter().map(|row| row.1.map_or(0, |info| info.column))),
        7 => figure(|found| found.counts.visits),
        8 => figure(|found| found.counts.lanes),
        9 => figure(|found| found.counts.idle),
        10 => figure(|found| found.warps),
        11 => figure(|found| found.splits),
        12 => figure(|found| found.caused),
        _ => time_column(rows.iter().map(|row| time(row.2)), column - 13),
    };
    Ok((rows.len(), columns.iter().map(array).collect()))
}

fn loop_column(named: &Figures<'_>, heads: &[&LocationFigures], column: usize) -> ArrayRef {
    let number = |of: fn(&LocationFigures) -> u64| u64s(heads.iter().map(|head| of(head)));
    match column {
        0 => texts(heads.iter().map(|_| named.name)),
        1 => u16s(heads.iter().map(|head| head.point.location)),
        2 => texts(heads.iter().map(|head| head.point.name.as_str())),
        3 => known(heads.iter().map(|head| head.point.file.as_str())),
        4 => known_u32s(heads.iter().map(|head| head.point.line)),
        5 => number(|head| head.trips.count()),
        6 => number(|head| head.trips.sum()),
        7 => number(|head| head.trips.min()),
        8 => number(|head| head.trips.percentile(50)),
        9 => number(|head| head.trips.percentile(95)),
        10 => number(|head| head.trips.max()),
        11 => f64s(heads.iter().map(|head| head.trips.mean())),
        12 => f64s(heads.iter().map(|head| head.trips.imbalance())),
        13 => number(|head| head.counts.visits),
        14 => number(|head| head.counts.idle),
        15 => f64s(heads.iter().map(|head| head.warp_visits.imbalance())),
        _ => known_u64s(heads.iter().map(|head| head.loop_lane_cycles)),
    }
}

fn launch_column(named: &Figures<'_>, launches: &[&LaunchInfo], column: usize) -> Result<ArrayRef> {
    let number = |of: &dyn Fn(&LaunchInfo) -> u32| u32s(launches.iter().map(|info| of(info)));
    let end = |info: &&LaunchInfo| named.trace.launch_end(info.number()).unwrap_or(LaunchEnd::Unknown).name();
    Ok(match column {
        0 => texts(launches.iter().map(|_| named.name)),
        1 => number(&|info| info.number()),
        2 => texts(launches.iter().map(|info| kernel_name(named.trace, info))),
        3..=5 => number(&|info| info.grid()[column - 3]),
        6..=8 => number(&|info| info.block()[column - 6]),
        9 => number(&|info| info.dynamic_shared_bytes()),
        10 => number(&|info| info.warps()),
        11 => number(&|info| info.chosen().count()),
        12 => u64s(launches.iter().map(|info| named.trace.totals(info.number(), 0).events)),
        13 => texts(launches.iter().map(end)),
        14 | 15 => {
            let time = |info: &&LaunchInfo| {
                let found = blocks(named.trace, info, &Selection::default())?;
                let length = |nanoseconds| if column == schema::LAUNCH_TIMES { 0 } else { nanoseconds };
                Ok(found.map(|found| found.begin.saturating_add(length(found.nanoseconds))))
            };
            known_u64s(launches.iter().map(time).collect::<Result<Vec<_>>>()?.into_iter())
        }
        _ => known(launches.iter().map(|info| named.trace.label(info.number()).unwrap_or_default())),
    })
}

fn kernel_column(named: &Figures<'_>, kernels: &[KernelFigures], column: usize) -> ArrayRef {
    let number = |of: fn(&KernelFigures) -> u64| u64s(kernels.iter().map(of));
    match column {
        0 => texts(kernels.iter().map(|_| named.name)),
        1 => texts(kernels.iter().map(|kernel| kernel.kernel.as_str())),
        2 => number(|kernel| kernel.launches),
        3 => number(|kernel| kernel.warps),
        4 => number(|kernel| kernel.counts.visits),
        5 => number(|kernel| kernel.counts.lanes),
        6 => number(|kernel| kernel.counts.idle),
        7 => number(|kernel| kernel.counts.slots),
        _ => time_column(kernels.iter().map(|kernel| kernel.time), column - 8),
    }
}

fn line_column(named: &Figures<'_>, lines: &[LineFigures], column: usize) -> ArrayRef {
    let number = |of: fn(&LineFigures) -> u64| u64s(lines.iter().map(of));
    match column {
        0 => texts(lines.iter().map(|_| named.name)),
        1 => known(lines.iter().map(|line| line.file.as_str())),
        2 => known_u32s(lines.iter().map(|line| line.line)),
        3 => Arc::new(StringArray::from_iter_values(lines.iter().map(|line| line.names.join(", ")))),
        4 => number(|line| line.counts.visits),
        5 => number(|line| line.counts.lanes),
        6 => number(|line| line.counts.idle),
        7 => number(|line| line.counts.slots),
        8 => number(|line| line.caused),
        9 => number(|line| line.warps),
        10 => number(|line| line.splits),
        _ => time_column(lines.iter().map(|line| line.time), column - 11),
    }
}

fn cause_column(named: &Figures<'_>, causes: &[Cause], column: usize) -> ArrayRef {
    match column {
        0 => texts(causes.iter().map(|_| named.name)),
        1 => u16s(causes.iter().map(|cause| cause.point.location)),
        2 => texts(causes.iter().map(|cause| cause.point.name.as_str())),
        3 => known(causes.iter().map(|cause| cause.point.file.as_str())),
        4 => known_u32s(causes.iter().map(|cause| cause.point.line)),
        5 => u16s(causes.iter().map(Cause::decision)),
        6 => u64s(causes.iter().map(|cause| cause.idle)),
        7 => u64s(causes.iter().map(|cause| cause.partings)),
        8 => u64s(causes.iter().map(Cause::met)),
        _ => f64s(causes.iter().map(Cause::mean_events_apart)),
    }
}

fn edge_column(named: &Figures<'_>, edges: &[Edge], column: usize) -> ArrayRef {
    let end = |of: fn(&Edge) -> Option<u16>| -> ArrayRef {
        Arc::new(edges.iter().map(of).collect::<UInt16Array>())
    };
    match column {
        0 => texts(edges.iter().map(|_| named.name)),
        1 => end(|edge| edge.from),
        2 => end(|edge| edge.to),
        3 => u64s(edges.iter().map(|edge| edge.visits)),
        _ => u64s(edges.iter().map(|edge| edge.lanes)),
    }
}
