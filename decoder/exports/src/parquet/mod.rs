//! Parquet tables: runs, locations, launches, losses; addresses, values and their sites.
//!
//! The columns are described in `docs/reference/exports.md`. Numbers are unsigned but for
//! `launch`, whose statistics readers then understand that have no unsigned numbers (Spark); a text or number
//! that the trace does not know is missing (null). Beside the columns stand the facts of [`Source::facts`], as
//! key-value metadata whose keys begin with `warptrace.`. An output that is longer than the trace's
//! [limit](warptrace_decoder::TraceFile::limited) is an error.

mod accesses;
mod table;

use std::io::Write;

use warptrace_analysis::BlockRan;
use warptrace_format::file::LossPosition;

pub use warptrace_analysis::AccessTable;

pub use self::accesses::{access_losses, accesses, sites};
use self::table::{Column, Kind, Table, TextId, Value, column, optional};
use crate::error::ExportError;
use crate::runs::{Run, Step};
use crate::source::Source;

const RUNS: [Column; 20] = [
    column("launch", Kind::LargeSigned),
    column("kernel", Kind::Text),
    column("block_x", Kind::Small(32)),
    column("block_y", Kind::Small(32)),
    column("block_z", Kind::Small(32)),
    column("warp", Kind::Small(32)),
    column("warp_index", Kind::Small(32)),
    column("event", Kind::Large),
    column("location", Kind::Small(16)),
    optional("name", Kind::Text),
    optional("file", Kind::Text),
    optional("line", Kind::Small(32)),
    column("mask", Kind::Small(32)),
    column("lanes", Kind::Small(8)),
    optional("t_begin", Kind::Large),
    optional("t_end", Kind::Large),
    optional("sm", Kind::Small(32)),
    optional("block_begin_ns", Kind::Large),
    optional("block_end_ns", Kind::Large),
    column("count", Kind::Large),
];

const LOCATIONS: [Column; 6] = [
    column("location", Kind::Small(16)),
    column("name", Kind::Text),
    optional("description", Kind::Text),
    optional("file", Kind::Text),
    optional("line", Kind::Small(32)),
    optional("column", Kind::Small(32)),
];

const LAUNCHES: [Column; 18] = [
    column("launch", Kind::LargeSigned),
    column("kernel", Kind::Text),
    optional("file", Kind::Text),
    column("grid_x", Kind::Small(32)),
    column("grid_y", Kind::Small(32)),
    column("grid_z", Kind::Small(32)),
    column("threads_x", Kind::Small(32)),
    column("threads_y", Kind::Small(32)),
    column("threads_z", Kind::Small(32)),
    column("shared_bytes", Kind::Small(32)),
    column("warps", Kind::Small(32)),
    column("recorded_warps", Kind::Small(32)),
    column("events", Kind::Large),
    column("end", Kind::Text),
    optional("message", Kind::Text),
    optional("begin_ns", Kind::Large),
    optional("end_ns", Kind::Large),
    optional("label", Kind::Text),
];

const LOSSES: [Column; 12] = [
    column("launch", Kind::LargeSigned),
    column("kernel", Kind::Text),
    column("block_x", Kind::Small(32)),
    column("block_y", Kind::Small(32)),
    column("block_z", Kind::Small(32)),
    column("warp", Kind::Small(32)),
    column("first_warp_index", Kind::Small(32)),
    column("last_warp_index", Kind::Small(32)),
    column("warps", Kind::Small(32)),
    column("reason", Kind::Text),
    column("where", Kind::Text),
    optional("events", Kind::Large),
];

/// Writes the runs of the selected warps, a row each, or with `expand` a row for each of their events.
/// Returns how many rows were written.
///
/// Memory: that of [`Source::walk`] and [`Source::blocks`], and 2^18 rows.
///
/// # Errors
/// The trace is damaged, or `out` cannot be written.
pub fn runs(source: &Source<'_>, out: impl Write + Send, expand: bool) -> Result<u64, ExportError> {
    let mut table = Table::new(
        source.trace().limited(out),
        "runs",
        &RUNS,
        &["launch", "warp_index", "event"],
        &source.facts(),
    )?;
    let texts = LocationTexts::new(source, &mut table);
    for info in source.launches() {
        let kernel = table.text(source.kernel(info));
        let mut blocks = source.blocks(info)?.map_or_else(Vec::new, |found| found.blocks);
        blocks.sort_unstable_by_key(|block| block.block);
        let per_block = info.warps_per_block();
        source.walk(info.number(), &mut |step| {
            let Step::Run(run) = step else { return Ok(()) };
            let block = blocks.binary_search_by_key(&(run.warp / per_block), |block| block.block);
            let block = block.ok().and_then(|at| blocks.get(at));
            if !expand {
                return Ok(table.push(&texts.row(&run, kernel, block))?);
            }
            let last_event = run.first_event + (run.count - 1);
            for first_event in run.first_event..=last_event {
                // It is known when the first one began, and when the last one was over.
                let begin = run.begin.filter(|_| first_event == run.first_event);
                let end = run.end.filter(|_| first_event == last_event);
                let event = Run { first_event, count: 1, begin, end, ..run };
                table.push(&texts.row(&event, kernel, block))?;
            }
            Ok(())
        })?;
        table.end_launch()?;
    }
    Ok(table.finish()?)
}

/// Writes the trace's table of locations. Returns how many rows were written.
///
/// # Errors
/// `out` cannot be written.
pub fn locations(source: &Source<'_>, out: impl Write + Send) -> Result<u64, ExportError> {
    let mut table = Table::new(source.trace().limited(out), "locations", &LOCATIONS, &[], &source.facts())?;
    for info in &source.trace().metadata().locations {
        let row = [
            u32::from(info.id).into(),
            table.text(&info.name).into(),
            table.text_if_known(&info.description).into(),
            table.text_if_known(&info.file).into(),
            known(info.line).into(),
            known(info.column).into(),
        ];
        table.push(&row)?;
    }
    Ok(table.finish()?)
}

/// Writes the selected launches. Returns how many rows were written.
///
/// # Errors
/// `out` cannot be written.
pub fn launches(source: &Source<'_>, out: impl Write + Send) -> Result<u64, ExportError> {
    use warptrace_decoder::LaunchEnd;
    let trace = source.trace();
    let mut table =
        Table::new(source.trace().limited(out), "launches", &LAUNCHES, &["launch"], &source.facts())?;
    for info in source.launches() {
        let end = trace.launch_end(info.number()).unwrap_or(LaunchEnd::Unknown);
        let message = if let LaunchEnd::Failed { message } = &end { message.as_str() } else { "" };
        let file = trace.metadata().kernels.get(info.kernel() as usize);
        let ([grid_x, grid_y, grid_z], [threads_x, threads_y, threads_z]) = (info.grid(), info.block());
        let ran =
            source.blocks(info)?.map(|found| (found.begin, found.begin.saturating_add(found.nanoseconds)));
        let row = [
            i64::from(info.number()).into(),
            table.text(source.kernel(info)).into(),
            table.text_if_known(file.map_or("", |kernel| &kernel.source_file)).into(),
            grid_x.into(),
            grid_y.into(),
            grid_z.into(),
            threads_x.into(),
            threads_y.into(),
            threads_z.into(),
            info.dynamic_shared_bytes().into(),
            info.warps().into(),
            info.chosen().count().into(),
            trace.totals(info.number(), 0).events.into(),
            table.text(end.name()).into(),
            table.text_if_known(message).into(),
            ran.map(|(begin, _)| begin).into(),
            ran.map(|(_, end)| end).into(),
            table.text_if_known(trace.label(info.number()).unwrap_or_default()).into(),
        ];
        table.push(&row)?;
    }
    Ok(table.finish()?)
}

/// Writes what the selected warps lack, a row for each warp and reason; warps that follow each other, and
/// lack equally many events or it is not known how many, share one. Returns how many rows were written.
///
/// # Errors
/// `out` cannot be written.
pub fn losses(source: &Source<'_>, out: impl Write + Send) -> Result<u64, ExportError> {
    let mut table = Table::new(source.trace().limited(out), "losses", &LOSSES, &["launch"], &source.facts())?;
    let reasons = warptrace_format::file::LossReason::ALL.map(|reason| (reason, table.text(reason.name())));
    let [start, within, end] = ["start", "within", "end"].map(|position| table.text(position));
    for info in source.launches() {
        let kernel = table.text(source.kernel(info));
        for lack in source.lacking(info)? {
            let lack = lack?;
            let id = info.stream_id(lack.first).expect("the decoder gives warps of this launch");
            let position = match lack.events.map_or(LossPosition::End, |_| lack.reason.position()) {
                LossPosition::Start => start,
                LossPosition::End => end,
                _ => within,
            };
            let reason = reasons.iter().find(|(reason, _)| *reason == lack.reason);
            let row = [
                i64::from(info.number()).into(),
                kernel.into(),
                id.block[0].into(),
                id.block[1].into(),
                id.block[2].into(),
                id.warp_in_block.into(),
                lack.first.into(),
                lack.last.into(),
                u32::try_from(lack.warps).unwrap_or(u32::MAX).into(),
                reason.map(|(_, text)| *text).expect("the list has every reason").into(),
                position.into(),
                lack.events.into(),
            ];
            table.push(&row)?;
        }
    }
    Ok(table.finish()?)
}

/// A number that is 0 when it is not known.
fn known(number: u32) -> Option<u32> {
    (number > 0).then_some(number)
}

/// Texts of locations, by id.
struct LocationTexts(Vec<(Option<TextId>, Option<TextId>, Option<u32>)>);

impl LocationTexts {
    fn new<W: Write + Send>(source: &Source<'_>, table: &mut Table<W>) -> Self {
        let ids = source.trace().metadata().locations.iter().map(|info| info.id).max().unwrap_or(0);
        let texts = (0..=ids).map(|id| match source.location(id) {
            Some(info) => {
                (table.text_if_known(&info.name), table.text_if_known(&info.file), known(info.line))
            }
            None => (None, None, None),
        });
        Self(texts.collect())
    }

    fn row(&self, run: &Run, kernel: TextId, block: Option<&BlockRan>) -> [Value; RUNS.len()] {
        let (name, file, line) = self.0.get(usize::from(run.event.location)).copied().unwrap_or_default();
        let mask = run.event.mask;
        [
            i64::from(run.id.launch).into(),
            kernel.into(),
            run.id.block[0].into(),
            run.id.block[1].into(),
            run.id.block[2].into(),
            run.id.warp_in_block.into(),
            run.warp.into(),
            run.first_event.into(),
            u32::from(run.event.location).into(),
            name.into(),
            file.into(),
            line.into(),
            mask.into(),
            mask.count_ones().into(),
            run.begin.into(),
            run.end.into(),
            block.map(|block| block.sm).into(),
            block.map(|block| block.begin_nanoseconds).into(),
            block.and_then(BlockRan::end_nanoseconds).into(),
            run.count.into(),
        ]
    }
}
