//! Warps: the curve of work, and groups that took the same path.

use std::cmp::Reverse;

use askama::Template;
use warptrace_analysis::words::{self, count, percent, ratio};
use warptrace_analysis::{Analysis, OrderItems, PathGroup, Standing, WarpFigures, kernel_name};
use warptrace_decoder::TraceFile;

use crate::guide::Guide;
use crate::limits::Limits;
use crate::strips::Strips;
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
    pub(crate) drawn: String,
    pub(crate) odd: Vec<Odd>,
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
    pub(crate) first: WarpLink,
    pub(crate) kernels: String,
}

/// A warp, as a link to its strip where the page has it.
#[derive(Debug, Template)]
#[template(
    ext = "html",
    source = r##"{% if is_shown %}<a href="#strips" data-warp="{{ launch }}:{{ warp }}">{{ name }}</a>{% else %}{{ name }}{% endif %}"##
)]
pub(crate) struct WarpLink {
    pub(crate) name: String,
    pub(crate) launch: u32,
    pub(crate) warp: u32,
    pub(crate) is_shown: bool,
}

/// A warp that is unlike the others of its launch.
#[derive(Debug)]
pub(crate) struct Odd {
    pub(crate) warp: WarpLink,
    pub(crate) events: String,
    pub(crate) median: String,
    pub(crate) idle: String,
    pub(crate) kernels: String,
}

/// A kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Its place in the analysis.
    pub(crate) number: usize,
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

/// Some of the warps, those with the most events first: every one if they are few, and otherwise evenly
/// spread, with the first and the last.
pub(crate) fn curve(analysis: &Analysis, limits: Limits) -> Vec<&WarpFigures> {
    let mut warps: Vec<&WarpFigures> = analysis.warps.iter().collect();
    warps.order_by_key(|warp| (Reverse(warp.counts.visits), warp.launch, warp.warp));
    let points = limits.curve.max(2);
    if warps.len() <= points {
        return warps;
    }
    (0..points).map(|at| warps[at * (warps.len() - 1) / (points - 1)]).collect()
}

/// The warps farthest from the median of their launch, the farthest first.
pub(crate) fn odd(analysis: &Analysis, limits: Limits) -> Vec<&WarpFigures> {
    let mut warps: Vec<&WarpFigures> = analysis.warps.iter().filter(|warp| warp.distance() > 0).collect();
    warps.order_by_key(|warp| Reverse(warp.distance()));
    warps.truncate(limits.paths);
    warps
}

/// Describes the warps.
pub(crate) fn warps(guide: &Guide<'_>, strips: Option<&Strips>) -> Warps {
    let Guide { trace, analysis, limits, .. } = *guide;
    let curve = curve(analysis, limits);
    let most = analysis.warp_events.max();
    let values =
        |value: fn(&WarpFigures) -> f64| steps(curve.iter().map(move |warp| value(warp)), most as f64, CURVE);
    let all = analysis.warps.len();
    let link = |launch: u32, warp: u32| WarpLink {
        name: words::warp(trace, launch, warp),
        launch,
        warp,
        is_shown: strips.is_some_and(|strips| strips.has(launch, warp)),
    };
    let kernel =
        |launch: u32| kernel_of(trace, analysis, launch).map_or_else(String::new, |at| at.to_string());
    let path = |group: &PathGroup| Path {
        digest: format!("{:08x}", group.path >> 29),
        warps: count(group.warps),
        of_all: percent(group.warps, all as u64),
        events: count(group.counts.visits),
        lanes: ratio(group.counts.mean_lanes()),
        idle: percent(group.counts.idle, group.counts.slots),
        first: link(group.launch, group.warp),
        kernels: kernel(group.launch),
    };
    let odd_one = |warp: &WarpFigures| Odd {
        warp: link(warp.launch, warp.warp),
        events: count(warp.counts.visits),
        median: count(warp.median),
        idle: percent(warp.counts.idle, warp.counts.slots),
        kernels: kernel(warp.launch),
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
        drawn: words::many(all as u64, "warp"),
        odd: odd(analysis, limits).into_iter().map(odd_one).collect(),
        paths: analysis.paths.iter().take(limits.paths).map(path).collect(),
        more_paths: more,
    }
}

/// The place in the analysis of a launch's kernel.
pub(crate) fn kernel_of(trace: &TraceFile, analysis: &Analysis, launch: u32) -> Option<usize> {
    let kernel = kernel_name(trace, trace.launch(launch)?);
    analysis.kernels.iter().position(|other| other.kernel == kernel)
}

/// Describes the kernels.
pub(crate) fn kernels(analysis: &Analysis, limits: Limits) -> Vec<Kernel> {
    let kernel = |(number, kernel): (usize, &warptrace_analysis::KernelFigures)| Kernel {
        number,
        name: crate::page::cut(&kernel.kernel, limits.text),
        launches: count(kernel.launches),
        warps: count(kernel.warps),
        events: count(kernel.counts.visits),
        lanes: ratio(kernel.counts.mean_lanes()),
        histogram: lane_histogram(&kernel.active),
        idle_slots: count(kernel.counts.idle),
        idle: percent(kernel.counts.idle, kernel.counts.slots),
    };
    analysis.kernels.iter().enumerate().take(limits.standing).map(kernel).collect()
}

/// Describes where unfinished warps stand.
pub(crate) fn standing(guide: &Guide<'_>) -> Vec<String> {
    let Guide { trace, analysis, names, limits, .. } = *guide;
    let said = |group: &Standing| {
        let mut said = vec![words::standing(trace, names, group)];
        said.extend(words::circle(analysis, names, group));
        said.extend(words::not_come(trace, names, group));
        crate::page::cut(&said.join("; "), 2 * limits.text)
    };
    let mut all: Vec<String> = analysis.standing.iter().take(limits.standing).map(said).collect();
    let more = analysis.standing.len().saturating_sub(limits.standing);
    if more > 0 {
        all.push(format!("and others at {} more locations", count(more as u64)));
    }
    all
}
