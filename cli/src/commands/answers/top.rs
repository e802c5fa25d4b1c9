//! `warptrace top`: one screen with what matters most.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::{Value, json};
use warptrace_analysis::LocationFigures;

use super::lines::line_table;
use super::words::ratio;
use super::{Answer, analysed, words};
use crate::arguments::Page;
use crate::output::{count, say};

/// Lines of the source that are shown.
const LINES: usize = 8;
/// Locations at which unfinished warps stand that are shown.
const STANDING: usize = 8;

pub(crate) fn run(command: &Page) -> anyhow::Result<ExitCode> {
    let answer = analysed(command, None, false)?;
    let analysis = &answer.analysis;
    let mut lines = words::hottest(analysis);
    let widest = analysis.loops().max_by_key(|head| (head.counts.idle, Reverse(head.point.location)));
    let finding = words::finding(analysis, &answer.names);
    if command.json {
        lines.truncate(LINES);
        let paths: Vec<_> = analysis.paths.iter().take(LINES).collect();
        let standing: Vec<Value> = analysis.standing.iter().map(|standing| json!(standing)).collect();
        answer.json(json!({
            "finding": finding,
            "standing": standing,
            "lines": lines,
            "loop": widest,
            "warp_events": analysis.warp_events,
            "paths": { "number": analysis.paths.len(), "most_common": paths },
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if analysis.losses.is_whole() && analysis.counts.visits > 0 {
        say!("{finding}")?;
        answer.headline()?;
    } else {
        answer.headline()?;
        print_standing(&answer)?;
        if analysis.counts.visits == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        say!("{finding}")?;
    }
    lines.truncate(LINES);
    say!("\n{}\n", line_table(&answer, &lines))?;
    if let Some(head) = widest {
        say!("loop   {}", loop_line(&answer, head))?;
    }
    say!("work   {}", words::work(analysis))?;
    say!("       {}", words::groups(analysis))?;
    Ok(ExitCode::SUCCESS)
}

/// Says where warps stand that did not finish.
fn print_standing(answer: &Answer) -> anyhow::Result<()> {
    let standing = &answer.analysis.standing;
    for group in standing.iter().take(STANDING) {
        say!("  {}", words::standing(&answer.trace, &answer.names, group))?;
    }
    if standing.len() > STANDING {
        say!("  and others at {} more locations", count((standing.len() - STANDING) as u64))?;
    }
    Ok(())
}

fn loop_line(answer: &Answer, head: &LocationFigures) -> String {
    let trips = &head.trips;
    format!(
        "{}: {} to {} trips, median {}; most over mean {}",
        answer.names.full(head.point.location),
        count(trips.min()),
        count(trips.max()),
        count(trips.percentile(50)),
        ratio(trips.imbalance())
    )
}
