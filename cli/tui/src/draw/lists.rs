//! Lists of loops and warps.

use ratatui::text::Line;
use warptrace_analysis::words::{self, bars, count, percent, ratio};
use warptrace_analysis::{WarpEnd, WarpFigures, share};

use super::{FAINT, not_yet};
use crate::app::App;
use crate::columns::{number, table, words as text};
use crate::text::wrap;

pub(super) fn loops(app: &mut App, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let Some(len) = app.figures().map(|figures| figures.loops.len()) else { return not_yet(app) };
    if len == 0 {
        return vec![Line::from("no loops: no lane came twice to a location")];
    }
    app.page = rows.saturating_sub(1).max(1);
    let shown = app.head.shown(len, app.page);
    let heads = [
        text("line", 0),
        text("head", 5),
        number("min", 7),
        number("median", 3),
        number("p95", 6),
        number("max", 1),
        number("mean", 4),
        number("imbalance", 2),
        text("trips", 8),
        number("by warp", 9),
    ];
    let chosen = app.head.at - shown.start;
    let heads_of_loops = shown.filter_map(|at| app.loop_head(at));
    let rows: Vec<Vec<String>> = heads_of_loops
        .map(|head| {
            let trips = &head.trips;
            vec![
                app.names.line_of(&head.point),
                app.names.name(head.point.location),
                count(trips.min()),
                count(trips.percentile(50)),
                count(trips.percentile(95)),
                count(trips.max()),
                ratio(trips.mean()),
                ratio(trips.imbalance()),
                bars(trips.powers_of_two().get(1..).unwrap_or(&[])),
                ratio(head.warp_visits.imbalance()),
            ]
        })
        .collect();
    table(&heads, &rows, columns, Some(chosen))
}

/// Explains the columns of the loop list and shows the figures that may not have fitted.
pub(super) fn loop_details(app: &App, columns: usize) -> Vec<Line<'static>> {
    let Some(head) = app.loop_head(app.head.at) else { return Vec::new() };
    let (trips, visits) = (&head.trips, &head.warp_visits);
    let said = [
        format!(
            "{}: a lane made {} to {} trips, median {}, p95 {}; imbalance (most over mean) {}",
            app.names.full(head.point.location),
            count(trips.min()),
            count(trips.max()),
            count(trips.percentile(50)),
            count(trips.percentile(95)),
            ratio(trips.imbalance())
        ),
        format!(
            "{} by {}: {} to {} each, imbalance {}",
            words::many(head.counts.visits, "visit"),
            words::many(visits.count(), "warp"),
            count(visits.min()),
            count(visits.max()),
            ratio(visits.imbalance())
        ),
        "Bars: how many made 1, 2 to 3, 4 to 7 ... trips.".to_owned(),
    ];
    detail_lines(&said, columns)
}

pub(super) fn warps(app: &mut App, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let Some(len) = app.figures().map(|figures| figures.warps.len()) else { return not_yet(app) };
    if len == 0 {
        return vec![Line::from("no warp has events")];
    }
    app.page = rows.saturating_sub(1).max(1);
    let shown = app.warp.shown(len, app.page);
    let chosen = app.warp.at - shown.start;
    let Some(figures) = app.figures() else { return Vec::new() };
    let heads = [
        number("launch", 0),
        number("block", 0),
        number("warp", 0),
        number("events", 2),
        number("x median", 5),
        number("lanes", 6),
        number("idle slots", 4),
        number("idle", 1),
        text("path", 7),
        text("last event", 3),
        number("cycles", 3),
        number("SM", 4),
        number("began at", 5),
        number("ran for", 4),
    ];
    // Columns without data in the trace are hidden.
    let (is_timed, is_placed) = (figures.analysis.time.is_some(), figures.analysis.schedule.is_some());
    let is_shown = |at: usize| [is_timed, is_placed][usize::from(at > 10)] || at < 10;
    let heads: Vec<_> =
        heads.into_iter().enumerate().filter(|(at, _)| is_shown(*at)).map(|(_, head)| head).collect();
    let row = |warp: &WarpFigures| {
        let info = app.trace.launch(warp.launch);
        let id = info.and_then(|info| info.stream_id(warp.warp));
        let counts = warp.counts;
        vec![
            warp.launch.to_string(),
            info.zip(id).map_or_else(String::new, |(info, id)| words::block(info, id.block)),
            id.map_or(warp.warp, |id| id.warp_in_block).to_string(),
            count(counts.visits),
            ratio(share(counts.visits, warp.median)),
            ratio(counts.mean_lanes()),
            count(counts.idle),
            percent(counts.idle, counts.slots),
            format!("{:08x}", warp.path >> 29),
            app.names.name(warp.last) + ending(warp.end),
            warp.time.map_or_else(String::new, |time| count(time.cycles)),
            warp.ran.map_or_else(String::new, |ran| ran.sm.to_string()),
            warp.ran.map_or_else(String::new, |ran| words::nanoseconds(ran.begin_nanoseconds)),
            warp.ran.and_then(|ran| ran.nanoseconds).map_or_else(String::new, words::nanoseconds),
        ]
        .into_iter()
        .enumerate()
        .filter_map(|(at, cell)| is_shown(at).then_some(cell))
        .collect()
    };
    let rows: Vec<Vec<String>> = figures.warps[shown].iter().map(row).collect();
    table(&heads, &rows, columns, Some(chosen))
}

fn ending(end: WarpEnd) -> &'static str {
    match end {
        WarpEnd::Lossy => " (lossy)",
        WarpEnd::Unfinished => " (unfinished)",
        _ => "",
    }
}

pub(super) fn warp_details(app: &App, columns: usize) -> Vec<Line<'static>> {
    let Some(figures) = app.figures() else { return Vec::new() };
    let mut said = words::work(&figures.analysis, 1);
    said.push(words::groups(&figures.analysis));
    detail_lines(&said, columns)
}

pub(super) fn detail_lines(said: &[String], columns: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled("─".repeat(columns), FAINT)];
    lines.extend(said.iter().flat_map(|text| wrap(text, columns, 3)).map(Line::from));
    lines
}
