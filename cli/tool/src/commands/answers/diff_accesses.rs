//! Addresses in `warptrace diff`.

use serde_json::{Value, json};
use warptrace_analysis::words::{Names, access_doubt, access_lacks, signed};
use warptrace_analysis::{AccessChange, AccessCounts, Accesses, Selection, access_changes, accesses};
use warptrace_decoder::TraceFile;

use super::rows::first;
use super::{TextTable, print_rows};
use crate::output::{count, say};

pub(super) struct Accessed {
    found: [Accesses; 2],
    changes: Vec<AccessChange>,
}

impl Accessed {
    pub(super) fn new(traces: [&TraceFile; 2], selection: &Selection) -> anyhow::Result<Option<Self>> {
        if !traces.iter().all(|trace| trace.has_accesses()) {
            return Ok(None);
        }
        let found = [accesses(traces[0], selection)?, accesses(traces[1], selection)?];
        let changes = access_changes(found.each_ref());
        Ok(Some(Self { found, changes }))
    }

    pub(super) fn json(&self, limit: Option<usize>) -> Value {
        let (lines, _) = first(self.changes.iter().collect(), limit, usize::MAX);
        let each = |of: fn(&Accesses) -> Value| self.found.each_ref().map(of);
        json!({
            "accesses": each(|found| found.accesses.into()),
            "lost_accesses": each(|found| found.lost.into()),
            "left_out_accesses": each(|found| found.left_out.into()),
            "unmatched_accesses": each(|found| found.unmatched.into()),
            "exact": each(|found| found.is_exact().into()),
            "lines": lines,
        })
    }

    /// Prints what is unknown or not exact, then the lines whose sectors or passes changed.
    pub(super) fn print(&self, names: &[Names; 2], limit: Option<usize>, rows: usize) -> anyhow::Result<()> {
        say!("\nsectors of global memory, and passes through the banks of shared memory")?;
        for (found, which) in self.found.iter().zip(["first", "second"]) {
            if !found.is_whole() {
                say!("{which}: {}", access_lacks(found))?;
            }
            if let Some(doubt) = access_doubt(found) {
                say!("{which}: {doubt}")?;
            }
        }
        let changes: Vec<&AccessChange> = self.changes.iter().filter(|change| change.weight() > 0).collect();
        if changes.is_empty() {
            say!("no line has more or fewer of either")?;
            return Ok(());
        }
        let of = |change: &AccessChange, of: fn(&AccessCounts) -> u64| change.counts.each_ref().map(of);
        let table = TextTable::<&AccessChange>::new()
            .left("line", |change| names[1].line(&change.file, change.line))
            .right("requests", |change| count(change.counts[1].requests))
            .right("change", move |change| signed(of(change, |of| of.requests)))
            .right("sectors", |change| count(change.counts[1].sectors))
            .right("change", move |change| signed(of(change, |of| of.sectors)))
            .right("least", |change| count(change.counts[1].least_sectors))
            .right("passes", |change| count(change.counts[1].passes))
            .right("change", move |change| signed(of(change, |of| of.passes)))
            .right("least", |change| count(change.counts[1].least_passes));
        let (changes, more) = first(changes, limit, rows);
        print_rows(&table.text(&changes), more)
    }
}
