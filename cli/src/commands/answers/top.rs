//! `warptrace top`: one screen with what matters most.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::{Value, json};
use warptrace_analysis::{LineFigures, LocationFigures};

use super::lines::line_table;
use super::words::{about, many, plain, ratio, warp};
use super::{Answer, analysed, paths, warps};
use crate::arguments::Page;
use crate::output::{count, say};

/// Lines of the source that are shown.
const LINES: usize = 8;
/// Locations at which unfinished warps stand that are shown.
const STANDING: usize = 8;

pub(crate) fn run(command: &Page) -> anyhow::Result<ExitCode> {
    let answer = analysed(command, None, false)?;
    let analysis = &answer.analysis;
    let mut lines: Vec<&LineFigures> = analysis.lines.iter().collect();
    lines.sort_by_key(|line| Reverse(line.counts.idle));
    let widest = analysis.loops().max_by_key(|head| (head.counts.idle, Reverse(head.point.location)));
    let finding = finding(&answer, &lines);
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
    say!("work   {}", warps::work(&answer))?;
    say!("       {}", paths::groups(&answer))?;
    Ok(ExitCode::SUCCESS)
}

/// One sentence: how many lane slots were idle, and where most of them.
fn finding(answer: &Answer, lines: &[&LineFigures]) -> String {
    let counts = answer.analysis.counts;
    if counts.visits == 0 {
        return "no events".to_owned();
    }
    let idle = format!("{} of {} lane slots idle", about(counts.idle, counts.slots()), count(counts.slots()));
    match lines.first() {
        Some(worst) if worst.counts.idle > 0 => {
            let part = about(worst.counts.idle, counts.idle);
            let (line, names) =
                (answer.names.line(&worst.file, worst.line), answer.names.names(&worst.locations));
            match line.as_str() {
                "-" => format!("{idle}; {part} of them at {names}"),
                line => format!("{idle}; {part} of them in {line} ({names})"),
            }
        }
        _ => format!("no idle lane slot of {}: every visit had all lanes of its warp", count(counts.slots())),
    }
}

/// Says where warps stand that did not finish.
fn print_standing(answer: &Answer) -> anyhow::Result<()> {
    let standing = &answer.analysis.standing;
    for group in standing.iter().take(STANDING) {
        let first = warp(&answer.trace, group.first.launch, group.first.warp);
        let at = match group.last {
            Some(id) => format!("last event at {}", answer.names.full(id)),
            None => "no event yet".to_owned(),
        };
        say!("  {} of {}: {at}; first: {first}", many(group.warps, "warp"), plain(&group.kernel))?;
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
