//! Drawing.

mod blocks;
mod head;
mod lists;
mod source;
mod strip;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::app::{App, Reading, View};
use crate::keys::HELP;
use crate::text::{fit, pad, wrap};

/// Rows below which details and the help line are hidden, so that the smallest terminal shows rows of its table.
const LOW: u16 = 13;

const FAINT: Style = Style::new().fg(Color::DarkGray);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

pub(crate) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let area = frame.area();
    let columns = usize::from(area.width);
    let head = head::lines(app, columns, if area.height < LOW { 1 } else { 3 });
    let is_low = area.height < LOW;
    let details = if is_low || app.shows_help { Vec::new() } else { details(app, columns) };
    let rows = [head.len(), details.len()].map(|rows| u16::try_from(rows).unwrap_or(u16::MAX));
    let parts = [
        Constraint::Length(rows[0]),
        Constraint::Min(1),
        Constraint::Length(rows[1]),
        Constraint::Length(u16::from(!is_low)),
    ];
    let [top, body, below, bottom] = Layout::vertical(parts).areas(area);
    put(frame, top, head);
    let lines = body_lines(app, body);
    put(frame, body, lines);
    put(frame, below, details);
    put(frame, bottom, vec![Line::styled(help_line(app, columns), FAINT)]);
}

/// Removes the colours. Letters, bars and the mark of the selected row remain visible.
pub(crate) fn remove_colours(frame: &mut Frame<'_>) {
    for cell in &mut frame.buffer_mut().content {
        (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
    }
}

fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    let buffer = frame.buffer_mut();
    for (y, line) in (area.y..area.bottom()).zip(&lines) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

fn body_lines(app: &mut App, area: Rect) -> Vec<Line<'static>> {
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    if app.shows_help {
        return help(columns);
    }
    if let (Reading::Failed(why), true) = (&app.reading, app.view != View::Source) {
        return wrap(why, columns, rows).into_iter().map(Line::from).collect();
    }
    match app.view {
        View::Source => source::lines(app, columns, rows),
        View::Loops => lists::loops(app, columns, rows),
        View::Warps => lists::warps(app, columns, rows),
        View::Strip => strip::lines(app, columns, rows),
        View::Blocks => blocks::lines(app, columns, rows),
    }
}

fn details(app: &App, columns: usize) -> Vec<Line<'static>> {
    match app.view {
        View::Source => source::details(app, columns),
        View::Loops => lists::loop_details(app, columns),
        View::Warps => lists::warp_details(app, columns),
        View::Blocks => blocks::details(app, columns),
        View::Strip => Vec::new(),
    }
}

fn help(columns: usize) -> Vec<Line<'static>> {
    let widest = HELP.iter().map(|(keys, _)| keys.chars().count()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (keys, text) in HELP {
        let wrapped = wrap(text, columns.saturating_sub(widest + 2), 3);
        for (number, text) in wrapped.into_iter().enumerate() {
            let keys = if number == 0 { keys } else { "" };
            lines.push(Line::from(vec![Span::styled(pad(keys, widest + 2, false), BOLD), Span::raw(text)]));
        }
    }
    lines
}

/// Returns the most important keys, as many as fit.
fn help_line(app: &App, columns: usize) -> String {
    let view = match app.view {
        View::Source => &["n next hottest", "j k move"][..],
        View::Loops => &["Enter source", "j k move"],
        View::Warps => &["Enter strip", "j k move"],
        View::Strip => &["h l run", "j k warp", "Enter source"],
        View::Blocks => &["h l launch", "j k SM", "Enter strip"],
    };
    let kernels = if app.has_kernels() { &["f kernel"][..] } else { &[] };
    let mut line = "q quit  ? keys".to_owned();
    for more in view.iter().chain(&["Tab view"]).chain(kernels) {
        if line.len() + 2 + more.len() <= columns {
            line = format!("{line}  {more}");
        }
    }
    fit(&line, columns)
}

fn not_yet(app: &App) -> Vec<Line<'static>> {
    let text = match app.reading {
        Reading::Going { .. } => "The trace is being read.",
        _ => "",
    };
    vec![Line::styled(text, FAINT)]
}
