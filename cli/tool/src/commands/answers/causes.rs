//! `warptrace causes`.

use serde_json::json;
use warptrace_analysis::{Cause, SetAnalysis};

use super::rows::{Listed, Order};
use super::words::{percent, ratio};
use super::{Answer, TextTable, print_rows, words};
use crate::arguments::Rows;
use crate::output::{count, say};

impl Listed for Cause {
    const NAME: &'static str = "causes";
    const ORDERS: &'static [Order<Self>] = &[
        Order::unsorted("idle", "Idle slots"),
        Order::most("partings", "Events after which lanes diverged", |cause| cause.partings),
        Order::compared("apart", "Mean number of events until lanes reconverged", |_, a, b| {
            b.mean_events_apart().total_cmp(&a.mean_events_apart())
        }),
        Order::by_source(|names, a, b| names.place(a.decision()).cmp(&names.place(b.decision()))),
    ];

    /// Compares with the location that rows show.
    fn is_at(&self, location: u16) -> bool {
        self.decision() == location
    }
}

pub(crate) fn run(command: &Rows<Cause>, summed: Option<SetAnalysis>) -> anyhow::Result<()> {
    let answer = Answer::of_rows(command, summed)?;
    let (causes, more) = command.shown(&answer, &answer.analysis.causes);
    if command.page.json {
        return answer.json_rows(json!({}), Cause::NAME, causes.into_iter().map(|row| json!(row)));
    }
    answer.headline()?;
    if causes.is_empty() {
        return Ok(match answer.location {
            Some(id) => say!("no lane was idle because of {}", answer.names.said(id)),
            None => say!("no causes: no lane was idle"),
        }?);
    }
    print_rows(&cause_table(&answer, &causes), more)?;
    if let [cause] = causes[..] {
        say!("")?;
        for more in words::apart(&answer.analysis, &answer.names, cause) {
            say!("{more}")?;
        }
    }
    say!("\n`idle slots`: slots of lanes that were absent until they reconverged, after a divergence here.")?;
    say!(
        "`diverge`: share of visits after which lanes diverged. `never`: divergences without reconvergence."
    )?;
    Ok(say!("`events`: mean number of events until lanes reconverged.")?)
}

pub(super) fn cause_table(answer: &Answer, causes: &[&Cause]) -> String {
    let unknown = || "-".to_owned();
    let visits = |location| answer.analysis.location(location).map(|location| location.counts.visits);
    TextTable::<&Cause>::new()
        .left("line", |cause| answer.names.line_at(cause.decision()))
        .left("lanes diverge at", |cause| answer.names.name(cause.decision()))
        .right("idle slots", |cause| count(cause.idle))
        .right("of all", |cause| percent(cause.idle, answer.analysis.counts.idle))
        .right("diverge", |cause| {
            visits(cause.point.location).map_or_else(unknown, |visits| percent(cause.partings, visits))
        })
        .right(
            "events",
            |cause| {
                if cause.meetings.is_empty() { unknown() } else { ratio(cause.mean_events_apart()) }
            },
        )
        .right("never", |cause| percent(cause.never_met(), cause.partings))
        .left("reconverge at", |cause| {
            cause.meetings.first().map_or_else(unknown, |first| answer.names.name(first.location))
        })
        .left("idle at", |cause| {
            cause.places.first().map_or_else(String::new, |first| answer.names.name(first.location))
        })
        .text(causes)
}
