//! Compares the values of two traces.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{ValueFigures, Values};
use crate::compare::paired;
use crate::order::OrderItems;

/// A named value in two traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ValueChange {
    /// Name of the value.
    pub name: String,
    /// Figures in the first and the second trace; `None` if not recorded.
    pub figures: [Option<ValueFigures>; 2],
}

impl ValueChange {
    /// Returns true if the figures differ, apart from the position in the source.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        let numbers = |figures: &ValueFigures| ValueFigures {
            sites: Vec::new(),
            location: 0,
            file: String::new(),
            line: 0,
            first_nan: None,
            first_infinite: None,
            ..figures.clone()
        };
        let [before, after] = self.figures.each_ref().map(|figures| figures.as_ref().map(numbers));
        before != after
    }

    /// Returns the change in the number of NaN and infinite values.
    #[must_use]
    pub fn odd_change(&self) -> u64 {
        let odd = |figures: &Option<ValueFigures>| figures.as_ref().map_or(0, |of| of.nan + of.infinite);
        odd(&self.figures[0]).abs_diff(odd(&self.figures[1]))
    }

    /// Returns the figures of the second trace, otherwise of the first one.
    #[must_use]
    pub fn latest(&self) -> Option<&ValueFigures> {
        self.figures[1].as_ref().or(self.figures[0].as_ref())
    }
}

/// Compares values with the same name, type, file and order of lines. Returns all values of either trace, by
/// change of NaN and infinite values, descending; changed ones before others.
#[must_use]
pub fn value_changes(found: [&Values; 2]) -> Vec<ValueChange> {
    type Key<'a> = (&'a str, &'a str, &'a str, usize);
    fn keyed(found: &Values) -> Vec<(Key<'_>, ValueFigures)> {
        let mut turns: BTreeMap<Key<'_>, usize> = BTreeMap::new();
        let mut values: Vec<&ValueFigures> = found.values.iter().collect();
        values.order_by_key(|value| value.line);
        let mut keyed = Vec::new();
        for value in values {
            let key = |turn| (value.name.as_str(), value.of, value.file.as_str(), turn);
            let turn = turns.entry(key(0)).or_default();
            keyed.push((key(*turn), value.clone()));
            *turn += 1;
        }
        keyed
    }
    let [before, after] = found.map(keyed);
    let change = |((name, ..), figures): (Key<'_>, _)| ValueChange { name: name.to_owned(), figures };
    let mut changes: Vec<ValueChange> = paired(before, after).into_iter().map(change).collect();
    changes.sort_by_cached_key(|change| Reverse((change.odd_change(), change.is_changed())));
    changes
}
