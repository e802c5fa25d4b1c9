//! What `warptrace diff` says of values.

use serde_json::{Value, json};
use warptrace_analysis::words::Names;
use warptrace_analysis::{Selection, ValueChange, ValueFigures, Values, value_changes, values};
use warptrace_decoder::TraceFile;
use warptrace_format::on_one_line;

use super::diff::signed;
use super::values::{lacks, mean};
use super::{Column, first, print_rows, table};
use crate::output::{count, say};

/// What was in the values of both traces, and how that changed.
pub(super) struct Valued {
    found: [Values; 2],
    changes: Vec<ValueChange>,
}

impl Valued {
    /// Compares values; `None` if a trace has none.
    pub(super) fn of(traces: [&TraceFile; 2], selection: &Selection) -> anyhow::Result<Option<Self>> {
        if !traces.iter().all(|trace| trace.has_accesses()) {
            return Ok(None);
        }
        let found = [values(traces[0], selection)?, values(traces[1], selection)?];
        if found.iter().any(|found| found.values.is_empty()) {
            return Ok(None);
        }
        let changes = value_changes(found.each_ref());
        Ok(Some(Self { found, changes }))
    }

    pub(super) fn json(&self, limit: Option<usize>) -> Value {
        let (changes, _) = first(self.changes.iter().collect(), limit, usize::MAX);
        json!({ "whole": self.found.each_ref().map(Values::is_whole), "values": changes })
    }

    /// Prints values whose figures changed, behind what is not known.
    pub(super) fn print(&self, names: &[Names; 2], limit: Option<usize>, rows: usize) -> anyhow::Result<()> {
        use Column::{Left, Right};
        say!("\nvalues")?;
        for (found, which) in self.found.iter().zip(["first", "second"]) {
            if !found.is_whole() {
                say!("{which}: {}", lacks(found))?;
            }
        }
        let changes: Vec<&ValueChange> = self.changes.iter().filter(|change| change.is_changed()).collect();
        if changes.is_empty() {
            say!("no value has other figures")?;
            return Ok(());
        }
        let columns = [
            Left("line"),
            Left("value"),
            Right("values"),
            Right("change"),
            Right("NaN"),
            Right("change"),
            Right("infinite"),
            Right("change"),
            Right("least"),
            Right("before"),
            Right("most"),
            Right("before"),
            Right("mean"),
            Right("before"),
        ];
        let row = |change: &&ValueChange| {
            let [before, after] = change.figures.each_ref().map(Option::as_ref);
            let counted = |of: fn(&ValueFigures) -> u64| {
                let [before, after] = [before, after].map(|figures| figures.map_or(0, of));
                [count(after), signed(before, after)]
            };
            let said = |of: fn(&ValueFigures) -> Option<String>| {
                [after, before].map(|figures| figures.and_then(of).unwrap_or_else(|| "-".to_owned()))
            };
            let place = change
                .latest()
                .map_or_else(String::new, |of| names[usize::from(after.is_some())].line(&of.file, of.line));
            let counts = [counted(|of| of.values), counted(|of| of.nan), counted(|of| of.infinite)];
            let ends = [said(|of| of.min.clone()), said(|of| of.max.clone()), said(|of| of.mean.map(mean))];
            [place, on_one_line(&change.name)]
                .into_iter()
                .chain(counts.into_iter().chain(ends).flatten())
                .collect()
        };
        let (changes, more) = first(changes, limit, rows);
        print_rows(&table(&columns, changes.iter().map(row)), more)
    }
}
