//! Strips: warps, lane by lane, in the order of their events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde::Serialize;
use warptrace_analysis::words::{self, count};
use warptrace_analysis::{Counts, OrderItems, WarpFigures, WarpRuns};
use warptrace_decoder::DecodeError;

use crate::guide::{COLOURS, Guide};
use crate::warps::{curve, kernel_of, odd};

/// Remaining space for runs below which no further warps are read.
const MIN_ROOM: usize = 100;
/// Number of ranges of unavailable warps that are named.
const RANGES: usize = 6;

#[derive(Debug, Serialize)]
pub(crate) struct Strip {
    /// Role among the warps of its kernel, such as `most idle slots`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<&'static str>,
    pub(crate) name: String,
    pub(crate) kernel: usize,
    pub(crate) launch: u32,
    pub(crate) warp: u32,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Existing lanes of the warp.
    pub(crate) lane_mask: u32,
    /// Path of the warp, as a key of [`Strips::paths`].
    pub(crate) path: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct PathRuns {
    /// First runs: index of the event in [`Strips::events`], and number of consecutive executions.
    pub(crate) runs: Vec<(usize, u64)>,
    /// Number of runs of the whole path.
    pub(crate) all_runs: u64,
}

#[derive(Debug)]
pub(crate) struct Colour {
    pub(crate) number: usize,
    pub(crate) name: String,
}

#[derive(Debug)]
pub(crate) struct Strips {
    pub(crate) strips: Vec<Strip>,
    pub(crate) paths: BTreeMap<String, PathRuns>,
    /// Location and mask of each event.
    pub(crate) events: Vec<(u16, u32)>,
    pub(crate) colours: BTreeMap<u16, usize>,
    pub(crate) legend: Vec<Colour>,
    /// Launch and number of each warp that can be drawn.
    carried: BTreeSet<(u32, u32)>,
    /// Warps that cannot be drawn, in words; empty if all can.
    pub(crate) left_out: String,
}

impl Strips {
    pub(crate) fn has(&self, launch: u32, warp: u32) -> bool {
        self.carried.contains(&(launch, warp))
    }
}

/// Selects warps, each once: of each kernel those with the most, the median and the fewest idle slots; then
/// odd warps, one of each of the most common paths, and others evenly spread by their work.
fn choose<'a>(guide: &'a Guide<'_>) -> Vec<(Option<&'static str>, usize, &'a WarpFigures)> {
    let Guide { trace, analysis, limits, .. } = *guide;
    let mut by_kernel: BTreeMap<usize, Vec<&WarpFigures>> = BTreeMap::new();
    let mut kernel_of_launch = BTreeMap::new();
    for warp in &guide.warps {
        let kernel = *kernel_of_launch
            .entry(warp.launch)
            .or_insert_with(|| kernel_of(trace, analysis, warp.launch).unwrap_or(0));
        by_kernel.entry(kernel).or_default().push(warp);
    }
    let mut kernels: Vec<_> = by_kernel.into_iter().collect();
    kernels.order_by_key(|(at, _)| Reverse(analysis.kernels.get(*at).map_or(0, |kernel| kernel.counts.idle)));
    let mut chosen = Vec::new();
    for (_, warps) in kernels.iter_mut().take(limits.kernels) {
        warps.order_by_key(|warp| (Reverse(warp.counts.idle), warp.launch, warp.warp));
        let last = warps.len() - 1;
        match last {
            0 => chosen.push((Some("the only warp"), warps[0])),
            _ => chosen.push((Some("most idle slots"), warps[0])),
        }
        if last > 1 {
            chosen.push((Some("median"), warps[last / 2]));
        }
        if last > 0 {
            chosen.push((Some("fewest idle slots"), warps[last]));
        }
    }
    let find = |launch: u32, warp: u32| {
        let at = guide.warps.binary_search_by_key(&(launch, warp), |found| (found.launch, found.warp));
        at.ok().map(|at| &guide.warps[at])
    };
    let paths = analysis.paths.iter().take(limits.paths).filter_map(|path| find(path.launch, path.warp));
    let others = odd(&guide.warps, limits).into_iter().chain(paths);
    chosen.extend(others.chain(curve(&guide.warps, limits)).map(|warp| (None, warp)));
    let mut seen = BTreeSet::new();
    chosen.retain(|(_, warp)| seen.insert((warp.launch, warp.warp)));
    chosen.into_iter().map(|(title, warp)| (title, kernel_of_launch[&warp.launch], warp)).collect()
}

struct Runs {
    paths: BTreeMap<String, PathRuns>,
    /// Location and mask of each event, and its number.
    events: BTreeMap<(u16, u32), usize>,
    room: usize,
}

impl Runs {
    fn add(&mut self, path: String, read: &WarpRuns) {
        self.room = self.room.saturating_sub(read.first.len());
        let events = &mut self.events;
        let mut number = |key: (u16, u32)| {
            let next = events.len();
            *events.entry(key).or_insert(next)
        };
        let runs = read.first.iter().map(|run| (number((run.location, run.mask)), run.times)).collect();
        self.paths.insert(path, PathRuns { runs, all_runs: read.all });
    }
}

/// Decodes the warps that can be drawn while their runs fit. Each path is decoded once.
pub(crate) fn strips(guide: &Guide<'_>) -> Result<Option<Strips>, DecodeError> {
    let Guide { trace, analysis, limits, .. } = *guide;
    let mut runs = Runs { paths: BTreeMap::new(), events: BTreeMap::new(), room: limits.all_runs };
    let mut chosen = choose(guide);
    for (title, _, warp) in &chosen {
        let path = warp.path.to_string();
        // Titled warps are drawn in any case.
        let most = if title.is_some() { limits.runs } else { limits.runs.min(runs.room) };
        if most > 0 && !runs.paths.contains_key(&path) {
            runs.add(path, &WarpRuns::read(trace, warp.launch, warp.warp, most)?);
        }
    }
    let seen: BTreeSet<(u32, u32)> = chosen.iter().map(|(_, _, warp)| (warp.launch, warp.warp)).collect();
    let is_new = |warp: &&WarpFigures| !seen.contains(&(warp.launch, warp.warp));
    let others: Vec<&WarpFigures> =
        guide.warps.iter().filter(is_new).take(limits.strips.saturating_sub(chosen.len())).collect();
    for of_launch in others.chunk_by(|one, other| one.launch == other.launch) {
        fill(guide, of_launch, &mut runs)?;
        let kernel = kernel_of(trace, analysis, of_launch[0].launch).unwrap_or(0);
        chosen.extend(of_launch.iter().map(|warp| (None, kernel, *warp)));
    }
    let strip = |(title, kernel, warp): (Option<&'static str>, usize, &WarpFigures)| {
        let path = warp.path.to_string();
        let lane_mask = trace.launch(warp.launch).and_then(|info| info.lane_mask(warp.warp));
        runs.paths.contains_key(&path).then(|| Strip {
            title,
            name: words::warp(trace, warp.launch, warp.warp),
            kernel,
            launch: warp.launch,
            warp: warp.warp,
            counts: warp.counts,
            lane_mask: lane_mask.unwrap_or(u32::MAX),
            path,
        })
    };
    let strips: Vec<Strip> = chosen.into_iter().filter_map(strip).collect();
    if strips.is_empty() {
        return Ok(None);
    }
    let mut by_number: Vec<_> = runs.events.into_iter().map(|(event, number)| (number, event)).collect();
    by_number.sort_unstable();
    let events: Vec<(u16, u32)> = by_number.into_iter().map(|(_, event)| event).collect();
    let colours: BTreeMap<u16, usize> = events.iter().map(|event| (event.0, guide.colour(event.0))).collect();
    let carried: BTreeSet<(u32, u32)> = strips.iter().map(|strip| (strip.launch, strip.warp)).collect();
    let left_out = left_out(guide, &carried);
    Ok(Some(Strips {
        legend: legend(guide, &colours),
        carried,
        strips,
        paths: runs.paths,
        events,
        colours,
        left_out,
    }))
}

/// Reads the paths of warps of one launch, sorted by number, in one pass, while they fit.
fn fill(guide: &Guide<'_>, warps: &[&WarpFigures], runs: &mut Runs) -> Result<(), DecodeError> {
    let (limits, launch) = (guide.limits, warps[0].launch);
    let mut wanted: BTreeMap<u32, String> = BTreeMap::new();
    let mut paths = BTreeSet::new();
    for warp in warps {
        let path = warp.path.to_string();
        if !runs.paths.contains_key(&path) && paths.insert(warp.path) {
            wanted.insert(warp.warp, path);
        }
    }
    if wanted.is_empty() || runs.room == 0 {
        return Ok(());
    }
    let last = wanted.keys().next_back().copied();
    let mut limit = |warp| wanted.contains_key(&warp).then_some(limits.runs);
    let _ = WarpRuns::read_many(guide.trace, launch, &mut limit, &mut |warp, read| {
        // A path is stored with all of its first runs or left out.
        if read.first.len() <= runs.room {
            runs.add(wanted[&warp].clone(), &read);
        }
        let is_done = Some(warp) == last || runs.room < MIN_ROOM;
        if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(())
}

/// Names the warps with events that cannot be drawn; empty if all can.
fn left_out(guide: &Guide<'_>, carried: &BTreeSet<(u32, u32)>) -> String {
    let trace = guide.trace;
    let missing: Vec<&WarpFigures> =
        guide.warps.iter().filter(|warp| !carried.contains(&(warp.launch, warp.warp))).collect();
    let ranges: Vec<&[&WarpFigures]> =
        missing.chunk_by(|one, other| one.launch == other.launch && one.warp + 1 == other.warp).collect();
    let said = |range: &&[&WarpFigures]| {
        let [first, .., last] = range else { return words::warp(trace, range[0].launch, range[0].warp) };
        let to = words::warp(trace, last.launch, last.warp);
        let to = to.split_once(" block ").map_or(to.as_str(), |(_, block)| block);
        format!("{} to block {to}", words::warp(trace, first.launch, first.warp))
    };
    let mut text: Vec<String> = ranges.iter().take(RANGES).map(said).collect();
    if ranges.len() > RANGES {
        let more: usize = ranges[RANGES..].iter().map(|range| range.len()).sum();
        text.push(format!("and {} more", words::many(more as u64, "warp")));
    }
    text.join("; ")
}

fn legend(guide: &Guide<'_>, colours: &BTreeMap<u16, usize>) -> Vec<Colour> {
    let mut own: Vec<_> = colours.iter().filter(|(_, number)| **number < COLOURS).collect();
    own.order_by_key(|(_, number)| **number);
    let others = colours.len() - own.len();
    let colour = |(&id, &number): (&u16, &usize)| Colour { number, name: guide.names.full(id) };
    let mut legend: Vec<Colour> = own.into_iter().map(colour).collect();
    if others > 0 {
        legend.push(Colour { number: COLOURS, name: format!("{} others", count(others as u64)) });
    }
    legend
}
