//! Where in the pool launches have their logs.
//!
//! ```text
//! log memory:  fixed, claimed | fixed, claimed | ...      reserve: fixed of launches | merged runs
//!              launches that began when none ran          that began when others ran
//! ```
//! What a launch has from its start, heads and first segments, is fixed. What it claims is known when it has
//! ended: so a launch that begins when none runs has its place behind those before it. Launches that run at
//! the same time claim from the same entries. One that begins meanwhile has what is fixed in the reserve.

use warptrace_format::file::LaunchInfo;
use warptrace_format::log::{
    Fixed, LANES, LaunchLogs, LoggedLaunch, MAX_FIRST_ENTRIES, MAX_SEGMENT_ENTRIES, RESERVED_ENTRIES,
    SEGMENT_MULTIPLE,
};

use super::super::SessionError;
use super::super::memory::Division;
use super::Pool;

/// Part of log memory that a launch's first segments take at most: they are as long as fits into that. Long
/// ones get less, for all of them counts as taken, whatever is written: a program of many small launches
/// would be drained after a few of them.
const FIRST_SHARE: u64 = 4;
const LONG_FIRST_SHARE: u64 = 64;
/// Entries of a first segment from which on it is long.
const LONG_FIRST_ENTRIES: u32 = 64;
/// The same parts of the reserve, in which many launches should find room.
const RESERVE_SHARE: u64 = 16;
const LONG_RESERVE_SHARE: u64 = 256;
/// Each lane may leave this part of its share of log memory unused, in its last segment.
const SEGMENT_SHARE: u64 = 4;

/// Whether there is room for launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Room {
    /// As far as can be told.
    Enough,
    /// There is, unless a kernel that runs, and has never ended before, takes it.
    Unknown,
    /// Not before something is drained.
    Short,
}

/// The entries for what launches have from their start.
#[derive(Clone, Copy, Debug)]
struct Place {
    from: u64,
    end: u64,
    /// Whether they are those of the reserve.
    in_reserve: bool,
}

impl Pool {
    /// Whether launches should find room beside those before them, of which `running` still run, named by
    /// their kernels. (How much a launch needs is known only afterwards; launches of the same kernel are
    /// taken to need up to twice as much as one before.)
    pub(in crate::session) fn has_room(&self, infos: &[LaunchInfo], running: &[u32]) -> Room {
        // What running launches need is not known before one of their kernel has ended. Rings claim nothing.
        let most = |kernel: &u32| self.most_claimed(*kernel).map(|most| 2 * most);
        let claimed = running.iter().map(|kernel| most(kernel).unwrap_or(0)).sum();
        let is_unknown = !self.ring && running.iter().any(|kernel| most(kernel).is_none());
        match self.fits(infos, !running.is_empty(), claimed) {
            false => Room::Short,
            true if is_unknown => Room::Unknown,
            true => Room::Enough,
        }
    }

    /// Whether launches fit beside others that claim so many entries more.
    fn fits(&self, infos: &[LaunchInfo], is_running: bool, mut claimed: u64) -> bool {
        if self.is_exclusive {
            return false;
        }
        let (mut accounts, mut fixed_end, mut claims_from) = (self.accounts_used, None, self.taken_entries());
        for info in infos {
            let streams = self.streams_of(info);
            let place = self.place(streams, is_running);
            let wanted = self.wanted_first_entries(streams, place);
            let fixed = Fixed::place(fixed_end.unwrap_or(place.from), streams, wanted);
            fixed_end = Some(fixed.end);
            if !place.in_reserve {
                claims_from = fixed.end;
            }
            claimed += 2 * self.most_claimed(info.kernel()).unwrap_or(0);
            accounts += self.account_bytes(info);
            let fits = fixed.end <= place.end
                && claims_from + claimed <= u64::from(self.claims_end(streams))
                && (!self.ring || self.can_merge(fixed.end, wanted));
            if !fits {
                // Alone it has all there is.
                return infos.len() == 1 && self.logged.is_empty() && self.is_large(streams);
            }
        }
        accounts <= self.accounts.bytes && self.logged.len() + infos.len() <= self.division.launches()
    }

    /// The largest number of entries that a launch of a kernel has claimed; `None` if none has ended.
    fn most_claimed(&self, kernel: u32) -> Option<u64> {
        self.max_claimed.get(kernel as usize).copied().flatten()
    }

    /// Whether behind logs that end there each stream can be merged, whose logs are rings of so many entries
    /// or those of the launches before.
    fn can_merge(&self, end: u64, first_entries: u32) -> bool {
        let rings = self.logged.iter().map(|launch| launch.first_entries);
        let longest = rings.fold(first_entries, u32::max);
        end + u64::from(LANES * longest) <= u64::from(self.division.log_entries)
    }

    /// Where a launch with so many streams has what is fixed.
    fn place(&self, streams: u64, is_running: bool) -> Place {
        if is_running && self.reserve != 0 {
            let from = self.reserve_next.max(self.reserve).into();
            // The same for all: few streams, too, may have their part of the reserve.
            return Place { from, end: self.division.logs_end(u64::MAX).into(), in_reserve: true };
        }
        Place { from: self.taken_entries(), end: self.claims_end(streams).into(), in_reserve: false }
    }

    /// Index of the entry after the last one that a launch with so many streams may claim.
    fn claims_end(&self, streams: u64) -> u32 {
        let end = self.division.logs_end(streams);
        if self.reserve == 0 || self.is_exclusive { end } else { end.min(self.reserve) }
    }

    /// Whether a launch with so many streams needs the reserve, too.
    fn is_large(&self, streams: u64) -> bool {
        let least = self.division.min_first_entries;
        self.reserve != 0
            && Fixed::place(RESERVED_ENTRIES.into(), streams, least).end > self.claims_end(streams).into()
    }

    /// Entries of first segments of a launch with so many streams, if all of the place's memory were free.
    fn wanted_first_entries(&self, streams: u64, place: Place) -> u32 {
        let end = u64::from(self.division.logs_end(streams));
        self.longest_first_entries(|first| {
            if self.ring {
                return Fixed::place(RESERVED_ENTRIES.into(), streams, first).end <= end;
            }
            let (all, [share, long_share]) = if place.in_reserve {
                (place.end - u64::from(self.reserve), [RESERVE_SHARE, LONG_RESERVE_SHARE])
            } else {
                (end, [FIRST_SHARE, LONG_FIRST_SHARE])
            };
            let share = if first < LONG_FIRST_ENTRIES { share } else { long_share };
            streams * u64::from(LANES * first) <= all / share
        })
    }

    /// The longest first segments that fit; the shortest where none do.
    fn longest_first_entries(&self, fits: impl Fn(u32) -> bool) -> u32 {
        let mut entries = MAX_FIRST_ENTRIES;
        while entries > self.division.min_first_entries && !fits(entries) {
            entries /= 2;
        }
        entries
    }

    /// Entries of the other segments, where so many are free for a launch with so many streams.
    fn segment_entries(streams: u64, free: u64) -> u32 {
        let share = free / (streams * u64::from(LANES)).max(1) / SEGMENT_SHARE;
        let entries = share.clamp(u64::from(SEGMENT_MULTIPLE), u64::from(MAX_SEGMENT_ENTRIES)) as u32;
        // The largest power of two of at most so many.
        1 << entries.ilog2()
    }

    /// Makes the pool ready for launches that begin at once, while others run or not. Unless there is
    /// [room](Self::has_room), it has been drained.
    ///
    /// # Errors
    /// If what they need at least is not there even so; then some may be [prepared](Self::take_back).
    pub(in crate::session) fn prepare(
        &mut self,
        infos: &[LaunchInfo],
        is_running: bool,
    ) -> Result<Vec<LaunchLogs>, SessionError> {
        let mut all = Vec::with_capacity(infos.len());
        let mut fixed_end = None;
        for info in infos {
            let streams = self.streams_of(info);
            self.is_exclusive |= self.logged.is_empty() && !is_running && self.is_large(streams);
            // Beside a launch that has all, there is nothing.
            let is_beside = is_running && self.is_exclusive;
            let mut place = self.place(streams, is_running);
            place.from = fixed_end.unwrap_or(place.from);
            let wanted = self.wanted_first_entries(streams, place);
            let first_entries = self.longest_first_entries(|first| {
                first <= wanted && Fixed::place(place.from, streams, first).end <= place.end
            });
            let fixed = Fixed::place(place.from, streams, first_entries);
            let has_place =
                !is_beside && fixed.end <= place.end && self.logged.len() < self.division.launches();
            if !has_place || self.accounts_used + self.account_bytes(info) > self.accounts.bytes {
                let Division { limit, chunk_bytes, min_first_entries, .. } = self.division;
                let needed = Division::least(streams, chunk_bytes, min_first_entries);
                return Err(SessionError::Memory { streams, needed, limit });
            }
            fixed_end = Some(fixed.end);
            if place.in_reserve {
                self.reserve_next = fixed.end as u32;
            } else {
                self.reserved_entries = (fixed.end - self.claimed_entries) as u32;
            }
            all.push(self.prepare_one(info, &fixed, first_entries));
        }
        // They claim behind what all of them have.
        for logs in &mut all {
            logs.claims_from = self.reserved_entries;
        }
        Ok(all)
    }

    /// Takes note of a launch, and tells it where its logs are, but not yet where claims begin.
    fn prepare_one(&mut self, info: &LaunchInfo, fixed: &Fixed, first_entries: u32) -> LaunchLogs {
        // Warps that do not record have neither logs nor accounts.
        let chosen = info.chosen();
        let (warps, streams) = (chosen.count(), self.streams_of(info));
        // All below the end of log memory.
        let (heads, first_segments) = (fixed.heads as u32, fixed.first_segments as u32);
        let claims_end = self.claims_end(streams);
        self.logs_end = self.logs_end.max(claims_end);
        let ring = u32::from(self.ring);
        let segment_entries = if self.ring {
            first_entries / 2
        } else {
            Self::segment_entries(streams, u64::from(claims_end).saturating_sub(self.taken_entries()))
        };
        let accounts = self.accounts.address + self.accounts_used;
        self.logged.push(LoggedLaunch {
            accounts,
            heads,
            first_entries,
            segment_entries,
            warps,
            block_threads: chosen.block_threads(info.threads_per_block()),
            launch: info.number(),
            first_stream: self.streams,
            tracks: self.tracks,
            first_segments,
            ring,
        });
        self.accounts_used += self.account_bytes(info);
        self.streams += streams as u32;
        LaunchLogs {
            logs: self.log_address(),
            claims: self.claims.address,
            accounts,
            heads,
            warps,
            first_entries,
            segment_entries,
            claims_from: 0,
            claims_end,
            launch: info.number(),
            first_segments,
            ring,
            reserved: 0,
            chosen,
            unused: 0,
        }
    }

    /// Index of the entry behind all logs.
    pub(super) fn merged_from(&self) -> u32 {
        let taken = self.taken_entries().min(self.logs_end.into()) as u32;
        taken.max(self.reserve_next)
    }
}
