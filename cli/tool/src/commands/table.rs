//! Text tables: as wide as the terminal, and in color if standard output is a terminal.

use std::io::{self, Write};

use crate::output::{StandardOutput, is_kept, of_standard_output, terminal_width, write_lines};
use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use console::measure_text_width;
use warptrace_format::shown_lines;

type Cell<'a, R> = Box<dyn Fn(&R) -> String + 'a>;

struct Column<'a, R> {
    head: &'static str,
    is_right: bool,
    cell: Cell<'a, R>,
}

/// A text table: columns that format the cells of rows.
pub(crate) struct TextTable<'a, R>(Vec<Column<'a, R>>);

/// Percentages from which shares are colored.
const SOME: f64 = 5.0;
const MUCH: f64 = 25.0;

impl<'a, R> TextTable<'a, R> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn left(mut self, head: &'static str, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.0.push(Column { head, is_right: false, cell: Box::new(cell) });
        self
    }

    pub(crate) fn right(mut self, head: &'static str, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.0.push(Column { head, is_right: true, cell: Box::new(cell) });
        self
    }

    pub(crate) fn when(self, are_there: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if are_there { more(self) } else { self }
    }

    /// Formats the table, without spaces at line ends. Cells that do not fit the terminal wrap.
    pub(crate) fn text<'r>(&self, rows: impl IntoIterator<Item = &'r R>) -> String
    where
        R: 'r,
    {
        let rows = rows.into_iter().map(|row| self.0.iter().map(|column| (column.cell)(row)).collect());
        let heads: Vec<(&str, bool)> = self.0.iter().map(|column| (column.head, column.is_right)).collect();
        text(&heads, &rows.collect::<Vec<_>>())
    }
}

/// Maximum width of a column in [`TextTable::print_rows`].
pub(crate) const WIDEST: usize = 60;

impl<R> TextTable<'_, R> {
    /// Prints the rows one by one, independent of the terminal's width. Cells of more than [`WIDEST`]
    /// characters exceed their columns, so that one long cell does not widen all rows.
    pub(crate) fn print_rows(&self, rows: &[R]) -> io::Result<()> {
        let cells = |row| self.0.iter().map(move |column| (column.cell)(row));
        let mut widths: Vec<usize> = self.0.iter().map(|column| measure_text_width(column.head)).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(cells(row)) {
                *width = (*width).max(measure_text_width(&cell).min(WIDEST));
            }
        }
        let mut out = io::BufWriter::new(StandardOutput);
        let mut print = |cells: &mut dyn Iterator<Item = String>| {
            let mut line = String::new();
            for ((column, width), cell) in self.0.iter().zip(&widths).zip(cells) {
                let space = " ".repeat(width.saturating_sub(measure_text_width(&cell)));
                line += &match column.is_right {
                    true => format!(" {space}{cell} "),
                    false => format!(" {cell}{space} "),
                };
            }
            write_lines(&mut out, &line)
        };
        print(&mut self.0.iter().map(|column| column.head.to_owned()))?;
        rows.iter().try_for_each(|row| print(&mut cells(row)))?;
        out.flush()
    }
}

/// Lays out a table with these heads; `true` marks columns of numbers.
fn text(heads: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(heads.iter().map(|(head, _)| head));
    table.add_rows(rows);
    let width = terminal_width().and_then(|width| u16::try_from(width).ok());
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for (number, (_, is_right)) in heads.iter().enumerate() {
        if let Some(shown) = table.column_mut(number) {
            // One space between columns, none before the first.
            shown.set_padding((if number == 0 { 0 } else { 1 }, 0));
            if *is_right {
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

/// Prints a blank line and a table, whose first line is the head. Colors are used if `--color` and the
/// environment allow them.
pub(crate) fn print_table(table: &str) -> io::Result<()> {
    if is_kept() {
        return writeln!(StandardOutput, "\n{}", shown_lines(table));
    }
    of_standard_output(print_coloured(table))
}

fn print_coloured(table: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out)?;
    // Text of the trace is escaped, so that only the styles added here act on the terminal.
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

/// Colors large shares in a line.
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
