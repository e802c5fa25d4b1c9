//! Warps, lane by lane, in the order of their events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use warptrace_analysis::words::{self, count};
use warptrace_analysis::{Counts, WarpFigures, WarpRuns};
use warptrace_decoder::DecodeError;

use crate::guide::{COLOURS, Guide};
use crate::warps::{curve, kernel_of, odd};

/// A warp that can be drawn.
#[derive(Debug, Serialize)]
pub(crate) struct Strip {
    /// What it is among the warps of its kernel: `most idle slots`.
    pub(crate) title: Option<&'static str>,
    pub(crate) name: String,
    /// The kernel's place in the analysis.
    pub(crate) kernel: usize,
    pub(crate) launch: u32,
    pub(crate) warp: u32,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Lanes that the warp has.
    pub(crate) lane_mask: u32,
    /// Which of the paths it took.
    pub(crate) path: String,
}

/// The runs of all warps that took a path.
#[derive(Debug, Serialize)]
pub(crate) struct PathRuns {
    /// The first runs: number of the event in [`Strips::events`], and how many in a row.
    pub(crate) runs: Vec<(usize, u64)>,
    /// Runs of the whole path.
    pub(crate) all_runs: u64,
}

/// A colour of the strips.
#[derive(Debug)]
pub(crate) struct Colour {
    pub(crate) number: usize,
    pub(crate) name: String,
}

/// The warps that can be drawn, and what their colours mean.
#[derive(Debug)]
pub(crate) struct Strips {
    pub(crate) strips: Vec<Strip>,
    /// The runs of each path, by the text of its digest.
    pub(crate) paths: BTreeMap<String, PathRuns>,
    /// Location and mask.
    pub(crate) events: Vec<(u16, u32)>,
    /// Colours of the locations in these runs.
    pub(crate) colours: BTreeMap<u16, usize>,
    pub(crate) legend: Vec<Colour>,
    /// Warps that cannot be chosen on the page.
    pub(crate) left_out: usize,
}

impl Strips {
    /// Whether a warp can be drawn.
    pub(crate) fn has(&self, launch: u32, warp: u32) -> bool {
        self.strips.iter().any(|strip| (strip.launch, strip.warp) == (launch, warp))
    }
}

/// Of each kernel the warps with the most idle slots, the median and the fewest; then odd ones, one of each of
/// the most common paths, unfinished ones, and others evenly spread by their work: each once.
fn choose<'a>(guide: &Guide<'a>) -> Vec<(Option<&'static str>, usize, &'a WarpFigures)> {
    let Guide { trace, analysis, limits, .. } = *guide;
    let mut by_kernel: BTreeMap<usize, Vec<&WarpFigures>> = BTreeMap::new();
    let mut kernel_of_launch = BTreeMap::new();
    for warp in &analysis.warps {
        let kernel = *kernel_of_launch
            .entry(warp.launch)
            .or_insert_with(|| kernel_of(trace, analysis, warp.launch).unwrap_or(0));
        by_kernel.entry(kernel).or_default().push(warp);
    }
    let mut kernels: Vec<_> = by_kernel.into_iter().collect();
    kernels.sort_by_key(|(at, _)| Reverse(analysis.kernels.get(*at).map_or(0, |kernel| kernel.counts.idle)));
    let mut chosen = Vec::new();
    for (_, warps) in kernels.iter_mut().take(limits.standing) {
        warps.sort_by_key(|warp| (Reverse(warp.counts.idle), warp.launch, warp.warp));
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
        let at = analysis.warps.binary_search_by_key(&(launch, warp), |found| (found.launch, found.warp));
        at.ok().map(|at| &analysis.warps[at])
    };
    let paths = analysis.paths.iter().take(limits.paths).filter_map(|path| find(path.launch, path.warp));
    let first = |standing: &warptrace_analysis::Standing| find(standing.first.launch, standing.first.warp);
    let standing = analysis.standing.iter().take(limits.standing).filter_map(first);
    let others = odd(analysis, limits).into_iter().chain(standing).chain(paths);
    chosen.extend(others.chain(curve(analysis, limits)).map(|warp| (None, warp)));
    let mut seen = BTreeSet::new();
    chosen.retain(|(_, warp)| seen.insert((warp.launch, warp.warp)));
    chosen.into_iter().map(|(title, warp)| (title, kernel_of_launch[&warp.launch], warp)).collect()
}

/// Decodes the warps that can be drawn, as long as their runs find room: each path once.
pub(crate) fn strips(guide: &Guide<'_>) -> Result<Option<Strips>, DecodeError> {
    let Guide { trace, analysis, limits, .. } = *guide;
    let (mut strips, mut paths) = (Vec::new(), BTreeMap::new());
    let mut events: BTreeMap<(u16, u32), usize> = BTreeMap::new();
    let mut room = limits.all_runs;
    for (title, kernel, warp) in choose(guide) {
        let path = warp.path.to_string();
        if !paths.contains_key(&path) {
            // What the page begins with is there in any case.
            let most = if title.is_some() { limits.runs } else { limits.runs.min(room) };
            if title.is_none() && room == 0 {
                continue;
            }
            let read = WarpRuns::read(trace, warp.launch, warp.warp, most)?;
            room = room.saturating_sub(read.first.len());
            let mut number = |key: (u16, u32)| {
                let next = events.len();
                *events.entry(key).or_insert(next)
            };
            let runs = read.first.iter().map(|run| (number((run.location, run.mask)), run.times)).collect();
            paths.insert(path.clone(), PathRuns { runs, all_runs: read.all });
        }
        let lane_mask = trace.launch(warp.launch).and_then(|info| info.lane_mask(warp.warp));
        strips.push(Strip {
            title,
            name: words::warp(trace, warp.launch, warp.warp),
            kernel,
            launch: warp.launch,
            warp: warp.warp,
            counts: warp.counts,
            lane_mask: lane_mask.unwrap_or(u32::MAX),
            path,
        });
    }
    if strips.is_empty() {
        return Ok(None);
    }
    let mut by_number: Vec<_> = events.into_iter().map(|(event, number)| (number, event)).collect();
    by_number.sort_unstable();
    let events: Vec<(u16, u32)> = by_number.into_iter().map(|(_, event)| event).collect();
    let colours: BTreeMap<u16, usize> = events.iter().map(|event| (event.0, guide.colour(event.0))).collect();
    let left_out = analysis.warps.len() - strips.len();
    Ok(Some(Strips { legend: legend(guide, &colours), strips, paths, events, colours, left_out }))
}

fn legend(guide: &Guide<'_>, colours: &BTreeMap<u16, usize>) -> Vec<Colour> {
    let mut own: Vec<_> = colours.iter().filter(|(_, number)| **number < COLOURS).collect();
    own.sort_by_key(|(_, number)| **number);
    let others = colours.len() - own.len();
    let colour = |(&id, &number): (&u16, &usize)| Colour { number, name: guide.names.full(id) };
    let mut legend: Vec<Colour> = own.into_iter().map(colour).collect();
    if others > 0 {
        legend.push(Colour { number: COLOURS, name: format!("{} others", count(others as u64)) });
    }
    legend
}
