//! Tables of figures and metadata: small, made whole or in stretches.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, StringArray, UInt16Array, UInt32Array,
    UInt64Array,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use warptrace_analysis::{LocationFigures, WarpEnd, WarpFigures, kernel_name};
use warptrace_decoder::LaunchEnd;
use warptrace_format::file::LaunchInfo;

use crate::schema;
use crate::source::{Asked, BATCH, Named, Part, Rows};

/// A table of figures of each trace.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) traces: Arc<[Named]>,
    pub(crate) table: Table,
}

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Warps,
    Locations,
    Loops,
    Launches,
}

impl Rows for Figures {
    fn schema(&self) -> SchemaRef {
        match self.table {
            Table::Warps => schema::warps(),
            Table::Locations => schema::locations(),
            Table::Loops => schema::loops(),
            Table::Launches => schema::launches(),
        }
    }

    fn parts(&self, asked: Asked) -> Vec<Part> {
        let Asked { columns, schema, bounds, .. } = asked;
        let (traces, table) = (Arc::clone(&self.traces), self.table);
        // One part: each analysis uses all cores by itself.
        let part: Part = Arc::new(move |sink| {
            for named in traces.iter().filter(|named| bounds.allow_text("trace", &named.name)) {
                for stretch in stretches(table, named)? {
                    let rows = columns_of(table, named, stretch, &columns)?;
                    let options = RecordBatchOptions::new().with_row_count(Some(rows.0));
                    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), rows.1, &options)?;
                    if batch.num_rows() > 0 && sink(batch).is_break() {
                        return Ok(());
                    }
                }
            }
            Ok(())
        });
        vec![part]
    }
}

type Stretch = std::ops::Range<usize>;

/// The stretches of rows that become a batch each.
fn stretches(table: Table, named: &Named) -> Result<Vec<Stretch>> {
    let rows = match table {
        Table::Warps => named.analysis()?.warps.len(),
        Table::Locations | Table::Loops => return Ok(std::iter::once(0..usize::MAX).collect()),
        Table::Launches => named.trace.launches().len(),
    };
    Ok((0..rows).step_by(BATCH).map(|from| from..rows.min(from + BATCH)).collect())
}

/// Makes the columns that were asked for, and says how many rows they have.
fn columns_of(
    table: Table,
    named: &Named,
    rows: Stretch,
    columns: &[usize],
) -> Result<(usize, Vec<ArrayRef>)> {
    match table {
        Table::Warps => {
            let analysis = named.analysis()?;
            let rows = &analysis.warps[rows];
            Ok((rows.len(), columns.iter().map(|&column| warp_column(named, rows, column)).collect()))
        }
        Table::Locations => locations(named, columns),
        Table::Loops => {
            let analysis = named.analysis()?;
            let heads: Vec<&LocationFigures> = analysis.loops().collect();
            Ok((heads.len(), columns.iter().map(|&column| loop_column(named, &heads, column)).collect()))
        }
        Table::Launches => {
            let launches: Vec<&LaunchInfo> =
                named.trace.launches().skip(rows.start).take(rows.len()).collect();
            Ok((
                launches.len(),
                columns.iter().map(|&column| launch_column(named, &launches, column)).collect(),
            ))
        }
    }
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Texts; an empty one is not known.
fn known<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(values.map(|text| Some(text).filter(|text| !text.is_empty())).collect::<StringArray>())
}

fn u32s(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

/// Numbers from 1; 0 is not known.
fn known_u32s(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(values.map(|number| Some(number).filter(|number| *number > 0)).collect::<UInt32Array>())
}

fn u64s(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

fn u16s(values: impl Iterator<Item = u16>) -> ArrayRef {
    Arc::new(UInt16Array::from_iter_values(values))
}

fn f64s(values: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

fn warp_column(named: &Named, warps: &[WarpFigures], column: usize) -> ArrayRef {
    let launch = |warp: &WarpFigures| named.trace.launch(warp.launch);
    let kernel = |warp| launch(warp).map_or("?", |info| kernel_name(&named.trace, info));
    let id = |warp: &WarpFigures| launch(warp).and_then(|info| info.stream_id(warp.warp));
    let block = |axis: usize| u32s(warps.iter().map(|warp| id(warp).map_or(0, |id| id.block[axis])));
    let end = |warp: &WarpFigures| match warp.end {
        WarpEnd::Whole => "whole",
        WarpEnd::Lossy => "lossy",
        WarpEnd::Unfinished => "unfinished",
        _ => "unknown",
    };
    match column {
        0 => texts(warps.iter().map(|_| named.name.as_str())),
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
        _ => texts(warps.iter().map(end)),
    }
}

/// The table of locations, and those that it does not have but warps came to. Events are counted only if a
/// column asks for that.
fn locations(named: &Named, columns: &[usize]) -> Result<(usize, Vec<ArrayRef>)> {
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
    let figure = |of: fn(&LocationFigures) -> u64| u64s(rows.iter().map(|row| row.2.map_or(0, of)));
    let array = |column: &usize| match column {
        0 => texts(rows.iter().map(|_| named.name.as_str())),
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
        _ => figure(|found| found.caused),
    };
    Ok((rows.len(), columns.iter().map(array).collect()))
}

fn loop_column(named: &Named, heads: &[&LocationFigures], column: usize) -> ArrayRef {
    let number = |of: fn(&LocationFigures) -> u64| u64s(heads.iter().map(|head| of(head)));
    match column {
        0 => texts(heads.iter().map(|_| named.name.as_str())),
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
        _ => f64s(heads.iter().map(|head| head.warp_visits.imbalance())),
    }
}

fn launch_column(named: &Named, launches: &[&LaunchInfo], column: usize) -> ArrayRef {
    let number = |of: &dyn Fn(&LaunchInfo) -> u32| u32s(launches.iter().map(|info| of(info)));
    let end = |info: &&LaunchInfo| named.trace.launch_end(info.number()).unwrap_or(LaunchEnd::Unknown).name();
    match column {
        0 => texts(launches.iter().map(|_| named.name.as_str())),
        1 => number(&|info| info.number()),
        2 => texts(launches.iter().map(|info| kernel_name(&named.trace, info))),
        3..=5 => number(&|info| info.grid()[column - 3]),
        6..=8 => number(&|info| info.block()[column - 6]),
        9 => number(&|info| info.dynamic_shared_bytes()),
        10 => number(&|info| info.warps()),
        11 => number(&|info| info.chosen().count()),
        12 => u64s(launches.iter().map(|info| named.trace.totals(info.number(), 0).events)),
        _ => texts(launches.iter().map(end)),
    }
}
