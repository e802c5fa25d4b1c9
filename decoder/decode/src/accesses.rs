//! Addresses and values: what each warp accessed, as vectors that go on in steps.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use rayon::prelude::*;
use warptrace_format::data::LaneRun;
use warptrace_format::file::data::{Group, PieceGroups, SiteGroups, decode_data, lanes};
use warptrace_format::file::{IndexEntry, LaunchInfo, SECTION_HEADER_BYTES, SiteInfo};

use crate::all::WarpFilter;
use crate::count::count;
use crate::derived::derive;
use crate::error::DecodeError;
use crate::file::{TraceFile, compare};
use crate::times::Clock;

/// Entries of several warps that are held at once.
const HELD_ENTRIES: usize = 1 << 20;
/// Entries of one warp.
const WARP_ENTRIES: usize = 1 << 24;
/// Steps for each entry: it is unpacked, put in its place, and looked at.
const STEPS_PER_ENTRY: u64 = 16;

/// Lanes that access a site together, again and again in equal steps.
///
/// That they did so together is told by that their runs of equal steps ended together. What each lane
/// accessed, and in which order, is exact.
#[derive(Clone, Copy, Debug)]
pub struct VectorRun<'a> {
    /// The site.
    pub site: u16,
    /// When the last one was over, in units of 16 cycles, from that of the warp's first on.
    pub time: u64,
    /// The lanes, and what their bases have in common.
    pub group: &'a Group,
    /// The run of the lowest lane, if the bases are on a line; else that of each lane.
    pub runs: &'a [LaneRun],
}

impl VectorRun<'_> {
    /// Returns the run of a lane; `None` if it is none of the group's.
    #[must_use]
    pub fn run(&self, lane: u32) -> Option<LaneRun> {
        self.group.run(self.runs, lane)
    }

    /// Returns how many vectors there are: as many as the longest run has accesses.
    #[must_use]
    pub fn vectors(&self) -> u32 {
        self.runs.iter().map(|run| run.count).max().unwrap_or(0)
    }

    /// Returns how many accesses there are, of all lanes.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        let sum: u64 = self.runs.iter().map(|run| u64::from(run.count)).sum();
        if self.group.spread.is_some() { sum * u64::from(self.group.mask.count_ones()) } else { sum }
    }
}

/// What is known of a warp's accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarpAccesses {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// By site, in ascending order; those that follow from recorded ones are there, too. All groups are
    /// whole, and none is loose.
    pub sites: Vec<SiteGroups>,
    /// Accesses that are left out, since something was lost when they were made: they cannot be told apart
    /// from what follows.
    pub left_out: u64,
    /// Accesses that fit to no group although nothing was lost.
    pub unmatched: u64,
    /// Whether a group lacks lanes although nothing was lost.
    pub has_gaps: bool,
    /// Entries that no kernel writes.
    pub damaged: u32,
    /// Chunks.
    pub chunks: u64,
    /// All accesses that the file has of the warp, left out or not.
    pub recorded: u64,
    /// Accesses that follow from these, left out or not.
    pub derived: u64,
}

impl WarpAccesses {
    /// Puts together what pieces hold of a warp, and what follows from it; `None` if that is too much.
    fn of(
        (warp, chunks): (u32, u64),
        PieceGroups { sites, cut, damaged }: PieceGroups,
        trace: &TraceFile,
    ) -> Option<Self> {
        let recorded = sites.iter().map(SiteGroups::accesses).sum();
        let mut found = Self { warp, damaged, chunks, recorded, ..Self::default() };
        let mut room = WARP_ENTRIES;
        for SiteGroups { site, groups, runs, loose } in sites {
            let followers = trace.followers.of_root(site);
            // Nothing is recorded of what follows from another site.
            let is_odd = trace.is_derived(site);
            let (mut kept, mut kept_runs) =
                (Vec::with_capacity(groups.len()), Vec::with_capacity(runs.len()));
            let (mut rest, mut lacking) = (&runs[..], 0);
            for group in groups {
                let (runs, after) = rest.split_at(rest.len().min(group.runs() as usize));
                rest = after;
                let is_before = cut.is_none_or(|cut| group.time.wrapping_sub(cut).cast_signed() < 0);
                if is_before && group.missing == 0 && !is_odd {
                    kept.push(group);
                    kept_runs.extend_from_slice(runs);
                    continue;
                }
                found.has_gaps |= cut.is_none();
                let each = if group.spread.is_some() { group.mask.count_ones() } else { 1 };
                lacking += runs.iter().map(|run| u64::from(run.count) * u64::from(each)).sum::<u64>();
            }
            lacking +=
                loose.iter().map(|(of, run)| u64::from(of.lanes()) * u64::from(run.count)).sum::<u64>();
            let is_lost = cut.is_some() && !is_odd;
            *(if is_lost { &mut found.left_out } else { &mut found.unmatched }) +=
                lacking * (1 + followers.len() as u64);
            let kept = SiteGroups { site, groups: kept, runs: kept_runs, loose: Vec::new() };
            found.derived += (kept.accesses() + lacking) * followers.len() as u64;
            for (site, rule) in followers {
                let derived = derive(&kept, *site, rule, room)?;
                room -= derived.entries();
                found.sites.push(derived);
            }
            if !is_odd {
                found.sites.push(kept);
            }
        }
        found.sites.sort_by_key(|site| site.site);
        Some(found)
    }

    /// Returns the vectors in the order of time; those of one time in the order of their sites.
    #[must_use]
    pub fn in_order(&self) -> Vec<VectorRun<'_>> {
        let first = self.sites.iter().filter_map(|site| site.groups.first()).map(|group| group.time);
        let earlier = |a: u32, b: u32| if b.wrapping_sub(a).cast_signed() < 0 { b } else { a };
        let Some(first) = first.reduce(earlier) else { return Vec::new() };
        let mut found = Vec::new();
        for site in &self.sites {
            let mut clock = Clock::beginning_at(first);
            found.extend(site.each_group().map(|(group, runs)| {
                let time = clock.at(group.time);
                VectorRun { site: site.site, time, group, runs }
            }));
        }
        found.sort_by_key(|vector| vector.time);
        found
    }

    /// Returns what a lane accessed at a site, in order.
    pub fn lane(&self, site: u16, lane: u32) -> impl Iterator<Item = u64> {
        let at = self.sites.binary_search_by_key(&site, |found| found.site).ok();
        let groups = at.into_iter().flat_map(|at| self.sites[at].each_group());
        let runs = groups.filter_map(move |(group, runs)| group.run(runs, lane));
        runs.flat_map(|run| (0..run.count).map(move |number| run.nth(number)))
    }

    /// Returns the lanes that accessed a site.
    #[must_use]
    pub fn lanes(&self, site: u16) -> u32 {
        let at = self.sites.binary_search_by_key(&site, |found| found.site);
        at.map_or(0, |at| self.sites[at].groups.iter().fold(0, |all, group| all | group.mask))
    }
}

/// A piece of a warp's stream: where its section is, its first chunk, how many, and what they hold.
type Held = (u64, u32, u32, PieceGroups);

impl TraceFile {
    /// Returns the number of the track of addresses and values: behind those of events.
    #[must_use]
    pub fn data_track(&self) -> u32 {
        count(self.metadata.tracks.len())
    }

    /// Returns whether addresses or values were recorded.
    #[must_use]
    pub fn has_accesses(&self) -> bool {
        let track = self.data_track();
        !self.sites.is_empty() || self.sections.keys().any(|(_, of)| *of == track)
    }

    /// The sites in the order of their numbers.
    pub fn sites(&self) -> impl ExactSizeIterator<Item = &SiteInfo> {
        self.sites.values()
    }

    /// The site with this number.
    #[must_use]
    pub fn site(&self, number: u16) -> Option<&SiteInfo> {
        self.sites.get(&number)
    }

    /// Returns how many sites there are whose accesses follow from those of others.
    #[must_use]
    pub fn derived_sites(&self) -> usize {
        self.sites.values().filter(|site| site.derived.is_some()).count()
    }

    /// Whether a site's accesses follow from those of another one, so that the file has none of its own.
    #[must_use]
    pub fn is_derived(&self, number: u16) -> bool {
        self.site(number).is_some_and(|site| site.derived.is_some())
    }

    /// The launch, if there is such a track, be it of events or of addresses and values.
    pub(crate) fn resolve_any(&self, launch: u32, track: u32) -> Result<&LaunchInfo, DecodeError> {
        if track == self.data_track() && self.has_accesses() {
            return self.launches.get(&launch).ok_or(DecodeError::UnknownLaunch { launch });
        }
        Ok(self.resolve(launch, track)?.0)
    }

    /// Gives the accesses of the warps that `filter` selects to `fold`, on all cores of rayon's current pool;
    /// else as [`fold_items`](Self::fold_items). Warps without accesses are left out.
    ///
    /// Memory: for each thread a section, and 2^20 entries of 24 bytes, of a single warp up to 2^24.
    ///
    /// # Errors
    /// The file has no such launch; a section is damaged or missing; the file asks for more work than its length lets
    /// expect.
    pub fn fold_accesses<A: Send>(
        &self,
        launch: u32,
        filter: &WarpFilter,
        new: impl Fn() -> A + Sync,
        fold: impl Fn(&mut A, &WarpAccesses) + Sync,
        merge: impl Fn(A, A) -> A + Sync,
    ) -> Result<A, DecodeError> {
        let range = filter.range(self.resolve_any(launch, self.data_track())?.warps());
        let clusters = self.clusters(launch, &range);
        let of_cluster = |mut value: A, (sections, warps): &(&[IndexEntry], Range<u32>)| {
            let _ = self.walk_cluster((launch, sections), warps.clone(), &mut |found| {
                fold(&mut value, &found);
                ControlFlow::Continue(())
            })?;
            Ok(value)
        };
        clusters.par_iter().try_fold(&new, of_cluster).try_reduce(&new, |a, b| Ok(merge(a, b)))
    }

    /// Gives the accesses of the warps that `filter` selects to `sink`, in the order of warps, until it
    /// returns `Break`.
    ///
    /// # Errors
    /// As [`fold_accesses`](Self::fold_accesses).
    pub fn accesses_in_order(
        &self,
        launch: u32,
        filter: &WarpFilter,
        sink: &mut dyn FnMut(WarpAccesses) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let range = filter.range(self.resolve_any(launch, self.data_track())?.warps());
        for (sections, warps) in self.clusters(launch, &range) {
            if self.walk_cluster((launch, sections), warps, sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Sections that overlap in their warps, and the warps of `range` that they have, in order.
    pub(crate) fn clusters(&self, launch: u32, range: &Range<u32>) -> Vec<(&[IndexEntry], Range<u32>)> {
        let sections = self.frames(launch, self.data_track());
        let (mut found, mut from, mut last) = (Vec::new(), 0, 0);
        for (at, section) in sections.iter().enumerate() {
            if at > from && section.first_warp > last {
                found.push((&sections[from..at], sections[from].first_warp..last.saturating_add(1)));
                from = at;
            }
            last = last.max(section.last_warp);
        }
        if let Some(first) = sections.get(from) {
            found.push((&sections[from..], first.first_warp..last.saturating_add(1)));
        }
        for (_, warps) in &mut found {
            *warps = warps.start.max(range.start)..warps.end.min(range.end);
        }
        found.retain(|(_, warps)| !warps.is_empty());
        found
    }

    /// Goes through some warps of a cluster, in order. What is more than fits into memory is read in parts.
    fn walk_cluster(
        &self,
        (launch, sections): (u32, &[IndexEntry]),
        warps: Range<u32>,
        sink: &mut dyn FnMut(WarpAccesses) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let mut held: BTreeMap<u32, Vec<Held>> = BTreeMap::new();
        let mut entries = 0;
        for section in sections {
            if section.last_warp < warps.start || section.first_warp >= warps.end {
                continue;
            }
            for piece in self.load_data(section)?.into_iter().filter(|piece| warps.contains(&piece.warp)) {
                entries += piece.groups.sites.iter().map(SiteGroups::entries).sum::<usize>();
                let of_warp = held.entry(piece.warp).or_default();
                of_warp.push((section.offset, piece.sequence, piece.chunks, piece.groups));
            }
            let (one, most) = (warps.len() == 1, if warps.len() == 1 { WARP_ENTRIES } else { HELD_ENTRIES });
            if entries > most && one {
                return Err(DecodeError::TooManyEntries { launch, warp: warps.start, most });
            }
            if entries > most && sections.len() > 1 {
                drop(held);
                let middle = warps.start + (warps.end - warps.start) / 2;
                let first = self.walk_cluster((launch, sections), warps.start..middle, sink)?;
                if first.is_break() {
                    return Ok(first);
                }
                return self.walk_cluster((launch, sections), middle..warps.end, sink);
            }
        }
        for (warp, mut pieces) in held {
            pieces.sort_by_key(|(_, sequence, ..)| *sequence);
            let mut expected = 0;
            for &(offset, found, chunks, _) in &pieces {
                if found != expected {
                    return Err(DecodeError::DataSequence { launch, warp, found, expected, offset });
                }
                expected = found.saturating_add(chunks);
            }
            let groups = match pieces.pop() {
                Some((.., only)) if pieces.is_empty() => only,
                last => {
                    let all = pieces.into_iter().chain(last).map(|(.., groups)| groups);
                    PieceGroups::join(all.collect())
                }
            };
            let accesses = WarpAccesses::of((warp, expected.into()), groups, self);
            let too_many = DecodeError::TooManyEntries { launch, warp, most: WARP_ENTRIES };
            let accesses = accesses.ok_or(too_many)?;
            let derived = accesses.sites.iter().filter(|site| self.is_derived(site.site));
            self.work.spend(derived.map(|site| 1 + site.entries() as u64).sum())?;
            // Vectors that are on no line may have to be looked at one by one.
            let generic = accesses.sites.iter().flat_map(SiteGroups::each_group);
            let generic = generic.filter(|(group, _)| group.spread.is_none()).map(|(_, runs)| {
                let vectors = runs.iter().map(|run| run.count).max().unwrap_or(0);
                u64::from(vectors) * runs.len() as u64
            });
            self.work.spend(generic.sum())?;
            if sink(accesses).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads a section and compares it with what its beginning said when the file was opened.
    pub(crate) fn load_data(
        &self,
        entry: &IndexEntry,
    ) -> Result<Vec<warptrace_format::file::data::Piece>, DecodeError> {
        self.work
            .spend(u64::from(entry.chunks).saturating_mul(STEPS_PER_ENTRY).saturating_add(entry.length))?;
        let body = self.load_body(entry)?;
        let (header, pieces) = decode_data(&body, entry.offset.saturating_add(SECTION_HEADER_BYTES as u64))?;
        compare(
            entry,
            &[
                ("launch", header.launch.into(), entry.launch.into()),
                ("first warp", header.first_warp.into(), entry.first_warp.into()),
                ("last warp", header.last_warp.into(), entry.last_warp.into()),
                ("entries", header.entries.into(), entry.chunks.into()),
                ("accesses", header.accesses, entry.events),
            ],
        )?;
        Ok(pieces)
    }
}

impl WarpAccesses {
    /// Returns the number of lanes' accesses that are known, without those left out.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.sites.iter().map(SiteGroups::accesses).sum()
    }

    /// Goes through the lanes of all sites: the site and the lane of each.
    pub fn each_lane(&self) -> impl Iterator<Item = (u16, u32)> {
        self.sites.iter().flat_map(|site| lanes(self.lanes(site.site)).map(|lane| (site.site, lane)))
    }
}
