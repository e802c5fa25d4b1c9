//! Memory accesses by site: the memory traffic of requests, and the patterns of their addresses.

pub(crate) mod buffers;
pub(crate) mod changes;
pub(crate) mod requests;
pub(crate) mod rows;
mod spans;
pub(crate) mod unwritten;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::order::OrderItems;
use rustc_hash::FxHashMap;
use serde::Serialize;
use warptrace_decoder::{BufferMap, TraceFile, VectorRun, WarpAccesses};
use warptrace_format::file::{SiteInfo, SiteKind, SiteSpace};

use crate::error::AnalysisError;
use crate::selection::Selection;
use buffers::{BufferFigures, BufferSums, Of, OutsideFigures};
use requests::{SECTOR_BYTES, each_request, passes, sectors};
use spans::Spans;
use unwritten::{UnwrittenReads, Writes};

/// Limit of distinct strides per site. Further strides are not counted.
const MAX_STRIDES: usize = 1 << 12;

/// Accesses of a site, or of the sites of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AccessCounts {
    /// Accesses, one per lane.
    pub lanes: u64,
    /// Requests: accesses of several lanes at once.
    pub requests: u64,
    /// Requests with one address, or value, in all lanes.
    pub uniform: u64,
    /// Requests with addresses that are affine in the lane.
    pub affine: u64,
    /// All other requests.
    pub generic: u64,
    /// 32-byte sectors of global memory that the requests touched; 0 in other memory.
    pub sectors: u64,
    /// Minimum number of sectors that could hold the used bytes of each request.
    pub least_sectors: u64,
    /// Bytes in the touched sectors.
    pub moved_bytes: u64,
    /// Bytes in these sectors that lanes used.
    pub used_bytes: u64,
    /// Passes through the banks of shared memory; 0 for other memory, atomics, and above 16 bytes per lane.
    pub passes: u64,
    /// Minimum number of passes.
    pub least_passes: u64,
}

impl AccessCounts {
    fn add(&mut self, other: &Self) {
        let Self { lanes, requests, uniform, affine, generic, sectors, least_sectors, .. } = other;
        self.lanes += lanes;
        self.requests += requests;
        self.uniform += uniform;
        self.affine += affine;
        self.generic += generic;
        self.sectors += sectors;
        self.least_sectors += least_sectors;
        self.moved_bytes += other.moved_bytes;
        self.used_bytes += other.used_bytes;
        self.passes += other.passes;
        self.least_passes += other.least_passes;
    }

    /// Returns the bytes moved in excess of the minimum number of sectors.
    #[must_use]
    pub const fn wasted_bytes(&self) -> u64 {
        SECTOR_BYTES * self.sectors.saturating_sub(self.least_sectors)
    }

    /// Returns the passes in excess of the minimum.
    #[must_use]
    pub const fn wasted_passes(&self) -> u64 {
        self.passes.saturating_sub(self.least_passes)
    }
}

/// Accesses of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SiteFigures {
    /// Number of the site.
    pub site: u16,
    /// Kind: `load`, `store`, ...; empty if the table does not have the site.
    pub kind: &'static str,
    /// State space: `global`, `shared`, ...
    pub space: &'static str,
    /// Bytes per lane.
    pub bytes: u32,
    /// Elements of a vector.
    pub elements: u32,
    /// Cache operator; empty if there is none.
    pub cache: String,
    /// Name of a value.
    pub name: String,
    /// Site that this one is derived from; `None` if its accesses were recorded.
    pub root: Option<u16>,
    /// Location whose events execute the site; 0 if there is none.
    pub location: u16,
    /// Source file.
    pub file: String,
    /// Line; 0 if unknown.
    pub line: u32,
    /// Counts of the accesses.
    pub counts: AccessCounts,
    /// Most frequent difference between neighbouring lanes, and the number of affine requests with it.
    pub stride: Option<(i64, u64)>,
    /// Events of the site's location in the same warps; `None` without location, with predicate or losses.
    pub events: Option<u64>,
    /// True if these events have as many lanes as the site has accesses; `None` as for `events`.
    pub fits_events: Option<bool>,
}

/// Accesses of the sites of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AccessLine {
    /// Source file.
    pub file: String,
    /// Line; 0 if unknown.
    pub line: u32,
    /// Sites on the line.
    pub sites: Vec<u16>,
    /// Sums over the sites.
    pub counts: AccessCounts,
}

/// Accesses of warps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Accesses {
    /// Accessed sites, by number.
    pub sites: Vec<SiteFigures>,
    /// Lines, by wasted bytes, then by wasted passes, descending.
    pub lines: Vec<AccessLine>,
    /// Accessed buffers of global memory, by accesses, descending. Empty if the trace has no buffers.
    pub buffers: Vec<BufferFigures>,
    /// Accesses outside of all buffers, by first access. Empty unless all buffers are known.
    pub outside: Vec<OutsideFigures>,
    /// Accesses of global or generic memory whose buffer is unknown; `None` if the trace has no buffers.
    pub unknown_buffer: Option<u64>,
    /// Known accesses of all sites, recorded or derived.
    pub accesses: u64,
    /// Accesses of the selected warps that were lost during recording.
    pub lost: u64,
    /// True if `lost` is a lower bound, because it does not include derived accesses.
    pub lost_is_least: bool,
    /// Accesses in the file that are left out, because other accesses of the same time were lost.
    pub left_out: u64,
    /// Accesses in the file that belong to no group: the file is damaged.
    pub unmatched: u64,
    /// Entries in the file that no kernel writes: the file is damaged.
    pub damaged: u64,
}

impl Accesses {
    /// Returns true if all accesses are known.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.lost == 0 && self.left_out == 0 && self.unmatched == 0 && self.damaged == 0
    }

    /// Returns true if all sites have as many requests as events. Otherwise, requests, sectors and passes are
    /// partly estimated: lanes whose runs of equal steps end together are assumed to access together.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.sites.iter().all(|site| site.events == Some(site.counts.requests))
    }

    /// Returns the sites on a line.
    pub fn sites_of<'a>(&'a self, line: &'a AccessLine) -> impl Iterator<Item = &'a SiteFigures> {
        self.sites.iter().filter(|site| line.sites.contains(&site.site))
    }
}

#[derive(Default)]
struct Tally {
    counts: AccessCounts,
    strides: FxHashMap<i64, u64>,
}

impl Tally {
    fn push(&mut self, vector: &VectorRun<'_>, site: Option<&SiteInfo>) -> AccessCounts {
        let added = self.counts_of(vector, site);
        self.counts.add(&added);
        added
    }

    fn counts_of(&mut self, vector: &VectorRun<'_>, site: Option<&SiteInfo>) -> AccessCounts {
        let mut found = AccessCounts::default();
        let counts = &mut found;
        let (vectors, lanes) = (u64::from(vector.vectors()), vector.group.mask.count_ones());
        counts.lanes += vector.accesses();
        counts.requests += vectors;
        match vector.group.spread {
            Some(0) => counts.uniform += vectors,
            Some(_) => counts.affine += vectors,
            None => counts.generic += vectors,
        }
        if let Some(spread) = vector.group.spread
            && lanes > 1
        {
            let width = i64::from(31 - vector.group.mask.leading_zeros() - vector.group.leader());
            // With gaps between the lanes, the stride may not be a whole number.
            let stride = i64::from(spread) / width;
            if self.strides.len() < MAX_STRIDES || self.strides.contains_key(&stride) {
                *self.strides.entry(stride).or_default() += vectors;
            }
        }
        let Some(SiteInfo { kind, space, bytes, .. }) = site else { return found };
        let bytes = u64::from(*bytes);
        match (kind, space) {
            (SiteKind::Value, _) => {}
            (_, SiteSpace::Global | SiteSpace::Generic) => {
                each_request(vector, SECTOR_BYTES, |request, times| {
                    let (sectors, used) = sectors(request, bytes);
                    counts.sectors += sectors * times;
                    counts.least_sectors += used.div_ceil(SECTOR_BYTES) * times;
                    counts.moved_bytes += sectors * SECTOR_BYTES * times;
                    counts.used_bytes += used * times;
                });
            }
            // Atomics and copies of whole rows use the banks in different ways.
            (SiteKind::Atomic | SiteKind::Reduction, _) => {}
            _ if bytes > 16 => {}
            (_, SiteSpace::Shared | SiteSpace::Cluster) => {
                // Words move from bank to bank together.
                each_request(vector, 4, |request, times| {
                    let (passes, least) = passes(request, bytes);
                    counts.passes += passes * times;
                    counts.least_passes += least * times;
                });
            }
            _ => {}
        }
        found
    }

    fn add(&mut self, other: Self) {
        self.counts.add(&other.counts);
        for (stride, vectors) in other.strides {
            *self.strides.entry(stride).or_default() += vectors;
        }
    }

    fn stride(&self) -> Option<(i64, u64)> {
        let most =
            self.strides.iter().max_by_key(|(stride, vectors)| (**vectors, std::cmp::Reverse(**stride)));
        most.map(|(stride, vectors)| (*stride, *vectors))
    }
}

#[derive(Default)]
struct AccessSums {
    sites: BTreeMap<u16, Tally>,
    buffers: BufferSums,
    spans: Option<Spans>,
    found: Accesses,
}

impl AccessSums {
    fn push(&mut self, trace: &TraceFile, of: Option<&Of<'_>>, warp: &WarpAccesses) {
        self.found.accesses += warp.accesses();
        self.found.left_out += warp.left_out;
        self.found.unmatched += warp.unmatched;
        self.found.damaged += u64::from(warp.damaged);
        for site in &warp.sites {
            let (tally, info) = (self.sites.entry(site.site).or_default(), trace.site(site.site));
            for (group, runs) in site.each_group() {
                let vector = VectorRun { site: site.site, time: 0, group, runs };
                let counts = tally.push(&vector, info);
                if let (Some(of), Some(info)) = (of, info) {
                    self.buffers.push(of, &vector, info, &counts);
                }
            }
            if let (Some(spans), Some(info)) = (&mut self.spans, info) {
                spans.push(of, warp.warp, info, site);
            }
        }
    }

    fn merge(mut self, other: Self) -> Self {
        for (site, tally) in other.sites {
            self.sites.entry(site).or_default().add(tally);
        }
        self.buffers.merge(other.buffers);
        if let (Some(spans), Some(other)) = (&mut self.spans, other.spans) {
            spans.merge(other);
        }
        let Accesses { accesses, left_out, unmatched, damaged, .. } = other.found;
        self.found.accesses += accesses;
        self.found.left_out += left_out;
        self.found.unmatched += unmatched;
        self.found.damaged += damaged;
        self
    }
}

fn sum_events(mut a: BTreeMap<u16, (u64, u64)>, b: BTreeMap<u16, (u64, u64)>) -> BTreeMap<u16, (u64, u64)> {
    for (location, (events, lanes)) in b {
        let of = a.entry(location).or_default();
        (of.0, of.1) = (of.0 + events, of.1 + lanes);
    }
    a
}

/// Computes the accesses of the sites of a trace, without expanding affine vectors or equal steps. Fails if
/// the trace lacks a selected item, cannot be read, or exceeds the work limit for its length.
pub fn accesses(trace: &TraceFile, selection: &Selection) -> Result<Accesses, AnalysisError> {
    Ok(walk(trace, selection, None)?.0)
}

/// Like [`accesses`], with reads of bytes that no access in the trace had written. Memory: for one launch, up
/// to 2^20 spans of addresses per thread, each of a warp and a site, and 2^20 written ranges. Beyond these
/// limits, reads are [incomplete](UnwrittenReads::incomplete_from).
pub fn accesses_with_unwritten(
    trace: &TraceFile,
    selection: &Selection,
) -> Result<(Accesses, UnwrittenReads), AnalysisError> {
    walk(trace, selection, Some(Writes::new(trace, *selection == Selection::default())))
}

fn walk(
    trace: &TraceFile,
    selection: &Selection,
    mut writes: Option<Writes<'_>>,
) -> Result<(Accesses, UnwrittenReads), AnalysisError> {
    let mut all = AccessSums::default();
    let has_spans = writes.is_some();
    let mut events: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    let mut map = BufferMap::of_trace(trace);
    for (info, filter) in selection.launches(trace)? {
        if !trace.has_accesses() {
            break;
        }
        let launch = info.number();
        if let Some(map) = &mut map {
            map.go_to(launch);
        }
        let push = |sums: &mut AccessSums, warp: &WarpAccesses| {
            if selection.has_warp(&info, warp.warp) {
                let of = map.as_ref().map(|map| Of { map, launch, warp: warp.warp });
                sums.push(trace, of.as_ref(), warp);
            }
        };
        let new = || AccessSums { spans: has_spans.then(Spans::default), ..AccessSums::default() };
        let mut of_launch = trace.fold_accesses(launch, &filter, new, push, AccessSums::merge)?;
        if let (Some(writes), Some(spans)) = (&mut writes, of_launch.spans.take()) {
            writes.end_launch(launch, map.as_ref(), spans);
        }
        all = all.merge(of_launch);
        all.found.lost += selection.lost_accesses(trace, &info)?;
        let count = |counts: &mut BTreeMap<u16, (u64, u64)>,
                     class: &warptrace_decoder::WarpClass,
                     found: warptrace_decoder::WarpItem<'_>| {
            let times = u64::from(found.item.times()) * class.warps();
            for event in found.item.body() {
                let (events, lanes) = counts.entry(event.location).or_default();
                *events += times;
                *lanes += times * u64::from(event.mask.count_ones());
            }
            ControlFlow::Continue(())
        };
        let group = |warps| {
            let (end, has_first) = selection.has_first(&info, &warps);
            (end, has_first.then_some(0))
        };
        let of_launch = trace.fold_items((launch, 0), &filter, group, BTreeMap::new, count, sum_events)?;
        events = sum_events(events, of_launch.unwrap_or_default());
    }
    let AccessSums { sites, buffers, mut found, .. } = all;
    let (buffers, outside, unknown) = buffers.finish(trace);
    (found.buffers, found.outside) = (buffers, outside);
    found.unknown_buffer = map.is_some().then_some(unknown);
    found.lost_is_least = found.lost > 0 && trace.derived_sites() > 0;
    let is_whole = found.is_whole() && trace.state().is_whole;
    for (number, tally) in sites {
        let stride = tally.stride();
        let counts = tally.counts;
        let info = trace.site(number);
        let location = info.map_or(0, |info| info.location);
        let of_location = events.get(&location).copied().unwrap_or_default();
        let is_told = is_whole && info.is_some_and(|info| info.location != 0 && !info.is_predicated);
        found.sites.push(SiteFigures {
            site: number,
            kind: info.map_or("", |info| info.kind.name()),
            space: info.map_or("", |info| info.space.name()),
            bytes: info.map_or(0, |info| info.bytes),
            elements: info.map_or(0, |info| info.elements),
            cache: info.map_or_else(String::new, |info| info.cache.clone()),
            name: info.map_or_else(String::new, |info| info.name.clone()),
            root: info.and_then(|info| info.derived).map(|derived| derived.root),
            location,
            file: info.map_or_else(String::new, |info| info.file.clone()),
            line: info.map_or(0, |info| info.line),
            stride,
            events: is_told.then_some(of_location.0),
            fits_events: is_told.then_some(of_location.1 == counts.lanes),
            counts,
        });
    }
    found.lines = lines(&found.sites);
    Ok((found, writes.map(Writes::finish).unwrap_or_default()))
}

fn lines(sites: &[SiteFigures]) -> Vec<AccessLine> {
    let mut lines: BTreeMap<(&str, u32), AccessLine> = BTreeMap::new();
    for site in sites {
        let empty = || AccessLine {
            file: site.file.clone(),
            line: site.line,
            sites: Vec::new(),
            counts: AccessCounts::default(),
        };
        let line = lines.entry((&site.file, site.line)).or_insert_with(empty);
        line.sites.push(site.site);
        line.counts.add(&site.counts);
    }
    let mut lines: Vec<AccessLine> = lines.into_values().collect();
    lines.order_by_key(|line| {
        let counts = &line.counts;
        std::cmp::Reverse((counts.wasted_bytes(), counts.wasted_passes(), counts.requests))
    });
    lines
}
