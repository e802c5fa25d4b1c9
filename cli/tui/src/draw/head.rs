//! Top of the screen: most important finding, losses, and the list of views.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use warptrace_analysis::words::{self, count};

use super::{BOLD, FAINT};
use crate::app::{App, Reading, View};
use crate::text::{fit, width, wrap};

/// Columns below which sentences are cut.
const NARROW: usize = 60;

const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Renders sentences of at most `most` lines each and the list of views.
pub(super) fn lines(app: &App, columns: usize, most: usize) -> Vec<Line<'static>> {
    let sentences = sentences(app);
    // A low screen shows only the first sentence.
    let shown = if most == 1 { 1 } else { sentences.len() };
    let mut lines = Vec::new();
    for (number, (text, style)) in sentences.into_iter().take(shown).enumerate() {
        // Narrow screens have few rows for less important sentences.
        let most = if number > 0 && columns < NARROW { 1 } else { most };
        lines.extend(wrap(&text, columns, most).into_iter().map(|line| Line::styled(line, style)));
    }
    lines.push(views(app, columns));
    lines
}

fn sentences(app: &App) -> Vec<(String, Style)> {
    let mut said = Vec::new();
    let alarm = |text: String| (text, ALARM);
    match &app.reading {
        Reading::Failed(why) => {
            said.push(alarm(format!("cannot analyse {}: {why}", app.name)));
        }
        Reading::Going { watch, total } => {
            said.extend(watch.losses().and_then(words::missing).map(alarm));
            said.extend(app.ended_early().map(alarm));
            said.push((progress(app, watch.total().visits, *total), BOLD));
        }
        Reading::Done(figures) => {
            let analysis = &figures.analysis;
            let finding = (words::finding(analysis, &app.names), BOLD);
            match words::missing(&analysis.losses) {
                None => {
                    let whole = words::losses(analysis).lines().next().unwrap_or_default().to_owned();
                    said.extend(match analysis.losses.assumed {
                        None => [finding, (whole, FAINT)],
                        Some(_) => [alarm(whole), finding],
                    });
                }
                Some(missing) => {
                    said.push(alarm(missing));
                    said.extend(app.ended_early().map(alarm));
                    said.push(finding);
                }
            }
        }
    }
    said
}

fn progress(app: &App, events: u64, total: Option<u64>) -> String {
    match total {
        Some(total) => format!(
            "reading {}: {} of {} events ({})",
            app.name,
            count(events),
            count(total),
            words::about(events, total)
        ),
        None => format!("reading {}: {} events so far", app.name, count(events)),
    }
}

fn views(app: &App, columns: usize) -> Line<'static> {
    let name = |view| match view {
        View::Source => "1 source",
        View::Loops => "2 loops",
        View::Warps => "3 warps",
        View::Strip => "4 strip",
        View::Blocks => "6 blocks",
    };
    let is_narrow = columns < 50;
    let mut spans = Vec::new();
    let mut taken = 0;
    for view in app.views() {
        let is_shown = view == app.view;
        // On narrow screens, the other views are shown by their keys.
        let text = if is_narrow && !is_shown { &name(view)[..1] } else { name(view) };
        let style = if is_shown { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        spans.extend([Span::styled(format!(" {text} "), style), Span::raw(" ")]);
        taken += text.len() + 3;
    }
    let kernel = match &app.kernel {
        Some(kernel) => format!("kernel {}", warptrace_format::shown(kernel)),
        None if app.has_kernels() => "all kernels".to_owned(),
        None => app.name.clone(),
    };
    let room = columns.saturating_sub(taken);
    if room >= 8 {
        let kernel = fit(&kernel, room);
        spans.push(Span::raw(" ".repeat(room - width(&kernel))));
        spans.push(Span::styled(kernel, FAINT));
    }
    Line::from(spans)
}
