//! Accesses by buffer, and accesses outside of all buffers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::order::OrderItems;
use serde::{Serialize, Serializer};
use warptrace_decoder::{AddressPlace, BufferMap, TraceFile, VectorRun, extent};
use warptrace_format::data::LaneRun;
use warptrace_format::file::data::lanes;
use warptrace_format::file::{BufferInfo, SiteInfo, SiteKind, SiteSpace};

use super::AccessCounts;
use super::requests::{Request, SECTOR_BYTES, sectors};
use super::unwritten::TouchedBy;

/// Parts of a buffer with separate access counts.
pub const HEAT_PARTS: usize = 64;
const CELLS: u64 = 4096;
/// Buffers with numbers below this have heat and touched parts. The limit bounds memory.
const HEAT_BUFFERS: u32 = 1 << 14;

/// Accesses of a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BufferFigures {
    /// Number of the buffer.
    pub buffer: u32,
    /// Name in the program; may be empty.
    pub name: String,
    /// Kind: `device`, `managed`, `host`, `pool`, `variable` or `mapped`.
    pub kind: &'static str,
    /// Address of its first byte, a decimal string in JSON.
    #[serde(serialize_with = "as_text")]
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// First launch during its lifetime.
    pub first_launch: u32,
    /// First launch after its lifetime; `None` if it lived to the end.
    pub end_launch: Option<u32>,
    /// First access by launch, warp and site. In time, another access may have been earlier.
    pub first: TouchedBy,
    /// Accesses, one per lane.
    pub accesses: u64,
    /// Loads, and reads of asynchronous copies.
    pub loads: u64,
    /// Stores, and writes of asynchronous copies.
    pub stores: u64,
    /// Atomics.
    pub atomics: u64,
    /// Requests with accesses of the buffer.
    pub requests: u64,
    /// 32-byte sectors of the buffer that these requests touched.
    pub sectors: u64,
    /// Minimum number of sectors that could hold the used bytes.
    pub least_sectors: u64,
    /// Bytes of each tracked part. `None`, as for `touched_bytes` and `heat`, for buffer numbers from 2^14.
    pub part_bytes: Option<u64>,
    /// Bytes of the parts that were accessed, an upper bound of the accessed bytes.
    pub touched_bytes: Option<u64>,
    /// Accesses by 64th of the buffer, at the first byte of each access.
    pub heat: Option<Vec<u64>>,
}

pub(super) fn as_text<S: Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(address)
}

/// Accesses of a site outside of all buffers. Only if all buffers are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutsideFigures {
    /// Number of the site.
    pub site: u16,
    /// Kind of the site.
    pub kind: &'static str,
    /// Source file.
    pub file: String,
    /// Line; 0 if unknown.
    pub line: u32,
    /// Accesses, one per lane.
    pub accesses: u64,
    /// Launch of the first access, ordered by launch, warp and lane.
    pub launch: u32,
    /// Linear index of its warp in the launch.
    pub warp: u32,
    /// Lane of the first access.
    pub lane: u32,
    /// Address of the first access, a decimal string in JSON.
    #[serde(serialize_with = "as_text")]
    pub address: u64,
    /// Bytes per lane.
    pub bytes: u32,
    /// Number of the nearest buffer; `None` if there are no buffers.
    pub nearest: Option<u32>,
    /// Bytes by which the access exceeds the buffer's end, or, negative, starts before the buffer.
    pub distance: Option<i64>,
}

#[derive(Clone)]
struct Heat {
    parts: [u64; HEAT_PARTS],
    cells: [u64; (CELLS / 64) as usize],
}

#[derive(Clone, Default)]
struct Tally {
    loads: u64,
    stores: u64,
    atomics: u64,
    requests: u64,
    sectors: u64,
    least_sectors: u64,
    first: (u32, u32, u16),
    heat: Option<Box<Heat>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct First {
    launch: u32,
    warp: u32,
    lane: u32,
    address: u64,
    nearest: Option<(u32, i64)>,
}

#[derive(Default)]
pub(super) struct BufferSums {
    buffers: BTreeMap<u32, Tally>,
    outside: BTreeMap<u16, (u64, First)>,
    unknown: u64,
}

pub(super) struct Of<'m> {
    pub(super) map: &'m BufferMap<'m>,
    pub(super) launch: u32,
    pub(super) warp: u32,
}

fn cell_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(CELLS).next_power_of_two().max(SECTOR_BYTES)
}

fn part_of(offset: u64, bytes: u64) -> usize {
    (u128::from(offset) * HEAT_PARTS as u128 / u128::from(bytes.max(1))).min(HEAT_PARTS as u128 - 1) as usize
}

impl Heat {
    fn new() -> Box<Self> {
        Box::new(Self { parts: [0; HEAT_PARTS], cells: [0; (CELLS / 64) as usize] })
    }

    /// Adds a run inside the buffer. `run.base` is an offset.
    fn add(&mut self, run: LaneRun, each: u64, bytes: u64) {
        let Some((low, high)) = extent(run, each) else { return };
        let (first, last) = (part_of(low, bytes), part_of(high + 1 - each, bytes));
        if first == last {
            self.parts[first] += u64::from(run.count);
        } else {
            // At most 1,023.
            (0..run.count).for_each(|number| self.parts[part_of(run.nth(number), bytes)] += 1);
        }
        let cell = cell_bytes(bytes);
        if u64::from(run.step.unsigned_abs()) <= cell {
            self.mark(low / cell, high / cell);
        } else {
            (0..run.count).for_each(|number| {
                let at = run.nth(number);
                self.mark(at / cell, (at + each - 1) / cell);
            });
        }
    }

    fn mark(&mut self, first: u64, last: u64) {
        for word in first / 64..=last / 64 {
            let from = if word == first / 64 { first % 64 } else { 0 };
            let to = if word == last / 64 { last % 64 } else { 63 };
            if let Some(cells) = self.cells.get_mut(word as usize) {
                *cells |= (u64::MAX >> (63 - to)) & (u64::MAX << from);
            }
        }
    }

    fn touched(&self, bytes: u64) -> u64 {
        let cell = cell_bytes(bytes);
        let marked = self.cells.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        let last = (bytes - 1) / cell;
        let is_last = self.cells.get((last / 64) as usize).is_some_and(|word| word >> (last % 64) & 1 == 1);
        marked * cell - if is_last { (last + 1) * cell - bytes } else { 0 }
    }
}

impl BufferSums {
    /// Adds a run of vectors of a site of global memory. `counts` are its requests and sectors.
    pub(super) fn push(
        &mut self,
        of: &Of<'_>,
        vector: &VectorRun<'_>,
        site: &SiteInfo,
        counts: &AccessCounts,
    ) {
        let is_global = matches!(site.space, SiteSpace::Global | SiteSpace::Generic);
        if !is_global || !site.kind.is_memory() {
            return;
        }
        let bytes = u64::from(site.bytes.max(1));
        let touched = (of.launch, of.warp, site.number);
        let runs = lanes(vector.group.mask).filter_map(|lane| Some((lane, vector.run(lane)?)));
        let runs: Vec<(u32, LaneRun)> = runs.collect();
        // Most runs are in one buffer.
        let mut found = runs.iter().map(|(_, run)| of.map.of_run(*run, bytes));
        let first = found.next().flatten();
        let is_first =
            |other: Option<&BufferInfo>| other.zip(first).is_some_and(|(a, b)| a.number == b.number);
        let is_in_one = first.filter(|_| found.all(is_first));
        if let Some(buffer) = is_in_one {
            let tally = self.tally(buffer.number, touched);
            tally.requests += counts.requests;
            tally.sectors += counts.sectors;
            tally.least_sectors += counts.least_sectors;
            for (_, run) in runs {
                let base = run.base - buffer.address;
                tally.add(LaneRun { base, ..run }, site.kind, bytes, buffer.bytes);
            }
            return;
        }
        let is_outside = |base| of.map.outside(LaneRun { base, step: 0, count: 1 }, bytes) > 0;
        // Splits each request. There are at most 1,023.
        let mut request: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        for number in 0..vector.vectors() {
            request.clear();
            for (lane, run) in runs.iter().filter(|(_, run)| number < run.count) {
                let address = run.nth(number);
                match of.map.at(address) {
                    AddressPlace::In(buffer, offset) if bytes <= buffer.bytes - offset => {
                        let one = LaneRun { base: offset, step: 0, count: 1 };
                        self.tally(buffer.number, touched).add(one, site.kind, bytes, buffer.bytes);
                        request.entry(buffer.number).or_default().push((*lane, address));
                    }
                    // Generic addresses can be in shared or local memory.
                    _ if site.space == SiteSpace::Generic || !is_outside(address) => self.unknown += 1,
                    place => self.add_outside(of, place, (*lane, address), site),
                }
            }
            for (buffer, lanes) in &request {
                self.tally(*buffer, touched).add_request(lanes, bytes);
            }
        }
    }

    fn tally(&mut self, buffer: u32, touched: (u32, u32, u16)) -> &mut Tally {
        let heat = || (buffer < HEAT_BUFFERS).then(Heat::new);
        let new = || Tally { heat: heat(), first: touched, ..Tally::default() };
        let tally = self.buffers.entry(buffer).or_insert_with(new);
        tally.first = tally.first.min(touched);
        tally
    }

    fn add_outside(
        &mut self,
        of: &Of<'_>,
        place: AddressPlace<'_>,
        (lane, address): (u32, u64),
        site: &SiteInfo,
    ) {
        let bytes = u64::from(site.bytes.max(1));
        let clamped = |distance: i128| i64::try_from(distance).unwrap_or(i64::MAX);
        let (count, first) = match self.outside.entry(site.number) {
            Entry::Occupied(entry) if entry.get().1.is_before(of, lane) => {
                entry.into_mut().0 += 1;
                return;
            }
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let (launch, warp) = (of.launch, of.warp);
                entry.insert((0, First { launch, warp, lane, address, nearest: None }))
            }
        };
        *count += 1;
        let nearest = match place {
            AddressPlace::In(buffer, offset) => {
                let beyond = i128::from(offset) + i128::from(bytes) - i128::from(buffer.bytes);
                Some((buffer.number, clamped(beyond)))
            }
            _ => of.map.nearest(address).map(|(buffer, distance)| {
                let beyond = if distance > 0 { distance + i128::from(bytes) - 1 } else { distance };
                (buffer.number, clamped(beyond))
            }),
        };
        *first = First { launch: of.launch, warp: of.warp, lane, address, nearest };
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (number, tally) in other.buffers {
            match self.buffers.entry(number) {
                Entry::Vacant(entry) => drop(entry.insert(tally)),
                Entry::Occupied(mut entry) => entry.get_mut().merge(&tally),
            }
        }
        for (site, (count, first)) in other.outside {
            let (sum, known) = self.outside.entry(site).or_insert((0, first));
            *sum += count;
            *known = (*known).min(first);
        }
        self.unknown += other.unknown;
    }

    pub(super) fn finish(self, trace: &TraceFile) -> (Vec<BufferFigures>, Vec<OutsideFigures>, u64) {
        let figures = |(number, tally): (u32, Tally)| {
            let info = trace.buffer(number)?;
            let heat = tally.heat.as_deref();
            Some(BufferFigures {
                buffer: number,
                name: info.name.clone(),
                kind: info.kind.name(),
                address: info.address,
                bytes: info.bytes,
                first_launch: info.first,
                end_launch: info.end,
                first: TouchedBy::new(trace, tally.first.0, (tally.first.1, tally.first.2)),
                accesses: tally.loads + tally.stores + tally.atomics,
                loads: tally.loads,
                stores: tally.stores,
                atomics: tally.atomics,
                requests: tally.requests,
                sectors: tally.sectors,
                least_sectors: tally.least_sectors,
                part_bytes: heat.map(|_| cell_bytes(info.bytes)),
                touched_bytes: heat.map(|heat| heat.touched(info.bytes)),
                heat: heat.map(|heat| heat.parts.to_vec()),
            })
        };
        let mut buffers: Vec<BufferFigures> = self.buffers.into_iter().filter_map(figures).collect();
        buffers.order_by_key(|figures| (std::cmp::Reverse(figures.accesses), figures.buffer));
        let outside = self.outside.into_iter().map(|(number, (accesses, first))| {
            let site = trace.site(number);
            let First { launch, warp, lane, address, nearest } = first;
            OutsideFigures {
                site: number,
                kind: site.map_or("", |site| site.kind.name()),
                file: site.map_or_else(String::new, |site| site.file.clone()),
                line: site.map_or(0, |site| site.line),
                accesses,
                launch,
                warp,
                lane,
                address,
                bytes: site.map_or(0, |site| site.bytes),
                nearest: nearest.map(|(buffer, _)| buffer),
                distance: nearest.map(|(_, distance)| distance),
            }
        });
        let mut outside: Vec<OutsideFigures> = outside.collect();
        outside.order_by_key(|found| (found.launch, found.warp, found.lane, found.site));
        (buffers, outside, self.unknown)
    }
}

impl First {
    const fn is_before(&self, of: &Of<'_>, lane: u32) -> bool {
        let (a, b) = ((self.launch, self.warp, self.lane), (of.launch, of.warp, lane));
        a.0 < b.0 || a.0 == b.0 && (a.1 < b.1 || a.1 == b.1 && a.2 <= b.2)
    }
}

impl Tally {
    fn add(&mut self, run: LaneRun, kind: SiteKind, each: u64, bytes: u64) {
        let of_kind = match kind {
            SiteKind::Load | SiteKind::CopyFrom => &mut self.loads,
            SiteKind::Store | SiteKind::CopyTo => &mut self.stores,
            _ => &mut self.atomics,
        };
        *of_kind += u64::from(run.count);
        if let Some(heat) = &mut self.heat {
            heat.add(run, each, bytes);
        }
    }

    fn add_request(&mut self, request: &Request, bytes: u64) {
        let (touched, used) = sectors(request, bytes);
        self.requests += 1;
        self.sectors += touched;
        self.least_sectors += used.div_ceil(SECTOR_BYTES);
    }

    fn merge(&mut self, other: &Self) {
        let Self { loads, stores, atomics, requests, sectors, least_sectors, first, heat } = other;
        self.first = self.first.min(*first);
        self.loads += loads;
        self.stores += stores;
        self.atomics += atomics;
        self.requests += requests;
        self.sectors += sectors;
        self.least_sectors += least_sectors;
        if let (Some(own), Some(other)) = (&mut self.heat, heat) {
            own.parts.iter_mut().zip(&other.parts).for_each(|(own, other)| *own += other);
            own.cells.iter_mut().zip(&other.cells).for_each(|(own, other)| *own |= other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(run: LaneRun, each: u64, bytes: u64) {
        let (mut at_once, mut singly) = (Heat::new(), Heat::new());
        at_once.add(run, each, bytes);
        for number in 0..run.count {
            singly.add(LaneRun { base: run.nth(number), step: 0, count: 1 }, each, bytes);
        }
        assert_eq!((at_once.parts, at_once.cells), (singly.parts, singly.cells), "{run:?} {each} {bytes}");
        assert_eq!(at_once.parts.iter().sum::<u64>(), u64::from(run.count));
    }

    #[test]
    fn heat_of_a_run_is_that_of_its_accesses() {
        for bytes in [1 << 12, 5000, 1 << 20, (1 << 34) + 13] {
            for step in [0, 4, -4, 31, 32, 100, -4096] {
                let count = (bytes / 2 / u64::from(i32::unsigned_abs(step)).max(1)).clamp(1, 1000) as u32;
                check(LaneRun { base: bytes / 2 - 2, step, count }, 4, bytes);
            }
        }
        let mut heat = Heat::new();
        heat.add(LaneRun { base: 0, step: 4, count: 25 }, 4, 100);
        assert_eq!(heat.touched(100), 100, "the last part is shorter");
        assert_eq!((part_of(99, 100), part_of(0, 1), part_of(u64::MAX - 1, u64::MAX)), (63, 0, 63));
    }
}
