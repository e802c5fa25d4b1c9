//! Compares the accesses of two traces by line.

use serde::Serialize;

use super::{AccessCounts, Accesses};
use crate::compare::paired;
use crate::order::OrderItems;

/// Accesses of a line in two traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AccessChange {
    /// Source file.
    pub file: String,
    /// Line; 0 if unknown.
    pub line: u32,
    /// Counts in the first and the second trace; zeros without accesses.
    pub counts: [AccessCounts; 2],
}

impl AccessChange {
    /// Returns the change of sectors and passes, in sectors. A pass takes as long as four sectors.
    #[must_use]
    pub const fn weight(&self) -> u64 {
        let [before, after] = &self.counts;
        let passes = before.passes.abs_diff(after.passes).saturating_mul(4);
        before.sectors.abs_diff(after.sectors).saturating_add(passes)
    }
}

/// Compares the accesses of two traces by file and line. Sorts by change of sectors and passes, descending.
#[must_use]
pub fn access_changes(found: [&Accesses; 2]) -> Vec<AccessChange> {
    let [before, after] =
        found.map(|found| found.lines.iter().map(|line| ((line.file.as_str(), line.line), &line.counts)));
    let change = |((file, line), counts): ((&str, u32), [Option<&AccessCounts>; 2])| AccessChange {
        file: file.to_owned(),
        line,
        counts: counts.map(|counts| counts.cloned().unwrap_or_default()),
    };
    let mut changes: Vec<AccessChange> = paired(before, after).into_iter().map(change).collect();
    changes.order_by_key(|change| std::cmp::Reverse(change.weight()));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accesses::AccessLine;

    #[test]
    fn lines_are_matched_and_the_greatest_change_comes_first() {
        let line = |line, sectors, passes| AccessLine {
            file: "k.cu".to_owned(),
            line,
            sites: vec![1],
            counts: AccessCounts { requests: 1, sectors, passes, ..AccessCounts::default() },
        };
        let found = |lines| Accesses { lines, ..Accesses::default() };
        let before = found(vec![line(1, 32, 0), line(2, 4, 0), line(3, 0, 32)]);
        let after = found(vec![line(1, 4, 0), line(2, 4, 0), line(3, 0, 1), line(9, 1, 0)]);
        let changes = access_changes([&before, &after]);
        let rows: Vec<_> = changes.iter().map(|change| (change.line, change.weight())).collect();
        assert_eq!(rows, [(3, 124), (1, 28), (9, 1), (2, 0)]);
        assert_eq!(changes[2].counts[0], AccessCounts::default());
    }
}
