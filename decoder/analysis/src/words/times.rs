//! Where time goes, in a sentence.

use std::cmp::Reverse;

use warptrace_decoder::TraceFile;

use super::{Names, about, count, ratio, warp};
use crate::figures::{Analysis, LineFigures, WarpFigures};
use crate::waits::Arrivals;

/// Says at which line warps spend most of their time, with how many lanes, and which warp is late; `None` if
/// the trace has no times, or all its warps have only one run.
pub fn time(trace: &TraceFile, analysis: &Analysis, names: &Names) -> Option<String> {
    let all = analysis.time.filter(|time| time.warp_cycles > 0)?;
    let cycles = |line: &LineFigures| line.time.map_or(0, |time| time.warp_cycles);
    // Of equal ones the first.
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

/// Says where lanes wait longest, if that is much of their time, and for whom.
fn waited(analysis: &Analysis, names: &Names) -> Option<String> {
    let (wait, all) = (analysis.waits.first()?, analysis.time?.lane_cycles);
    if wait.lane_cycles < all / 10 {
        return None;
    }
    let (part, place) = (about(wait.lane_cycles, all), names.full(wait.point.location));
    let mut text = format!("{part} of all lanes' time they wait at {place}");
    if let Some(Arrivals { compared, last_warp, last, alone_cycles, .. }) = wait.arrivals {
        let (often, alone) = (about(last, compared), count(alone_cycles));
        text += &format!(
            ", where warp {last_warp} of its block comes last {often} of the time, {alone} cycles behind all others"
        );
    }
    Some(text)
}

/// The warp that took most cycles more than the median of its launch, if it took more than twice as many.
pub fn latest(analysis: &Analysis) -> Option<&WarpFigures> {
    let excess = |warp: &WarpFigures| {
        let time = warp.time?;
        time.cycles.checked_sub(time.median_cycles).filter(|excess| *excess > time.median_cycles)
    };
    let late = |warp: &&WarpFigures| (excess(warp), Reverse((warp.launch, warp.warp)));
    analysis.warps.iter().filter(|warp| excess(warp).is_some()).max_by_key(late)
}
