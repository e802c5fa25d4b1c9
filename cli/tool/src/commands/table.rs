//! Tables of text: as wide as the terminal, and in colour where standard output is one.

use std::io::{self, Write};

use crate::output::{StandardOutput, is_kept, of_standard_output, terminal_width};
use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use warptrace_format::shown_lines;

/// Columns of a table.
#[derive(Clone, Copy)]
pub(crate) enum Column {
    /// Words.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

/// Shares in percent from which on they are coloured.
const SOME: f64 = 5.0;
const MUCH: f64 = 25.0;

/// Makes a table as text, without spaces at the ends of its lines. Words that find no room in the terminal go on in
/// the next line.
pub(crate) fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    let heads = columns.iter().map(|column| match *column {
        Column::Left(head) | Column::Right(head) => head,
    });
    table.load_preset(presets::NOTHING).set_header(heads);
    for row in rows {
        table.add_row(row);
    }
    let width = terminal_width().and_then(|width| u16::try_from(width).ok());
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for (number, column) in columns.iter().enumerate() {
        if let Some(shown) = table.column_mut(number) {
            // One space between columns; the first begins with the line.
            shown.set_padding((if number == 0 { 0 } else { 1 }, 0));
            if let Column::Right(_) = column {
                shown.set_cell_alignment(CellAlignment::Right);
                if width.is_some() {
                    shown.set_constraint(ColumnConstraint::ContentWidth);
                }
            }
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Prints a blank line and a table, whose first line is its head; in colour if `--color` and the environment say so.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print_table(table: &str) -> io::Result<()> {
    if is_kept() {
        return writeln!(StandardOutput, "\n{}", shown_lines(table));
    }
    of_standard_output(print_coloured(table))
}

fn print_coloured(table: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out)?;
    // Nothing of a trace acts on the terminal, only what is added here.
    for (number, line) in shown_lines(table).lines().enumerate() {
        if number == 0 {
            let head = Style::new().bold();
            writeln!(out, "{head}{line}{head:#}")?;
        } else {
            writeln!(out, "{}", coloured(line))?;
        }
    }
    Ok(())
}

/// Colours the shares in a line that are large.
fn coloured(line: &str) -> String {
    let colour = |word: &str| {
        let share: f64 = word.strip_suffix('%')?.trim_start_matches('~').parse().ok()?;
        let style = Style::new();
        match share {
            _ if share >= MUCH => Some(style.fg_color(Some(AnsiColor::Red.into())).bold()),
            _ if share >= SOME => Some(style.fg_color(Some(AnsiColor::Yellow.into()))),
            _ => None,
        }
    };
    let word = |word: &str| match colour(word) {
        Some(style) => format!("{style}{word}{style:#}"),
        None => word.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_shares_are_coloured_and_nothing_else() {
        assert_eq!(coloured("a 4.9%  100 5%x %"), "a 4.9%  100 5%x %");
        assert_eq!(
            coloured("  25.0% b 5.0%"),
            "  \u{1b}[1m\u{1b}[31m25.0%\u{1b}[0m b \u{1b}[33m5.0%\u{1b}[0m"
        );
    }
}
