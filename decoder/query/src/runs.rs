//! The tables of events, addresses and values, decoded while a query runs.

use std::ops::{ControlFlow, Range};

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use warptrace_analysis::{Selection, kernel_name};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::file::LaunchInfo;
use warptrace_tables::{AccessBatch, EventBatch, Sink, TableError, TraceTable, Wanted};

use crate::filter::Bounds;
use crate::scan::{Open, Scan};
use crate::source::Named;

/// Minimum number of events of a launch whose warps are divided among threads.
const MANY_EVENTS: u64 = 1 << 16;

#[derive(Clone)]
struct Job {
    trace: usize,
    launch: LaunchInfo,
    warps: Range<u32>,
}

/// Makes the rows of one part of a table. Several parts may be made in parallel.
pub(crate) fn rows(
    open: &Open,
    table: TraceTable,
    scan: &Scan,
    part: usize,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let track = if matches!(table, TraceTable::Accesses(_)) { TraceFile::data_track } else { |_: &_| 0 };
    let jobs = shared_out(&open.traces, &scan.bounds, scan.part_count().max(1), track);
    for job in jobs.get(part).into_iter().flatten() {
        let flow = rows_of(open, table, scan, job, sink);
        if flow.map_err(|error| open.traces[job.trace].error(error))?.is_break() {
            break;
        }
    }
    Ok(())
}

fn rows_of(
    open: &Open,
    table: TraceTable,
    scan: &Scan,
    job: &Job,
    sink: &mut Sink<'_>,
) -> Result<ControlFlow<()>, TableError> {
    let Named { name, trace, .. } = &open.traces[job.trace];
    let (warps, selection) = (WarpFilter::warps(job.warps.clone()), Selection::default());
    let (schema, columns) = (scan.schema(), scan.columns.as_slice());
    match table {
        TraceTable::Events(table) => {
            let (least, greatest) = scan.bounds.range("location");
            let wanted = Wanted { warps, selection, locations: least..=greatest };
            EventBatch::new((name.as_str(), trace), job.launch, (columns, &schema), &open.made)
                .fill(trace, &wanted, table, sink)
        }
        TraceTable::Accesses(table) => {
            let batch = AccessBatch::new((name.as_str(), trace), job.launch, table, (columns, &schema));
            Ok(batch.fill(&warps, &selection, sink)?.0)
        }
        TraceTable::Figures(_) => Ok(ControlFlow::Continue(())),
    }
}

fn shared_out(
    traces: &[Named],
    bounds: &Bounds,
    parts: usize,
    track: fn(&TraceFile) -> u32,
) -> Vec<Vec<Job>> {
    let mut jobs: Vec<Vec<Job>> = vec![Vec::new(); parts];
    let of_all = traces.iter().enumerate();
    let of_all = of_all.flat_map(|(number, named)| jobs_of(number, named, bounds, (parts, track)));
    for (next, job) in of_all.enumerate() {
        jobs[next % parts].push(job);
    }
    jobs
}

fn jobs_of(
    number: usize,
    named: &Named,
    bounds: &Bounds,
    (parts, track): (usize, fn(&TraceFile) -> u32),
) -> Vec<Job> {
    let mut jobs = Vec::new();
    if !bounds.allow_text("trace", &named.name) {
        return jobs;
    }
    for launch in named.trace.launches() {
        let kernel = kernel_name(&named.trace, launch);
        if !bounds.allow("launch", launch.number().into()) || !bounds.allow_text("kernel", kernel) {
            continue;
        }
        let per_block = u64::from(launch.warps_per_block());
        let (mut first, mut last) = bounds.range("warp_index");
        if launch.grid()[1] == 1 && launch.grid()[2] == 1 {
            // One-dimensional grid: blocks have consecutive warps.
            let (least, greatest) = bounds.range("block_x");
            first = first.max(least.saturating_mul(per_block));
            last = last.min(greatest.saturating_mul(per_block).saturating_add(per_block - 1));
        }
        let end = last.saturating_add(1).min(launch.warps().into());
        if first >= end {
            continue;
        }
        // Both are at most the number of warps, which has 32 bits.
        let warps = first as u32..end as u32;
        let is_small = named.trace.totals(launch.number(), track(&named.trace)).events < MANY_EVENTS;
        let pieces = if is_small { 1 } else { parts as u64 };
        let cut = |piece: u64| warps.start + (u64::from(warps.end - warps.start) * piece / pieces) as u32;
        for piece in 0..pieces {
            let warps = cut(piece)..cut(piece + 1);
            if !warps.is_empty() {
                jobs.push(Job { trace: number, launch: *launch, warps });
            }
        }
    }
    jobs
}
