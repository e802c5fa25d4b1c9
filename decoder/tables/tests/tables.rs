//! Tables of the golden files have the rows of the analysis, in the columns of their schemas.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use warptrace_analysis::{Selection, analyse};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_tables::{Batch, Figures, Kind, Made, Table, Wanted};

const TABLES: [Table; 8] = [
    Table::Warps,
    Table::Locations,
    Table::Loops,
    Table::Launches,
    Table::Kernels,
    Table::Lines,
    Table::Causes,
    Table::Edges,
];

fn traces() -> Vec<TraceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["../decode/tests/golden", "../query/tests/traces"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wtrc"));
    assert!(paths.len() >= 7, "{paths:?}");
    paths.iter().map(|path| TraceFile::open(path).unwrap()).collect()
}

#[test]
fn figures_are_those_of_the_analysis() {
    for trace in traces() {
        let analysis = Arc::new(analyse(&trace, &Selection::default()).unwrap());
        for table in TABLES {
            let figures = Figures { name: "a", trace: &trace, analysis: &|| Ok(Arc::clone(&analysis)) };
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
                Table::Warps => analysis.warps.len(),
                Table::Locations => trace.metadata().locations.len().max(analysis.locations.len()),
                Table::Loops => analysis.loops().count(),
                Table::Launches => trace.launches().len(),
                Table::Kernels => analysis.kernels.len(),
                Table::Lines => analysis.lines.len(),
                Table::Causes => analysis.causes.len(),
                Table::Edges => analysis.edges.len(),
            };
            assert_eq!(rows, expected, "{table:?}");
            if ![Table::Loops, Table::Launches, Table::Edges].contains(&table) {
                assert_eq!(idle, analysis.counts.idle, "{table:?}");
            }
        }
    }
}

/// The batches of a launch.
fn batches(trace: &TraceFile, launch: u32, kind: Kind, warp_in_block: Option<u32>) -> Vec<RecordBatch> {
    let schema = kind.schema();
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let info = *trace.launch(launch).unwrap();
    let mut batch = Batch::new(("a", trace), info, (&columns, &schema), &Arc::new(Made::default()));
    let wanted = Wanted { warps: WarpFilter::all(), warp_in_block, locations: 0..=u64::MAX };
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
            for batch in batches(&trace, info.number(), Kind::Events, None) {
                found.extend(numbers(&batch, "warp_index").into_iter().zip(numbers(&batch, "mask")));
            }
            assert_eq!(found, expected);
            let mut expanded = Vec::new();
            for batch in batches(&trace, info.number(), Kind::Runs, None) {
                let counts = batch.column_by_name("count").unwrap().as_primitive::<UInt64Type>().clone();
                let masks = numbers(&batch, "warp_index").into_iter().zip(numbers(&batch, "mask"));
                for (event, count) in masks.zip(counts.values()) {
                    expanded.extend(std::iter::repeat_n(event, *count as usize));
                }
            }
            assert_eq!(expanded, expected);
            let per_block = info.warps_per_block();
            expected.retain(|(warp, _)| warp % per_block == 0);
            let first = batches(&trace, info.number(), Kind::Events, Some(0));
            assert_eq!(first.iter().map(RecordBatch::num_rows).sum::<usize>(), expected.len());
        }
    }
}
