//! Warps: the curve of work, and groups that took the same path.

use std::cmp::Reverse;

use warptrace_analysis::words::{self, Names, count, percent, plain, ratio};
use warptrace_analysis::{Analysis, PathGroup, Standing, WarpFigures};
use warptrace_decoder::TraceFile;

use crate::limits::Limits;
use crate::svg::{Histogram, lane_histogram, steps};

/// Size of the curve, in coordinates of its viewBox.
pub(crate) const CURVE: [f64; 2] = [600.0, 140.0];

/// Everything about warps, in words.
#[derive(Debug)]
pub(crate) struct Warps {
    pub(crate) work: String,
    pub(crate) groups: String,
    /// Events of each warp.
    pub(crate) events: String,
    /// Events that the same lanes would make if all 32 were active.
    pub(crate) filled: String,
    pub(crate) most: String,
    pub(crate) sampled: Option<String>,
    pub(crate) paths: Vec<Path>,
    pub(crate) more_paths: usize,
}

/// A group of warps with the same path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) digest: String,
    pub(crate) warps: String,
    pub(crate) of_all: String,
    pub(crate) events: String,
    pub(crate) lanes: String,
    pub(crate) idle: String,
    pub(crate) first: String,
}

/// A kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) launches: String,
    pub(crate) warps: String,
    pub(crate) events: String,
    pub(crate) lanes: String,
    pub(crate) histogram: Histogram,
    pub(crate) idle_slots: String,
    pub(crate) idle: String,
}

/// Kernels whose work is said.
const KERNELS: usize = 3;

/// Some of the warps, those with the most events first: every one if they are few, and otherwise evenly spread, with
/// the first and the last.
pub(crate) fn curve(analysis: &Analysis, limits: Limits) -> Vec<&WarpFigures> {
    let mut warps: Vec<&WarpFigures> = analysis.warps.iter().collect();
    warps.sort_by_key(|warp| (Reverse(warp.counts.visits), warp.launch, warp.warp));
    let points = limits.curve.max(2);
    if warps.len() <= points {
        return warps;
    }
    (0..points).map(|at| warps[at * (warps.len() - 1) / (points - 1)]).collect()
}

/// Describes the warps.
pub(crate) fn warps(trace: &TraceFile, analysis: &Analysis, limits: Limits) -> Warps {
    let curve = curve(analysis, limits);
    let most = analysis.warp_events.max();
    let values =
        |value: fn(&WarpFigures) -> f64| steps(curve.iter().map(move |warp| value(warp)), most as f64, CURVE);
    let all = analysis.warps.len();
    let path = |group: &PathGroup| Path {
        digest: format!("{:08x}", group.path >> 29),
        warps: count(group.warps),
        of_all: percent(group.warps, all as u64),
        events: count(group.counts.visits),
        lanes: ratio(group.counts.mean_lanes()),
        idle: percent(group.counts.idle, group.counts.slots()),
        first: words::warp(trace, group.launch, group.warp),
    };
    let more = analysis.paths.len().saturating_sub(limits.paths);
    Warps {
        work: words::work(analysis, KERNELS).join("; "),
        groups: words::groups(analysis),
        events: values(|warp| warp.counts.visits as f64),
        filled: values(|warp| warp.counts.lanes as f64 / 32.0),
        most: count(most),
        sampled: (all > curve.len())
            .then(|| format!("{} of {} warps are drawn", count(curve.len() as u64), count(all as u64))),
        paths: analysis.paths.iter().take(limits.paths).map(path).collect(),
        more_paths: more,
    }
}

/// Describes the kernels.
pub(crate) fn kernels(analysis: &Analysis, limits: Limits) -> Vec<Kernel> {
    let kernel = |kernel: &warptrace_analysis::KernelFigures| Kernel {
        name: crate::page::cut(&plain(&kernel.kernel), limits.text),
        launches: count(kernel.launches),
        warps: count(kernel.warps),
        events: count(kernel.counts.visits),
        lanes: ratio(kernel.counts.mean_lanes()),
        histogram: lane_histogram(&kernel.active),
        idle_slots: count(kernel.counts.idle),
        idle: percent(kernel.counts.idle, kernel.counts.slots()),
    };
    analysis.kernels.iter().take(limits.standing).map(kernel).collect()
}

/// Describes where unfinished warps stand.
pub(crate) fn standing(trace: &TraceFile, analysis: &Analysis, names: &Names, limits: Limits) -> Vec<String> {
    let groups = analysis.standing.iter().take(limits.standing);
    let mut said: Vec<String> =
        groups.map(|group| cut_long(said_of(trace, analysis, names, group), limits)).collect();
    let more = analysis.standing.len().saturating_sub(limits.standing);
    if more > 0 {
        said.push(format!("and others at {} more locations", count(more as u64)));
    }
    said
}

fn said_of(trace: &TraceFile, analysis: &Analysis, names: &Names, group: &Standing) -> String {
    let mut said = vec![words::standing(trace, names, group)];
    said.extend(words::circle(analysis, names, group));
    said.join("; ")
}

fn cut_long(text: String, limits: Limits) -> String {
    crate::page::cut(&text, 2 * limits.text)
}
