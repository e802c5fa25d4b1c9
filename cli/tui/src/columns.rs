//! Tables that drop their least important columns on narrow terminals.

use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::text::{pad, width};

pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) is_number: bool,
    /// The column with the highest rank is dropped first. Rank 0 is never dropped.
    pub(crate) rank: u8,
}

pub(crate) const fn words(head: &'static str, rank: u8) -> Column {
    Column { head, is_number: false, rank }
}

pub(crate) const fn number(head: &'static str, rank: u8) -> Column {
    Column { head, is_number: true, rank }
}

/// Renders head and rows, at most `columns` terminal columns wide. Marks the row `selected`.
pub(crate) fn table(
    heads: &[Column],
    rows: &[Vec<String>],
    columns: usize,
    selected: Option<usize>,
) -> Vec<Line<'static>> {
    let widest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell));
        cells.chain([width(heads[at].head)]).max().unwrap_or(0)
    };
    let mut shown: Vec<(usize, usize)> = (0..heads.len()).map(|at| (at, widest(at))).collect();
    let taken = |shown: &[(usize, usize)]| shown.iter().map(|(_, width)| width + 1).sum::<usize>();
    while taken(&shown) > columns + 1 {
        let Some(worst) = shown.iter().map(|(at, _)| heads[*at].rank).max().filter(|rank| *rank > 0) else {
            break;
        };
        if let Some(at) = shown.iter().rposition(|(at, _)| heads[*at].rank == worst) {
            shown.remove(at);
        }
    }
    if let [(_, width)] = &mut shown[..] {
        *width = columns.min(*width);
    }
    let line = |cells: &dyn Fn(usize) -> String| {
        let cells = shown.iter().map(|&(at, width)| pad(&cells(at), width, heads[at].is_number));
        pad(&cells.collect::<Vec<_>>().join(" "), columns, false)
    };
    let head = Line::styled(line(&|at| heads[at].head.to_owned()), Style::new().add_modifier(Modifier::BOLD));
    let row = |(number, row): (usize, &Vec<String>)| {
        let text = line(&|at| row.get(at).cloned().unwrap_or_default());
        let is_selected = selected == Some(number);
        Line::styled(
            text,
            if is_selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() },
        )
    };
    [head].into_iter().chain(rows.iter().enumerate().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_tables_give_up_columns() {
        let heads = [words("name", 0), number("a", 2), number("count", 1)];
        let rows = [vec!["loop".into(), "1".into(), "12".into()], vec!["x".into(), "22".into(), "3".into()]];
        let text = |columns| {
            let lines = table(&heads, &rows, columns, None);
            lines.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(text(13), ["name  a count", "loop  1    12", "x    22     3"]);
        assert_eq!(text(12), ["name count  ", "loop    12  ", "x        3  "]);
        assert_eq!(text(4), ["name", "loop", "x   "]);
        assert_eq!(text(3), ["na…", "lo…", "x  "]);
    }
}
