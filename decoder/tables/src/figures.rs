//! Tables of figures and metadata.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use warptrace_analysis::{
    AccessCounts, Accesses, Analysis, AnalysisError, Cause, Edge, KernelFigures, LineFigures,
    LocationFigures, Selection, SiteFigures, Time, ValueReading, WarpEnd, WarpFigures, WarpRan,
    access_losses, accesses, blocks, kernel_name,
};
use warptrace_decoder::{LaunchEnd, LossyWarps, TraceFile};
use warptrace_format::file::{LaunchInfo, LocationInfo, LossPosition, SiteInfo, StackFrame, StreamId};

use crate::column::{Columns, known};
use crate::error::TableError;
use crate::{BATCH, Sink};

type Result<T> = std::result::Result<T, TableError>;

/// A table of figures or metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureTable {
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
    /// A row for each executed source line with a trace point.
    Lines,
    /// A row for each cause of idle lanes, sorted by descending idle slots.
    Causes,
    /// A row for each edge.
    Edges,
    /// A row for each site: an instruction that accesses memory, or a named value.
    Sites,
    /// Rows of warps that lack events: for each reason, consecutive warps with equal losses.
    Losses,
    /// A row for each launch with missing accesses.
    AccessLosses,
}

impl FigureTable {
    /// All tables, in the order of display.
    pub const ALL: [Self; 11] = [
        Self::Warps,
        Self::Locations,
        Self::Loops,
        Self::Launches,
        Self::Kernels,
        Self::Lines,
        Self::Causes,
        Self::Edges,
        Self::Sites,
        Self::Losses,
        Self::AccessLosses,
    ];

    /// Returns the name in queries and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warps => "warps",
            Self::Locations => "locations",
            Self::Loops => "loops",
            Self::Launches => "launches",
            Self::Kernels => "kernels",
            Self::Lines => "lines",
            Self::Causes => "causes",
            Self::Edges => "edges",
            Self::Sites => "sites",
            Self::Losses => "losses",
            Self::AccessLosses => "access_losses",
        }
    }

    /// Returns the columns.
    pub fn schema(self) -> SchemaRef {
        match self {
            Self::Warps => warps().schema(),
            Self::Locations => locations().schema(),
            Self::Loops => loops().schema(),
            Self::Launches => launches().schema(),
            Self::Kernels => kernels().schema(),
            Self::Lines => lines().schema(),
            Self::Causes => causes().schema(),
            Self::Edges => edges().schema(),
            Self::Sites => sites().schema(),
            Self::Losses => losses().schema(),
            Self::AccessLosses => access_losses_columns().schema(),
        }
    }
}

/// A trace with the source of its figures.
#[derive(Clone, Copy)]
pub struct TraceFigures<'a> {
    /// Name of the trace in the column `trace`.
    pub name: &'a str,
    /// The trace.
    pub trace: &'a TraceFile,
    /// The selected part. `analysis` must use the same selection.
    pub selection: &'a Selection,
    /// Returns the figures. Only tables that need them call it.
    pub analysis: &'a dyn Fn() -> std::result::Result<Arc<Analysis>, Arc<AnalysisError>>,
}

impl std::fmt::Debug for TraceFigures<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("TraceFigures").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The chosen columns: their numbers in the table, and their schema.
type Chosen<'a> = (&'a [usize], &'a SchemaRef);

impl<'a> TraceFigures<'a> {
    /// Passes the rows of a table to `sink`. Returns whether `sink` returned `Break`. `chosen` has the
    /// table's column numbers and their schema. Fails if the trace is damaged.
    pub fn rows(
        &self,
        table: FigureTable,
        chosen: Chosen<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<ControlFlow<()>> {
        let analysis = || Ok::<_, TableError>((self.analysis)()?);
        match table {
            FigureTable::Warps => {
                let (columns, analysis) = (warps(), analysis()?);
                let mut rest = analysis.warps.iter().peekable();
                let mut flow = ControlFlow::Continue(());
                while flow.is_continue() && rest.peek().is_some() {
                    let rows: Vec<WarpFigures> = rest.by_ref().take(BATCH).collect();
                    flow = self.give(&columns, &rows, chosen, sink)?;
                }
                Ok(flow)
            }
            FigureTable::Edges => self.give(&edges(), &analysis()?.edges, chosen, sink),
            FigureTable::Kernels => self.give(&kernels(), &analysis()?.kernels, chosen, sink),
            FigureTable::Lines => self.give(&lines(), &analysis()?.lines, chosen, sink),
            FigureTable::Causes => self.give(&causes(), &analysis()?.causes, chosen, sink),
            FigureTable::Loops => {
                let analysis = analysis()?;
                self.give(&loops(), &analysis.loops().collect::<Vec<_>>(), chosen, sink)
            }
            FigureTable::Locations => self.locations(chosen, sink),
            FigureTable::Launches => self.launches(chosen, sink),
            FigureTable::Sites => self.sites(chosen, sink),
            FigureTable::Losses => self.losses(chosen, sink),
            FigureTable::AccessLosses => {
                let rows = access_losses(self.trace, self.selection)?;
                self.give(&access_losses_columns(), &rows, chosen, sink)
            }
        }
    }

    fn give<R>(
        &self,
        columns: &Columns<Self, R>,
        rows: &[R],
        chosen: Chosen<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<ControlFlow<()>> {
        for rows in rows.chunks(BATCH) {
            if sink(columns.batch(chosen, self, rows, rows.len())?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Makes the table of locations, including executed locations that are not in the trace's table.
    fn locations(&self, chosen: Chosen<'_>, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let table = &self.trace.metadata().locations;
        let mut ids: Vec<u16> = table.iter().map(|info| info.id).collect();
        let is_counted = locations().are_counted(chosen.0) || table.is_empty();
        let analysis = if is_counted { Some((self.analysis)()?) } else { None };
        if let Some(analysis) = &analysis {
            ids.extend(analysis.locations.iter().map(|found| found.point.location));
        }
        ids.sort_unstable();
        ids.dedup();
        // Locations without visits have a time of 0.
        let none = analysis.as_ref().and_then(|analysis| analysis.time).map(|_| Time::default());
        let row = |id| {
            let info = table.iter().find(|info| info.id == id);
            let figures = analysis.as_ref().and_then(|analysis| analysis.location(id));
            let time = figures.map_or(none, |figures| figures.time);
            LocationRow { id, info, figures, time }
        };
        let rows: Vec<LocationRow<'_>> = ids.into_iter().map(row).collect();
        self.give(&locations(), &rows, chosen, sink)
    }

    fn launches(&self, chosen: Chosen<'_>, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let columns = launches();
        let are_counted = columns.are_counted(chosen.0);
        let row = |info: LaunchInfo| {
            let found = if are_counted { blocks(self.trace, &info, self.selection)? } else { None };
            let ran = found.map(|found| (found.begin, found.begin.saturating_add(found.nanoseconds)));
            let end = self.trace.launch_end(info.number()).unwrap_or(LaunchEnd::Unknown);
            Ok(LaunchRow { info, ran, end })
        };
        let launches = self.selection.launches(self.trace)?.into_iter();
        let rows = launches.map(|(info, _)| row(info)).collect::<Result<Vec<_>>>()?;
        self.give(&columns, &rows, chosen, sink)
    }

    /// Makes the table of sites, including accessed sites that are not in the trace's table.
    fn sites(&self, chosen: Chosen<'_>, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let is_counted = sites().are_counted(chosen.0);
        let counted = if is_counted { accesses(self.trace, self.selection)? } else { Accesses::default() };
        let row = |info| SiteRow { number: 0, info, figures: None };
        let table = self.trace.sites().map(|info| (info.number, row(Some(info))));
        let mut rows: BTreeMap<u16, SiteRow<'_>> = table.collect();
        for site in &counted.sites {
            rows.entry(site.site).or_insert(row(None)).figures = Some(site);
        }
        let rows: Vec<_> = rows.into_iter().map(|(number, row)| SiteRow { number, ..row }).collect();
        self.give(&sites(), &rows, chosen, sink)
    }

    /// Memory: one section of accounts, and a batch.
    fn losses(&self, chosen: Chosen<'_>, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let (columns, mut rows) = (losses(), Vec::new());
        for (info, _) in self.selection.launches(self.trace)? {
            for lossy in self.selection.lacking(self.trace, &info, 0)? {
                rows.push((info, lossy?));
                if rows.len() == BATCH {
                    if self.give(&columns, &rows, chosen, sink)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    rows.clear();
                }
            }
        }
        self.give(&columns, &rows, chosen, sink)
    }

    fn kernel(&self, launch: u32) -> &'a str {
        self.trace.launch(launch).map_or("?", |info| kernel_name(self.trace, info))
    }
}

fn of_trace<'a, R>() -> Columns<TraceFigures<'a>, R> {
    Columns::new().text("trace", |of: &TraceFigures<'_>, _| of.name)
}

/// Returns the warp's position in its launch; zeros if the trace does not have the launch.
fn place(of: &TraceFigures<'_>, warp: &WarpFigures) -> ([u32; 3], u32) {
    let id = of.trace.launch(warp.launch).and_then(|info| info.stream_id(warp.warp));
    id.map_or_else(Default::default, |StreamId { block, warp_in_block, .. }| (block, warp_in_block))
}

fn warps<'a>() -> Columns<TraceFigures<'a>, WarpFigures> {
    of_trace::<WarpFigures>()
        .number("launch", |_, warp| warp.launch)
        .text("kernel", |of, warp| of.kernel(warp.launch))
        .number("block_x", |of, warp| place(of, warp).0[0])
        .number("block_y", |of, warp| place(of, warp).0[1])
        .number("block_z", |of, warp| place(of, warp).0[2])
        .number("warp", |of, warp| place(of, warp).1)
        .number("warp_index", |_, warp| warp.warp)
        .number("visits", |_, warp| warp.counts.visits)
        .number("lanes", |_, warp| warp.counts.lanes)
        .number("idle", |_, warp| warp.counts.idle)
        .number("path", |_, warp| warp.path)
        .number("last", |_, warp| warp.last)
        .text("end", |_, warp| match warp.end {
            WarpEnd::Whole => "whole",
            WarpEnd::Lossy => "lossy",
            WarpEnd::Unfinished => "unfinished",
            _ => "unknown",
        })
        .number("cycles", |_, warp| Some(warp.time?.cycles))
        .number("sm", |_, warp| Some(warp.ran?.sm))
        .number("begin_ns", |_, warp| Some(warp.ran?.begin_nanoseconds))
        .number("end_ns", |_, warp| warp.ran.and_then(WarpRan::end_nanoseconds))
        .number("role", |_, warp| warp.role)
}

struct LocationRow<'a> {
    id: u16,
    info: Option<&'a LocationInfo>,
    figures: Option<&'a LocationFigures>,
    time: Option<Time>,
}

impl LocationRow<'_> {
    fn text(&self, of: impl Fn(&LocationInfo) -> &str) -> &str {
        self.info.map_or("", of)
    }

    fn figure(&self, of: impl Fn(&LocationFigures) -> u64) -> u64 {
        self.figures.map_or(0, of)
    }
}

fn locations<'a, 'r>() -> Columns<TraceFigures<'a>, LocationRow<'r>> {
    of_trace::<LocationRow<'r>>()
        .number("location", |_, row| row.id)
        .text("name", |_, row| row.info.map_or("?", |info| &info.name))
        .known_text("description", |_, row| row.text(|info| &info.description))
        .known_text("file", |_, row| row.text(|info| &info.file))
        .number("line", |_, row| known(row.info?.line))
        .number("column", |_, row| known(row.info?.column))
        .counted(true)
        .number("visits", |_, row| row.figure(|figures| figures.counts.visits))
        .number("lanes", |_, row| row.figure(|figures| figures.counts.lanes))
        .number("idle", |_, row| row.figure(|figures| figures.counts.idle))
        .number("warps", |_, row| row.figure(|figures| figures.warps))
        .number("splits", |_, row| row.figure(|figures| figures.splits))
        .number("caused", |_, row| row.figure(|figures| figures.caused))
        .times(|_, row| row.time)
}

fn loops<'a, 'r>() -> Columns<TraceFigures<'a>, &'r LocationFigures> {
    of_trace::<&LocationFigures>()
        .number("location", |_, head| head.point.location)
        .text("name", |_, head| &head.point.name)
        .known_text("file", |_, head| &head.point.file)
        .number("line", |_, head| known(head.point.line))
        .number("entries", |_, head| head.trips.count())
        .number("trips", |_, head| head.trips.sum())
        .number("min", |_, head| head.trips.min())
        .number("median", |_, head| head.trips.percentile(50))
        .number("p95", |_, head| head.trips.percentile(95))
        .number("max", |_, head| head.trips.max())
        .number("mean", |_, head| head.trips.mean())
        .number("imbalance", |_, head| head.trips.imbalance())
        .number("visits", |_, head| head.counts.visits)
        .number("idle", |_, head| head.counts.idle)
        .number("warp_imbalance", |_, head| head.warp_visits.imbalance())
        .number("loop_lane_cycles", |_, head| head.loop_lane_cycles)
}

struct LaunchRow {
    info: LaunchInfo,
    ran: Option<(u64, u64)>,
    end: LaunchEnd,
}

fn site<'a>(of: &TraceFigures<'a>, row: &LaunchRow) -> Option<&'a StackFrame> {
    of.trace.launch_site(row.info.number())
}

fn launches<'a>() -> Columns<TraceFigures<'a>, LaunchRow> {
    of_trace::<LaunchRow>()
        .number("launch", |_, row| row.info.number())
        .text("kernel", |of, row| kernel_name(of.trace, &row.info))
        .known_text("file", |of, row| {
            let kernel = of.trace.metadata().kernels.get(row.info.kernel() as usize);
            kernel.map_or("", |kernel| &kernel.source_file)
        })
        .number("grid_x", |_, row| row.info.grid()[0])
        .number("grid_y", |_, row| row.info.grid()[1])
        .number("grid_z", |_, row| row.info.grid()[2])
        .number("threads_x", |_, row| row.info.block()[0])
        .number("threads_y", |_, row| row.info.block()[1])
        .number("threads_z", |_, row| row.info.block()[2])
        .number("shared_bytes", |_, row| row.info.dynamic_shared_bytes())
        .number("warps", |_, row| row.info.warps())
        .number("recorded_warps", |_, row| row.info.chosen().count())
        .number("events", |of, row| of.trace.totals(row.info.number(), 0).events)
        .text("end", |_, row| row.end.name())
        .known_text("message", |_, row| match &row.end {
            LaunchEnd::Failed { message } => message,
            _ => "",
        })
        .counted(true)
        .number("begin_ns", |_, row| Some(row.ran?.0))
        .number("end_ns", |_, row| Some(row.ran?.1))
        .counted(false)
        .known_text("label", |of, row| of.trace.label(row.info.number()).unwrap_or_default())
        .known_text("launch_file", |of, row| site(of, row).map_or("", |frame| &frame.file))
        .number("launch_line", |of, row| site(of, row).map(|frame| frame.line).filter(|line| *line > 0))
        .known_text("launch_function", |of, row| site(of, row).map_or("", |frame| &frame.function))
}

fn kernels<'a>() -> Columns<TraceFigures<'a>, KernelFigures> {
    of_trace::<KernelFigures>()
        .text("kernel", |_, row| &row.kernel)
        .number("launches", |_, row| row.launches)
        .number("warps", |_, row| row.warps)
        .number("visits", |_, row| row.counts.visits)
        .number("lanes", |_, row| row.counts.lanes)
        .number("idle", |_, row| row.counts.idle)
        .number("slots", |_, row| row.counts.slots)
        .times(|_, row| row.time)
}

fn lines<'a>() -> Columns<TraceFigures<'a>, LineFigures> {
    of_trace::<LineFigures>()
        .known_text("file", |_, row| &row.file)
        .number("line", |_, row| known(row.line))
        .made_text("names", |_, row| row.names.join(", "))
        .number("visits", |_, row| row.counts.visits)
        .number("lanes", |_, row| row.counts.lanes)
        .number("idle", |_, row| row.counts.idle)
        .number("slots", |_, row| row.counts.slots)
        .number("caused", |_, row| row.caused)
        .number("warps", |_, row| row.warps)
        .number("splits", |_, row| row.splits)
        .times(|_, row| row.time)
}

fn causes<'a>() -> Columns<TraceFigures<'a>, Cause> {
    of_trace::<Cause>()
        .number("location", |_, row| row.point.location)
        .text("name", |_, row| &row.point.name)
        .known_text("file", |_, row| &row.point.file)
        .number("line", |_, row| known(row.point.line))
        .number("decision", |_, row| row.decision())
        .number("idle", |_, row| row.idle)
        .number("divergences", |_, row| row.divergences)
        .number("reconverged", |_, row| row.reconverged())
        .number("events_diverged", |_, row| row.mean_events_diverged())
}

fn edges<'a>() -> Columns<TraceFigures<'a>, Edge> {
    of_trace::<Edge>()
        .number("from", |_, edge| edge.from)
        .number("to", |_, edge| edge.to)
        .number("visits", |_, edge| edge.visits)
        .number("lanes", |_, edge| edge.lanes)
}

#[derive(Clone, Copy)]
struct SiteRow<'a> {
    number: u16,
    info: Option<&'a SiteInfo>,
    figures: Option<&'a SiteFigures>,
}

impl SiteRow<'_> {
    fn text(&self, of: impl Fn(&SiteInfo) -> &str) -> &str {
        self.info.map_or("", of)
    }

    fn count(&self, of: impl Fn(&AccessCounts) -> u64) -> u64 {
        self.figures.map_or(0, |figures| of(&figures.counts))
    }
}

fn sites<'a, 'r>() -> Columns<TraceFigures<'a>, SiteRow<'r>> {
    of_trace::<SiteRow<'r>>()
        .number("site", |_, row| row.number)
        .known_text("kind", |_, row| row.text(|info| info.kind.name()))
        .known_text("space", |_, row| row.text(|info| info.space.name()))
        .number("bytes", |_, row| Some(row.info?.bytes))
        .number("elements", |_, row| Some(row.info?.elements))
        .known_text("cache", |_, row| row.text(|info| &info.cache))
        .known_text("name", |_, row| row.text(|info| &info.name))
        .known_text("number", |_, row| {
            row.text(|info| ValueReading::new(info).map_or("", ValueReading::kind))
        })
        .number("root", |_, row| Some(row.info?.derived?.root))
        .number("location", |_, row| known(row.info?.location))
        .known_text("file", |_, row| row.text(|info| &info.file))
        .number("line", |_, row| known(row.info?.line))
        .number("column", |_, row| known(row.info?.column))
        .counted(true)
        .number("accesses", |_, row| row.count(|counts| counts.lanes))
        .number("requests", |_, row| row.count(|counts| counts.requests))
        .number("events", |_, row| row.figures?.events)
        .number("uniform", |_, row| row.count(|counts| counts.uniform))
        .number("affine", |_, row| row.count(|counts| counts.affine))
        .number("generic", |_, row| row.count(|counts| counts.generic))
        .number("stride", |_, row| Some(row.figures?.stride?.0))
        .number("sectors", |_, row| row.count(|counts| counts.sectors))
        .number("least_sectors", |_, row| row.count(|counts| counts.least_sectors))
        .number("moved_bytes", |_, row| row.count(|counts| counts.moved_bytes))
        .number("used_bytes", |_, row| row.count(|counts| counts.used_bytes))
        .number("passes", |_, row| row.count(|counts| counts.passes))
        .number("least_passes", |_, row| row.count(|counts| counts.least_passes))
}

fn losses<'a>() -> Columns<TraceFigures<'a>, (LaunchInfo, LossyWarps)> {
    type LossRow = (LaunchInfo, LossyWarps);
    let first = |(info, lossy): &LossRow| info.stream_id(lossy.first);
    let block = move |row: &LossRow, axis: usize| first(row).map_or(0, |id| id.block[axis]);
    of_trace::<LossRow>()
        .number("launch", |_, row| row.0.number())
        .text("kernel", |of, row| kernel_name(of.trace, &row.0))
        .number("block_x", move |_, row| block(row, 0))
        .number("block_y", move |_, row| block(row, 1))
        .number("block_z", move |_, row| block(row, 2))
        .number("warp", move |_, row| first(row).map_or(0, |id| id.warp_in_block))
        .number("first_warp_index", |_, row| row.1.first)
        .number("last_warp_index", |_, row| row.1.last)
        .number("warps", |_, row| row.1.chosen)
        .text("reason", |_, row| row.1.reason.name())
        .text("where", |_, (_, lossy)| match lossy.position() {
            LossPosition::Start => "start",
            LossPosition::End => "end",
            _ => "within",
        })
        // Sum over all warps of the row.
        .number("events", |_, row| row.1.total())
}

fn access_losses_columns<'a>() -> Columns<TraceFigures<'a>, (LaunchInfo, Accesses)> {
    of_trace::<(LaunchInfo, Accesses)>()
        .number("launch", |_, row| row.0.number())
        .text("kernel", |of, row| kernel_name(of.trace, &row.0))
        .number("accesses", |_, row| row.1.accesses)
        .number("lost", |_, row| row.1.lost)
        .number("left_out", |_, row| row.1.left_out)
        .number("unmatched", |_, row| row.1.unmatched)
        .number("damaged_entries", |_, row| row.1.damaged)
}
