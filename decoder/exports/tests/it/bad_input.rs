//! Exports of damaged traces succeed or return errors; they never panic.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::path::PathBuf;

use warptrace_analysis::Selection;
use warptrace_decoder::TraceFile;
use warptrace_exports::{ExportError, ExportSource, Weight, firefox, lcov, timeline};

fn golden() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../decode/tests/golden");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let traces = paths.filter(|path| path.extension().is_some_and(|extension| extension == "wtrc"));
    let mut traces: Vec<_> = traces.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    traces.sort();
    traces
}

/// Exports into memory in every format. Returns the sizes.
fn export(trace: &TraceFile, selection: &Selection) -> Result<Vec<usize>, ExportError> {
    let source = ExportSource::new(trace, selection.clone())?;
    let mut sizes = Vec::new();
    let mut out = Vec::new();
    let mut take = |out: &mut Vec<u8>| {
        sizes.push(out.len());
        out.clear();
    };
    timeline::perfetto(&source, &mut out, &mut |_| {})?;
    take(&mut out);
    let all = [Weight::Lanes, Weight::Idle, Weight::Visits, Weight::Cycles, Weight::IdleCycles];
    for weight in all.into_iter().take(if trace.has_times() { 5 } else { 3 }) {
        firefox(&source, &mut out, weight)?;
        take(&mut out);
    }
    lcov(&source, &mut out)?;
    take(&mut out);
    #[cfg(feature = "parquet")]
    {
        use warptrace_exports::parquet::{self, FigureTable, TraceTable};
        // Other tables need an analysis, which has separate tests.
        use FigureTable::{AccessLosses, Launches, Locations, Losses, Sites};
        let figures = [Locations, Launches, Losses, Sites, AccessLosses].map(TraceTable::Figures);
        let is_figures = |table: &TraceTable| matches!(table, TraceTable::Figures(_));
        for table in TraceTable::all().filter(|table| !is_figures(table)).chain(figures) {
            parquet::write(&source, table, &mut out)?;
            take(&mut out);
        }
    }
    Ok(sizes)
}

#[test]
fn sound_traces_can_be_exported() {
    let traces = golden();
    assert!(traces.len() > 3);
    for (path, bytes) in traces {
        let trace = TraceFile::from_bytes(bytes).unwrap();
        for warp in [None, Some(0)] {
            let sizes = export(&trace, &Selection { warp, ..Selection::default() }).unwrap();
            assert!(sizes.iter().all(|size| *size > 0), "{}: {sizes:?}", path.display());
        }
    }
}

/// Changes a byte of each golden file, and truncates it, at `places` places.
fn check_damaged(places: usize) {
    let (mut exported, mut refused) = (0, 0);
    for (_, bytes) in golden() {
        let step = (bytes.len() / places).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            for damaged in [flipped, bytes[..at].to_vec()] {
                let Ok(trace) = TraceFile::from_bytes(damaged) else { continue };
                match export(&trace, &Selection::default()) {
                    Ok(_) => exported += 1,
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        refused += 1;
                    }
                }
            }
        }
    }
    // For 35 places, at least 50 and 30.
    assert!(
        35 * exported > 50 * places && 35 * refused > 30 * places,
        "{exported} exported, {refused} refused"
    );
}

#[test]
fn damaged_traces_are_exported_or_refused() {
    check_damaged(12);
}

mod full {
    #[test]
    fn damaged_traces_are_exported_or_refused() {
        super::check_damaged(35);
    }
}
