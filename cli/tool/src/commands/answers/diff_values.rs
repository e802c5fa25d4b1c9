//! Values in `warptrace diff`.

use serde_json::{Value, json};
use warptrace_analysis::words::{Names, signed};
use warptrace_analysis::{Selection, ValueChange, ValueFigures, Values, value_changes, values};
use warptrace_decoder::TraceFile;
use warptrace_format::on_one_line;

use super::rows::first;
use super::values::{lacks, mean};
use super::{TextTable, print_rows};
use crate::output::{count, say};

type Count = fn(&ValueFigures) -> u64;
type End = fn(&ValueFigures) -> Option<String>;

pub(super) struct Valued {
    found: [Values; 2],
    changes: Vec<ValueChange>,
}

impl Valued {
    pub(super) fn new(traces: [&TraceFile; 2], selection: &Selection) -> anyhow::Result<Option<Self>> {
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

    /// Prints what is unknown, then the values whose figures changed.
    pub(super) fn print(&self, names: &[Names; 2], limit: Option<usize>, rows: usize) -> anyhow::Result<()> {
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
        let counted = |change: &ValueChange, of: Count| {
            change.figures.each_ref().map(|figures| figures.as_ref().map_or(0, of))
        };
        let said = |change: &ValueChange, at: usize, of: End| {
            change.figures[at].as_ref().and_then(of).unwrap_or_else(|| "-".to_owned())
        };
        let mut table = TextTable::<&ValueChange>::new()
            .left("line", |change| {
                let names = &names[usize::from(change.figures[1].is_some())];
                change.latest().map_or_else(String::new, |of| names.line(&of.file, of.line))
            })
            .left("value", |change| on_one_line(&change.name));
        let counts: [(&str, Count); 3] =
            [("values", |of| of.values), ("NaN", |of| of.nan), ("infinite", |of| of.infinite)];
        for (head, of) in counts {
            table = table
                .right(head, move |change| count(counted(change, of)[1]))
                .right("change", move |change| signed(counted(change, of)));
        }
        let ends: [(&str, End); 3] =
            [("least", |of| of.min.clone()), ("most", |of| of.max.clone()), ("mean", |of| of.mean.map(mean))];
        for (head, of) in ends {
            table = table
                .right(head, move |change| said(change, 1, of))
                .right("before", move |change| said(change, 0, of));
        }
        let (changes, more) = first(changes, limit, rows);
        print_rows(&table.text(&changes), more)
    }
}
