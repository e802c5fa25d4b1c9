//! `warptrace causes`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::{Cause, OrderItems};

use super::words::{percent, ratio};
use super::{Answer, ROWS, TextTable, first, print_rows, words};
use crate::arguments::{CauseColumn, Rows};
use crate::output::{count, say};

pub(crate) fn run(command: &Rows<CauseColumn>) -> anyhow::Result<ExitCode> {
    let answer = Answer::of_rows(command)?;
    // As rows name them.
    let is_asked = |cause: &&Cause| answer.location.is_none_or(|id| cause.decision() == id);
    let mut causes: Vec<&Cause> = answer.analysis.causes.iter().filter(is_asked).collect();
    match command.sort.unwrap_or(CauseColumn::Idle) {
        CauseColumn::Idle => {}
        CauseColumn::Partings => causes.order_by_key(|cause| Reverse(cause.partings)),
        CauseColumn::Apart => {
            causes.order_by(|a, b| b.mean_events_apart().total_cmp(&a.mean_events_apart()));
        }
        CauseColumn::Source => {
            causes.sort_by_cached_key(|cause| answer.names.place(cause.decision()));
        }
    }
    if command.page.json {
        let (causes, _) = first(causes, command.limit, usize::MAX);
        answer.json_rows(json!({}), "causes", causes.into_iter().map(|row| json!(row)))?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    if causes.is_empty() {
        match answer.location {
            Some(id) => say!("no lane was idle because of {}", answer.names.said(id)),
            None => say!("no causes: no lane was idle"),
        }?;
        return Ok(ExitCode::SUCCESS);
    }
    let (causes, more) = first(causes, command.limit, ROWS);
    print_rows(&cause_table(&answer, &causes), more)?;
    if let [cause] = causes[..] {
        say!("")?;
        for more in words::apart(&answer.analysis, &answer.names, cause) {
            say!("{more}")?;
        }
    }
    say!("\nAfter an event here lanes parted, and those left out were idle until they met: `idle slots`.")?;
    say!("Parts: of its visits those after which lanes parted. Apart: events until they met, in the mean.")?;
    Ok(ExitCode::SUCCESS)
}

/// A row for each cause.
pub(super) fn cause_table(answer: &Answer, causes: &[&Cause]) -> String {
    let unknown = || "-".to_owned();
    let visits = |location| answer.analysis.location(location).map(|location| location.counts.visits);
    TextTable::<&Cause>::new()
        .left("line", |cause| answer.names.line_at(cause.decision()))
        .left("lanes part at", |cause| answer.names.name(cause.decision()))
        .right("idle slots", |cause| count(cause.idle))
        .right("of all", |cause| percent(cause.idle, answer.analysis.counts.idle))
        .right("parts", |cause| {
            visits(cause.point.location).map_or_else(unknown, |visits| percent(cause.partings, visits))
        })
        .right(
            "apart",
            |cause| {
                if cause.meetings.is_empty() { unknown() } else { ratio(cause.mean_events_apart()) }
            },
        )
        .left("meet at", |cause| {
            cause.meetings.first().map_or_else(unknown, |first| answer.names.name(first.location))
        })
        .left("idle at", |cause| {
            cause.places.first().map_or_else(String::new, |first| answer.names.name(first.location))
        })
        .of(causes)
}
