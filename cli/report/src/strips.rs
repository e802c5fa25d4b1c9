//! Three warps, lane by lane, in the order of their events.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use warptrace_analysis::words::{self, Names, count, percent};
use warptrace_analysis::{Analysis, Counts, WarpFigures, WarpRuns, kernel_name};
use warptrace_decoder::{DecodeError, TraceFile};

use crate::limits::Limits;

/// Locations with a colour of their own.
pub(crate) const COLOURS: usize = 10;

/// The runs of one warp, as the page draws them.
#[derive(Debug, Serialize)]
pub(crate) struct Strip {
    /// Which warp it is: `most idle`.
    pub(crate) title: String,
    pub(crate) name: String,
    pub(crate) caption: String,
    pub(crate) launch: u32,
    pub(crate) warp: u32,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Lanes that the warp has.
    pub(crate) lane_mask: u32,
    /// Location, mask, and how many events in a row.
    pub(crate) runs: Vec<(u16, u32, u64)>,
    /// Events of these runs, in words.
    #[serde(skip)]
    pub(crate) shown_events: String,
    /// Runs of the whole warp.
    pub(crate) all_runs: u64,
}

/// A colour of the strips.
#[derive(Debug)]
pub(crate) struct Colour {
    pub(crate) number: usize,
    pub(crate) name: String,
}

/// The strips, and what their colours mean.
#[derive(Debug)]
pub(crate) struct Strips {
    pub(crate) kernel: String,
    pub(crate) strips: Vec<Strip>,
    /// Numbers of the colours by location.
    pub(crate) colours: BTreeMap<u16, usize>,
    pub(crate) legend: Vec<Colour>,
}

/// Chooses, of the kernel with the most idle lane slots, the warps with the most, the median and the fewest.
fn choose<'a>(
    trace: &TraceFile,
    analysis: &'a Analysis,
) -> Option<(String, Vec<(&'static str, &'a WarpFigures)>)> {
    let kernel = analysis.kernels.iter().filter(|kernel| kernel.warps > 0);
    let kernel = &kernel.max_by_key(|kernel| kernel.counts.idle)?.kernel;
    let is_of = |warp: &&WarpFigures| {
        trace.launch(warp.launch).is_some_and(|info| kernel_name(trace, info) == kernel)
    };
    let mut warps: Vec<&WarpFigures> = analysis.warps.iter().filter(is_of).collect();
    warps.sort_by_key(|warp| (Reverse(warp.counts.idle), warp.launch, warp.warp));
    let last = warps.len().checked_sub(1)?;
    let chosen = match last {
        0 => vec![("the only warp", warps[0])],
        1 => vec![("most idle lane slots", warps[0]), ("fewest", warps[1])],
        _ => vec![("most idle lane slots", warps[0]), ("median", warps[last / 2]), ("fewest", warps[last])],
    };
    Some((kernel.clone(), chosen))
}

/// Decodes the warps to show.
pub(crate) fn strips(
    trace: &TraceFile,
    analysis: &Analysis,
    names: &Names,
    limits: Limits,
) -> Result<Option<Strips>, DecodeError> {
    let Some((kernel, chosen)) = choose(trace, analysis) else { return Ok(None) };
    let strips = chosen.into_iter().map(|(title, warp)| strip(trace, title, warp, limits));
    let strips = strips.collect::<Result<Vec<_>, _>>()?;
    let mut events: BTreeMap<u16, u64> = BTreeMap::new();
    for &(location, _, times) in strips.iter().flat_map(|strip| &strip.runs) {
        let sum = events.entry(location).or_default();
        *sum = sum.saturating_add(times);
    }
    let mut order: Vec<u16> = events.keys().copied().collect();
    order.sort_by_key(|location| Reverse(events[location]));
    let colours = order.iter().enumerate().map(|(at, &location)| (location, at.min(COLOURS))).collect();
    let mut legend: Vec<Colour> = (0..)
        .zip(order.iter().take(COLOURS))
        .map(|(number, &location)| Colour { number, name: names.full(location) })
        .collect();
    if order.len() > COLOURS {
        let name = format!("{} others", count((order.len() - COLOURS) as u64));
        legend.push(Colour { number: COLOURS, name });
    }
    let kernel = crate::page::cut(&words::plain(&kernel), limits.text);
    Ok(Some(Strips { kernel, strips, colours, legend }))
}

/// Reads the first runs of a warp.
fn strip(trace: &TraceFile, title: &str, warp: &WarpFigures, limits: Limits) -> Result<Strip, DecodeError> {
    let WarpRuns { first, all: all_runs, .. } = WarpRuns::read(trace, warp.launch, warp.warp, limits.runs)?;
    let runs: Vec<_> = first.iter().map(|run| (run.location, run.mask, run.times)).collect();
    let name = words::warp(trace, warp.launch, warp.warp);
    let Counts { visits, idle, .. } = warp.counts;
    let mut caption = format!(
        "{}, {} idle lane slots ({})",
        words::many(visits, "event"),
        count(idle),
        percent(idle, warp.counts.slots())
    );
    if all_runs > runs.len() as u64 {
        caption += &format!("; the first {} of {} runs", count(runs.len() as u64), count(all_runs));
    }
    let lane_mask = trace.launch(warp.launch).and_then(|info| info.lane_mask(warp.warp)).unwrap_or(u32::MAX);
    let (title, launch, warp, counts) = (title.to_owned(), warp.launch, warp.warp, warp.counts);
    let shown_events = count(runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.2)));
    Ok(Strip { title, name, caption, launch, warp, counts, lane_mask, runs, shown_events, all_runs })
}
