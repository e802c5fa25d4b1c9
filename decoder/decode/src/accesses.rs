//! Addresses and values: the accesses of each warp, as vectors with equal steps.

mod walk;

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
use walk::{FoundWarps, OfWarp, WARP_ENTRIES, Walk};

/// Entries of warps that are assembled in one batch before delivery. The last warp may exceed it.
const ENTRIES_AT_ONCE: usize = 1 << 17;
/// Steps for each entry: it is unpacked, put in place and visited.
const STEPS_PER_ENTRY: u64 = 16;

/// Lanes that access a site together, repeatedly and in equal steps. They are grouped because their runs of
/// equal steps ended together. The accesses of each lane, and their order, are exact.
#[derive(Clone, Copy, Debug)]
pub struct VectorRun<'a> {
    /// The site.
    pub site: u16,
    /// End of the last access, in units of 16 cycles since the end of the warp's first run.
    pub time: u64,
    /// The lanes, and the relation of their bases.
    pub group: &'a Group,
    /// The run of the lowest lane if the bases are on a line; otherwise one run for each lane.
    pub runs: &'a [LaneRun],
}

impl VectorRun<'_> {
    /// Returns the run of a lane; `None` if the lane is not in the group.
    #[must_use]
    pub fn run(&self, lane: u32) -> Option<LaneRun> {
        self.group.run(self.runs, lane)
    }

    /// Returns the number of vectors: the length of the longest run.
    #[must_use]
    pub fn vectors(&self) -> u32 {
        self.runs.iter().map(|run| run.count).max().unwrap_or(0)
    }

    /// Returns the number of accesses of all lanes.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        let sum: u64 = self.runs.iter().map(|run| u64::from(run.count)).sum();
        if self.group.spread.is_some() { sum * u64::from(self.group.mask.count_ones()) } else { sum }
    }
}

/// Accesses of one warp, by site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarpAccesses {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Sites in ascending order, including derived sites. All groups are complete, and no run is loose.
    pub sites: Vec<SiteGroups>,
    /// Accesses left out because others were lost, so that their group is unknown.
    pub left_out: u64,
    /// Accesses that belong to no group although nothing was lost.
    pub unmatched: u64,
    /// Whether a group lacks lanes although nothing was lost.
    pub has_gaps: bool,
    /// Entries that no kernel writes.
    pub damaged: u32,
    /// Number of chunks.
    pub chunks: u64,
    /// All accesses of the warp in the file, including those left out.
    pub recorded: u64,
    /// Accesses derived from them, including those left out.
    pub derived: u64,
}

impl WarpAccesses {
    /// Joins a warp's pieces and computes its derived sites; `None` if these exceed [`WARP_ENTRIES`].
    fn new(
        (warp, chunks): (u32, u64),
        PieceGroups { sites, cut, damaged }: PieceGroups,
        trace: &TraceFile,
    ) -> Option<Self> {
        let recorded = sites.iter().map(SiteGroups::accesses).sum();
        let mut found = Self { warp, damaged, chunks, recorded, ..Self::default() };
        let mut room = WARP_ENTRIES;
        found.sites.reserve_exact(sites.len());
        for SiteGroups { site, groups, runs, loose } in sites {
            let followers = trace.followers.of_root(site);
            // A derived site has no recorded accesses in a sound file.
            let is_odd = trace.is_derived(site);
            let is_before = |time: u32| cut.is_none_or(|cut| time.wrapping_sub(cut).cast_signed() < 0);
            let is_kept = |group: &Group| is_before(group.time) && group.missing == 0 && !is_odd;
            let mut kept = SiteGroups { site, ..SiteGroups::default() };
            let mut lacking = 0;
            if groups.iter().all(is_kept) {
                (kept.groups, kept.runs) = (groups, runs);
            } else {
                let mut rest = &runs[..];
                for group in groups {
                    let (runs, after) = rest.split_at(rest.len().min(group.runs() as usize));
                    rest = after;
                    if is_kept(&group) {
                        kept.groups.push(group);
                        kept.runs.extend_from_slice(runs);
                        continue;
                    }
                    found.has_gaps |= cut.is_none();
                    let each = if group.spread.is_some() { group.mask.count_ones() } else { 1 };
                    lacking += runs.iter().map(|run| u64::from(run.count) * u64::from(each)).sum::<u64>();
                }
            }
            lacking +=
                loose.iter().map(|(of, run)| u64::from(of.lanes()) * u64::from(run.count)).sum::<u64>();
            let is_lost = cut.is_some() && !is_odd;
            *(if is_lost { &mut found.left_out } else { &mut found.unmatched }) +=
                lacking * (1 + followers.len() as u64);
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

    /// Returns the vectors in order of time; vectors of equal time in order of site.
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

    /// Returns the accesses of a lane at a site, in order.
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

impl TraceFile {
    /// Returns the number of the track of addresses and values. It follows the tracks of events.
    #[must_use]
    pub fn data_track(&self) -> u32 {
        count(self.metadata.tracks.len())
    }

    /// Returns true if addresses or values were recorded.
    #[must_use]
    pub fn has_accesses(&self) -> bool {
        self.has_accesses
    }

    /// Returns the sites in the order of their numbers.
    pub fn sites(&self) -> impl ExactSizeIterator<Item = &SiteInfo> {
        self.sites.values()
    }

    /// Returns the site with this number.
    #[must_use]
    pub fn site(&self, number: u16) -> Option<&SiteInfo> {
        self.sites.get(&number)
    }

    /// Returns the number of derived sites.
    #[must_use]
    pub fn derived_sites(&self) -> usize {
        self.sites.values().filter(|site| site.derived.is_some()).count()
    }

    /// Returns true if the site is derived: its accesses are computed from another site and not stored.
    #[must_use]
    pub fn is_derived(&self, number: u16) -> bool {
        self.site(number).is_some_and(|site| site.derived.is_some())
    }

    pub(crate) fn resolve_any(&self, launch: u32, track: u32) -> Result<&LaunchInfo, DecodeError> {
        if track == self.data_track() && self.has_accesses() {
            return self.launches.get(&launch).ok_or(DecodeError::UnknownLaunch { launch });
        }
        Ok(self.resolve(launch, track)?.0)
    }

    /// Like [`fold_items`](Self::fold_items), for accesses. Leaves out warps without accesses. Reads each
    /// section once, unless sections with common warps exceed the memory limit. Memory: for each thread a
    /// section, and a warp of up to 2^24 entries of 24 bytes; 256 MiB for warps that a later section may
    /// continue. Fails without the launch, if a section is damaged or missing, a warp has more than 2^24
    /// entries, or above the work limit.
    pub fn fold_accesses<A: Send>(
        &self,
        launch: u32,
        filter: &WarpFilter,
        new: impl Fn() -> A + Sync,
        fold: impl Fn(&mut A, &WarpAccesses) + Sync,
        merge: impl Fn(A, A) -> A + Sync,
    ) -> Result<A, DecodeError> {
        let range = filter.range(self.resolve_any(launch, self.data_track())?.warps());
        let mut walk = Walk::new(self, launch, range);
        let most = walk.most_entries();
        let mut all = None;
        while let Some(found) = walk.next_warps() {
            let of_warp = |mut value: A, (warps, of): FoundWarps| -> Result<A, DecodeError> {
                fold(&mut value, &self.warp_accesses((launch, warps.start), of?, most)?);
                Ok(value)
            };
            let more = found.into_par_iter().try_fold(&new, of_warp);
            let more = more.try_reduce(&new, |a, b| Ok(merge(a, b)))?;
            all = Some(match all {
                Some(before) => merge(before, more),
                None => more,
            });
        }
        Ok(all.unwrap_or_else(new))
    }

    /// Passes the accesses of the warps that `filter` selects to `sink`, in order of warp, until it returns
    /// `Break`. Uses all cores. Memory and errors: as for [`fold_accesses`](Self::fold_accesses).
    pub fn accesses_in_order(
        &self,
        launch: u32,
        filter: &WarpFilter,
        sink: &mut dyn FnMut(WarpAccesses) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let range = filter.range(self.resolve_any(launch, self.data_track())?.warps());
        let (walk, mut failed) = (Walk::new(self, launch, range), None);
        let flow = self.each_warp((launch, walk), |accesses| accesses, &mut |_, read| match read {
            Ok(accesses) => sink(accesses),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        });
        failed.map_or(Ok(flow), Err)
    }

    /// Passes the result of `look` for each warp to `sink`, in order. For a warp whose pieces contradict each
    /// other, and for warps whose section cannot be read, passes the error.
    fn each_warp<T: Send>(
        &self,
        (launch, mut walk): (u32, Walk<'_>),
        look: impl Fn(WarpAccesses) -> T + Sync,
        sink: &mut dyn FnMut(Range<u32>, Result<T, DecodeError>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let most = walk.most_entries();
        let mut give = |part: Vec<FoundWarps>| {
            let look_at = |(warps, of): FoundWarps| {
                let warp = (launch, warps.start);
                (warps, of.and_then(|of| self.warp_accesses(warp, of, most)).map(&look))
            };
            let read: Vec<_> = part.into_par_iter().map(look_at).collect();
            read.into_iter().try_for_each(|(warps, read)| sink(warps, read))
        };
        while let Some(found) = walk.next_warps() {
            let (mut part, mut entries) = (Vec::new(), 0);
            for (warps, of) in found {
                entries += of.as_ref().map_or(0, |of| self.entries(of));
                part.push((warps, of));
                if entries > ENTRIES_AT_ONCE {
                    entries = 0;
                    give(std::mem::take(&mut part))?;
                }
            }
            give(part)?;
        }
        ControlFlow::Continue(())
    }

    pub(crate) fn look_at_accesses<T: Send>(
        &self,
        launch: &LaunchInfo,
        look: impl Fn(WarpAccesses) -> T + Sync,
        sink: &mut dyn FnMut(Range<u32>, Result<T, DecodeError>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let number = launch.number();
        self.each_warp((number, Walk::new(self, number, 0..launch.warps())), look, sink)
    }

    fn entries(&self, of: &OfWarp) -> usize {
        let sites = of.pieces.iter().flat_map(|(.., groups)| &groups.sites);
        sites.map(|site| site.entries() * (1 + self.followers.of_root(site.site).len())).sum()
    }

    fn warp_accesses(
        &self,
        (launch, warp): (u32, u32),
        OfWarp { mut pieces, entries, .. }: OfWarp,
        most: usize,
    ) -> Result<WarpAccesses, DecodeError> {
        if entries > most {
            return Err(DecodeError::TooManyEntries { launch, warp, most });
        }
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
        let accesses = WarpAccesses::new((warp, expected.into()), groups, self);
        let accesses = accesses.ok_or(DecodeError::TooManyEntries { launch, warp, most: WARP_ENTRIES })?;
        let derived = accesses.sites.iter().filter(|site| self.is_derived(site.site));
        self.work.spend(derived.map(|site| 1 + site.entries() as u64).sum())?;
        // Readers may visit vectors that are not on a line one by one.
        let generic = accesses.sites.iter().flat_map(SiteGroups::each_group);
        let generic = generic.filter(|(group, _)| group.spread.is_none()).map(|(_, runs)| {
            let vectors = runs.iter().map(|run| run.count).max().unwrap_or(0);
            u64::from(vectors) * runs.len() as u64
        });
        self.work.spend(generic.sum())?;
        Ok(accesses)
    }

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
    /// Returns the number of accesses of all lanes, without those left out.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.sites.iter().map(SiteGroups::accesses).sum()
    }

    /// Returns the site and the lane of each lane that accessed a site.
    pub fn each_lane(&self) -> impl Iterator<Item = (u16, u32)> {
        self.sites.iter().flat_map(|site| lanes(self.lanes(site.site)).map(|lane| (site.site, lane)))
    }
}
