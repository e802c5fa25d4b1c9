//! Tables of the golden files match the analysis, with the columns of their schemas.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, UInt8Type, UInt32Type, UInt64Type};
use warptrace_analysis::{Analysis, BlockRan, Selection, WarpFigures, analyse, blocks};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_tables::{EventBatch, EventTable, FigureTable, Made, TraceFigures, Wanted};

fn traces() -> Vec<TraceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["../decode/tests/golden", "../query/tests/traces"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wtrc"));
    assert!(paths.len() >= 8, "{paths:?}");
    paths.iter().map(|path| TraceFile::open(path).unwrap()).collect()
}

#[test]
fn figures_are_those_of_the_analysis() {
    for trace in traces() {
        let analysis = Arc::new(analyse(&trace, &Selection::default()).unwrap());
        for table in FigureTable::ALL {
            let all = Selection::default();
            let figures = TraceFigures {
                name: "a",
                trace: &trace,
                selection: &all,
                analysis: &|| Ok(Arc::clone(&analysis)),
            };
            let schema = table.schema();
            let columns: Vec<usize> = (0..schema.fields().len()).collect();
            let (mut rows, mut idle) = (0, 0);
            let flow = figures.rows(table, (&columns, &schema), &mut |batch| {
                rows += batch.num_rows();
                let column = batch.column_by_name("idle");
                idle += column.map_or(0, |idle| idle.as_primitive::<UInt64Type>().values().iter().sum());
                ControlFlow::Continue(())
            });
            assert!(flow.unwrap().is_continue());
            let expected = match table {
                FigureTable::Warps => analysis.warps.len(),
                FigureTable::Locations => trace.metadata().locations.len().max(analysis.locations.len()),
                FigureTable::Loops => analysis.loops().count(),
                FigureTable::Launches => trace.launches().len(),
                FigureTable::Kernels => analysis.kernels.len(),
                FigureTable::Lines => analysis.lines.len(),
                FigureTable::Causes => analysis.causes.len(),
                FigureTable::Edges => analysis.edges.len(),
                FigureTable::Sites => trace.sites().len(),
                FigureTable::Losses => {
                    trace.launches().map(|info| all.lacking(&trace, info, 0).unwrap().count()).sum()
                }
                FigureTable::AccessLosses => 0,
            };
            assert_eq!(rows, expected, "{table:?}");
            if ![
                FigureTable::Loops,
                FigureTable::Launches,
                FigureTable::Edges,
                FigureTable::Sites,
                FigureTable::Losses,
                FigureTable::AccessLosses,
            ]
            .contains(&table)
            {
                assert_eq!(idle, analysis.counts.idle, "{table:?}");
            }
        }
    }
}

fn batches(trace: &TraceFile, launch: u32, kind: EventTable, warp: Option<u32>) -> Vec<RecordBatch> {
    let schema = kind.schema();
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let info = *trace.launch(launch).unwrap();
    let mut batch = EventBatch::new(("a", trace), info, (&columns, &schema), &Arc::new(Made::default()));
    let selection = Selection { warp, ..Selection::default() };
    let wanted = Wanted { warps: WarpFilter::all(), selection, locations: 0..=u64::MAX };
    let mut batches = Vec::new();
    let flow = batch.fill(trace, &wanted, kind, &mut |batch| {
        batches.push(batch);
        ControlFlow::Continue(())
    });
    assert!(flow.unwrap().is_continue());
    batches
}

#[test]
fn events_and_runs_are_the_decoded_ones() {
    for trace in traces() {
        for info in trace.launches() {
            let mut expected = Vec::new();
            for warp in 0..info.warps() {
                let events = trace.decode_warp(info.number(), warp, 0).unwrap();
                expected.extend(events.map(|event| (warp, event.unwrap().mask)));
            }
            let numbers = |batch: &RecordBatch, name: &str| -> Vec<u32> {
                batch.column_by_name(name).unwrap().as_primitive::<UInt32Type>().values().to_vec()
            };
            let mut found = Vec::new();
            for batch in batches(&trace, info.number(), EventTable::Events, None) {
                found.extend(numbers(&batch, "warp_index").into_iter().zip(numbers(&batch, "mask")));
            }
            assert_eq!(found, expected);
            let mut expanded = Vec::new();
            for batch in batches(&trace, info.number(), EventTable::Runs, None) {
                let counts = batch.column_by_name("count").unwrap().as_primitive::<UInt64Type>().clone();
                let masks = numbers(&batch, "warp_index").into_iter().zip(numbers(&batch, "mask"));
                for (event, count) in masks.zip(counts.values()) {
                    expanded.extend(std::iter::repeat_n(event, *count as usize));
                }
            }
            assert_eq!(expanded, expected);
            let per_block = info.warps_per_block();
            expected.retain(|(warp, _)| warp % per_block == 0);
            let first = batches(&trace, info.number(), EventTable::Events, Some(0));
            assert_eq!(first.iter().map(RecordBatch::num_rows).sum::<usize>(), expected.len());
        }
    }
}

fn column<T: ArrowPrimitiveType>(batches: &[RecordBatch], name: &str) -> Vec<Option<T::Native>> {
    let columns = batches.iter().map(|batch| batch.column_by_name(name).unwrap().as_primitive::<T>());
    columns.flat_map(|column| column.iter().collect::<Vec<_>>()).collect()
}

fn rows(trace: &TraceFile, analysis: &Arc<Analysis>, table: FigureTable) -> Vec<RecordBatch> {
    let all = Selection::default();
    let figures = TraceFigures { name: "a", trace, selection: &all, analysis: &|| Ok(Arc::clone(analysis)) };
    let schema = table.schema();
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let mut batches = Vec::new();
    let flow = figures.rows(table, (&columns, &schema), &mut |batch| {
        batches.push(batch);
        ControlFlow::Continue(())
    });
    assert!(flow.unwrap().is_continue());
    batches
}

#[test]
fn warps_have_their_role() {
    for trace in traces() {
        let mut analysis = analyse(&trace, &Selection::default()).unwrap();
        // No two consecutive warps have the same role.
        let with_role = |(at, warp)| WarpFigures { role: [Some(1), None, Some(2)][at % 3], ..warp };
        analysis.warps = analysis.warps.iter().enumerate().map(with_role).collect();
        let expected: Vec<Option<u8>> = analysis.warps.iter().map(|warp| warp.role).collect();
        let warps = rows(&trace, &Arc::new(analysis), FigureTable::Warps);
        assert_eq!(column::<UInt8Type>(&warps, "role"), expected);
    }
}

#[test]
fn rows_say_where_and_when_their_block_ran_if_the_trace_does() {
    let mut known = 0;
    for trace in traces() {
        let analysis = Arc::new(analyse(&trace, &Selection::default()).unwrap());
        let warps = rows(&trace, &analysis, FigureTable::Warps);
        let ran = |of: fn(&warptrace_analysis::WarpRan) -> Option<u64>| -> Vec<Option<u64>> {
            analysis.warps.iter().map(|warp| warp.ran.as_ref().and_then(of)).collect()
        };
        let sms: Vec<Option<u64>> =
            column::<UInt32Type>(&warps, "sm").into_iter().map(|sm| sm.map(u64::from)).collect();
        assert_eq!(sms, ran(|ran| Some(ran.sm.into())));
        assert_eq!(column::<UInt64Type>(&warps, "begin_ns"), ran(|ran| Some(ran.begin_nanoseconds)));
        let ends = ran(|ran| Some(ran.begin_nanoseconds + ran.nanoseconds?));
        assert_eq!(column::<UInt64Type>(&warps, "end_ns"), ends);
        let launches = rows(&trace, &analysis, FigureTable::Launches);
        let [begins, ends] = ["begin_ns", "end_ns"].map(|name| column::<UInt64Type>(&launches, name));
        for (at, info) in trace.launches().enumerate() {
            let ran = blocks(&trace, info, &Selection::default()).unwrap();
            assert_eq!((begins[at], ends[at].is_some()), (ran.as_ref().map(|ran| ran.begin), ran.is_some()));
            let ran = ran.map_or_else(Vec::new, |ran| ran.blocks);
            known += ran.len();
            for kind in [EventTable::Runs, EventTable::Events, EventTable::Sums] {
                let rows = batches(&trace, info.number(), kind, None);
                let warps = column::<UInt32Type>(&rows, "warp_index");
                let of = |warp: &Option<u32>| {
                    ran.iter()
                        .find(|block| Some(block.block) == warp.map(|warp| warp / info.warps_per_block()))
                };
                let expected: Vec<_> = warps.iter().map(of).collect();
                let sms: Vec<_> = expected.iter().map(|block| Some(block.as_ref()?.sm)).collect();
                assert_eq!(column::<UInt32Type>(&rows, "sm"), sms);
                let begins: Vec<_> =
                    expected.iter().map(|block| Some(block.as_ref()?.begin_nanoseconds)).collect();
                assert_eq!(column::<UInt64Type>(&rows, "block_begin_ns"), begins);
                let ends: Vec<_> =
                    expected.iter().map(|block| block.and_then(BlockRan::end_nanoseconds)).collect();
                assert_eq!(column::<UInt64Type>(&rows, "block_end_ns"), ends);
            }
        }
    }
    assert!(known > 4, "a trace has blocks that say when they ran");
}
