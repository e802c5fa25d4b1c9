//! Markdown tables and number formats.

use std::fmt::Write;
use std::time::Duration;

/// A Markdown table whose columns are aligned in the source as well.
#[derive(Clone, Debug)]
pub(crate) struct MarkdownTable {
    rows: Vec<Vec<String>>,
    /// Number of leading columns with left-aligned text; the other columns are right-aligned.
    words: usize,
}

impl MarkdownTable {
    pub(crate) fn new<S: Into<String>>(words: usize, headings: impl IntoIterator<Item = S>) -> Self {
        Self { rows: vec![headings.into_iter().map(Into::into).collect()], words }
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows
            .push(cells.into_iter().map(|cell| cell.into().replace('|', "/").replace('\n', " ")).collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    pub(crate) fn markdown(&self) -> String {
        let columns = self.rows[0].len();
        let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0).max(3)
            })
            .collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, &width) in widths.iter().enumerate() {
                let cell = cell(row, column);
                if column < self.words {
                    let _ = write!(text, "| {cell:<width$} ");
                } else {
                    let _ = write!(text, "| {cell:>width$} ");
                }
            }
            text.push_str("|\n");
            if number == 0 {
                for (column, &width) in widths.iter().enumerate() {
                    let line = "-".repeat(width - usize::from(column >= self.words));
                    let _ = write!(text, "| {line}{} ", if column < self.words { "" } else { ":" });
                }
                text.push_str("|\n");
            }
        }
        text
    }
}

pub(crate) fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// Formats seconds with three significant digits: `12.3 ms`.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{} us", digits(s * 1e6)),
        s if s < 1.0 => format!("{} ms", digits(s * 1e3)),
        s => format!("{} s", digits(s)),
    }
}

pub(crate) fn time(duration: Duration) -> String {
    seconds(duration.as_secs_f64())
}

/// Formats a number with three significant digits, or with all digits before the decimal point.
pub(crate) fn digits(number: f64) -> String {
    match number.abs() {
        n if n < 9.995 => format!("{number:.2}"),
        n if n < 99.95 => format!("{number:.1}"),
        _ if !number.is_finite() => "-".to_owned(),
        n => format!("{}{}", if number < 0.0 { "-" } else { "" }, count(n.round() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up() {
        let mut table = MarkdownTable::new(1, ["name", "number"]);
        table.row(["a|b", "1"]);
        table.row(["c"]);
        assert_eq!(
            table.markdown(),
            "| name | number |\n| ---- | -----: |\n| a/b  |      1 |\n| c    |        |\n"
        );
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(digits(1.0), "1.00");
        assert_eq!(digits(9.996), "10.0");
        assert_eq!(digits(99.96), "100");
        assert_eq!(digits(369_769.4), "369,769");
        assert_eq!(digits(f64::NAN), "-");
        assert_eq!(seconds(0.000_05), "50.0 us");
        assert_eq!(seconds(0.0123), "12.3 ms");
    }
}
