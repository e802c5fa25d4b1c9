//! Text tables: as wide as the terminal, and in color if standard output is a terminal.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::output::{StandardOutput, is_kept, of_standard_output, terminal_width, write_lines};
use anstyle::{AnsiColor, Style};
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

    /// Formats the table, without spaces at line ends. Rows do not wrap: what does not fit the terminal is cut in
    /// the middle of words, or left out.
    pub(crate) fn text<'r>(&self, rows: impl IntoIterator<Item = &'r R>) -> String
    where
        R: 'r,
    {
        let rows = rows.into_iter().map(|row| self.0.iter().map(|column| (column.cell)(row)).collect());
        text(&self.heads(), &rows.collect::<Vec<_>>(), terminal_width())
    }
}

/// Maximum width of a column in [`TextTable::print_rows`].
pub(crate) const WIDEST: usize = 60;

impl<R> TextTable<'_, R> {
    /// Prints the rows one by one. Without a terminal, cells of more than [`WIDEST`] characters exceed their
    /// columns, so that one long cell does not widen all rows.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn print_rows(&self, rows: &[R]) -> io::Result<()> {
        let cells = |row| self.0.iter().map(move |column| (column.cell)(row));
        let heads = self.heads();
        let mut widths: Vec<usize> = heads.iter().map(|(head, _)| measure_text_width(head)).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(cells(row)) {
                *width = (*width).max(measure_text_width(&cell).min(WIDEST));
            }
        }
        let most = terminal_width();
        let left_out = fit(&heads, &mut widths, most);
        let mut out = io::BufWriter::new(StandardOutput);
        let mut print = |cells: &mut dyn Iterator<Item = String>| {
            write_lines(&mut out, &line(&heads, &widths, cells, most.is_some()))
        };
        print(&mut heads.iter().map(|(head, _)| (*head).to_owned()))?;
        rows.iter().try_for_each(|row| print(&mut cells(row)))?;
        if left_out > 0 {
            writeln!(out, "{}", left_out_line(left_out))?;
        }
        out.flush()
    }

    fn heads(&self) -> Vec<(&'static str, bool)> {
        self.0.iter().map(|column| (column.head, column.is_right)).collect()
    }
}

/// Narrowest width to which a column of words is cut, in characters.
const NARROW: usize = 12;

/// Formats a table with these heads, at most `most` characters wide; `true` marks columns of numbers. The last
/// line has the number of columns that are left out, if any.
fn text(heads: &[(&str, bool)], rows: &[Vec<String>], most: Option<usize>) -> String {
    let mut widths: Vec<usize> = heads.iter().map(|(head, _)| measure_text_width(head)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(measure_text_width(cell));
        }
    }
    let left_out = fit(heads, &mut widths, most);
    let head: Vec<String> = heads.iter().map(|(head, _)| (*head).to_owned()).collect();
    let row = |row: &Vec<String>| line(heads, &widths, &mut row.iter().cloned(), true);
    let mut lines: Vec<String> = [&head].into_iter().chain(rows).map(row).collect();
    if left_out > 0 {
        lines.push(left_out_line(left_out));
    }
    lines.join("\n")
}

fn left_out_line(left_out: usize) -> String {
    let columns = if left_out == 1 { "1 column".to_owned() } else { format!("{left_out} columns") };
    format!("({columns} left out; see --json)")
}

/// Narrows the columns of words, the widest first, and leaves out the last columns, until the table is not wider
/// than `most`. Returns the number of columns left out, whose widths are removed.
fn fit(heads: &[(&str, bool)], widths: &mut Vec<usize>, most: Option<usize>) -> usize {
    let Some(most) = most else { return 0 };
    let all = widths.clone();
    loop {
        while widths.iter().sum::<usize>() + widths.len() - 1 > most {
            let is_wide =
                |(width, (_, is_right)): &(&mut usize, &(&str, bool))| !is_right && **width > NARROW;
            let words = widths.iter_mut().zip(heads).filter(is_wide);
            let Some((width, _)) = words.max_by_key(|(width, _)| **width) else { break };
            *width -= 1;
        }
        if widths.len() == 1 || widths.iter().sum::<usize>() + widths.len() - 1 <= most {
            return all.len() - widths.len();
        }
        *widths = all[..widths.len() - 1].to_vec();
    }
}

/// Formats one row, without spaces at its end. Columns without a width are left out. With `cuts`, cells are cut
/// to the width of their column.
fn line(
    heads: &[(&str, bool)],
    widths: &[usize],
    cells: &mut dyn Iterator<Item = String>,
    cuts: bool,
) -> String {
    let mut text = String::new();
    for ((cell, (_, is_right)), width) in cells.zip(heads).zip(widths) {
        let cell = if cuts { cut_middle(&cell, *width) } else { cell.as_str().into() };
        let space = " ".repeat(width.saturating_sub(measure_text_width(&cell)));
        text += &if *is_right { format!("{space}{cell} ") } else { format!("{cell}{space} ") };
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns the text, cut in the middle to `width` characters: names differ at their ends.
fn cut_middle(text: &str, width: usize) -> Cow<'_, str> {
    let characters = text.chars().count();
    if characters <= width || measure_text_width(text) <= width {
        return text.into();
    }
    let (start, end) = (width.saturating_sub(1) / 2, width.saturating_sub(1).div_ceil(2));
    text.chars().take(start).chain(['…']).chain(text.chars().skip(characters - end)).collect()
}

/// Prints a blank line and a table, whose first line is the head. In color if `--color` and the environment
/// allow it.
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
    fn no_row_is_wider_than_the_terminal() {
        let heads = [("line", false), ("name", false), ("visits", true), ("of all", true)];
        let row = |name: &str| ["kernels/find.cu:146", name, "1,234,567", "4.2%"].map(str::to_owned).to_vec();
        let rows = [row("initWL<false>: line 146 taken 12"), row("initWL<false>: line 146 taken 13")];
        for most in [1, 20, 40, 60, 80] {
            let table = text(&heads, &rows, Some(most));
            let is_row = |line: &&str| !line.starts_with('(');
            assert!(
                table.lines().filter(is_row).all(|line| measure_text_width(line) <= most.max(NARROW)),
                "{table}"
            );
        }
        insta::assert_snapshot!(text(&heads, &rows, Some(40)), @"
        line            name              visits
        kernels….cu:146 initWL…aken 12 1,234,567
        kernels….cu:146 initWL…aken 13 1,234,567
        (1 column left out; see --json)
        ");
        assert!(!text(&heads, &rows, None).contains(['…', '(']));
    }

    #[test]
    fn large_shares_are_coloured_and_nothing_else() {
        assert_eq!(coloured("a 4.9%  100 5%x %"), "a 4.9%  100 5%x %");
        assert_eq!(
            coloured("  25.0% b 5.0%"),
            "  \u{1b}[1m\u{1b}[31m25.0%\u{1b}[0m b \u{1b}[33m5.0%\u{1b}[0m"
        );
    }
}
