//! Tables of addresses and values match the decoder, and sites match the analysis.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use warptrace_analysis::{AnalysisError, Selection, accesses};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::data::SiteKind;
use warptrace_tables::{AccessBatch, AccessTable, BATCH, FigureTable, TraceFigures, access_schema};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn traces() -> Vec<TraceFile> {
    let files = ["decoder/decode/tests/golden/accesses-v2.wtrc", "fuzz/corpus/data/accesses-v2.wtrc"];
    let files = files.map(|file| TraceFile::open(Path::new(ROOT).join(file)).unwrap());
    assert!(files.iter().all(TraceFile::has_accesses));
    files.into()
}

fn rows(trace: &TraceFile, table: AccessTable, selection: &Selection) -> Vec<RecordBatch> {
    let schema = access_schema(table);
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let mut found = Vec::new();
    for (launch, warps) in selection.launches(trace).unwrap() {
        let batch = AccessBatch::new(("a", trace), launch, table, (&columns, &schema));
        let flow = batch.fill(&warps, selection, &mut |batch| {
            assert!(batch.num_rows() <= BATCH);
            found.push(batch);
            ControlFlow::Continue(())
        });
        assert!(flow.unwrap().0.is_continue());
    }
    found
}

fn column<T: ArrowPrimitiveType>(batches: &[RecordBatch], name: &str) -> Vec<Option<T::Native>> {
    let columns = batches.iter().map(|batch| batch.column_by_name(name).unwrap().as_primitive::<T>());
    columns.flat_map(|column| column.iter().collect::<Vec<_>>()).collect()
}

/// Returns the values of a column without nulls.
fn whole<T: ArrowPrimitiveType>(batches: &[RecordBatch], name: &str) -> Vec<T::Native> {
    column::<T>(batches, name).into_iter().map(Option::unwrap).collect()
}

type Lane = (u32, u32, u16, u8);

/// Returns the accesses of each lane at each site, in order, from the decoder.
fn expected(trace: &TraceFile, of_values: bool) -> BTreeMap<Lane, Vec<u64>> {
    let mut found = BTreeMap::new();
    for info in trace.launches() {
        let all = WarpFilter::all();
        let _ = trace
            .accesses_in_order(info.number(), &all, &mut |warp| {
                for (site, lane) in warp.each_lane() {
                    let is_value = trace.site(site).is_some_and(|info| info.kind == SiteKind::Value);
                    if is_value == of_values {
                        let key = (info.number(), warp.warp, site, lane as u8);
                        found.insert(key, warp.lane(site, lane).collect());
                    }
                }
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    found
}

/// Returns the accesses of each lane at each site from a table's rows, which are in order of time.
fn by_lane(batches: &[RecordBatch], what: &str) -> BTreeMap<Lane, Vec<u64>> {
    let mut found: BTreeMap<Lane, Vec<u64>> = BTreeMap::new();
    let launches = whole::<UInt32Type>(batches, "launch");
    let (warps, sites) = (whole::<UInt32Type>(batches, "warp_index"), whole::<UInt16Type>(batches, "site"));
    let (lanes, values) = (whole::<UInt8Type>(batches, "lane"), whole::<UInt64Type>(batches, what));
    for (at, value) in values.into_iter().enumerate() {
        found.entry((launches[at], warps[at], sites[at], lanes[at])).or_default().push(value);
    }
    found
}

#[test]
fn lanes_have_the_addresses_and_values_that_the_decoder_gives() {
    let mut sums = [0; 2];
    for trace in traces() {
        for (of_values, table, what) in
            [(false, AccessTable::LaneAccesses, "address"), (true, AccessTable::LaneValues, "bits")]
        {
            let expected = expected(&trace, of_values);
            let found = by_lane(&rows(&trace, table, &Selection::default()), what);
            assert_eq!(found, expected);
            sums[usize::from(of_values)] += expected.values().map(Vec::len).sum::<usize>();
        }
    }
    assert!(sums[0] > BATCH, "{sums:?}: more than a batch");
}

#[test]
fn runs_are_the_accesses_of_lanes_by_the_documented_formula() {
    for trace in traces() {
        for (of_values, table) in [(false, AccessTable::Accesses), (true, AccessTable::Values)] {
            let batches = rows(&trace, table, &Selection::default());
            let mut found: BTreeMap<Lane, Vec<u64>> = BTreeMap::new();
            let launches = whole::<UInt32Type>(&batches, "launch");
            let warps = whole::<UInt32Type>(&batches, "warp_index");
            let sites = whole::<UInt16Type>(&batches, "site");
            let masks = whole::<UInt32Type>(&batches, "mask");
            let lanes = column::<UInt8Type>(&batches, "lane");
            let bases = whole::<UInt64Type>(&batches, "base");
            let spreads = column::<Int32Type>(&batches, "spread");
            let steps = whole::<Int32Type>(&batches, "step");
            let counts = whole::<UInt32Type>(&batches, "count");
            for at in 0..bases.len() {
                let mask = masks[at];
                let (low, high) = (mask.trailing_zeros(), 31 - mask.leading_zeros());
                for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
                    let rise = match (lanes[at], spreads[at]) {
                        (Some(own), None) if u32::from(own) == lane => 0,
                        (Some(_), None) => continue,
                        (None, Some(spread)) => {
                            i64::from(spread) * i64::from(lane - low) / i64::from((high - low).max(1))
                        }
                        other => panic!("{other:?}: either a lane, or all on a line"),
                    };
                    let of = found.entry((launches[at], warps[at], sites[at], lane as u8)).or_default();
                    of.extend((0..counts[at]).map(|number| {
                        let step = i64::from(steps[at]) * i64::from(number);
                        bases[at].wrapping_add_signed(rise).wrapping_add_signed(step)
                    }));
                }
            }
            assert_eq!(found, expected(&trace, of_values));
        }
    }
}

#[test]
fn a_selection_has_the_rows_of_its_warps() {
    for trace in traces() {
        let all = rows(&trace, AccessTable::Accesses, &Selection::default());
        let first = whole::<UInt32Type>(&all, "warp").into_iter().filter(|warp| *warp == 0).count();
        let chosen = Selection { warp: Some(0), ..Selection::default() };
        let chosen = rows(&trace, AccessTable::Accesses, &chosen);
        assert_eq!(chosen.iter().map(RecordBatch::num_rows).sum::<usize>(), first);
    }
}

fn figures(trace: &TraceFile, table: FigureTable) -> RecordBatch {
    let (selection, schema) = (Selection::default(), table.schema());
    let unused = || -> Result<_, std::sync::Arc<AnalysisError>> { panic!("these tables need no events") };
    let figures = TraceFigures { name: "a", trace, selection: &selection, analysis: &unused };
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let mut found = RecordBatch::new_empty(std::sync::Arc::clone(&schema));
    let flow = figures.rows(table, (&columns, &schema), &mut |batch| {
        found = batch;
        ControlFlow::Continue(())
    });
    assert!(flow.unwrap().is_continue());
    found
}

#[test]
fn sites_have_the_figures_of_the_analysis_and_losses_say_what_is_not_known() {
    for trace in traces() {
        let expected = accesses(&trace, &Selection::default()).unwrap();
        let sites = [figures(&trace, FigureTable::Sites)];
        assert_eq!(sites[0].num_rows(), trace.sites().len());
        let numbers = whole::<UInt16Type>(&sites, "site");
        for site in &expected.sites {
            let at = numbers.iter().position(|number| *number == site.site).unwrap();
            let of = |name| whole::<UInt64Type>(&sites, name)[at];
            let counts = &site.counts;
            assert_eq!((of("accesses"), of("requests")), (counts.lanes, counts.requests));
            assert_eq!((of("sectors"), of("least_sectors")), (counts.sectors, counts.least_sectors));
            assert_eq!((of("passes"), of("least_passes")), (counts.passes, counts.least_passes));
            assert_eq!(column::<UInt64Type>(&sites, "events")[at], site.events);
            assert_eq!(column::<UInt16Type>(&sites, "root")[at], site.root);
            assert_eq!(column::<Int64Type>(&sites, "stride")[at], site.stride.map(|(stride, _)| stride));
        }
        let losses = [figures(&trace, FigureTable::AccessLosses)];
        let sum = |name| whole::<UInt64Type>(&losses, name).into_iter().sum::<u64>();
        assert_eq!((sum("lost"), sum("left_out")), (expected.lost, expected.left_out));
        assert_eq!(losses[0].num_rows() > 0, !expected.is_whole());
    }
}

#[test]
fn traces_without_accesses_have_empty_tables() {
    let trace = TraceFile::open(Path::new(ROOT).join("decoder/query/tests/traces/mis.wtrc")).unwrap();
    assert!(!trace.has_accesses());
    for table in AccessTable::ALL {
        assert!(rows(&trace, table, &Selection::default()).is_empty());
    }
    for table in [FigureTable::Sites, FigureTable::AccessLosses] {
        let found = figures(&trace, table);
        assert_eq!((found.num_rows(), found.schema()), (0, table.schema()));
    }
}
