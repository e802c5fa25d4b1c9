//! Block schedule of a launch: a row for each multiprocessor along a common time axis.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use warptrace_analysis::words::{self, bars, count, percent, ratio};
use warptrace_analysis::{BlockRan, LaunchSchedule};

use super::lists::detail_lines;
use super::{BOLD, FAINT, not_yet};
use crate::app::{App, Placed};
use crate::text::{pad, wrap};

const LABEL: usize = 9;

pub(super) fn lines(app: &mut App, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let Some(placed) = &app.placed else { return not_yet(app) };
    let launch = placed.launch;
    match &placed.blocks {
        None => {
            return vec![Line::styled(format!("When blocks of launch {launch} ran is being read."), FAINT)];
        }
        Some(Err(why)) => return wrap(why, columns, rows).into_iter().map(Line::from).collect(),
        Some(Ok(_)) => {}
    }
    let len = placed.sms().len();
    let wide = columns.saturating_sub(LABEL).max(1);
    let mut lines: Vec<Line<'static>> =
        wrap(&what(app, wide), columns, 3).into_iter().map(|line| Line::styled(line, BOLD)).collect();
    app.page = rows.saturating_sub(lines.len() + 1).max(1);
    let (page, chosen) = (app.page, app.sm.at);
    let shown = app.sm.shown(len, page);
    let Some(placed) = &app.placed else { return lines };
    let (sms, nanoseconds) = (placed.sms(), length(placed));
    let sums: Vec<Vec<u64>> = sms.iter().map(|blocks| running(blocks, nanoseconds, wide)).collect();
    // All multiprocessors have the same scale.
    let most = sums.iter().flatten().copied().max().unwrap_or(0);
    for at in shown {
        let label = pad(&format!("SM {} ", sms[at][0].sm), LABEL, true);
        let style = if at == chosen { Style::new().add_modifier(Modifier::REVERSED) } else { FAINT };
        let numbers: Vec<u64> = sums[at].iter().copied().chain([most]).collect();
        let bars: String = bars(&numbers).chars().take(wide).collect();
        lines.push(Line::from(vec![Span::styled(label, style), Span::raw(bars)]));
    }
    let end = words::nanoseconds(nanoseconds);
    let axis = pad("0 ns", wide.saturating_sub(end.chars().count()).max(4), false) + &end;
    lines.push(Line::styled(pad("", LABEL, false) + &axis, FAINT));
    lines
}

fn what(app: &App, wide: usize) -> String {
    let Some(placed) = &app.placed else { return String::new() };
    let nanoseconds = length(placed);
    let launches = app.scheduled().len();
    let which = if launches > 1 {
        format!(
            " ({} of {} launches, by how long SMs waited)",
            count(placed.at as u64 + 1),
            count(launches as u64)
        )
    } else {
        String::new()
    };
    let kernel = app.scheduled().get(placed.at).map_or("?", |launch| &launch.kernel).to_owned();
    format!(
        "launch {} {}{which}: bars are blocks at once; the axis is time, the same for all SMs, a column is {}",
        placed.launch,
        warptrace_format::shown(&kernel),
        words::nanoseconds(nanoseconds.div_ceil(wide as u64))
    )
}

fn length(placed: &Placed) -> u64 {
    let found = placed.blocks.as_ref().and_then(|found| found.as_ref().ok());
    found.map_or(1, |found| found.nanoseconds).max(1)
}

/// Returns the time for which blocks ran in each column, summed over the blocks.
fn running(blocks: &[BlockRan], nanoseconds: u64, columns: usize) -> Vec<u64> {
    let width = nanoseconds.div_ceil(columns as u64).max(1);
    let mut sums = vec![0; columns];
    for block in blocks {
        let mut from = block.begin_nanoseconds;
        let end = block.end_nanoseconds().unwrap_or(nanoseconds);
        while from < end {
            let column = from / width;
            let to = end.min((column + 1) * width);
            let Some(sum) = usize::try_from(column).ok().and_then(|at| sums.get_mut(at)) else { break };
            *sum += to - from;
            from = to;
        }
    }
    sums
}

pub(super) fn details(app: &App, columns: usize) -> Vec<Line<'static>> {
    let Some(placed) = &app.placed else { return Vec::new() };
    let scheduled = app.scheduled();
    let Some(launch) = scheduled.get(placed.at) else { return Vec::new() };
    let mut said = vec![words::tail(&app.trace, launch)];
    let mut busy = format!(
        "busy: {} of the SMs' time, the busiest {} times as long as the mean",
        percent(launch.busy_nanoseconds, launch.sm_nanoseconds()),
        ratio(launch.imbalance())
    );
    if launch.gap_nanoseconds > 0 {
        let gap = words::nanoseconds(launch.gap_nanoseconds);
        busy += &format!("; it began {gap} after all launches before had ended");
    }
    said.push(busy);
    said.extend(placed.sms().get(app.sm.at).map(|blocks| multiprocessor(app, launch, blocks)));
    detail_lines(&said, columns)
}

fn multiprocessor(app: &App, launch: &LaunchSchedule, blocks: &[BlockRan]) -> String {
    let name = |ran: &BlockRan| words::block_at(&app.trace, launch.launch, ran.block);
    let last = blocks.iter().max_by_key(|ran| ran.end_nanoseconds()).filter(|ran| ran.nanoseconds.is_some());
    let ended = match last.and_then(|last| Some((last, last.end_nanoseconds()?))) {
        Some((last, end)) => format!(
            "the last to end was block {} at {}: then it waited for {}",
            name(last),
            words::nanoseconds(end),
            words::nanoseconds(launch.nanoseconds.saturating_sub(end))
        ),
        None => "none is known to have ended".to_owned(),
    };
    let waves = blocks.iter().map(|block| block.wave).max().unwrap_or(0);
    format!(
        "SM {}: {} in {}; {ended}",
        blocks[0].sm,
        words::many(blocks.len() as u64, "block"),
        words::many(waves.into(), "wave")
    )
}
