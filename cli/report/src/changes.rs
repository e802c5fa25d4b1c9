//! Differences from another trace.

use serde_json::{Value, json};
use warptrace_analysis::words::{self, Names, count};
use warptrace_analysis::{Analysis, Comparison, Counts, FirstChange, LocationChange, compare};
use warptrace_decoder::TraceFile;

use crate::build::{Base, Options};
use crate::error::ReportError;
use crate::guide::LocationLink;
use crate::limits::Limits;
use crate::page::cut;
use crate::table::{Columns, PageTable};

/// Comparison with the base, the first trace.
pub(crate) struct Compared<'a> {
    pub(crate) traces: [&'a TraceFile; 2],
    pub(crate) base: String,
    pub(crate) comparison: Comparison,
}

#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) base: String,
    pub(crate) differences: Vec<String>,
    pub(crate) ratios: Vec<String>,
    pub(crate) finding: String,
    pub(crate) holds: Vec<String>,
    pub(crate) sums: PageTable,
    pub(crate) locations: PageTable,
    pub(crate) first_changes: PageTable,
    pub(crate) more_changes: usize,
    pub(crate) json: Value,
}

/// Compares the trace with `base`. Fails if a trace cannot be analysed or they have no location in common.
pub(crate) fn compared<'a>(
    trace: &'a TraceFile,
    options: &Options,
    base: &Base<'a>,
) -> Result<Compared<'a>, ReportError> {
    let traces = [base.trace, trace];
    let comparison = compare(traces, &options.selection)?;
    if !comparison.is_of_one_program() {
        return Err(ReportError::NothingInCommon { trace: options.name.clone(), base: base.name.to_owned() });
    }
    Ok(Compared { traces, base: base.name.to_owned(), comparison })
}

pub(crate) fn changes(compared: &Compared<'_>, limits: Limits) -> Result<Changes, ReportError> {
    let Compared { traces, base, comparison } = compared;
    let names = traces.map(Names::new);
    let changed = comparison.changed_locations();
    let mut first_changes = Vec::new();
    for &warps in comparison.changed.iter().take(limits.changes) {
        first_changes.extend(comparison.first_change(*traces, warps)?);
    }
    let percent = comparison.greatest_percent();
    let json = json!({
        "base": base,
        "recordings": comparison.recordings,
        "totals": [comparison.analyses[0].counts, comparison.analyses[1].counts],
        "greatest_change_percent": percent.is_finite().then_some(percent),
        "locations": changed.iter().take(limits.changes).collect::<Vec<_>>(),
        "common_warps": comparison.common_warps,
        "single_warps": comparison.single_warps,
        "changed_warps": comparison.changed.len(),
        "first_changes": first_changes,
    });
    let holds = comparison.analyses.iter().zip(["first, the base", "second, this trace"]);
    Ok(Changes {
        base: cut(&warptrace_format::shown(base), limits.text),
        differences: words::differences(comparison).iter().map(|line| cut(line, limits.text)).collect(),
        ratios: words::ratios(comparison),
        finding: words::changes(comparison),
        holds: holds.map(|(analysis, which)| format!("{which}: {}", words::losses(analysis))).collect(),
        sums: sum_table(&comparison.analyses),
        locations: location_table(&names, changed, limits.changes),
        first_changes: first_change_table(traces[0], &names, first_changes),
        more_changes: comparison.changed.len().saturating_sub(limits.changes),
        json,
    })
}

/// Formats the difference of two numbers with a typographic minus sign.
fn difference(numbers: [u64; 2]) -> String {
    words::signed(numbers).replace('-', "−")
}

fn location_table(names: &[Names; 2], changed: Vec<&LocationChange>, limit: usize) -> PageTable {
    type Number = fn(Counts) -> u64;
    let figures: [(&str, Number); 3] =
        [("visits", |of| of.visits), ("lanes", |of| of.lanes), ("idle slots", |of| of.idle)];
    let columns = Columns::new().html("location", |change: &&LocationChange| {
        let [line, name] = words::changed_place(names, change.before.as_ref(), change.after.as_ref());
        LocationLink { name, line, rank: None }
    });
    let columns = figures.into_iter().fold(columns, |columns, (head, of)| {
        columns
            .number(head, move |change| count(of(change.counts[1])))
            .bold("change", move |change| difference(change.counts.map(of)))
    });
    columns.table(changed.into_iter(), limit, |_| None)
}

fn sum_table([before, after]: &[Analysis; 2]) -> PageTable {
    let rows = [
        ("events", [before.counts.visits, after.counts.visits]),
        ("active lanes", [before.counts.lanes, after.counts.lanes]),
        ("idle slots", [before.counts.idle, after.counts.idle]),
        ("visits after which lanes split", [splits(before), splits(after)]),
        ("warps with events", [before.warp_events.count(), after.warp_events.count()]),
        ("most events of a warp", [before.warp_events.max(), after.warp_events.max()]),
        ("median events of a warp", [before, after].map(|of| of.warp_events.percentile(50))),
        ("paths", [before.paths.len() as u64, after.paths.len() as u64]),
    ];
    Columns::new()
        .text("figure", |(what, _): &(&str, [u64; 2])| (*what).to_owned())
        .number("base", |(_, numbers)| count(numbers[0]))
        .number("here", |(_, numbers)| count(numbers[1]))
        .bold("change", |(_, numbers)| difference(*numbers))
        .table(rows.into_iter(), usize::MAX, |_| None)
}

fn splits(analysis: &Analysis) -> u64 {
    analysis.locations.iter().fold(0, |sum, location| sum.saturating_add(location.splits))
}

fn first_change_table(trace: &TraceFile, names: &[Names; 2], first_changes: Vec<FirstChange>) -> PageTable {
    Columns::new()
        .text("warp", |change: &FirstChange| words::warp(trace, change.warp.launch, change.warp.warp))
        .number("event", |change| count(change.event))
        .code("base", |change| words::other_event(&names[0], change.before))
        .code("here", |change| words::other_event(&names[1], change.after))
        .table(first_changes.into_iter(), usize::MAX, |_| None)
}
