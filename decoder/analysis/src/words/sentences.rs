//! Sentences that summarize the contents, losses and findings of a trace.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::order::OrderItems;
use warptrace_decoder::{LaunchEnd, TraceFile, Untimed};
use warptrace_format::on_one_line;

use super::causes::cause_of;
use super::hangs::where_warps_were;
use super::{Names, about, count, cut, many, ratio, rough};
use crate::compare::{Comparison, Greatest, Measure};
use crate::counts::{Counts, Weight, share};
use crate::figures::{Analysis, KernelFigures, LineFigures, Losses, PathGroup, Point, WarpFigures};
use crate::outlier::Outlier;
use crate::recordings::Difference;
use crate::roles::{KernelRoles, Role};

pub(super) const KERNEL_WIDTH: usize = 240;

/// Describes missing data and untraced launches; `None` if the trace is whole and all launches were traced.
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
    wants.extend(missing_times(losses));
    if let Some(why) = &losses.cut_off {
        wants.push(why.clone());
    }
    let start = if wants.is_empty() { "" } else { "INCOMPLETE trace: " };
    wants.extend(losses.not_traced.clone());
    if wants.is_empty() {
        return None;
    }
    wants.extend(losses.assumed.map(str::to_owned));
    Some(format!("{start}{}", wants.join("; ")))
}

fn missing_times(losses: &Losses) -> Option<String> {
    let Losses { untimed_events, unplaced_warps, .. } = losses;
    let [events, warps] = [untimed_events, unplaced_warps].map(|missing| missing.unwrap_or_default());
    Untimed { events, warps }.describe()
}

/// Describes the extent of the analysis: events, warps and launches.
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

/// Describes contents, losses and assumptions: the first line of each view.
pub fn losses(analysis: &Analysis) -> String {
    let (losses, holds) = (&analysis.losses, holds(analysis));
    let unchosen = losses.unchosen_warps;
    let window = (unchosen > 0).then(|| format!("{} not chosen to be recorded", many(unchosen, "warp")));
    let mut text = match missing(losses) {
        None => {
            let start = if unchosen == 0 { "whole trace" } else { "trace of a window" };
            let said = [Some(start.to_owned()), window, losses.assumed.map(str::to_owned)];
            format!("{}: {holds}", said.into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        Some(missing) => {
            let said: Vec<String> = [Some(missing), window].into_iter().flatten().collect();
            format!("{}\nfigures are of what is there: {holds}", said.join("; "))
        }
    };
    if analysis.counts.visits > 0 {
        text += match analysis.weight {
            Weight::Instructions => "; slots are of instructions",
            Weight::Events => "; slots are of lanes, each event counted as one",
        };
    }
    text
}

/// Returns the lines by warp-cycles, if the trace has times, then by idle slots, descending.
pub fn hottest(analysis: &Analysis) -> Vec<&LineFigures> {
    let mut lines: Vec<&LineFigures> = analysis.lines.iter().collect();
    lines.order_by_key(|line| Reverse((line.time.map(|time| time.warp_cycles), line.counts.idle)));
    lines
}

/// Returns the lines by caused idle slots, then by their own idle slots, descending.
pub fn causing(analysis: &Analysis) -> Vec<&LineFigures> {
    let mut lines: Vec<&LineFigures> = analysis.lines.iter().collect();
    lines.order_by_key(|line| Reverse((line.caused, line.counts.idle)));
    lines
}

/// Describes in one sentence the share of idle slots and their greatest cause.
pub fn finding(analysis: &Analysis, names: &Names) -> String {
    let counts = analysis.counts;
    if counts.visits == 0 {
        return "no events".to_owned();
    }
    let slots = format!("{} {}", rough(counts.slots), analysis.weight.slots());
    let idle = format!("{} of {slots} idle", about(counts.idle, counts.slots));
    match analysis.cause_lines().first().filter(|line| line.whole.idle > 0) {
        Some(line) => {
            let caused = line.whole.idle;
            let part = if caused == counts.idle { "all" } else { &about(caused, counts.idle) };
            format!("{idle}, {part} of them caused by {}", cause_of(names, line))
        }
        None if analysis.causes.is_empty() => {
            format!("none of {slots} idle: every visit had all lanes of its warp")
        }
        None => format!("none of {slots} idle"),
    }
}

/// Describes why a launch ended early; `None` if it did not, or if that is unknown.
pub fn early_end(trace: &TraceFile, launch: u32) -> Option<String> {
    let kernel = trace.metadata().kernels.get(trace.launch(launch)?.kernel() as usize);
    let kernel = cut(kernel.map_or("?", |kernel| &kernel.name), KERNEL_WIDTH);
    let called = super::launch(trace, launch);
    match trace.launch_end(launch)? {
        LaunchEnd::Failed { message } => {
            let found = crate::hang(trace, launch);
            let found = found.map(|found| where_warps_were(trace, &Names::new(trace), &found));
            let said =
                [Some(on_one_line(&message)), found].into_iter().flatten().collect::<Vec<_>>().join("; ");
            Some(format!("{called} of kernel `{kernel}` failed: {said}"))
        }
        LaunchEnd::Interrupted => Some(format!("{called} of kernel `{kernel}` was interrupted")),
        LaunchEnd::Running => Some(match crate::hang(trace, launch) {
            Some(found) => super::hang(trace, &Names::new(trace), &found),
            None => format!("{called} of kernel `{kernel}` had not ended"),
        }),
        _ => None,
    }
}

/// Describes how work is distributed over warps, for the `most` kernels with the most events.
pub fn work(analysis: &Analysis, most: usize) -> Vec<String> {
    let has_warps = |kernel: &&KernelFigures| kernel.warp_events.count() > 0;
    let mut kernels: Vec<&KernelFigures> = analysis.kernels.iter().filter(has_warps).collect();
    kernels.order_by_key(|kernel| Reverse(kernel.counts.visits));
    let said = |kernel: &&KernelFigures| {
        let events = &kernel.warp_events;
        let about = if events.is_exact() { "" } else { "~" };
        format!(
            "{}: {}, {} to {} events, median {about}{}, p95 {about}{}; most over mean {}",
            kernel.kernel,
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
        lines.push(format!("and {}", many((kernels.len() - most) as u64, "more kernel")));
    }
    lines
}

/// Describes the number of paths and the most common one, for each role if there are several.
pub fn groups(analysis: &Analysis) -> String {
    let roles: BTreeSet<Option<u8>> = analysis.paths.iter().map(|group| group.role).collect();
    if roles.len() < 2 {
        return groups_of(&analysis.paths.iter().collect::<Vec<_>>());
    }
    let said = |role: Option<u8>| {
        let paths: Vec<_> = analysis.paths.iter().filter(|group| group.role == role).collect();
        let name = role.map_or_else(|| "one role alone".to_owned(), |role| format!("role {role}"));
        format!("{name}: {}", groups_of(&paths))
    };
    roles.into_iter().map(said).collect::<Vec<_>>().join("; ")
}

/// Describes the roles of each kernel that has several, in one line each.
pub fn roles(analysis: &Analysis, names: &Names) -> Vec<String> {
    analysis.roles.iter().map(|found| roles_of(found, names)).collect()
}

fn roles_of(found: &KernelRoles, names: &Names) -> String {
    let from = found.branch.map_or_else(String::new, |branch| format!(" from {}", names.full(branch)));
    let role = |(number, role): (usize, &Role)| {
        let numbers = match role.warps[..] {
            [first, .., last] if (last - first) as usize + 1 == role.warps.len() => {
                format!("{first} to {last}")
            }
            _ => role.warps.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        };
        let does = match (role.head, role.side) {
            (Some(head), _) => format!("run {}", names.full(head)),
            (None, Some(side)) => format!("run no loop, but {}", names.full(side)),
            (None, None) => "run no loop".to_owned(),
        };
        let does = if role.warps.len() == 1 { does.replacen("run", "runs", 1) } else { does };
        format!("role {number}, {} of each block ({numbers}), {does}", many(role.warps.len() as u64, "warp"))
    };
    let roles: Vec<String> = (1..).zip(&found.roles).map(role).collect();
    format!("{}: {} roles{from}: {}", found.kernel, found.roles.len(), roles.join("; "))
}

fn groups_of(paths: &[&PathGroup]) -> String {
    let warps = paths.iter().map(|group| group.warps).sum();
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

/// Returns the warp with the most events above the median of its launch and role; `None` if no warp has more than
/// the median. A warp with fewer events, such as one outside of an array, delays nothing.
pub fn farthest(analysis: &Analysis) -> Option<&WarpFigures> {
    let far = |warp: &&WarpFigures| (warp.distance(), Reverse((warp.launch, warp.warp)));
    let longer = |warp: &&WarpFigures| warp.counts.visits > warp.median;
    analysis.warps.distinct().map(|(warp, _)| warp).filter(longer).max_by_key(far)
}

const DOMINANT_RATIO: u64 = 3;

/// Returns the warp that dominates a trace, and the events of the longest path: the sum of the longest warp
/// of each launch. The warp has more than half of them, and is far longer than the median warp of its launch
/// or the only one. `None` if there is none, or the trace is of one warp.
fn dominant(analysis: &Analysis) -> Option<(&WarpFigures, u64)> {
    let mut longest: BTreeMap<u32, (&WarpFigures, u64)> = BTreeMap::new();
    for (warp, warps) in analysis.warps.distinct() {
        let (of_launch, count) = longest.entry(warp.launch).or_insert((warp, 0));
        *count += warps;
        if warp.counts.visits > of_launch.counts.visits {
            *of_launch = warp;
        }
    }
    let path = longest.values().fold(0, |sum: u64, (warp, _)| sum.saturating_add(warp.counts.visits));
    let (warp, warps) =
        *longest.values().max_by_key(|(warp, _)| (warp.counts.visits, Reverse(warp.launch)))?;
    let events = warp.counts.visits;
    let is_far = events / DOMINANT_RATIO >= warp.median.max(1);
    let is_alone = warps == 1 && longest.len() > 1;
    ((is_far || is_alone) && events > path - events).then_some((warp, path))
}

/// The warp that dominates a trace.
#[derive(Debug)]
#[non_exhaustive]
pub struct DominantWarp {
    /// The warp, compared with the median warp of its launch.
    pub oddity: Outlier,
    /// Events of the longest path: the sum over launches of the longest warp of each.
    pub path: u64,
}

impl DominantWarp {
    /// Returns the warp; `None` if no warp dominates the trace, or its events cannot be decoded.
    pub fn new(trace: &TraceFile, analysis: &Analysis) -> Option<Self> {
        let (warp, path) = dominant(analysis)?;
        Some(Self { oddity: Outlier::new(trace, analysis, warp).ok()?, path })
    }

    /// Describes its share, its threads, and the loop that makes it long.
    pub fn describe(&self, trace: &TraceFile, names: &Names) -> String {
        format!(
            "{} of the longest path ({} events, the longest warp of each launch) is one warp: {}",
            about(self.oddity.events, self.path),
            count(self.path),
            self.oddity.describe(trace, names).join("; ")
        )
    }
}

/// Describes the differences between two recordings, in one line each.
pub fn differences(comparison: &Comparison) -> Vec<String> {
    fn said(value: &Option<String>) -> &str {
        value.as_deref().unwrap_or("-")
    }
    let line = |Difference { what, values: [before, after] }: &Difference| {
        format!("{what}: {} -> {}", said(before), said(after))
    };
    comparison.recordings.iter().map(line).collect()
}

/// Describes the changes of events and idle slots, in total and, for several kernels, for each common kernel.
pub fn ratios(comparison: &Comparison) -> Vec<String> {
    let [before, after] = &comparison.analyses;
    let said = |what: &str, [old, new]: [Counts; 2]| {
        let times = match old.visits {
            0 => "from none".to_owned(),
            _ => format!("{:.2} times", share(new.visits, old.visits)),
        };
        format!(
            "{what}: events {times}, {} -> {}; idle {} -> {} of the {}",
            count(old.visits),
            count(new.visits),
            about(old.idle, old.slots),
            about(new.idle, new.slots),
            before.weight.slots()
        )
    };
    let of_kernel = |kernel: &KernelFigures| {
        let partner = after.kernels.iter().find(|other| other.kernel == kernel.kernel)?;
        Some(said(&kernel.kernel, [kernel.counts, partner.counts]))
    };
    let mut lines = vec![said("all", [before.counts, after.counts])];
    if let [Some(old), Some(new)] = [before.time, after.time].map(|time| Some(time?.warp_cycles)) {
        let times = if old == 0 { "from none".to_owned() } else { format!("{:.2} times", share(new, old)) };
        lines.push(format!("all: warp-cycles {times}, {} -> {}", count(old), count(new)));
    }
    if before.kernels.len() > 1 {
        lines.extend(before.kernels.iter().filter_map(of_kernel));
    }
    lines
}

/// Describes the greatest change.
pub fn greatest(comparison: &Comparison) -> String {
    let Some(Greatest { measure, location, percent }) = comparison.greatest() else {
        let mut said = "nothing changed in events, idle slots, causes and visits".to_owned();
        for (analysis, which) in comparison.analyses.iter().zip(["first", "second"]) {
            if let Some(missing) = missing_times(&analysis.losses) {
                said += &format!("; of the {which} trace {missing}");
            }
        }
        return said;
    };
    let by = match percent {
        percent if percent.is_infinite() => "from nothing to something".to_owned(),
        percent if percent < 0.01 => "under 0.01%".to_owned(),
        percent => format!("{percent:.2}%"),
    };
    let at = location.map_or_else(String::new, |point| match point.location {
        Point::BEGIN => "(begin)".to_owned(),
        _ => point.name.clone(),
    });
    match measure {
        Measure::Events => format!("greatest change: {by} of the first trace's events"),
        Measure::Idle => format!("greatest change: {by} of the slots, all idle ones together"),
        Measure::Cause => format!("greatest change: {by} of the slots, idle because of {at}"),
        Measure::Visits => format!("greatest change: {by} of the first trace's events, visits of {at}"),
    }
}

/// Describes how many warps took a different path in the second trace.
pub fn changes(comparison: &Comparison) -> String {
    let Comparison { analyses, common_warps, single_warps, changed, .. } = comparison;
    if *common_warps == 0 && analyses.iter().all(|analysis| !analysis.warps.is_empty()) {
        return "no warp is compared: no warp of the one trace holds the same threads as one of the other, so \
                figures are compared by location only"
            .to_owned();
    }
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

/// Returns line and name of a location in two traces, preferably as in the second one.
pub fn changed_place(names: &[Names; 2], before: Option<&Point>, after: Option<&Point>) -> [String; 2] {
    let place = |names: &Names, point: &Point| [names.line_of(point), names.name(point.location)];
    match (before, after) {
        (_, Some(point)) => place(&names[1], point),
        (Some(point), None) => place(&names[0], point),
        (None, None) => ["-".to_owned(), "?".to_owned()],
    }
}

/// Describes the location and mask of the first event that differs.
pub fn other_event(names: &Names, event: Option<(u16, u32)>) -> String {
    match event {
        Some((location, mask)) => format!("{} 0x{mask:08x}", names.name(location)),
        None => "(no more events)".to_owned(),
    }
}

/// Returns the difference of two numbers: `+1,234`, `-5`, or `=`.
pub fn signed([before, after]: [u64; 2]) -> String {
    let sign = match after.cmp(&before) {
        std::cmp::Ordering::Less => "-",
        std::cmp::Ordering::Equal => return "=".to_owned(),
        std::cmp::Ordering::Greater => "+",
    };
    format!("{sign}{}", count(before.abs_diff(after)))
}
