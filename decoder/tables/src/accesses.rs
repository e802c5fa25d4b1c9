//! Rows of addresses and values, made of the runs of a trace.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int32Array, RecordBatch, RecordBatchOptions, StringViewArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::SchemaRef;
use arrow_select::take::take;
use warptrace_analysis::{AccessRow, AccessTable, Selection, ValueReading, access_rows, kernel_name};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::file::{LaunchInfo, SiteInfo};

use crate::error::TableError;
use crate::schema::{self, ACCESS_COLUMNS};
use crate::{BATCH, Sink};

type Result<T> = std::result::Result<T, TableError>;

/// Returns the columns of a table.
pub fn access_schema(table: AccessTable) -> SchemaRef {
    match table {
        AccessTable::Accesses | AccessTable::Values => schema::accesses(),
        AccessTable::LaneAccesses => schema::lane_accesses(),
        AccessTable::LaneValues => schema::lane_values(),
    }
}

/// Rows of one launch that become batches.
pub struct AccessBatch<'a> {
    name: &'a str,
    trace: &'a TraceFile,
    launch: LaunchInfo,
    table: AccessTable,
    columns: &'a [usize],
    schema: &'a SchemaRef,
    rows: Vec<AccessRow>,
}

impl<'a> AccessBatch<'a> {
    /// Makes an empty batch of a launch of `trace`, which its rows call `name`. `columns` are the numbers, in
    /// the table, of the columns in `schema`.
    pub const fn new(
        (name, trace): (&'a str, &'a TraceFile),
        launch: LaunchInfo,
        table: AccessTable,
        (columns, schema): (&'a [usize], &'a SchemaRef),
    ) -> Self {
        Self { name, trace, launch, table, columns, schema, rows: Vec::new() }
    }

    /// Decodes warps and gives the wanted rows to `sink`; returns whether it broke off.
    ///
    /// # Errors
    /// The trace is damaged.
    pub fn fill(
        mut self,
        warps: &WarpFilter,
        selection: &Selection,
        sink: &mut Sink<'_>,
    ) -> Result<ControlFlow<()>> {
        let (trace, launch, table) = (self.trace, self.launch, self.table);
        let mut failed = None;
        let (flow, _) = access_rows(trace, &launch, (warps, selection), table, &mut |row| {
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
            None if flow.is_continue() => self.flush(sink),
            None => Ok(flow),
        }
    }

    fn flush(&mut self, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        if self.rows.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let columns = self.columns.iter().map(|&column| self.column(column)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(self.schema), columns, &options)?;
        self.rows.clear();
        Ok(sink(batch))
    }

    /// A column of the rows, by its number in the table.
    fn column(&self, column: usize) -> Result<ArrayRef> {
        let per_block = self.launch.warps_per_block();
        let [grid_x, grid_y, _] = self.launch.grid();
        Ok(match column {
            0 => self.constant(self.name)?,
            1 => self.u32s(|_| self.launch.number()),
            2 => self.constant(kernel_name(self.trace, &self.launch))?,
            3 => self.u32s(|row| row.warp / per_block % grid_x),
            4 => self.u32s(|row| row.warp / per_block / grid_x % grid_y),
            5 => self.u32s(|row| row.warp / per_block / grid_x / grid_y),
            6 => self.u32s(|row| row.warp % per_block),
            7 => self.u32s(|row| row.warp),
            8 => Arc::new(self.rows.iter().map(|row| row.site).collect::<UInt16Array>()),
            9 => self.texts(|site| site.kind.name()),
            10 => self.texts(|site| site.space.name()),
            11 => Arc::new(self.sites().map(|site| Some(site?.bytes)).collect::<UInt32Array>()),
            12 => self.texts(|site| &site.name),
            13 => self.texts(|site| &site.file),
            14 => Arc::new(self.sites().map(|site| known(site?.line)).collect::<UInt32Array>()),
            15 => Arc::new(self.sites().map(|site| known(site?.location)).collect::<UInt16Array>()),
            16 => Arc::new(self.rows.iter().map(|row| row.time).collect::<UInt64Array>()),
            17 => self.u64s(|row| row.request),
            _ => self.own_column(column - ACCESS_COLUMNS)?,
        })
    }

    /// A column that only some of the tables have, by its number behind those of all.
    fn own_column(&self, column: usize) -> Result<ArrayRef> {
        let rows = || self.rows.iter();
        let lane = |row: &AccessRow| row.lane.map(|lane| lane as u8);
        Ok(match (self.table.is_by_lane(), column) {
            (false, 0) => self.u32s(|row| row.mask),
            (false, 1) => Arc::new(rows().map(|row| row.mask.count_ones() as u8).collect::<UInt8Array>()),
            (false, 2) => Arc::new(rows().map(|row| Some(row.form())).collect::<StringViewArray>()),
            (false, 3) | (true, 0) => Arc::new(rows().map(lane).collect::<UInt8Array>()),
            (false, 4) | (true, 1) => self.u64s(|row| row.base),
            (false, 5) => Arc::new(rows().map(|row| row.spread).collect::<Int32Array>()),
            (false, 6) => Arc::new(rows().map(|row| row.step).collect::<Int32Array>()),
            (false, _) => self.u32s(|row| row.count),
            (true, _) => {
                let number = |row: &AccessRow| ValueReading::of(self.trace.site(row.site)?)?.exact(row.base);
                Arc::new(rows().map(number).collect::<Float64Array>())
            }
        })
    }

    fn constant(&self, text: &str) -> Result<ArrayRef> {
        let first = UInt32Array::from_value(0, self.rows.len());
        Ok(take(&StringViewArray::from(vec![text]), &first, None)?)
    }

    fn sites(&self) -> impl Iterator<Item = Option<&SiteInfo>> {
        self.rows.iter().map(|row| self.trace.site(row.site))
    }

    /// Texts of the rows' sites; an empty one is not known.
    fn texts(&self, of: impl Fn(&SiteInfo) -> &str) -> ArrayRef {
        let texts = self.sites().map(|site| site.map(&of).filter(|text| !text.is_empty()));
        Arc::new(texts.collect::<StringViewArray>())
    }

    fn u32s(&self, of: impl Fn(&AccessRow) -> u32) -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(self.rows.iter().map(of)))
    }

    fn u64s(&self, of: impl Fn(&AccessRow) -> u64) -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(self.rows.iter().map(of)))
    }
}

/// A number that is 0 when it is not known.
fn known<T: Default + PartialEq>(number: T) -> Option<T> {
    (number != T::default()).then_some(number)
}
