//! Tables of events.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::StringViewArray;
use arrow_schema::SchemaRef;
use warptrace_analysis::{BlockRan, LaunchBlocks, Selection, blocks, kernel_name};
use warptrace_decoder::{EventRun, RunJoiner, TraceFile, WarpFilter, WarpItem};
use warptrace_format::Event;
use warptrace_format::file::LaunchInfo;

use crate::column::{Columns, known};
use crate::error::TableError;
use crate::{BATCH, Sink};

type Result<T> = std::result::Result<T, TableError>;

const EVENT: &str = "event";
/// Start of a run in cycles. In `events`, only for the run's first event.
const BEGIN: &str = "t_begin";
/// Start of the next run, or of the run itself if later. In `events`, only for the run's last event.
const END: &str = "t_end";
/// The columns that differ between the events of a run.
pub const SINGLE: [&str; 3] = [EVENT, BEGIN, END];
/// Number of events of a row of `runs`.
pub const COUNT: &str = "count";
/// The columns with place and time of the row's block.
const BLOCK: [&str; 3] = ["sm", "block_begin_ns", "block_end_ns"];
const MASK: [&str; 2] = ["mask", "lanes"];
/// The columns that identify a warp, in addition to [`BLOCK`].
const WARP: [&str; 5] = ["block_x", "block_y", "block_z", "warp", "warp_index"];

/// A table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTable {
    /// A row for each run: consecutive equal events of a warp.
    Runs,
    /// A row for each event.
    Events,
    /// Rows for any number of events with equal values in the requested columns. Has the columns of `runs`.
    Sums,
}

impl EventTable {
    /// Returns the name in queries and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Events => "events",
            Self::Sums => "sums",
        }
    }

    fn columns(self) -> Columns<LaunchTexts, EventRun> {
        match self {
            Self::Events => runs().without_last(),
            Self::Runs | Self::Sums => runs(),
        }
    }

    /// Returns the columns.
    pub fn schema(self) -> SchemaRef {
        self.columns().schema()
    }
}

/// The events of a launch that become rows.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Their warps.
    pub warps: WarpFilter,
    /// The selection that the warps must also match.
    pub selection: Selection,
    /// Their locations.
    pub locations: RangeInclusive<u64>,
}

/// Counters of produced data, to measure the cost of a query.
#[derive(Debug, Default)]
pub struct Made {
    /// Rows of events, runs and sums.
    pub rows: AtomicU64,
    /// Values computed from masks.
    pub masks: AtomicU64,
}

/// Number of events by location, of one warp or of several.
#[derive(Default)]
struct Tally {
    warp: u32,
    counts: Vec<u64>,
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

    /// Passes a row for each location to `sink`, and resets the counts.
    fn drain(&mut self, sink: &mut impl FnMut(EventRun) -> ControlFlow<()>) -> ControlFlow<()> {
        for location in self.locations.drain(..) {
            let count = std::mem::take(&mut self.counts[usize::from(location)]);
            sink(sum(self.warp, Event { location, mask: 0 }, count))?;
        }
        ControlFlow::Continue(())
    }
}

fn sum(warp: u32, event: Event, count: u64) -> EventRun {
    EventRun { warp, event, count, ..EventRun::default() }
}

struct LaunchTexts {
    info: LaunchInfo,
    /// The names of the trace and of the kernel, one entry each.
    trace: StringViewArray,
    kernel: StringViewArray,
    /// Names, files and lines by location. The last entry is for ids that are not in the trace's table.
    names: StringViewArray,
    files: StringViewArray,
    lines: Vec<Option<u32>>,
    /// The launch's blocks, sorted by index, if a column needs their times.
    blocks: Vec<BlockRan>,
}

impl LaunchTexts {
    fn new(name: &str, trace: &TraceFile, info: LaunchInfo) -> Self {
        let table = &trace.metadata().locations;
        let ids = table.iter().map(|info| usize::from(info.id) + 1).max().unwrap_or(0);
        let (mut names, mut files, mut lines) =
            (vec![None; ids + 1], vec![None; ids + 1], vec![None; ids + 1]);
        for info in table {
            let at = usize::from(info.id);
            names[at] = (!info.name.is_empty()).then_some(info.name.as_str());
            files[at] = (!info.file.is_empty()).then_some(info.file.as_str());
            lines[at] = known(info.line);
        }
        Self {
            info,
            trace: vec![Some(name)].into(),
            kernel: vec![Some(kernel_name(trace, &info))].into(),
            names: names.into(),
            files: files.into(),
            lines,
            blocks: Vec::new(),
        }
    }

    fn location(&self, row: &EventRun) -> u32 {
        u32::from(row.event.location).min(self.lines.len() as u32 - 1)
    }

    fn block(&self, row: &EventRun) -> [u32; 3] {
        let (block, [x, y, _]) = (row.warp / self.info.warps_per_block(), self.info.grid());
        [block % x, block / x % y, block / x / y]
    }

    fn ran(&self, row: &EventRun) -> Option<&BlockRan> {
        let index = row.warp / self.info.warps_per_block();
        let at = self.blocks.binary_search_by_key(&index, |block| block.block).ok()?;
        self.blocks.get(at)
    }
}

/// Makes the columns of `runs`. `events` has all but the last.
fn runs() -> Columns<LaunchTexts, EventRun> {
    Columns::<LaunchTexts, EventRun>::new()
        .lookup(("trace", false), |launch| &launch.trace, |_, _| 0)
        .number("launch", |launch, _| launch.info.number())
        .lookup(("kernel", false), |launch| &launch.kernel, |_, _| 0)
        .number("block_x", |launch, row| launch.block(row)[0])
        .number("block_y", |launch, row| launch.block(row)[1])
        .number("block_z", |launch, row| launch.block(row)[2])
        .number("warp", |launch, row| row.warp % launch.info.warps_per_block())
        .number("warp_index", |_, row| row.warp)
        .number(EVENT, |_, row| row.first_event)
        .number("location", |_, row| row.event.location)
        .lookup(("name", true), |launch| &launch.names, LaunchTexts::location)
        .lookup(("file", true), |launch| &launch.files, LaunchTexts::location)
        .number("line", |launch, row| launch.lines[launch.location(row) as usize])
        .number("mask", |_, row| row.event.mask)
        .number("lanes", |_, row| row.event.mask.count_ones() as u8)
        .number(BEGIN, |_, row| row.begin)
        .number(END, |_, row| row.end)
        .number("sm", |launch, row| Some(launch.ran(row)?.sm))
        .number("block_begin_ns", |launch, row| Some(launch.ran(row)?.begin_nanoseconds))
        .number("block_end_ns", |launch, row| launch.ran(row)?.end_nanoseconds())
        .number(COUNT, |_, row| row.count)
}

/// A builder of batches with the rows of one launch.
pub struct EventBatch<'a> {
    shared: LaunchTexts,
    columns: Columns<LaunchTexts, EventRun>,
    chosen: &'a [usize],
    schema: &'a SchemaRef,
    rows: Vec<EventRun>,
    is_single: bool,
    /// Rows without values: only their number is requested.
    counted: usize,
    made: Arc<Made>,
}

impl<'a> EventBatch<'a> {
    /// Makes an empty batch for a launch. `name` is the trace's name, `chosen` the column numbers in `runs`.
    pub fn new(
        (name, trace): (&str, &TraceFile),
        launch: LaunchInfo,
        (chosen, schema): (&'a [usize], &'a SchemaRef),
        made: &Arc<Made>,
    ) -> Self {
        let columns = runs();
        Self {
            shared: LaunchTexts::new(name, trace, launch),
            is_single: columns.have(chosen, &SINGLE),
            columns,
            chosen,
            schema,
            rows: Vec::with_capacity(BATCH),
            counted: 0,
            made: Arc::clone(made),
        }
    }

    /// Decodes warps and passes the requested rows to `sink`. Returns whether `sink` returned `Break`. Fails
    /// if the trace is damaged.
    pub fn fill(
        &mut self,
        trace: &TraceFile,
        wanted: &Wanted,
        table: EventTable,
        sink: &mut Sink<'_>,
    ) -> Result<ControlFlow<()>> {
        if self.columns.have(self.chosen, &BLOCK) {
            let found = blocks(trace, &self.shared.info, &wanted.selection)?;
            let mut found = found.map_or_else(Vec::new, |LaunchBlocks { blocks, .. }| blocks);
            found.sort_unstable_by_key(|block| block.block);
            self.shared.blocks = found;
        }
        if table == EventTable::Sums {
            return self.sum(trace, wanted, sink);
        }
        let launch = self.shared.info;
        let mut failed = None;
        let mut push = |row: EventRun| {
            if !wanted.locations.contains(&row.event.location.into()) {
                return ControlFlow::Continue(());
            }
            let pushed =
                if table == EventTable::Events { self.expand(row, sink) } else { self.push(row, sink) };
            pushed.unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        };
        let mut joiner = RunJoiner::default();
        let mut flow = trace.items_in_order(launch.number(), 0, &wanted.warps, &mut |found| {
            if !wanted.selection.has_warp(&launch, found.warp) {
                return ControlFlow::Continue(());
            }
            joiner.take(&found, &mut push)
        })?;
        if flow.is_continue() {
            flow = joiner.end(&mut push);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if flow.is_continue() { self.flush(sink) } else { Ok(flow) }
    }

    /// Decodes warps and passes rows to `sink` that represent many events: one for each location if masks are
    /// not needed, otherwise one for each event of an item.
    fn sum(&mut self, trace: &TraceFile, wanted: &Wanted, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let has = |names: &[&str]| self.columns.have(self.chosen, names);
        let (by_mask, by_warp) = (has(&MASK), has(&WARP) || has(&BLOCK));
        let mut tally = Tally::default();
        let mut failed = None;
        let (launch, number) = (self.shared.info, self.shared.info.number());
        let mut give = |batch: &mut Self, row: EventRun, sink: &mut Sink<'_>| {
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
            for &event in item.body() {
                if !wanted.locations.contains(&event.location.into()) {
                    continue;
                }
                if by_mask {
                    give(self, sum(warp, event, count), sink)?;
                } else {
                    tally.add(event.location, count);
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

    fn push(&mut self, row: EventRun, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        self.rows.push(row);
        if self.rows.len() == BATCH { self.flush(sink) } else { Ok(ControlFlow::Continue(())) }
    }

    /// Adds a row for each event of a run. The first has the run's begin, the last its end.
    fn expand(&mut self, mut row: EventRun, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let mut rest = std::mem::replace(&mut row.count, 1);
        let (first, last) = (row.first_event, row.first_event + (rest - 1));
        let (begin, end) = (row.begin.take(), row.end.take());
        while rest > 0 {
            let room = BATCH - self.rows.len() - self.counted;
            let now = room.min(usize::try_from(rest).unwrap_or(room));
            if self.chosen.is_empty() {
                self.counted += now;
            } else if self.is_single {
                self.rows.extend((row.first_event..).take(now).map(|first_event| EventRun {
                    first_event,
                    begin: begin.filter(|_| first_event == first),
                    end: end.filter(|_| first_event == last),
                    ..row
                }));
            } else {
                self.rows.resize(self.rows.len() + now, row);
            }
            row.first_event += now as u64;
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
        let chosen = (self.chosen, self.schema);
        let batch = self.columns.batch(chosen, &self.shared, &self.rows, rows)?;
        let masks = self.columns.count(self.chosen, &MASK);
        self.made.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.made.masks.fetch_add((masks * self.rows.len()) as u64, Ordering::Relaxed);
        self.rows.clear();
        self.counted = 0;
        Ok(sink(batch))
    }
}
