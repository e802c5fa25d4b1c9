//! `warptrace causes`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::{Cause, OrderItems};

use super::words::{percent, ratio};
use super::{Answer, Column, ROWS, first, print_rows, table, words};
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
    use Column::{Left, Right};
    let columns = [
        Left("line"),
        Left("lanes part at"),
        Right("idle slots"),
        Right("of all"),
        Right("parts"),
        Right("apart"),
        Left("meet at"),
        Left("idle at"),
    ];
    let row = |cause: &&Cause| {
        let visits = answer.analysis.location(cause.point.location).map(|location| location.counts.visits);
        vec![
            answer.names.line_at(cause.decision()),
            answer.names.name(cause.decision()),
            count(cause.idle),
            percent(cause.idle, answer.analysis.counts.idle),
            visits.map_or_else(|| "-".to_owned(), |visits| percent(cause.partings, visits)),
            if cause.meetings.is_empty() { "-".to_owned() } else { ratio(cause.mean_events_apart()) },
            cause.meetings.first().map_or_else(|| "-".to_owned(), |first| answer.names.name(first.location)),
            cause.places.first().map_or_else(String::new, |first| answer.names.name(first.location)),
        ]
    };
    table(&columns, causes.iter().map(row))
}
