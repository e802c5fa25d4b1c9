//! Sentences that sum up what a trace holds, lacks and shows.

use std::cmp::Reverse;

use warptrace_decoder::{LaunchEnd, TraceFile};

use super::causes::parting;
use super::{Names, about, count, many, plain, ratio};
use crate::compare::Comparison;
use crate::figures::{Analysis, KernelFigures, LineFigures, Losses, WarpFigures};

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

/// The lines, those that caused the most idle lane slots first; of equal ones that with the most idle itself.
pub fn causing(analysis: &Analysis) -> Vec<&LineFigures> {
    let mut lines: Vec<&LineFigures> = analysis.lines.iter().collect();
    lines.sort_by_key(|line| Reverse((line.caused, line.counts.idle)));
    lines
}

/// Says in one sentence how many lane slots were idle, and what parted lanes to cause most of them.
pub fn finding(analysis: &Analysis, names: &Names) -> String {
    let counts = analysis.counts;
    if counts.visits == 0 {
        return "no events".to_owned();
    }
    let idle = format!("{} of {} lane slots idle", about(counts.idle, counts.slots()), count(counts.slots()));
    match analysis.causes.first() {
        Some(cause) => {
            let part = if cause.idle == counts.idle { "all" } else { &about(cause.idle, counts.idle) };
            format!("{idle}, {part} of them since {}", parting(analysis, names, cause))
        }
        None => {
            format!("no idle lane slot of {}: every visit had all lanes of its warp", count(counts.slots()))
        }
    }
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

/// Says how work is spread over the warps of each kernel, those with the most events first; of `most` kernels.
pub fn work(analysis: &Analysis, most: usize) -> Vec<String> {
    let mut kernels: Vec<&KernelFigures> = analysis.kernels.iter().collect();
    kernels.sort_by_key(|kernel| Reverse(kernel.counts.visits));
    let said = |kernel: &&KernelFigures| {
        let events = &kernel.warp_events;
        // What is not exact is marked.
        let about = if events.is_exact() { "" } else { "~" };
        format!(
            "{}: {}, {} to {} events, median {about}{}, p95 {about}{}; most over mean {}",
            plain(&kernel.kernel),
            many(events.count(), "warp"),
            count(events.min()),
            count(events.max()),
            count(events.percentile(50)),
            count(events.percentile(95)),
            ratio(events.imbalance())
        )
    };
    let mut lines: Vec<String> = kernels.iter().take(most).map(said).collect();
    if lines.is_empty() {
        lines.push("no warp".to_owned());
    }
    if kernels.len() > most {
        lines.push(format!("and {} more kernels", kernels.len() - most));
    }
    lines
}

/// Says how many paths there are, and how many warps took the most common one.
pub fn groups(analysis: &Analysis) -> String {
    let (paths, warps) = (&analysis.paths, analysis.warps.len() as u64);
    match paths.first() {
        None => "no path".to_owned(),
        Some(_) if warps == 1 => "1 warp".to_owned(),
        Some(_) if paths.len() as u64 == warps => {
            format!("no two of {} took the same path", many(warps, "warp"))
        }
        Some(common) if common.warps == warps => format!("all {} took the same path", many(warps, "warp")),
        Some(common) => {
            let single = paths.iter().filter(|group| group.warps == 1).count() as u64;
            let own = if single == 1 {
                "1 took a path of its own".to_owned()
            } else {
                format!("{} took paths of their own", count(single))
            };
            format!(
                "{}: {} of {} took the most common one, {own}",
                many(paths.len() as u64, "path"),
                count(common.warps),
                many(warps, "warp"),
            )
        }
    }
}

/// The warp whose number of events is farthest from the median of its launch; `None` if none differs.
pub fn oddest(analysis: &Analysis) -> Option<&WarpFigures> {
    let far = |warp: &&WarpFigures| (warp.distance(), Reverse((warp.launch, warp.warp)));
    analysis.warps.iter().filter(|warp| warp.distance() > 0).max_by_key(far)
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
