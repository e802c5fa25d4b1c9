//! Orders of rows, and the choice of rows to show, for commands that print rows.

use std::cmp::{Ordering, Reverse};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use warptrace_analysis::OrderItems;
use warptrace_analysis::words::Names;

use super::{Answer, ROWS};
use crate::arguments::Rows;

/// A value of `--sort`.
#[derive(Debug)]
pub(crate) struct Order<R: ?Sized> {
    name: &'static str,
    help: &'static str,
    by: By<R>,
}

#[derive(Clone, Copy, Debug)]
enum By<R: ?Sized> {
    Most(fn(&R) -> u64),
    /// The lesser row comes first.
    Compared(fn(&Names, &R, &R) -> Ordering),
}

impl<R> Order<R> {
    pub(super) const fn most(name: &'static str, help: &'static str, number: fn(&R) -> u64) -> Self {
        Self { name, help, by: By::Most(number) }
    }

    pub(super) const fn compared(
        name: &'static str,
        help: &'static str,
        compare: fn(&Names, &R, &R) -> Ordering,
    ) -> Self {
        Self { name, help, by: By::Compared(compare) }
    }

    pub(super) const fn unsorted(name: &'static str, help: &'static str) -> Self {
        Self::compared(name, help, |_, _, _| Ordering::Equal)
    }

    pub(super) const fn by_source(compare: fn(&Names, &R, &R) -> Ordering) -> Self {
        Self::compared("source", "File and line, the first one first", compare)
    }
}

/// Rows that a command lists.
pub(crate) trait Listed: Sized + 'static {
    /// Name of the rows in JSON.
    const NAME: &'static str;
    /// The values of `--sort`.
    const ORDERS: &'static [Order<Self>];
    const DEFAULT: &'static Order<Self> = &Self::ORDERS[0];
    /// Breaks ties of [`By::Most`]: the row with the greater number comes first.
    const TIE: fn(&Self) -> u64 = |_| 0;

    /// Returns true if `--location` keeps the row.
    fn is_at(&self, _location: u16) -> bool {
        true
    }
}

/// Parses a value of `--sort`.
pub(crate) fn order_parser<R: Listed>() -> impl TypedValueParser<Value = &'static Order<R>> {
    let values = R::ORDERS.iter().map(|order| PossibleValue::new(order.name).help(order.help));
    let parse = |name: String| R::ORDERS.iter().find(|order| order.name == name).unwrap_or(&R::ORDERS[0]);
    PossibleValuesParser::new(values).map(parse)
}

impl<R: Listed> Rows<R> {
    /// Filters and sorts rows. Returns those to show, and how many more there are.
    pub(super) fn shown<'a>(
        &self,
        answer: &Answer,
        rows: impl IntoIterator<Item = &'a R>,
    ) -> (Vec<&'a R>, usize) {
        self.shown_by(answer, rows, |row| row)
    }

    /// Like [`shown`](Self::shown) for rows that contain the listed figures.
    pub(super) fn shown_by<T>(
        &self,
        answer: &Answer,
        rows: impl IntoIterator<Item = T>,
        figures: impl Fn(&T) -> &R,
    ) -> (Vec<T>, usize) {
        let asked = &answer.asked;
        let is_asked = |row: &T| asked.is_empty() || asked.iter().any(|&id| figures(row).is_at(id));
        let mut rows: Vec<T> = rows.into_iter().filter(is_asked).collect();
        match self.sort.unwrap_or(R::DEFAULT).by {
            By::Most(number) => rows.order_by_key(|row| {
                let row = figures(row);
                Reverse((number(row), R::TIE(row)))
            }),
            By::Compared(compare) => rows.order_by(|a, b| compare(&answer.names, figures(a), figures(b))),
        }
        first(rows, self.limit, if self.page.json { usize::MAX } else { ROWS })
    }
}

/// Returns the rows to show, and how many more there are.
pub(super) fn first<T>(mut rows: Vec<T>, limit: Option<usize>, default: usize) -> (Vec<T>, usize) {
    let limit = match limit {
        Some(0) => usize::MAX,
        Some(limit) => limit,
        None => default,
    };
    let more = rows.len().saturating_sub(limit);
    rows.truncate(limit);
    (rows, more)
}
