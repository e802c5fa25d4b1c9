//! Warps: the work curve, and groups with the same path.

use std::cmp::Reverse;

use askama::Template;
use warptrace_analysis::words::{self, count, percent, ratio};
use warptrace_analysis::{Analysis, KernelFigures, OrderItems, PathGroup, WarpFigures, kernel_name};
use warptrace_decoder::TraceFile;

use crate::guide::Guide;
use crate::limits::Limits;
use crate::strips::Strips;
use crate::svg::{Histogram, lane_histogram, steps};
use crate::table::{Columns, PageTable};

/// Size of the curve, in coordinates of its viewBox.
pub(crate) const CURVE: [f64; 2] = [600.0, 140.0];

#[derive(Debug)]
pub(crate) struct Warps {
    pub(crate) work: String,
    pub(crate) groups: String,
    pub(crate) events: String,
    /// Curve of the events that the active lanes would need with all 32 lanes active.
    pub(crate) filled: String,
    pub(crate) most: String,
    pub(crate) sampled: Option<String>,
    pub(crate) drawn: String,
    pub(crate) odd: PageTable,
    pub(crate) paths: PageTable,
}

/// A warp, with a link to its strip if the page has it.
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

/// Number of kernels whose work is described.
const KERNELS: usize = 3;

/// Returns the points of the curve, most events first: all, or an even selection with the first and the last.
pub(crate) fn curve(warps: &[WarpFigures], limits: Limits) -> Vec<&WarpFigures> {
    let mut warps: Vec<&WarpFigures> = warps.iter().collect();
    warps.order_by_key(|warp| (Reverse(warp.counts.visits), warp.launch, warp.warp));
    let points = limits.curve.max(2);
    if warps.len() <= points {
        return warps;
    }
    (0..points).map(|at| warps[at * (warps.len() - 1) / (points - 1)]).collect()
}

/// Returns the warps farthest from the median of their launch, farthest first.
pub(crate) fn odd(warps: &[WarpFigures], limits: Limits) -> Vec<&WarpFigures> {
    let mut warps: Vec<&WarpFigures> = warps.iter().filter(|warp| warp.distance() > 0).collect();
    warps.order_by_key(|warp| Reverse(warp.distance()));
    warps.truncate(limits.paths);
    warps
}

pub(crate) fn warps(guide: &Guide<'_>, strips: Option<&Strips>) -> Warps {
    let Guide { trace, analysis, limits, .. } = *guide;
    let curve = curve(&guide.warps, limits);
    let most = analysis.warp_events.max();
    let values =
        |value: fn(&WarpFigures) -> f64| steps(curve.iter().map(move |warp| value(warp)), most as f64, CURVE);
    let all = guide.warps.len();
    let link = |launch: u32, warp: u32| WarpLink {
        name: words::warp(trace, launch, warp),
        launch,
        warp,
        is_shown: strips.is_some_and(|strips| strips.has(launch, warp)),
    };
    let kernel =
        |launch: u32| Some(kernel_of(trace, analysis, launch).map_or_else(String::new, |at| at.to_string()));
    let odd_columns = Columns::new()
        .html("warp", |warp: &&WarpFigures| link(warp.launch, warp.warp))
        .number("events", |warp| count(warp.counts.visits))
        .number("median of its launch", |warp| count(warp.median))
        .label("median")
        .number("idle", |warp| percent(warp.counts.idle, warp.counts.slots));
    let path_columns = Columns::new()
        .code("path", |group: &&PathGroup| format!("{:08x}", group.path >> 29))
        .number("warps", |group| count(group.warps))
        .number("of all", |group| percent(group.warps, all as u64))
        .number("events each", |group| count(group.counts.visits))
        .number("lanes", |group| ratio(group.counts.mean_lanes()))
        .number("idle", |group| percent(group.counts.idle, group.counts.slots))
        .html("one of them", |group| link(group.launch, group.warp));
    Warps {
        work: words::work(analysis, KERNELS).join("; "),
        groups: words::groups(analysis),
        events: values(|warp| warp.counts.visits as f64),
        filled: values(|warp| warp.counts.lanes as f64 / 32.0),
        most: count(most),
        sampled: (all > curve.len())
            .then(|| format!("{} of {} warps are drawn", count(curve.len() as u64), count(all as u64))),
        drawn: words::many(all as u64, "warp"),
        odd: odd_columns
            .table(odd(&guide.warps, limits).into_iter(), limits.paths, |warp| kernel(warp.launch)),
        paths: path_columns.table(analysis.paths.iter(), limits.paths, |group| kernel(group.launch)),
    }
}

pub(crate) fn kernel_of(trace: &TraceFile, analysis: &Analysis, launch: u32) -> Option<usize> {
    let kernel = kernel_name(trace, trace.launch(launch)?);
    analysis.kernels.iter().position(|other| other.kernel == kernel)
}

#[derive(Template)]
#[template(ext = "html", source = "{{ histogram|safe }}<small>{{ lanes }}</small>")]
struct KernelLanes {
    histogram: Histogram,
    lanes: String,
}

pub(crate) fn kernels(analysis: &Analysis, limits: Limits) -> PageTable {
    Columns::new()
        .code("kernel", |(_, kernel): &(usize, &KernelFigures)| crate::page::cut(&kernel.kernel, limits.text))
        .number("launches", |(_, kernel)| count(kernel.launches))
        .number("warps", |(_, kernel)| count(kernel.warps))
        .number("events", |(_, kernel)| count(kernel.counts.visits))
        .number("idle slots", |(_, kernel)| count(kernel.counts.idle))
        .number("idle", |(_, kernel)| percent(kernel.counts.idle, kernel.counts.slots))
        .html("active lanes 0–32", |(_, kernel)| KernelLanes {
            histogram: lane_histogram(&kernel.active),
            lanes: ratio(kernel.counts.mean_lanes()),
        })
        .label("active lanes")
        .table(analysis.kernels.iter().enumerate(), limits.kernels, |(number, _)| Some(number.to_string()))
}
