//! What is different in another trace.

use std::cmp::Reverse;

use serde_json::{Value, json};
use warptrace_analysis::words::{self, Names, count};
use warptrace_analysis::{Analysis, Comparison, Counts, LocationChange, OrderItems, Parting, compare};
use warptrace_decoder::TraceFile;

use crate::build::{Base, Options};
use crate::error::ReportError;
use crate::limits::Limits;
use crate::page::cut;

/// A comparison with the base, which is the first trace of it.
pub(crate) struct Compared<'a> {
    pub(crate) traces: [&'a TraceFile; 2],
    pub(crate) base: String,
    pub(crate) comparison: Comparison,
}

/// The section, in words and as JSON.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) base: String,
    pub(crate) differences: Vec<String>,
    pub(crate) ratios: Vec<String>,
    pub(crate) finding: String,
    pub(crate) holds: Vec<String>,
    pub(crate) sums: Vec<Row>,
    pub(crate) rows: Vec<Row>,
    pub(crate) more_rows: usize,
    pub(crate) partings: Vec<Way>,
    pub(crate) more_partings: usize,
    pub(crate) json: Value,
}

/// Figures in the base, here, and the difference.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) line: String,
    pub(crate) numbers: Vec<[String; 2]>,
}

/// Where a warp first goes another way.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) warp: String,
    pub(crate) event: String,
    pub(crate) before: String,
    pub(crate) after: String,
}

/// Compares the trace with `base`.
///
/// # Errors
/// Either cannot be analysed; they have no location in common.
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

/// Describes the comparison.
pub(crate) fn changes(compared: &Compared<'_>, limits: Limits) -> Result<Changes, ReportError> {
    let Compared { traces, base, comparison } = compared;
    let names = traces.map(Names::new);
    let is_changed = |change: &&LocationChange| change.counts[0] != change.counts[1];
    let mut changed: Vec<&LocationChange> = comparison.locations.iter().filter(is_changed).collect();
    changed.order_by_key(|change| Reverse(weight(change.counts)));
    let mut partings = Vec::new();
    for &warps in comparison.changed.iter().take(limits.changes) {
        partings.extend(comparison.parting(*traces, warps)?);
    }
    let shown: Vec<&LocationChange> = changed.iter().copied().take(limits.changes).collect();
    let percent = comparison.greatest_percent();
    let json = json!({
        "base": base,
        "recordings": comparison.recordings,
        "totals": [comparison.analyses[0].counts, comparison.analyses[1].counts],
        "greatest_change_percent": percent.is_finite().then_some(percent),
        "locations": shown,
        "common_warps": comparison.common_warps,
        "single_warps": comparison.single_warps,
        "changed_warps": comparison.changed.len(),
        "first_changes": partings,
    });
    let more = |all: usize| all.saturating_sub(limits.changes);
    let holds = comparison.analyses.iter().zip(["first, the base", "second, this trace"]);
    Ok(Changes {
        base: cut(&warptrace_format::shown(base), limits.text),
        differences: words::differences(comparison).iter().map(|line| cut(line, limits.text)).collect(),
        ratios: words::ratios(comparison),
        finding: words::changes(comparison),
        holds: holds.map(|(analysis, which)| format!("{which}: {}", words::losses(analysis))).collect(),
        sums: sums(&comparison.analyses),
        rows: shown.into_iter().map(|change| row(&names, change)).collect(),
        more_rows: more(changed.len()),
        partings: partings.iter().map(|parting| way(traces[0], &names, parting)).collect(),
        more_partings: more(comparison.changed.len()),
        json,
    })
}

/// By how much a location changed: idle slots first.
fn weight([before, after]: [Counts; 2]) -> (u64, u64, u64) {
    (
        before.idle.abs_diff(after.idle),
        before.lanes.abs_diff(after.lanes),
        before.visits.abs_diff(after.visits),
    )
}

fn row(names: &[Names; 2], change: &LocationChange) -> Row {
    let (what, line) = match (&change.before, &change.after) {
        (_, Some(point)) => (names[1].name(point.location), names[1].line_of(point)),
        (Some(point), None) => (names[0].name(point.location), names[0].line_of(point)),
        (None, None) => ("?".to_owned(), "-".to_owned()),
    };
    let [before, after] = change.counts;
    let pairs = [(before.visits, after.visits), (before.lanes, after.lanes), (before.idle, after.idle)];
    Row { what, line, numbers: pairs.map(numbers).to_vec() }
}

fn sums([before, after]: &[Analysis; 2]) -> Vec<Row> {
    let pairs = [
        ("events", before.counts.visits, after.counts.visits),
        ("active lanes", before.counts.lanes, after.counts.lanes),
        ("idle slots", before.counts.idle, after.counts.idle),
        ("visits after which lanes split", splits(before), splits(after)),
        ("warps with events", before.warp_events.count(), after.warp_events.count()),
        ("most events of a warp", before.warp_events.max(), after.warp_events.max()),
        ("median events of a warp", before.warp_events.percentile(50), after.warp_events.percentile(50)),
        ("paths", before.paths.len() as u64, after.paths.len() as u64),
    ];
    let row = |(what, before, after): (&str, u64, u64)| Row {
        what: what.to_owned(),
        line: count(before),
        numbers: vec![numbers((before, after))],
    };
    pairs.into_iter().map(row).collect()
}

fn splits(analysis: &Analysis) -> u64 {
    analysis.locations.iter().fold(0, |sum, location| sum.saturating_add(location.splits))
}

/// The second number, and its difference from the first.
fn numbers((before, after): (u64, u64)) -> [String; 2] {
    let sign = match after.cmp(&before) {
        std::cmp::Ordering::Less => "−",
        std::cmp::Ordering::Equal => return [count(after), "=".to_owned()],
        std::cmp::Ordering::Greater => "+",
    };
    [count(after), format!("{sign}{}", count(before.abs_diff(after)))]
}

fn way(trace: &TraceFile, names: &[Names; 2], parting: &Parting) -> Way {
    let event = |names: &Names, event: Option<(u16, u32)>| match event {
        Some((location, mask)) => format!("{} 0x{mask:08x}", names.name(location)),
        None => "(no more events)".to_owned(),
    };
    Way {
        warp: words::warp(trace, parting.warp.launch, parting.warp.warp),
        event: count(parting.event),
        before: event(&names[0], parting.before),
        after: event(&names[1], parting.after),
    }
}
