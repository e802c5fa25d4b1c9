//! Runs of one warp: a column for each run, with letter and colour of its location.

use std::ops::Range;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use warptrace_analysis::WarpRun;
use warptrace_analysis::words::{self, about, bars, count};

use super::{BOLD, FAINT, not_yet};
use crate::app::App;
use crate::strip::Strip;
use crate::text::{pad, width, wrap};

/// Distinct with colour blindness (after Okabe and Ito), for the locations with the most events.
const COLOURS: [Color; 8] = [
    Color::Indexed(32),
    Color::Indexed(214),
    Color::Indexed(35),
    Color::Indexed(227),
    Color::Indexed(166),
    Color::Indexed(175),
    Color::Indexed(117),
    Color::Indexed(250),
];
const LABEL: usize = 7;
/// Rows of lanes, two lanes each.
const LANE_ROWS: usize = 16;
/// Rows below which lanes are not drawn. Everything else has priority.
const FEW_ROWS: usize = 8;

fn letter(mark: usize) -> char {
    ('a'..='z').chain('A'..='Z').nth(mark).unwrap_or('*')
}

fn colour(mark: usize) -> Color {
    COLOURS.get(mark).copied().unwrap_or(Color::DarkGray)
}

pub(super) fn lines(app: &mut App, columns: usize, rows: usize) -> Vec<Line<'static>> {
    app.page = columns.saturating_sub(LABEL).max(1);
    let Some(strip) = &app.strip else {
        return match app.figures() {
            Some(_) => vec![Line::from("no warp has events")],
            None => not_yet(app),
        };
    };
    let name = words::warp(&app.trace, strip.launch, strip.warp);
    let runs = match &strip.runs {
        None => return vec![Line::styled(format!("{name} is being read."), FAINT)],
        Some(Err(why)) => return wrap(why, columns, rows).into_iter().map(Line::from).collect(),
        Some(Ok(runs)) => runs,
    };
    let mut lines: Vec<Line<'static>> = wrap(&format!("{name}{}", totals(app, strip)), columns, 2)
        .into_iter()
        .map(|line| Line::styled(line, BOLD))
        .collect();
    if runs.first.is_empty() {
        lines.push(Line::from("no events"));
        return lines;
    }
    lines.extend(wrap(&chosen(app, strip), columns, 4).into_iter().map(Line::from));
    let window = window(strip.at, runs.first.len(), app.page);
    let shown = &runs.first[window.clone()];
    lines.push(letters(strip, shown, window.start));
    lines.push(mean_lanes(shown));
    let legend = legend(app, strip, columns);
    let room = rows.saturating_sub(lines.len() + legend.len());
    if room + legend.len() >= FEW_ROWS {
        // Lanes have priority over the last lines of a long legend.
        let lane_rows = LANE_ROWS.min(rows.saturating_sub(lines.len() + 2));
        lines.extend((0..lane_rows).map(|row| lanes(strip, shown, row)));
    }
    lines.extend(legend);
    lines
}

/// Returns the visible runs. Screens do not overlap, so the strip does not scroll run by run.
fn window(at: usize, len: usize, columns: usize) -> Range<usize> {
    let start = at / columns * columns;
    start..len.min(start + columns)
}

fn totals(app: &App, strip: &Strip) -> String {
    let mut said = String::new();
    let warp = app.figures().and_then(|figures| figures.analysis.warps.get(strip.launch, strip.warp));
    if let Some(warp) = warp {
        let counts = warp.counts;
        let (idle, part) = (count(counts.idle), about(counts.idle, counts.slots));
        said = format!(": {}, {idle} idle slots ({part})", words::many(counts.visits, "event"));
        if let Some(ran) = warp.ran {
            let begin = words::nanoseconds(ran.begin_nanoseconds);
            let length = match ran.nanoseconds {
                Some(length) => format!("for {}", words::nanoseconds(length)),
                None => "on, its end is not known".to_owned(),
            };
            let median = words::nanoseconds(ran.median_nanoseconds);
            said += &format!("; on SM {} from {begin} of its launch {length} (median {median})", ran.sm);
        }
    }
    if let Some(runs) = strip.read().filter(|runs| runs.all > runs.first.len() as u64) {
        said += &format!("; the first {} of {} runs", count(runs.first.len() as u64), count(runs.all));
    }
    said
}

fn chosen(app: &App, strip: &Strip) -> String {
    let Some((runs, run)) = strip.read().and_then(|runs| Some((runs, runs.first.get(strip.at)?))) else {
        return String::new();
    };
    let first = strip.first_event();
    let events = match run.times {
        1 => format!("event {}", count(first)),
        times => format!("events {} to {}", count(first), count(first.saturating_add(times - 1))),
    };
    format!(
        "run {} of {}: {} {}, {events}, {} 0x{:08x}",
        count(strip.at as u64 + 1),
        count(runs.all),
        letter(strip.mark(run.location)),
        app.names.full(run.location),
        words::many(run.mask.count_ones().into(), "lane"),
        run.mask
    )
}

fn letters(strip: &Strip, shown: &[WarpRun], first: usize) -> Line<'static> {
    let mut spans = vec![Span::styled(pad("run", LABEL, false), FAINT)];
    for (number, run) in (first..).zip(shown) {
        let mark = strip.mark(run.location);
        let style = Style::new().fg(Color::Black).bg(colour(mark));
        // The selected run is also visible without colours.
        let style = if number == strip.at { BOLD.add_modifier(Modifier::REVERSED) } else { style };
        spans.push(Span::styled(letter(mark).to_string(), style));
    }
    Line::from(spans)
}

/// Renders the active lanes of each run as a bar.
fn mean_lanes(shown: &[WarpRun]) -> Line<'static> {
    // The value 32 fixes the scale of the bars.
    let lanes: Vec<u64> = shown.iter().map(|run| run.mask.count_ones().into()).chain([32]).collect();
    let text: String = bars(&lanes).chars().take(shown.len()).collect();
    Line::from(vec![Span::styled(pad("active", LABEL, false), FAINT), Span::raw(text)])
}

/// Renders two lanes of all runs: one in the upper half of a cell, one in the lower half.
fn lanes(strip: &Strip, shown: &[WarpRun], row: usize) -> Line<'static> {
    let label = format!("{} ", 2 * row);
    let mut spans = vec![Span::styled(pad(&label, LABEL, true), FAINT)];
    for run in shown {
        let cell = match run.mask >> (2 * row) & 3 {
            0 => " ",
            1 => "▀",
            2 => "▄",
            _ => "█",
        };
        spans.push(Span::styled(cell, Style::new().fg(colour(strip.mark(run.location)))));
    }
    Line::from(spans)
}

fn legend(app: &App, strip: &Strip, columns: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<(usize, Vec<Span<'static>>)> = Vec::new();
    for (mark, &location) in strip.locations.iter().enumerate() {
        let name = format!(" {}  ", app.names.full(location));
        let taken = 1 + width(&name);
        match lines.last_mut() {
            Some((line, _)) if *line + taken <= columns + 2 => *line += taken,
            _ => lines.push((taken, Vec::new())),
        }
        if let Some((_, spans)) = lines.last_mut() {
            let style = Style::new().fg(Color::Black).bg(colour(mark));
            spans.extend([Span::styled(letter(mark).to_string(), style), Span::raw(name)]);
        }
    }
    lines.into_iter().map(|(_, spans)| Line::from(spans)).collect()
}
