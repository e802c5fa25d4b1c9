//! Sentences about the use of time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use warptrace_decoder::TraceFile;

use super::{Names, about, count, ratio, warp};
use crate::figures::{Analysis, LineFigures, WarpFigures};
use crate::waits::{Arrivals, WaitFigures};

/// Describes the line with most warp time, its active lanes, and the latest warp; `None` without known times.
pub fn time(trace: &TraceFile, analysis: &Analysis, names: &Names) -> Option<String> {
    let all = analysis.time.filter(|time| time.warp_cycles > 0)?;
    let cycles = |line: &LineFigures| line.time.map_or(0, |time| time.warp_cycles);
    // The first of equal lines wins.
    let line = analysis.lines.iter().rev().max_by_key(|line| cycles(line))?;
    let place = match (line.locations.as_slice(), names.line(&line.file, line.line).as_str()) {
        ([location], _) => names.full(*location),
        (locations, "-") => names.names(locations),
        (_, line) => line.to_owned(),
    };
    let [active, lanes] = line.time?.mean_lanes().map(ratio);
    let (part, lanes) = (about(cycles(line), all.warp_cycles), lanes.trim_end_matches(".0"));
    let mut text =
        format!("{part} of all warp time is at {place}, {active} of {lanes} lanes active on average");
    if let Some((late, time)) = latest(analysis).and_then(|late| Some((late, late.time?))) {
        let warp = warp(trace, late.launch, late.warp);
        let [own, median] = [time.cycles, time.median_cycles].map(count);
        text += &format!("; {warp} took {own} cycles, the median of its launch {median}");
    }
    if let Some(waited) = waited(analysis, names) {
        text += &format!("; {waited}");
    }
    Some(text)
}

/// Describes the line where lanes wait longest, and the last warp, if this takes at least a tenth of all time.
fn waited(analysis: &Analysis, names: &Names) -> Option<String> {
    let all = analysis.time?.lane_cycles;
    // An unrolled loop has several locations for one wait in the source.
    let mut lines: BTreeMap<(&str, u32, u16), Vec<&WaitFigures>> = BTreeMap::new();
    for wait in &analysis.waits {
        lines.entry(wait.point.line_key()).or_default().push(wait);
    }
    let cycles =
        |waits: &[&WaitFigures]| waits.iter().fold(0_u64, |sum, wait| sum.saturating_add(wait.lane_cycles));
    let waits = lines.into_values().rev().max_by_key(|waits| cycles(waits))?;
    if cycles(&waits) < all / 10 {
        return None;
    }
    let place = match waits[..] {
        [wait] => names.full(wait.point.location),
        _ => names.line_of(&waits[0].point),
    };
    let barrier = |wait: &&WaitFigures| wait.info.as_deref().and_then(super::barrier);
    let known = waits
        .first()
        .and_then(barrier)
        .filter(|known| waits.iter().all(|it| barrier(it).as_ref() == Some(known)));
    let known = known.map_or_else(String::new, |barrier| format!(" ({barrier})"));
    let mut text = format!("{} of all lanes' time they wait at {place}{known}", about(cycles(&waits), all));
    let copies = waits.iter().find_map(|wait| super::copies(names, wait.info.as_deref()?));
    text += &copies.map_or_else(String::new, |copies| format!(", which {copies}"));
    let arrivals: Vec<&Arrivals> = waits.iter().filter_map(|wait| wait.arrivals.as_ref()).collect();
    if let Some(warp) = arrivals.first().map(|first| first.last_warp)
        && arrivals.iter().all(|found| found.last_warp == warp)
    {
        let sum = |number: fn(&Arrivals) -> u64| arrivals.iter().map(|found| number(found)).sum();
        let often = about(sum(|found| found.last), sum(|found| found.compared));
        let alone = count(sum(|found| found.alone_cycles));
        text += &format!(
            ", where warp {warp} of its block comes last {often} of the time, {alone} cycles behind all others"
        );
    }
    Some(text)
}

/// Returns the warp with most cycles above the median of its launch and role, if over twice the median.
pub fn latest(analysis: &Analysis) -> Option<&WarpFigures> {
    let excess = |warp: &WarpFigures| {
        let time = warp.time?;
        time.cycles.checked_sub(time.median_cycles).filter(|excess| *excess > time.median_cycles)
    };
    let late = |warp: &&WarpFigures| (excess(warp), Reverse((warp.launch, warp.warp)));
    analysis.warps.distinct().map(|(warp, _)| warp).filter(|warp| excess(warp).is_some()).max_by_key(late)
}
