//! Sentences that sum up what a trace holds, lacks and shows.

use std::cmp::Reverse;

use warptrace_decoder::{LaunchEnd, TraceFile};

use super::{Names, about, count, many, plain, ratio, warp};
use crate::compare::Comparison;
use crate::figures::{Analysis, LineFigures, Losses, Standing};

/// Says what a trace lacks; `None` if it is whole.
pub fn missing(losses: &Losses) -> Option<String> {
    let mut wants = Vec::new();
    if losses.lost_events > 0 {
        let (events, warps) = (many(losses.lost_events, "event"), many(losses.lossy_warps, "warp"));
        wants.push(format!("{events} of {warps} lost"));
    }
    if losses.unfinished_warps > 0 {
        wants.push(format!("{} not finished", many(losses.unfinished_warps, "warp")));
    }
    if losses.unaccounted_warps > 0 {
        wants.push(format!("{} without an account of losses", many(losses.unaccounted_warps, "warp")));
    }
    if let Some(why) = &losses.cut_off {
        wants.push(plain(why));
    }
    (!wants.is_empty()).then(|| format!("INCOMPLETE trace: {}", wants.join("; ")))
}

/// Says what was looked at.
pub fn holds(analysis: &Analysis) -> String {
    let Analysis { kernels, counts, launches, .. } = analysis;
    let warps = kernels.iter().map(|kernel| kernel.warps).sum();
    format!(
        "{} by {} of {}",
        many(counts.visits, "event"),
        many(warps, "warp"),
        if *launches == 1 { "1 launch".to_owned() } else { format!("{} launches", count(*launches)) }
    )
}

/// What the trace holds, and what it lacks.
pub fn losses(analysis: &Analysis) -> String {
    let (losses, holds) = (&analysis.losses, holds(analysis));
    let mut text = match missing(losses) {
        None => format!("whole trace: {holds}"),
        Some(missing) => format!("{missing}\nfigures are of what is there: {holds}"),
    };
    if losses.unchosen_warps > 0 {
        text += &format!("\nnot chosen to be recorded: {}", many(losses.unchosen_warps, "warp"));
    }
    text
}

/// The lines, those with the most idle lane slots first.
pub fn hottest(analysis: &Analysis) -> Vec<&LineFigures> {
    let mut lines: Vec<&LineFigures> = analysis.lines.iter().collect();
    lines.sort_by_key(|line| Reverse(line.counts.idle));
    lines
}

/// Says in one sentence how many lane slots were idle, and where most of them.
pub fn finding(analysis: &Analysis, names: &Names) -> String {
    let counts = analysis.counts;
    if counts.visits == 0 {
        return "no events".to_owned();
    }
    let idle = format!("{} of {} lane slots idle", about(counts.idle, counts.slots()), count(counts.slots()));
    match hottest(analysis).first() {
        Some(worst) if worst.counts.idle > 0 => {
            let part = about(worst.counts.idle, counts.idle);
            let (line, of_line) = (names.line(&worst.file, worst.line), names.names(&worst.locations));
            match line.as_str() {
                "-" => format!("{idle}; {part} of them at {of_line}"),
                line => format!("{idle}; {part} of them in {line} ({of_line})"),
            }
        }
        _ => format!("no idle lane slot of {}: every visit had all lanes of its warp", count(counts.slots())),
    }
}

/// Says where warps stand that did not finish.
pub fn standing(trace: &TraceFile, names: &Names, group: &Standing) -> String {
    let first = warp(trace, group.first.launch, group.first.warp);
    let at = match group.last {
        Some(id) => format!("last event at {}", names.full(id)),
        None => "no event yet".to_owned(),
    };
    format!("{} of {}: {at}; first: {first}", many(group.warps, "warp"), plain(&group.kernel))
}

/// Says why a launch did not run to its end; `None` if it did, or nobody knows.
pub fn early_end(trace: &TraceFile, launch: u32) -> Option<String> {
    let kernel = trace.metadata().kernels.get(trace.launch(launch)?.kernel() as usize);
    let kernel = on_one_line(kernel.map_or("?", |kernel| &kernel.name));
    match trace.launch_end(launch)? {
        LaunchEnd::Failed { message } => {
            Some(format!("launch {launch} of kernel `{kernel}` failed: {}", on_one_line(&message)))
        }
        LaunchEnd::Interrupted => Some(format!("launch {launch} of kernel `{kernel}` was interrupted")),
        _ => None,
    }
}

/// Puts a text on one line in which nothing moves the cursor: for names and messages that a file holds.
pub fn on_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(plain).collect::<Vec<_>>().join("; ")
}

/// Says how work is spread over warps.
pub fn work(analysis: &Analysis) -> String {
    let events = &analysis.warp_events;
    format!(
        "{}: {} to {} events, median {}, p95 {}; most over mean {}",
        many(events.count(), "warp"),
        count(events.min()),
        count(events.max()),
        count(events.percentile(50)),
        count(events.percentile(95)),
        ratio(events.imbalance())
    )
}

/// Says how many paths there are, and how many warps took the most common one.
pub fn groups(analysis: &Analysis) -> String {
    let paths = &analysis.paths;
    let Some(common) = paths.first() else { return "no path".to_owned() };
    let single = paths.iter().filter(|group| group.warps == 1).count() as u64;
    format!(
        "{}: {} of {} took the most common one, {} one of their own",
        many(paths.len() as u64, "path"),
        count(common.warps),
        many(analysis.warps.len() as u64, "warp"),
        count(single),
    )
}

/// Says how many warps took another path in the second trace.
pub fn changes(comparison: &Comparison) -> String {
    let Comparison { common_warps, single_warps, changed, .. } = comparison;
    let mut text = format!(
        "{} of {} in both traces took another path",
        count(changed.len() as u64),
        many(*common_warps, "warp")
    );
    for (single, which) in single_warps.iter().zip(["first", "second"]) {
        if *single > 0 {
            text += &format!("; {} only in the {which}", count(*single));
        }
    }
    text
}
