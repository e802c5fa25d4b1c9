//! Tables of addresses and values.

use std::ops::ControlFlow;

use arrow_array::StringViewArray;
use arrow_schema::SchemaRef;
use warptrace_analysis::{
    AccessLacks, AccessRow, AccessTable, Selection, ValueReading, access_rows, kernel_name,
};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::file::{LaunchInfo, SiteInfo};

use crate::column::{Columns, known};
use crate::error::TableError;
use crate::{BATCH, Sink};

type Result<T> = std::result::Result<T, TableError>;

/// Returns the columns of a table.
pub fn access_schema(table: AccessTable) -> SchemaRef {
    columns(table).schema()
}

struct LaunchSites<'a> {
    trace: &'a TraceFile,
    info: LaunchInfo,
    /// The names of the trace and of the kernel, one entry each.
    name: StringViewArray,
    kernel: StringViewArray,
}

impl LaunchSites<'_> {
    fn site(&self, row: &AccessRow) -> Option<&SiteInfo> {
        self.trace.site(row.site)
    }

    fn text(&self, row: &AccessRow, of: impl Fn(&SiteInfo) -> &str) -> &str {
        self.site(row).map_or("", of)
    }

    fn block(&self, row: &AccessRow) -> [u32; 3] {
        let (block, [x, y, _]) = (row.warp / self.info.warps_per_block(), self.info.grid());
        [block % x, block / x % y, block / x / y]
    }
}

fn columns<'a>(table: AccessTable) -> Columns<LaunchSites<'a>, AccessRow> {
    let common = Columns::<LaunchSites<'a>, AccessRow>::new()
        .lookup(("trace", false), |launch| &launch.name, |_, _| 0)
        .number("launch", |launch, _| launch.info.number())
        .lookup(("kernel", false), |launch| &launch.kernel, |_, _| 0)
        .number("block_x", |launch, row| launch.block(row)[0])
        .number("block_y", |launch, row| launch.block(row)[1])
        .number("block_z", |launch, row| launch.block(row)[2])
        .number("warp", |launch, row| row.warp % launch.info.warps_per_block())
        .number("warp_index", |_, row| row.warp)
        .number("site", |_, row| row.site)
        .known_view("kind", |launch, row| launch.text(row, |site| site.kind.name()))
        .known_view("space", |launch, row| launch.text(row, |site| site.space.name()))
        .number("bytes", |launch, row| Some(launch.site(row)?.bytes))
        .known_view("name", |launch, row| launch.text(row, |site| &site.name))
        .known_view("file", |launch, row| launch.text(row, |site| &site.file))
        .number("line", |launch, row| known(launch.site(row)?.line))
        .number("location", |launch, row| known(launch.site(row)?.location))
        .number("time", |_, row| row.time)
        .number("request", |_, row| row.request);
    match table {
        AccessTable::Accesses | AccessTable::Values => common
            .number("mask", |_, row| row.mask)
            .number("lanes", |_, row| row.mask.count_ones() as u8)
            .view("form", |_, row| row.form())
            .number("lane", |_, row| row.lane.map(|lane| lane as u8))
            .number("base", |_, row| row.base)
            .number("spread", |_, row| row.spread)
            .number("step", |_, row| row.step)
            .number("count", |_, row| row.count),
        AccessTable::LaneAccesses => common.number("lane", lane).number("address", |_, row| row.base),
        AccessTable::LaneValues => common
            .number("lane", lane)
            .number("bits", |_, row| row.base)
            .number("number", |launch, row| ValueReading::new(launch.site(row)?)?.exact(row.base)),
    }
}

fn lane(_: &LaunchSites<'_>, row: &AccessRow) -> u8 {
    row.lane.unwrap_or_default() as u8
}

/// A builder of batches with the rows of one launch.
pub struct AccessBatch<'a> {
    shared: LaunchSites<'a>,
    table: AccessTable,
    columns: Columns<LaunchSites<'a>, AccessRow>,
    chosen: (&'a [usize], &'a SchemaRef),
    rows: Vec<AccessRow>,
}

impl<'a> AccessBatch<'a> {
    /// Makes an empty batch for a launch. `name` is the trace's name, `chosen` the column numbers.
    pub fn new(
        (name, trace): (&str, &'a TraceFile),
        info: LaunchInfo,
        table: AccessTable,
        chosen: (&'a [usize], &'a SchemaRef),
    ) -> Self {
        let (name, kernel) = (vec![name].into(), vec![kernel_name(trace, &info)].into());
        let shared = LaunchSites { trace, info, name, kernel };
        Self { shared, table, columns: columns(table), chosen, rows: Vec::new() }
    }

    /// Decodes warps and passes the requested rows to `sink`. Returns whether `sink` returned `Break`, and
    /// the missing accesses. Fails if the trace is damaged.
    pub fn fill(
        mut self,
        warps: &WarpFilter,
        selection: &Selection,
        sink: &mut Sink<'_>,
    ) -> Result<(ControlFlow<()>, AccessLacks)> {
        let (trace, info, table) = (self.shared.trace, self.shared.info, self.table);
        let mut failed = None;
        let (flow, lacks) = access_rows(trace, &info, (warps, selection), table, &mut |row| {
            self.rows.push(*row);
            if self.rows.len() < BATCH {
                return ControlFlow::Continue(());
            }
            self.flush(sink).unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        })?;
        match failed {
            Some(error) => Err(error),
            None if flow.is_continue() => Ok((self.flush(sink)?, lacks)),
            None => Ok((flow, lacks)),
        }
    }

    fn flush(&mut self, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        if self.rows.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let batch = self.columns.batch(self.chosen, &self.shared, &self.rows, self.rows.len())?;
        self.rows.clear();
        Ok(sink(batch))
    }
}
