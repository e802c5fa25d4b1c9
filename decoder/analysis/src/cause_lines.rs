//! Causes by source line: branches of one line, inlined copies of a function and instances of a template.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::distribution::Distribution;
use crate::figures::{Analysis, Cause, Point};
use crate::order::OrderItems;

/// Causes whose [decisions](Cause::decision) are on one source line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CauseLine<'a> {
    /// Sum of the parts, at the location of the first part.
    pub whole: Cause,
    /// The causes, by idle slots, descending. At least one.
    pub parts: Vec<&'a Cause>,
    /// Visits of the parts' locations; 0 for [`Point::BEGIN`].
    pub visits: u64,
    /// Trips of loops at the parts' locations.
    pub trips: Distribution,
}

impl Analysis {
    /// Sums causes by the source line of their decisions. Causes without a known line stay apart. The lines are
    /// by idle slots, descending.
    pub fn cause_lines(&self) -> Vec<CauseLine<'_>> {
        let mut lines: BTreeMap<(&str, u32, u16), Vec<&Cause>> = BTreeMap::new();
        for cause in &self.causes {
            let id = cause.decision();
            let key = match self.location(id) {
                Some(found) if id != Point::BEGIN => found.point.line_key(),
                _ => ("", 0, id),
            };
            lines.entry(key).or_default().push(cause);
        }
        let mut lines: Vec<_> = lines.into_values().filter_map(|parts| self.cause_line(parts)).collect();
        lines.order_by_key(|line| Reverse(line.whole.idle));
        lines
    }

    /// Sums causes, whatever their lines; `None` without causes.
    pub fn cause_line<'a>(&self, parts: Vec<&'a Cause>) -> Option<CauseLine<'a>> {
        let mut whole = (*parts.first()?).clone();
        parts[1..].iter().for_each(|&part| whole.merge(part.clone()));
        let (mut visits, mut trips) = (0_u64, Distribution::default());
        for found in parts.iter().filter_map(|part| self.location(part.point.location)) {
            visits = visits.saturating_add(found.counts.visits);
            trips.merge(&found.trips);
        }
        Some(CauseLine { whole, parts, visits, trips })
    }
}
