//! Bytes that warps of a launch touched, as spans of addresses by warp and site.

use warptrace_decoder::{AddressPlace, VectorRun, extent};
use warptrace_format::data::LaneRun;
use warptrace_format::file::data::{SiteGroups, lanes};
use warptrace_format::file::{SiteInfo, SiteSpace};

use super::buffers::Of;

/// Limit of spans in a launch, which bounds memory.
const MAX_SPANS: usize = 1 << 20;
/// Spans of a warp at a site at which adjacent spans are first merged.
const MAX_APART: usize = 1 << 14;
/// Limit of single accesses that are processed for a trace, which bounds time.
pub(super) const MAX_STEPS: u64 = 1 << 28;

/// Bytes that a warp touched at a site, including the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) warp: u32,
    pub(super) site: u16,
}

#[derive(Debug, Default)]
pub(super) struct Spans {
    pub(super) spans: Vec<Span>,
    pub(super) steps: u64,
    /// True if a limit was exceeded. Then no spans are kept. Does not depend on the order of warps.
    pub(super) is_too_much: bool,
}

impl Spans {
    /// Adds the global memory that a warp touched at a site. Generic addresses count only in known buffers.
    pub(super) fn push(&mut self, of: Option<&Of<'_>>, warp: u32, site: &SiteInfo, groups: &SiteGroups) {
        let is_global = matches!(site.space, SiteSpace::Global | SiteSpace::Generic);
        if self.is_too_much || !is_global || !site.kind.is_memory() {
            return;
        }
        let begin = self.spans.len();
        let mut most = MAX_APART;
        for (group, runs) in groups.each_group() {
            let vector = VectorRun { site: site.number, time: 0, group, runs };
            each_stretch(&vector, site.bytes.max(1).into(), |run, bytes| {
                let mut add = |run| {
                    self.steps += 1;
                    let Some((low, high)) = extent(run, bytes) else { return };
                    let is_known = site.space == SiteSpace::Global
                        || of.is_some_and(|of| matches!(of.map.at(low), AddressPlace::In(..)));
                    if is_known {
                        self.spans.push(Span { low, high, warp, site: site.number });
                    }
                };
                if u64::from(run.step.unsigned_abs()) <= bytes {
                    add(run);
                } else {
                    (0..run.count).for_each(|nth| add(LaneRun { base: run.nth(nth), step: 0, count: 1 }));
                }
            });
            if self.spans.len() - begin > most {
                self.join_from(begin);
                most = MAX_APART + 2 * (self.spans.len() - begin);
                self.bound(self.spans.len() - begin);
            }
            if self.is_too_much {
                return;
            }
        }
        self.join_from(begin);
        self.bound(self.spans.len());
    }

    fn join_from(&mut self, begin: usize) {
        self.spans[begin..].sort_unstable();
        let mut last = begin;
        for at in begin + 1..self.spans.len() {
            let (span, before) = (self.spans[at], self.spans[last]);
            if span.low <= before.high.saturating_add(1) {
                self.spans[last].high = before.high.max(span.high);
            } else {
                last += 1;
                self.spans[last] = span;
            }
        }
        self.spans.truncate(last + 1);
    }

    fn bound(&mut self, spans: usize) {
        if self.is_too_much || spans > MAX_SPANS || self.steps > MAX_STEPS {
            self.is_too_much = true;
            self.spans = Vec::new();
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.is_too_much |= other.is_too_much;
        self.steps = self.steps.saturating_add(other.steps);
        self.spans.extend(other.spans);
        self.bound(self.spans.len());
    }
}

/// Calls `each` with runs that cover the bytes of a run of vectors, and their bytes. Merges adjacent lanes.
fn each_stretch(vector: &VectorRun<'_>, bytes: u64, mut each: impl FnMut(LaneRun, u64)) {
    let mask = vector.group.mask;
    if let (Some(spread), Some(run)) = (vector.group.spread, vector.run(vector.group.leader())) {
        let gaps = u64::from(mask.count_ones().max(1) - 1);
        let has_neighbours =
            (mask >> mask.trailing_zeros()).wrapping_add(1) & (mask >> mask.trailing_zeros()) == 0;
        let wide = u64::from(spread.unsigned_abs());
        if has_neighbours && wide <= bytes * gaps {
            let base = run.base.wrapping_add_signed(i64::from(spread.min(0)));
            return each(LaneRun { base, ..run }, wide + bytes);
        }
    }
    lanes(mask).filter_map(|lane| vector.run(lane)).for_each(|run| each(run, bytes));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use warptrace_format::file::SiteKind;
    use warptrace_format::file::data::Group;

    use super::*;

    fn spans(groups: &[(Group, Vec<LaneRun>)], bytes: u32) -> (Spans, BTreeSet<u64>) {
        let site = SiteInfo::new(1, SiteKind::Load, SiteSpace::Global, bytes);
        let of_site = SiteGroups {
            site: 1,
            groups: groups.iter().map(|(group, _)| *group).collect(),
            runs: groups.iter().flat_map(|(_, runs)| runs.clone()).collect(),
            loose: Vec::new(),
        };
        let mut spans = Spans::default();
        spans.push(None, 7, &site, &of_site);
        let mut touched = BTreeSet::new();
        for (group, runs) in of_site.each_group() {
            for run in lanes(group.mask).filter_map(|lane| group.run(runs, lane)) {
                (0..run.count)
                    .for_each(|nth| touched.extend((0..u64::from(bytes)).map(|at| run.nth(nth) + at)));
            }
        }
        (spans, touched)
    }

    #[test]
    fn spans_are_the_bytes_of_accesses_and_as_few_as_can_be() {
        let group = |mask, spread| Group { mask, time: 0, spread, missing: 0 };
        let run = |base, step, count| LaneRun { base, step, count };
        let cases = [
            (vec![(group(u32::MAX, Some(124)), vec![run(1000, 128, 10)])], 4, 1),
            (vec![(group(u32::MAX, Some(124)), vec![run(1000, 256, 10)])], 4, 10),
            (vec![(group(u32::MAX, Some(-124)), vec![run(1000, -256, 3)])], 4, 3),
            (vec![(group(0xff0, Some(0)), vec![run(1000, 4, 9)])], 4, 1),
            (vec![(group(0b101, Some(16)), vec![run(1000, 0, 1)])], 8, 2),
            (vec![(group(0b101, Some(8)), vec![run(1000, 0, 1)])], 8, 1),
            (vec![(group(u32::MAX, Some(31 * 64)), vec![run(1000, 4, 16)])], 4, 1),
            (vec![(group(0b11, None), vec![run(50, 3, 4), run(90, 100, 3)])], 2, 7),
            (vec![(group(1, None), vec![run(8, -2, 4)]), (group(2, None), vec![run(10, 2, 4)])], 2, 1),
        ];
        for (groups, bytes, count) in cases {
            let (found, touched) = spans(&groups, bytes);
            let all: Vec<u64> = found.spans.iter().flat_map(|span| span.low..=span.high).collect();
            assert_eq!(all, touched.into_iter().collect::<Vec<_>>(), "{groups:?}");
            assert_eq!(found.spans.len(), count, "{groups:?}");
            assert!(found.spans.iter().all(|span| (span.warp, span.site) == (7, 1)));
        }
    }

    #[test]
    fn too_many_are_none_in_any_order() {
        let span = |low| Span { low, high: low, warp: 0, site: 1 };
        let part = |count: usize| Spans { spans: vec![span(0); count], ..Spans::default() };
        for sizes in [[MAX_SPANS, 1, 0], [0, 1, MAX_SPANS], [1, MAX_SPANS, 5]] {
            let mut all = Spans::default();
            sizes.into_iter().for_each(|size| all.merge(part(size)));
            assert!(all.is_too_much && all.spans.is_empty());
        }
        let mut all = part(MAX_SPANS - 1);
        all.merge(part(1));
        assert!(!all.is_too_much);
    }
}
