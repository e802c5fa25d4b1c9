//! Groups: the entries of a warp at a site, each header with its values.
//!
//! On the device, a group's header is in the log of its leader, and the values of a generic group are in the
//! logs of its lanes. This module matches them by their order (`docs/contributors/data.md`).

use std::collections::BTreeSet;

use crate::data::{DataEntry, DataEntry as Entry, LaneRun, Owner, lane_base};

/// A group of lanes whose runs at a site ended together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Lanes of the group, at least one.
    pub mask: u32,
    /// Time at which their runs ended, in units of 16 cycles, modulo 2^32.
    pub time: u32,
    /// Base of the highest lane minus base of the lowest lane, if the group is affine: the bases are on a
    /// line ([`lane_base`]), and the runs otherwise equal. `None`: each lane has its own run.
    pub spread: Option<i32>,
    /// Lanes without a known run: all or none in an affine group.
    pub missing: u32,
}

impl Group {
    /// Returns the number of known runs of the group.
    #[must_use]
    pub const fn runs(&self) -> u32 {
        let known = self.mask & !self.missing;
        if self.spread.is_some() && known != 0 { 1 } else { known.count_ones() }
    }

    /// Returns the run of a lane, from the known [`runs`](Self::runs) of the group; `None` if it is unknown.
    #[must_use]
    pub fn run(&self, runs: &[LaneRun], lane: u32) -> Option<LaneRun> {
        let known = self.mask & !self.missing;
        if lane > 31 || known >> lane & 1 == 0 {
            return None;
        }
        match self.spread {
            Some(spread) => {
                let run = *runs.first()?;
                Some(LaneRun { base: lane_base(self.mask, run.base, spread, lane)?, ..run })
            }
            None => runs.get((known & ((1 << lane) - 1)).count_ones() as usize).copied(),
        }
    }

    /// Returns the lowest lane.
    #[must_use]
    pub const fn leader(&self) -> u32 {
        self.mask.trailing_zeros()
    }
}

/// Accesses of one warp at one site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteGroups {
    /// Site number.
    pub site: u16,
    /// Groups in order of time.
    pub groups: Vec<Group>,
    /// Known runs, group by group, in order of lane.
    pub runs: Vec<LaneRun>,
    /// Runs of unknown groups; the runs of each lane are in order.
    pub loose: Vec<(Owner, LaneRun)>,
}

impl SiteGroups {
    /// Returns the number of device entries: headers and runs.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.groups.len() + self.runs.len() + self.loose.len()
    }

    /// Returns the number of accesses.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        let in_groups = self.each_group().map(|(group, runs)| {
            let lanes = if group.spread.is_some() { group.mask.count_ones() } else { 1 };
            runs.iter().map(|run| u64::from(run.count)).sum::<u64>() * u64::from(lanes)
        });
        let loose = self.loose.iter().map(|(of, run)| u64::from(of.lanes()) * u64::from(run.count));
        in_groups.sum::<u64>() + loose.sum::<u64>()
    }

    /// Returns the groups, each with its runs.
    #[inline]
    pub fn each_group(&self) -> impl Iterator<Item = (&Group, &[LaneRun])> {
        let mut rest = &self.runs[..];
        self.groups.iter().map(move |group| {
            let (runs, after) = rest.split_at(rest.len().min(group.runs() as usize));
            rest = after;
            (group, runs)
        })
    }

    /// Joins the parts of one site in consecutive pieces of a stream.
    #[must_use]
    pub fn join(site: u16, pieces: &[&Self]) -> Self {
        if let [one] = pieces {
            return (*one).clone();
        }
        let mut logs = Logs::default();
        for piece in pieces {
            // Loose runs of a group belong to a header of an earlier piece. Runs of a lane come last.
            let (groups, lanes): (Vec<_>, Vec<_>) =
                piece.loose.iter().partition(|(of, _)| matches!(of, Owner::Group(_)));
            groups.into_iter().for_each(|(of, run)| logs.push_loose(of, run));
            for (group, runs) in piece.each_group() {
                logs.push(*group, runs);
            }
            lanes.into_iter().for_each(|(of, run)| logs.push_loose(of, run));
        }
        logs.take(site)
    }
}

struct Logs {
    headers: [Vec<(Group, Option<LaneRun>)>; 32],
    leaders: u32,
    /// Affine groups of earlier pieces without a run: number of lanes, leader, and position among its headers.
    lacking: BTreeSet<(u32, u32, usize)>,
    /// For each lane, its runs and the number of matched ones.
    lanes: [(Vec<LaneRun>, usize); 32],
    with_runs: u32,
    /// Values of affine groups without a header before them.
    loose_groups: Vec<(Owner, LaneRun)>,
}

impl Default for Logs {
    fn default() -> Self {
        let (headers, lanes) = ([const { Vec::new() }; 32], [const { (Vec::new(), 0) }; 32]);
        let (lacking, loose_groups) = (BTreeSet::new(), Vec::new());
        Self { headers, leaders: 0, lacking, lanes, with_runs: 0, loose_groups }
    }
}

impl Logs {
    fn push(&mut self, group: Group, runs: &[LaneRun]) {
        if group.spread.is_some() {
            if runs.is_empty() {
                let leader = group.leader() % 32;
                let at = self.headers[leader as usize].len();
                self.lacking.insert((group.mask.count_ones(), leader, at));
            }
            return self.push_header(group, runs.first().copied());
        }
        self.push_header(group, None);
        lanes(group.mask & !group.missing).zip(runs).for_each(|(lane, run)| self.push_run(lane, *run));
    }

    fn push_header(&mut self, group: Group, run: Option<LaneRun>) {
        let leader = group.leader() % 32;
        self.headers[leader as usize].push((group, run));
        self.leaders |= 1 << leader;
    }

    fn push_run(&mut self, lane: u32, run: LaneRun) {
        let lane = lane % 32;
        self.lanes[lane as usize].0.push(run);
        self.with_runs |= 1 << lane;
    }

    fn push_loose(&mut self, of: Owner, run: LaneRun) {
        let Owner::Lane(lane) = of else {
            // Logs follow each other by lane, so the last header is in the log of the highest leader.
            let lanes = of.lanes();
            match self.lacking.range((lanes, 0, 0)..(lanes + 1, 0, 0)).next_back().copied() {
                Some(last) => {
                    self.lacking.remove(&last);
                    self.headers[last.1 as usize][last.2].1 = Some(run);
                }
                None => self.loose_groups.push((of, run)),
            }
            return;
        };
        self.push_run(lane, run);
    }

    /// Matches the entries of a piece at a site.
    fn read(&mut self, site: u16, entries: impl Iterator<Item = Entry>) -> SiteGroups {
        // The leader of an affine group whose values come next.
        let mut leader = None::<u32>;
        for entry in entries {
            let before = leader.take().and_then(|leader| self.headers[leader as usize % 32].last_mut());
            match entry {
                Entry::Header { mask, time, spread, .. } => {
                    let group = Group { mask, time, spread, missing: 0 };
                    self.push_header(group, None);
                    leader = spread.map(|_| group.leader());
                }
                Entry::Values { of, count, base, step, .. } => {
                    let run = LaneRun { base, step, count };
                    match (of, before) {
                        (Owner::Lane(lane), _) => self.push_run(lane, run),
                        (_, Some((group, values))) if group.mask.count_ones() == of.lanes() => {
                            *values = Some(run);
                        }
                        _ => self.loose_groups.push((of, run)),
                    }
                }
                Entry::Cut { .. } => {}
            }
        }
        self.take(site)
    }

    /// Takes all entries, matched.
    fn take(&mut self, site: u16) -> SiteGroups {
        let mut found = SiteGroups { site, ..SiteGroups::default() };
        let mut next = [0; 32];
        let mut last = None::<u32>;
        let mut left = self.leaders;
        loop {
            // Find the earliest header; times wrap. For equal times, take the lowest leader's.
            let (mut first, mut origin): (Option<(usize, u32)>, _) = (None, last);
            for leader in lanes(left).map(|leader| leader as usize) {
                let Some((group, _)) = self.headers[leader].get(next[leader]) else { continue };
                let from = *origin.get_or_insert(group.time);
                let is_before = |time: u32| {
                    (group.time.wrapping_sub(from).cast_signed()) < time.wrapping_sub(from).cast_signed()
                };
                if first.is_none_or(|(_, time)| is_before(time)) {
                    first = Some((leader, group.time));
                }
            }
            let Some((leader, time)) = first else { break };
            last = Some(time);
            let (mut group, run) = self.headers[leader][next[leader]];
            next[leader] += 1;
            if next[leader] == self.headers[leader].len() {
                left &= !(1 << leader);
            }
            if group.spread.is_some() {
                group.missing = if run.is_some() { 0 } else { group.mask };
                found.runs.extend(run);
            } else {
                group.missing = 0;
                for lane in lanes(group.mask) {
                    let (runs, taken) = &mut self.lanes[lane as usize];
                    match runs.get(*taken) {
                        Some(run) => {
                            found.runs.push(*run);
                            *taken += 1;
                        }
                        None => group.missing |= 1 << lane,
                    }
                }
            }
            found.groups.push(group);
        }
        for lane in lanes(std::mem::take(&mut self.with_runs)) {
            let (runs, taken) = &mut self.lanes[lane as usize];
            found.loose.extend(runs[*taken..].iter().map(|run| (Owner::Lane(lane), *run)));
            runs.clear();
            *taken = 0;
        }
        found.loose.append(&mut self.loose_groups);
        self.lacking.clear();
        lanes(std::mem::take(&mut self.leaders)).for_each(|leader| self.headers[leader as usize].clear());
        found
    }
}

/// Returns the lanes of a mask in ascending order.
pub fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane)
    })
}

/// Entries of a piece of a warp's stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceGroups {
    /// Sites in ascending order.
    pub sites: Vec<SiteGroups>,
    /// Time from which nothing is known, if accesses were lost.
    pub cut: Option<u32>,
    /// Number of entries that no kernel writes.
    pub damaged: u32,
}

impl PieceGroups {
    /// Joins consecutive pieces of a stream.
    #[must_use]
    pub fn join(pieces: Vec<Self>) -> Self {
        let mut sites: Vec<&SiteGroups> = pieces.iter().flat_map(|piece| &piece.sites).collect();
        // Stable: the parts of a site stay in the order of the pieces.
        sites.sort_by_key(|part| part.site);
        let sites =
            sites.chunk_by(|a, b| a.site == b.site).map(|parts| SiteGroups::join(parts[0].site, parts));
        let cut = pieces.iter().filter_map(|piece| piece.cut).reduce(earlier);
        let damaged = pieces.iter().fold(0, |sum: u32, piece| sum.saturating_add(piece.damaged));
        Self { sites: sites.collect(), cut, damaged }
    }
}

/// Matches the entries of pieces, one piece after the other.
#[derive(Default)]
pub(super) struct EntryReader {
    /// Entries with their sites and indices.
    entries: Vec<(u16, usize, Entry)>,
    logs: Logs,
}

impl EntryReader {
    /// Matches the entries of a piece. Passes over entries that no kernel writes.
    pub(super) fn read<'a>(&mut self, entries: impl IntoIterator<Item = &'a [u32; 4]>) -> Vec<SiteGroups> {
        self.entries.clear();
        for words in entries {
            let Some(entry) = DataEntry::from_words(*words) else { continue };
            if let Entry::Header { site, .. } | Entry::Values { site, .. } = entry {
                self.entries.push((site, self.entries.len(), entry));
            }
        }
        self.entries.sort_unstable_by_key(|&(site, at, _)| (site, at));
        let of_sites = self.entries.chunk_by(|a, b| a.0 == b.0);
        of_sites
            .map(|entries| self.logs.read(entries[0].0, entries.iter().map(|(.., entry)| *entry)))
            .collect()
    }
}

pub(super) fn earlier(one: u32, other: u32) -> u32 {
    if one.wrapping_sub(other).cast_signed() <= 0 { one } else { other }
}
