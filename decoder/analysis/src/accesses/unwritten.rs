//! Reads of bytes before any traced write.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;
use warptrace_decoder::{AddressPlace, BufferMap, TraceFile};
use warptrace_format::file::{BufferInfo, SiteKind};

use super::spans::{MAX_STEPS, Span, Spans};

const MAX_RANGES: usize = 1 << 20;

/// An access of a warp at a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TouchedBy {
    /// Number of the site.
    pub site: u16,
    /// Kind of the site.
    pub kind: &'static str,
    /// Source file.
    pub file: String,
    /// Line; 0 if unknown.
    pub line: u32,
    /// Number of the launch.
    pub launch: u32,
    /// Linear index of the warp in the launch.
    pub warp: u32,
}

impl TouchedBy {
    pub(super) fn new(trace: &TraceFile, launch: u32, (warp, site): (u32, u16)) -> Self {
        let info = trace.site(site);
        Self {
            site,
            kind: info.map_or("", |info| info.kind.name()),
            file: info.map_or_else(String::new, |info| info.file.clone()),
            line: info.map_or(0, |info| info.line),
            launch,
            warp,
        }
    }
}

/// Bytes of a buffer that were read before any access in the trace wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnwrittenFigures {
    /// Number of the buffer, which was created after the first launch.
    pub buffer: u32,
    /// Number of these bytes, each counted once.
    pub bytes: u64,
    /// Offset of the lowest of them in the first launch that read some.
    pub offset: u64,
    /// Access that read it, of the lowest warp.
    pub first: TouchedBy,
}

/// Reads of bytes that no access in the trace had written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UnwrittenReads {
    /// Reads by buffer; `None` unless all warps were selected and the trace has buffers.
    pub buffers: Option<Vec<UnwrittenFigures>>,
    /// First launch with incomplete reads, because memory or time limits were exceeded.
    pub incomplete_from: Option<u32>,
}

/// Ranges of addresses, first byte to last byte. They neither overlap nor touch each other.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn insert(&mut self, mut low: u64, mut high: u64) {
        while let Some((&from, &to)) = self.0.range(..=high.saturating_add(1)).next_back()
            && to.saturating_add(1) >= low
        {
            self.0.remove(&from);
            (low, high) = (low.min(from), high.max(to));
        }
        self.0.insert(low, high);
    }

    fn remove(&mut self, low: u64, high: u64) {
        while let Some((&from, &to)) = self.0.range(..=high).next_back()
            && to >= low
        {
            self.0.remove(&from);
            if to > high {
                self.0.insert(high + 1, to);
            }
            if from < low {
                self.0.insert(from, low - 1);
            }
        }
    }

    fn gaps(&self, low: u64, high: u64, mut each: impl FnMut(u64, u64)) {
        let mut next = Some(low);
        let before = self.0.range(..low).next_back();
        for (&from, &to) in before.into_iter().chain(self.0.range(low..=high)) {
            let Some(at) = next.filter(|at| *at <= high) else { return };
            if from > at {
                each(at, from - 1);
            }
            next = to.checked_add(1).map(|end| end.max(at));
        }
        if let Some(at) = next.filter(|at| *at <= high) {
            each(at, high);
        }
    }
}

const fn is_load(kind: SiteKind) -> bool {
    matches!(kind, SiteKind::Load | SiteKind::CopyFrom)
}

pub(super) struct Writes<'t> {
    trace: &'t TraceFile,
    /// Buffers that were created after the first launch, in this order. `come` of them exist.
    later: Vec<&'t BufferInfo>,
    come: usize,
    written: Ranges,
    steps: u64,
    unwritten: Option<BTreeMap<u32, UnwrittenFigures>>,
    incomplete_from: Option<u32>,
}

impl<'t> Writes<'t> {
    /// Starts before the first launch. `sees_all` is true if all warps are selected.
    pub(super) fn new(trace: &'t TraceFile, sees_all: bool) -> Self {
        let mut later: Vec<&BufferInfo> =
            trace.buffers().into_iter().flatten().filter(|buffer| buffer.first > 0).collect();
        later.sort_unstable_by_key(|buffer| (buffer.first, buffer.number));
        let unwritten = (sees_all && trace.buffers().is_some()).then(BTreeMap::new);
        Self { trace, later, come: 0, written: Ranges::default(), steps: 0, unwritten, incomplete_from: None }
    }

    pub(super) fn end_launch(&mut self, launch: u32, map: Option<&BufferMap<'_>>, spans: Spans) {
        self.steps = self.steps.saturating_add(spans.steps);
        if spans.is_too_much || self.steps > MAX_STEPS || self.incomplete_from.is_some() {
            self.incomplete_from.get_or_insert(launch);
            return;
        }
        let mut spans = spans.spans;
        spans.sort_unstable();
        let map = map.filter(|_| !self.later.is_empty());
        let is_done = map.is_none_or(|map| self.read(launch, map, &spans));
        if !is_done || self.written.0.len() > MAX_RANGES {
            self.incomplete_from = Some(launch);
        }
    }

    /// Finds bytes of later buffers that are read and not yet written. Returns false above the step limit.
    fn read(&mut self, launch: u32, map: &BufferMap<'_>, spans: &[Span]) -> bool {
        let Some(unwritten) = &mut self.unwritten else { return true };
        while let Some(buffer) = self.later.get(self.come).filter(|buffer| buffer.first <= launch) {
            self.written.remove(buffer.address, buffer.address.saturating_add(buffer.bytes - 1));
            self.come += 1;
        }
        let mut reads: Vec<(u64, u64, &BufferInfo)> = Vec::new();
        for span in spans {
            let Some(site) = self.trace.site(span.site) else { continue };
            let mut at = Some(span.low);
            while let Some(low) = at.filter(|low| *low <= span.high)
                && let AddressPlace::In(buffer, offset) = map.at(low)
            {
                let high = span.high.min(low.saturating_add(buffer.bytes - offset - 1));
                if buffer.first > 0 {
                    if is_load(site.kind) {
                        reads.push((low, high, buffer));
                    } else {
                        self.written.insert(low, high);
                    }
                }
                at = high.checked_add(1);
            }
        }
        for (low, high, buffer) in reads {
            let (mut bytes, mut first) = (0, None);
            self.written.gaps(low, high, |from, to| {
                bytes += to - from + 1;
                first.get_or_insert(from);
            });
            let Some(first) = first else { continue };
            self.written.insert(low, high);
            let found = match unwritten.entry(buffer.number) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    self.steps += spans.len() as u64;
                    if self.steps > MAX_STEPS {
                        return false;
                    }
                    let is_read = |site| matches!(self.trace.site(site), Some(info) if is_load(info.kind));
                    let has_it = |span: &&Span| span.low <= first && first <= span.high && is_read(span.site);
                    let by = spans.iter().filter(has_it).map(|span| (span.warp, span.site)).min();
                    let by = TouchedBy::new(self.trace, launch, by.unwrap_or_default());
                    let (number, offset) = (buffer.number, first - buffer.address);
                    entry.insert(UnwrittenFigures { buffer: number, bytes: 0, offset, first: by })
                }
            };
            found.bytes += bytes;
        }
        true
    }

    pub(super) fn finish(self) -> UnwrittenReads {
        let buffers = self.unwritten.map(|found| found.into_values().collect());
        UnwrittenReads { buffers, incomplete_from: self.incomplete_from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> impl FnMut(u64) -> u64 {
        let mut state = 1_u64;
        move |below| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) % below
        }
    }

    #[test]
    fn ranges_are_the_bytes_that_were_put_in() {
        let mut next = numbers();
        let (mut ranges, mut bytes) = (Ranges::default(), [false; 64]);
        for _ in 0..5000 {
            let low = next(64);
            let high = (low + next(9)).min(63);
            let is_in = next(2) == 0;
            if is_in {
                ranges.insert(low, high);
            } else {
                ranges.remove(low, high);
            }
            bytes[low as usize..=high as usize].fill(is_in);
            let low = next(64);
            let high = (low + next(30)).min(63);
            let mut missing = Vec::new();
            ranges.gaps(low, high, |from, to| missing.extend(from..=to));
            let expected: Vec<u64> = (low..=high).filter(|at| !bytes[*at as usize]).collect();
            assert_eq!(missing, expected, "{low} to {high} of {ranges:?}");
            let starts = (0..64).filter(|&at| bytes[at] && (at == 0 || !bytes[at - 1])).count();
            assert_eq!(ranges.0.len(), starts, "none follows another: {ranges:?}");
        }
        let mut ranges = Ranges::default();
        ranges.insert(u64::MAX - 1, u64::MAX);
        ranges.insert(0, 0);
        let mut missing = Vec::new();
        ranges.gaps(0, u64::MAX, |from, to| missing.push((from, to)));
        assert_eq!(missing, [(1, u64::MAX - 2)]);
        ranges.remove(u64::MAX, u64::MAX);
        assert_eq!(ranges.0, BTreeMap::from([(0, 0), (u64::MAX - 1, u64::MAX - 1)]));
    }
}
