//! Source view with heat.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use warptrace_analysis::words::{self, count, percent, ratio};
use warptrace_analysis::{Counts, Time, share};

use super::{BOLD, FAINT};
use crate::app::App;
use crate::source::{ScreenRow, SourceLine};
use crate::text::{fit, pad, short, width, wrap};

#[derive(Clone, Copy)]
struct Shape {
    bar: usize,
    has_numbers: bool,
    has_cycles: bool,
    digits: usize,
    /// Leading spaces that are removed from each line.
    indent: usize,
}

/// Returns the number of spaces that all lines begin with. Narrow screens omit them.
fn common_indent(rows: &[ScreenRow]) -> usize {
    let indent = |row: &ScreenRow| match row {
        ScreenRow::Line(line) => line.code.find(|character| character != ' '),
        ScreenRow::File { .. } => None,
    };
    rows.iter().filter_map(indent).min().unwrap_or(0)
}

pub(super) fn lines(app: &mut App, columns: usize, rows: usize) -> Vec<Line<'static>> {
    if app.source.rows.is_empty() {
        let text =
            "The trace has no table of locations: lines are not known, and locations are shown by their ids.";
        return wrap(text, columns, rows).into_iter().map(Line::from).collect();
    }
    let height = rows.saturating_sub(1).max(1);
    app.page = height;
    let shown = app.line.shown(app.source.rows.len(), height);
    let at = |location| app.counts(location);
    let hottest = app.source.points.iter().map(|row| app.heat(*row)).max().unwrap_or(0);
    let last = app.source.rows[shown.clone()].iter().map(|row| match row {
        ScreenRow::Line(line) => line.number,
        ScreenRow::File { .. } => 0,
    });
    let digits = last.max().unwrap_or(0).to_string().len();
    let indent = if columns < 80 { common_indent(&app.source.rows[shown.clone()]) } else { 0 };
    let has_numbers = columns >= 60;
    let has_cycles = has_numbers && app.figures().is_some_and(|figures| figures.analysis.time.is_some());
    let shape = Shape { bar: if columns < 60 { 4 } else { 8 }, has_numbers, has_cycles, digits, indent };
    let mut lines = vec![Line::styled(fit(&heads(shape), columns), BOLD)];
    for row in shown {
        let is_chosen = row == app.line.at;
        lines.push(match &app.source.rows[row] {
            ScreenRow::File { text } => {
                let style = if is_chosen { BOLD.add_modifier(Modifier::REVERSED) } else { BOLD };
                Line::styled(pad(text, columns, false), style)
            }
            ScreenRow::Line(line) => {
                let counts = app.source.counts(row, &at);
                let heat = share(app.heat(row), hottest);
                source_line(app, line, (counts, app.time(row)), heat, (shape, columns, is_chosen))
            }
        });
    }
    lines
}

fn heads(shape: Shape) -> String {
    let cycles = if shape.has_cycles { "  cycles" } else { "" };
    let numbers = if shape.has_numbers { " idle slots visits" } else { "" };
    format!("{}{cycles}{numbers} {}", pad("heat", shape.bar, false), pad("line", shape.digits.max(4), true))
}

fn source_line(
    app: &App,
    line: &SourceLine,
    (counts, time): (Counts, Option<Time>),
    heat: f64,
    (shape, columns, is_chosen): (Shape, usize, bool),
) -> Line<'static> {
    let is_point = !line.locations.is_empty();
    let mut spans =
        vec![Span::styled(pad(&bar(heat, shape.bar), shape.bar, false), Style::new().fg(colour(heat)))];
    if shape.has_cycles {
        let cycles = time.filter(|_| is_point).map_or_else(String::new, |time| short(time.warp_cycles));
        spans.push(Span::raw(format!(" {}", pad(&cycles, 7, true))));
    }
    if shape.has_numbers {
        let [idle, visits] =
            if is_point { [short(counts.idle), short(counts.visits)] } else { Default::default() };
        spans.push(Span::raw(format!(" {} {}", pad(&idle, 10, true), pad(&visits, 6, true))));
    }
    let number = if line.number == 0 { String::new() } else { line.number.to_string() };
    let style = if is_point { Style::new() } else { FAINT };
    let number = format!(" {} ", pad(&number, shape.digits.max(4), true));
    let taken: usize = spans.iter().map(Span::width).sum::<usize>() + width(&number);
    let named = line.code.is_empty() && is_point;
    let code = if named {
        app.names.names(&line.locations)
    } else {
        line.code.get(shape.indent..).unwrap_or_default().to_owned()
    };
    let mark = if is_chosen { Modifier::REVERSED } else { Modifier::empty() };
    spans.push(Span::styled(number, FAINT.add_modifier(mark)));
    let room = columns.saturating_sub(taken);
    let is_hot = heat > 0.25;
    let style = if is_hot { style.add_modifier(Modifier::BOLD) } else { style };
    spans.push(Span::styled(pad(&code, room, false), style.add_modifier(mark)));
    Line::from(spans)
}

fn bar(part: f64, columns: usize) -> String {
    const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if part <= 0.0 {
        return String::new();
    }
    // A value above 0 is always visible.
    let eighths = ((part * 8.0 * columns as f64).round() as usize).clamp(1, 8 * columns);
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(PARTS[eighths % 8 - 1]);
    }
    bar
}

fn colour(heat: f64) -> Color {
    match heat {
        heat if heat > 0.5 => Color::Red,
        heat if heat > 0.1 => Color::LightRed,
        _ => Color::Yellow,
    }
}

pub(super) fn details(app: &App, columns: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled("─".repeat(columns), FAINT)];
    let text = match app.source.line(app.line.at) {
        Some(line) if !line.locations.is_empty() => describe(app, line),
        _ => vec!["no trace point in this line".to_owned()],
    };
    let rows = if columns < 60 { 6 } else { 4 } + usize::from(app.trace.has_times());
    let wrapped = text.iter().flat_map(|text| wrap(text, columns, 3));
    // The panel keeps its height so that the source does not move.
    lines.extend(wrapped.chain(std::iter::repeat(String::new())).take(rows).map(Line::from));
    lines
}

fn describe(app: &App, line: &SourceLine) -> Vec<String> {
    let names = app.names.names(&line.locations);
    let counts = app.source.counts(app.line.at, &|location| app.counts(location));
    let Some(figures) = app.figures() else {
        let Counts { visits, lanes, idle, .. } = counts;
        let [visits, lanes, idle] = [visits, lanes, idle].map(count);
        return vec![format!("{names}: so far {visits} visits, {lanes} lanes, {idle} idle slots")];
    };
    let analysis = &figures.analysis;
    let of_line =
        analysis.lines.iter().find(|found| found.locations.iter().any(|id| line.locations.contains(id)));
    let Some(of_line) = of_line else { return vec![format!("{names}: no warp came")] };
    let idle = format!(
        "{names}: {} idle slots, {} of all; {} of the slots here",
        count(counts.idle),
        words::about(counts.idle, analysis.counts.idle),
        words::about(counts.idle, counts.slots)
    );
    let visits = format!(
        "{} by {}, {} lanes each: 1..32 {}",
        words::many(counts.visits, "visit"),
        words::many(of_line.warps, "warp"),
        ratio(counts.mean_lanes()),
        words::lane_bars(&of_line.active)
    );
    let splits = match of_line.splits {
        0 => "lanes went the same way after each of them".to_owned(),
        splits => format!("lanes went different ways after {} of them", percent(splits, counts.visits)),
    };
    let time = app.time(app.line.at).zip(analysis.time).map(|(time, all)| {
        let [active, lanes] = time.mean_lanes().map(ratio);
        format!(
            "{} cycles of warps, {} of all, {} a visit; {active} of {lanes} lanes active in them",
            count(time.warp_cycles),
            words::about(time.warp_cycles, all.warp_cycles),
            ratio(time.per_visit())
        )
    });
    time.into_iter().chain([idle, visits, splits]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_what_is_there() {
        assert_eq!(bar(0.0, 8), "");
        assert_eq!(bar(1e-9, 8), "▏");
        assert_eq!((bar(0.5, 8), bar(1.0, 4), bar(0.53, 4)), ("████".into(), "████".into(), "██▏".into()));
    }
}
