//! Rows of events, made of the items of a trace.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchOptions, StringViewArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use arrow_schema::SchemaRef;
use arrow_select::take::take;
use warptrace_analysis::{BlockRan, LaunchBlocks, Selection, blocks, kernel_name};
use warptrace_decoder::{TraceFile, WarpFilter, WarpItem};
use warptrace_format::Event;
use warptrace_format::file::LaunchInfo;

use crate::error::TableError;
use crate::{BATCH, Sink, schema};

type Result<T> = std::result::Result<T, TableError>;

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Equal events of a warp, one after the other.
    Runs,
    /// An event.
    Events,
    /// Any number of events with the same values in the columns that are asked for, in the columns of `runs`.
    Sums,
}

impl Kind {
    /// Returns the columns.
    pub fn schema(self) -> SchemaRef {
        match self {
            Self::Events => schema::events(),
            Self::Runs | Self::Sums => schema::runs(),
        }
    }
}

/// Which events of a launch become rows.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Their warps,
    pub warps: WarpFilter,
    /// and of these only those that are selected.
    pub selection: Selection,
    /// Their locations.
    pub locations: RangeInclusive<u64>,
}

/// How much was made, to see what it cost.
#[derive(Debug, Default)]
pub struct Made {
    /// Rows of events, runs and sums.
    pub rows: AtomicU64,
    /// Values that were made of masks.
    pub masks: AtomicU64,
}

/// A row, before its columns are made.
#[derive(Clone, Copy)]
struct Row {
    warp: u32,
    event: u64,
    location: u16,
    mask: u32,
    begin: Option<u64>,
    end: Option<u64>,
    count: u64,
}

impl Row {
    /// Makes a row that stands for events of a warp at a location.
    fn sum(warp: u32, location: u16, mask: u32, count: u64) -> Self {
        Self { warp, event: 0, location, mask, begin: None, end: None, count }
    }
}

/// Columns that are made of a mask, by their numbers in `runs`.
const MASK_COLUMNS: [usize; 2] = [13, 14];
/// Columns that tell warps from each other.
const WARP_COLUMNS: [usize; 8] = [3, 4, 5, 6, 7, 17, 18, 19];

/// Events by location, of one warp or of several.
#[derive(Default)]
struct Tally {
    warp: u32,
    counts: Vec<u64>,
    /// Locations with events, in the order in which they came.
    locations: Vec<u16>,
}

impl Tally {
    fn add(&mut self, location: u16, more: u64) {
        let at = usize::from(location);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        if self.counts[at] == 0 {
            self.locations.push(location);
        }
        self.counts[at] = self.counts[at].saturating_add(more);
    }

    /// Gives a row for each location to `sink`, and begins anew.
    fn drain(&mut self, sink: &mut impl FnMut(Row) -> ControlFlow<()>) -> ControlFlow<()> {
        for location in self.locations.drain(..) {
            let count = std::mem::take(&mut self.counts[usize::from(location)]);
            sink(Row::sum(self.warp, location, 0, count))?;
        }
        ControlFlow::Continue(())
    }
}

/// Rows of one launch that become batches.
pub struct Batch {
    launch: LaunchInfo,
    columns: Vec<usize>,
    schema: SchemaRef,
    /// Names by column: trace, kernel; name and file by location.
    texts: [StringViewArray; 4],
    lines: UInt32Array,
    /// The launch's blocks, by their indices, if a column says when they ran.
    blocks: Vec<BlockRan>,
    rows: Vec<Row>,
    /// Whether a column tells the events of a run from each other.
    is_single: bool,
    /// Rows that need no values: only their number is asked for.
    counted: usize,
    made: Arc<Made>,
}

impl Batch {
    /// Makes an empty batch of a launch of `trace`, which its rows call `name`. `columns` are the numbers,
    /// among those of `runs`, of the columns in `schema`.
    pub fn new(
        (name, trace): (&str, &TraceFile),
        launch: LaunchInfo,
        (columns, schema): (&[usize], &SchemaRef),
        made: &Arc<Made>,
    ) -> Self {
        let table = &trace.metadata().locations;
        let ids = table.iter().map(|info| usize::from(info.id) + 1).max().unwrap_or(0);
        // The last entry is for all ids that the table does not have.
        let (mut names, mut files, mut lines) =
            (vec![None; ids + 1], vec![None; ids + 1], vec![None; ids + 1]);
        for info in table {
            let at = usize::from(info.id);
            names[at] = (!info.name.is_empty()).then_some(info.name.as_str());
            files[at] = (!info.file.is_empty()).then_some(info.file.as_str());
            lines[at] = (info.line > 0).then_some(info.line);
        }
        let texts = [
            StringViewArray::from(vec![Some(name)]),
            StringViewArray::from(vec![Some(kernel_name(trace, &launch))]),
            StringViewArray::from(names),
            StringViewArray::from(files),
        ];
        let is_single = columns.iter().any(|column| schema::SINGLE_COLUMNS.contains(column));
        let (columns, schema, lines) = (columns.to_vec(), Arc::clone(schema), UInt32Array::from(lines));
        let (rows, counted, made) = (Vec::with_capacity(BATCH), 0, Arc::clone(made));
        let blocks = Vec::new();
        Self { launch, columns, schema, texts, lines, blocks, rows, is_single, counted, made }
    }

    /// Decodes warps and gives the wanted rows to `sink`; returns whether it broke off.
    ///
    /// # Errors
    /// The trace is damaged.
    pub fn fill(
        &mut self,
        trace: &TraceFile,
        wanted: &Wanted,
        kind: Kind,
        sink: &mut Sink<'_>,
    ) -> Result<ControlFlow<()>> {
        if self.columns.iter().any(|column| schema::BLOCK_COLUMNS.contains(column)) {
            let found = blocks(trace, &self.launch, &wanted.selection)?;
            self.blocks = found.map_or_else(Vec::new, |LaunchBlocks { blocks, .. }| blocks);
            self.blocks.sort_unstable_by_key(|block| block.block);
        }
        if kind == Kind::Sums {
            return self.sum(trace, wanted, sink);
        }
        let mut pending: Option<Row> = None;
        let mut failed = None;
        let mut push = |batch: &mut Self, row: Row| {
            if !wanted.locations.contains(&row.location.into()) {
                return ControlFlow::Continue(());
            }
            let pushed = if kind == Kind::Events { batch.expand(row, sink) } else { batch.push(row, sink) };
            pushed.unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        };
        let (launch, number) = (self.launch, self.launch.number());
        let flow = trace.items_in_order(number, 0, &wanted.warps, &mut |found| {
            let WarpItem { warp, first_event, item, begin, .. } = found;
            if !wanted.selection.has_warp(&launch, warp) {
                return ControlFlow::Continue(());
            }
            let (body, times) = (item.body(), u64::from(item.times()));
            // A run is one row, a cycle one for each event.
            let (turns, count) = if body.len() == 1 { (1, times) } else { (times, 1) };
            let mut event = first_event;
            for _ in 0..turns {
                for &Event { location, mask } in body {
                    let row = Row { warp, event, location, mask, begin, end: None, count };
                    event += count;
                    let of = |row: &Row| (row.warp, row.location, row.mask, row.begin);
                    match &mut pending {
                        Some(last) if of(last) == of(&row) => last.count += count,
                        last => {
                            if let Some(mut last) = last.replace(row) {
                                let next = begin.filter(|_| last.warp == warp);
                                last.end = last.begin.zip(next).map(|(begin, end)| end.max(begin));
                                push(self, last)?;
                            }
                        }
                    }
                }
            }
            ControlFlow::Continue(())
        });
        let mut flow = flow?;
        if let Some(last) = pending
            && flow.is_continue()
        {
            flow = push(self, last);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if flow.is_continue() { self.flush(sink) } else { Ok(flow) }
    }

    /// Decodes warps and gives rows to `sink` that stand for many events each: of a location, if masks do not
    /// matter, and otherwise of an item.
    fn sum(&mut self, trace: &TraceFile, wanted: &Wanted, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let has = |columns: &[usize]| self.columns.iter().any(|column| columns.contains(column));
        let (by_mask, by_warp) = (has(&MASK_COLUMNS), has(&WARP_COLUMNS));
        let mut tally = Tally::default();
        let mut failed = None;
        let (launch, number) = (self.launch, self.launch.number());
        let mut give = |batch: &mut Self, row: Row, sink: &mut Sink<'_>| {
            batch.push(row, sink).unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        };
        let flow = trace.items_in_order(number, 0, &wanted.warps, &mut |found| {
            let WarpItem { warp, item, .. } = found;
            if !wanted.selection.has_warp(&launch, warp) {
                return ControlFlow::Continue(());
            }
            let count = u64::from(item.times());
            if by_warp && warp != tally.warp {
                tally.drain(&mut |row| give(self, row, sink))?;
            }
            tally.warp = warp;
            for &Event { location, mask } in item.body() {
                if !wanted.locations.contains(&location.into()) {
                    continue;
                }
                if by_mask {
                    give(self, Row::sum(warp, location, mask, count), sink)?;
                } else {
                    tally.add(location, count);
                }
            }
            ControlFlow::Continue(())
        });
        let mut flow = flow?;
        if flow.is_continue() {
            flow = tally.drain(&mut |row| give(self, row, sink));
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if flow.is_continue() { self.flush(sink) } else { Ok(flow) }
    }

    fn push(&mut self, row: Row, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        self.rows.push(row);
        if self.rows.len() == BATCH { self.flush(sink) } else { Ok(ControlFlow::Continue(())) }
    }

    /// Pushes a row for each event of a run: the first has the run's begin, the last its end.
    fn expand(&mut self, mut row: Row, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let mut rest = std::mem::replace(&mut row.count, 1);
        let (first, last) = (row.event, row.event + (rest - 1));
        let (begin, end) = (row.begin.take(), row.end.take());
        while rest > 0 {
            let room = BATCH - self.rows.len() - self.counted;
            let now = room.min(usize::try_from(rest).unwrap_or(room));
            if self.columns.is_empty() {
                self.counted += now;
            } else if self.is_single {
                self.rows.extend((row.event..).take(now).map(|event| Row {
                    event,
                    begin: begin.filter(|_| event == first),
                    end: end.filter(|_| event == last),
                    ..row
                }));
            } else {
                self.rows.resize(self.rows.len() + now, row);
            }
            row.event += now as u64;
            rest -= now as u64;
            if self.rows.len() + self.counted == BATCH && self.flush(sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn flush(&mut self, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let rows = self.rows.len() + self.counted;
        if rows == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let columns = self.columns.iter().map(|&column| self.column(column)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let masks = self.columns.iter().filter(|column| MASK_COLUMNS.contains(column)).count();
        self.made.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.made.masks.fetch_add((masks * self.rows.len()) as u64, Ordering::Relaxed);
        self.rows.clear();
        self.counted = 0;
        Ok(sink(batch))
    }

    /// A column of the rows, by its number in `runs`.
    fn column(&self, column: usize) -> Result<ArrayRef> {
        let rows = self.rows.iter();
        let constant = |value: u32| -> ArrayRef { Arc::new(UInt32Array::from_value(value, rows.len())) };
        let (per_block, [grid_x, grid_y, _]) = (self.launch.warps_per_block(), self.launch.grid());
        let blocks = |of: &dyn Fn(u32) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(self.rows.iter().map(|row| of(row.warp / per_block))))
        };
        let first = || UInt32Array::from_value(0, self.rows.len());
        Ok(match column {
            0 => take(&self.texts[0], &first(), None)?,
            1 => constant(self.launch.number()),
            2 => take(&self.texts[1], &first(), None)?,
            3 => blocks(&|block| block % grid_x),
            4 => blocks(&|block| block / grid_x % grid_y),
            5 => blocks(&|block| block / grid_x / grid_y),
            6 => Arc::new(UInt32Array::from_iter_values(rows.map(|row| row.warp % per_block))),
            7 => Arc::new(UInt32Array::from_iter_values(rows.map(|row| row.warp))),
            8 => Arc::new(UInt64Array::from_iter_values(rows.map(|row| row.event))),
            9 => Arc::new(UInt16Array::from_iter_values(rows.map(|row| row.location))),
            10 => take(&self.texts[2], &self.by_location(), None)?,
            11 => take(&self.texts[3], &self.by_location(), None)?,
            12 => take(&self.lines, &self.by_location(), None)?,
            13 => Arc::new(UInt32Array::from_iter_values(rows.map(|row| row.mask))),
            14 => Arc::new(UInt8Array::from_iter_values(rows.map(|row| row.mask.count_ones() as u8))),
            15 => Arc::new(rows.map(|row| row.begin).collect::<UInt64Array>()),
            16 => Arc::new(rows.map(|row| row.end).collect::<UInt64Array>()),
            17 => Arc::new(rows.map(|row| Some(self.block(row)?.sm)).collect::<UInt32Array>()),
            18 => Arc::new(rows.map(|row| Some(self.block(row)?.begin_nanoseconds)).collect::<UInt64Array>()),
            19 => Arc::new(rows.map(|row| self.block(row)?.end_nanoseconds()).collect::<UInt64Array>()),
            _ => Arc::new(UInt64Array::from_iter_values(rows.map(|row| row.count))),
        })
    }

    /// Where and when a row's block ran, if that is known.
    fn block(&self, row: &Row) -> Option<&BlockRan> {
        let index = row.warp / self.launch.warps_per_block();
        let at = self.blocks.binary_search_by_key(&index, |block| block.block).ok()?;
        self.blocks.get(at)
    }

    /// Each row's entry in the tables by location.
    fn by_location(&self) -> UInt32Array {
        let last = self.lines.len() as u32 - 1;
        UInt32Array::from_iter_values(self.rows.iter().map(|row| u32::from(row.location).min(last)))
    }
}
