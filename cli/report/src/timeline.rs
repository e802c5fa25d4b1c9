//! Timelines: a row for each warp of a launch, along the warp's own time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use warptrace_analysis::words::{self, count};
use warptrace_analysis::{OrderItems, WarpFigures, kernel_name};
use warptrace_decoder::{DecodeError, TraceFile};

use crate::guide::Guide;
use crate::warps::kernel_of;

/// Maximum number of columns of a timeline.
const COLUMNS: u64 = 512;

#[derive(Debug, Serialize)]
pub(crate) struct Timeline {
    pub(crate) name: String,
    pub(crate) kernel: usize,
    pub(crate) launch: u32,
    pub(crate) width: u64,
    pub(crate) warps: usize,
    pub(crate) rows: Vec<WarpRow>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WarpRow {
    pub(crate) name: String,
    pub(crate) warp: u32,
    /// Cycles from its first run to its last, as in `warps`.
    pub(crate) cycles: u64,
    /// Run-length-encoded columns: the location with the most cycles of the column (0: not known), and the
    /// number of consecutive columns.
    pub(crate) columns: Vec<(u16, u64)>,
}

/// Builds timelines while they fit, first for the launch of each kernel with the most warp-cycles.
pub(crate) fn timelines(guide: &Guide<'_>) -> Result<Vec<Timeline>, DecodeError> {
    let Guide { analysis, limits, .. } = *guide;
    if analysis.time.is_none() {
        return Ok(Vec::new());
    }
    let launches = guide.warps.chunk_by(|one, other| one.launch == other.launch);
    let cycles = |warps: &[WarpFigures]| -> u64 { warps.iter().map(cycles_of).fold(0, u64::saturating_add) };
    let mut order: Vec<_> = launches.map(|warps| (cycles(warps), warps)).collect();
    order.order_by_key(|(cycles, warps)| (Reverse(*cycles), warps[0].launch));
    let order = guide.by_turns(order, |(_, warps)| warps[0].launch);
    let (mut room, mut timelines) = (limits.columns, Vec::new());
    for (_, warps) in order.into_iter().take(limits.timelines) {
        if room == 0 {
            break;
        }
        let timeline = timeline(guide, warps)?;
        room = room.saturating_sub(timeline.rows.iter().map(|row| row.columns.len()).sum());
        timelines.push(timeline);
    }
    Ok(timelines)
}

fn cycles_of(warp: &WarpFigures) -> u64 {
    warp.time.map_or(0, |time| time.cycles)
}

/// Returns the warps to draw: all if they fit; otherwise those with the most cycles in an eighth of the rows,
/// and others evenly spread.
fn chosen(warps: &[WarpFigures], most: usize) -> BTreeSet<u32> {
    if warps.len() <= most {
        return warps.iter().map(|warp| warp.warp).collect();
    }
    let mut longest: Vec<&WarpFigures> = warps.iter().collect();
    longest.order_by_key(|warp| Reverse(cycles_of(warp)));
    let mut chosen: BTreeSet<u32> = longest.iter().take(most.div_ceil(8)).map(|warp| warp.warp).collect();
    let even = most - chosen.len();
    chosen.extend((0..even).map(|at| warps[at * warps.len() / even].warp));
    chosen
}

fn timeline(guide: &Guide<'_>, warps: &[WarpFigures]) -> Result<Timeline, DecodeError> {
    let Guide { trace, analysis, limits, .. } = *guide;
    let launch = warps[0].launch;
    let longest = warps.iter().map(cycles_of).max().unwrap_or(0);
    let width = longest.div_ceil(COLUMNS).max(1).next_power_of_two();
    let chosen = chosen(warps, limits.rows);
    let drawn = warps.iter().filter(|warp| chosen.contains(&warp.warp));
    let row = |warp: &WarpFigures| -> Result<WarpRow, DecodeError> {
        Ok(WarpRow {
            name: words::warp(trace, launch, warp.warp),
            warp: warp.warp,
            cycles: cycles_of(warp),
            columns: columns(trace, launch, warp.warp, width)?,
        })
    };
    Ok(Timeline {
        name: match trace.launch(launch) {
            Some(info) => {
                let name = format!("launch {launch}: {}", kernel_name(trace, info));
                format!("{}, {} warps", crate::page::cut(&name, limits.text), count(warps.len() as u64))
            }
            None => format!("launch {launch}"),
        },
        kernel: kernel_of(trace, analysis, launch).unwrap_or(0),
        launch,
        width,
        warps: warps.len(),
        rows: drawn.map(row).collect::<Result<_, _>>()?,
    })
}

/// Returns the columns of a warp, each with the location of most of its cycles.
fn columns(trace: &TraceFile, launch: u32, warp: u32, width: u64) -> Result<Vec<(u16, u64)>, DecodeError> {
    let mut drawing = Drawing { width, ..Drawing::default() };
    trace.decode_warp(launch, warp, 0)?.each_item(|found| {
        let location = found.item.body().first().map(|event| event.location);
        drawing.run(found.begin.zip(location));
    })?;
    drawing.end_column();
    Ok(drawing.columns)
}

#[derive(Default)]
struct Drawing {
    width: u64,
    /// Begin time of the warp's first run.
    start: Option<u64>,
    /// Location of the last run if it has a time, and its position on the time axis.
    last: Option<u16>,
    now: u64,
    columns: Vec<(u16, u64)>,
    column: BTreeMap<u16, u64>,
    filled: u64,
}

impl Drawing {
    /// Adds the warp's next run; `None` if it has no time.
    fn run(&mut self, run: Option<(u64, u16)>) {
        let Some((begin, location)) = run else {
            self.last = None;
            return;
        };
        // Time does not go back, as in the analysis.
        let at = begin.saturating_sub(*self.start.get_or_insert(begin)).max(self.now);
        self.spend(at - self.now);
        (self.now, self.last) = (at, Some(location));
    }

    fn spend(&mut self, mut cycles: u64) {
        let location = self.last.unwrap_or(0);
        while cycles > 0 {
            let room = self.width - self.filled;
            if self.filled == 0 && cycles >= self.width {
                let whole = cycles / self.width;
                self.push(location, whole);
                cycles -= whole * self.width;
                continue;
            }
            let now = cycles.min(room);
            *self.column.entry(location).or_default() += now;
            self.filled += now;
            cycles -= now;
            if self.filled == self.width {
                self.end_column();
            }
        }
    }

    fn end_column(&mut self) {
        let column = std::mem::take(&mut self.column);
        self.filled = 0;
        // Of equal locations, the lowest id is used.
        if let Some((location, _)) = column.into_iter().rev().max_by_key(|(_, cycles)| *cycles) {
            self.push(location, 1);
        }
    }

    fn push(&mut self, location: u16, times: u64) {
        match self.columns.last_mut() {
            Some((last, count)) if *last == location => *count += times,
            _ => self.columns.push((location, times)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: u64, runs: &[Option<(u64, u16)>]) -> Vec<(u16, u64)> {
        let mut drawing = Drawing { width, ..Drawing::default() };
        runs.iter().for_each(|run| drawing.run(*run));
        drawing.end_column();
        drawing.columns
    }

    #[test]
    fn a_column_has_the_location_of_most_of_its_cycles() {
        let runs = [Some((100, 1)), Some((105, 2)), Some((108, 3)), Some((148, 4)), Some((150, 1))];
        // 5 cycles at 1, 3 at 2, 40 at 3, 2 at 4. The last run has no end.
        assert_eq!(drawn(8, &runs), [(1, 1), (3, 5), (4, 1)]);
        assert_eq!(drawn(16, &runs), [(3, 3), (4, 1)]);
        assert_eq!(drawn(1, &runs), [(1, 5), (2, 3), (3, 40), (4, 2)]);
        assert_eq!(drawn(64, &runs), [(3, 1)]);
    }

    #[test]
    fn where_times_are_missing_no_location_is_drawn() {
        assert_eq!(drawn(4, &[Some((8, 1)), None, Some((16, 2)), Some((20, 3))]), [(0, 2), (2, 1)]);
        assert_eq!(drawn(4, &[Some((8, 1)), Some((4, 2)), Some((12, 3)), Some((16, 1))]), [(2, 1), (3, 1)]);
    }
}
