//! The device memory of a recording: chunks, and arenas of logs and accounts.
//!
//! Launches fill one arena while another one, whose launches have ended, is drained. An arena is one of four
//! equal parts of log memory, or all of it if launches do not overlap, logs are rings, a kernel's need is
//! unknown, or a launch needs more than a part. Never waits; uses the device only for allocation.

mod arena;
mod filled;
mod plan;

use std::ops::Range;

use warptrace_abi::log::{LOG_ALIGNMENT, LaunchLogs, MAX_SEGMENT_ENTRIES, RESERVED_ENTRIES};
use warptrace_abi::pool::Claims;
use warptrace_format::LANES;
use warptrace_format::account::WarpAccount;
use warptrace_format::file::LaunchInfo;

use self::arena::{Arena, Stage};
pub(super) use self::filled::Filled;
pub(super) use self::plan::Effort;
use self::plan::{Layout, Need, boundary, plan, wanted};
use super::classes::Behavior;
use super::memory::{Division, Memory};
use super::{MemoryUse, SessionError};
use crate::{Allocation, Device};

/// Arenas of a recording whose launches overlap. Merged runs follow all arenas, in more space than one has.
const ARENAS: u32 = 4;
/// Planned claims of a launch, at least, as a share of first segments for each lane.
const LEAST_CLAIMS_SHARE: u64 = 4;
/// Drains until classes are searched again for kernels whose streams differ.
const SEARCHED_AGAIN: u64 = 16;

/// Why no memory is available for a launch now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Short {
    /// Memory is available after a drain.
    Room,
    /// There is enough free memory now, but a running kernel whose need is unknown may take it.
    Unknown,
    /// The whole pool is too small.
    Never,
}

/// Share of an arena for launches that begin together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) at: usize,
    /// Entries that the launches are expected to claim at most.
    pub(super) ahead: u64,
    /// Whether `ahead` is known from earlier launches.
    pub(super) is_known: bool,
}

/// Maximum number of claimed entries and of streams of a kernel's launches.
#[derive(Clone, Copy, Debug, Default)]
struct Most {
    /// Of launches with a first segment for each stream, and of launches with one for each lane, if there were
    /// any: lanes with a first segment claim less.
    claimed: [Option<u64>; 2],
    streams: u64,
    /// Whether the lanes of their warps diverge, if known.
    parts: Option<bool>,
    /// Whether many streams of the last launch whose classes were found were equal.
    repeats: Option<bool>,
}

#[derive(Clone, Debug)]
pub(super) struct Pool {
    memory: Memory,
    division: Division,
    chunks: Allocation,
    claims: Allocation,
    table: Allocation,
    scratch: Allocation,
    logs: Allocation,
    accounts: Allocation,
    classes: Allocation,
    tracks: u32,
    ring: bool,
    overlaps: bool,
    /// The arenas; `None` for empty ones.
    arenas: Vec<Option<Arena>>,
    filling: Option<usize>,
    opened: u64,
    /// Maxima of each kernel, by kernel index; `None` as long as they are unknown.
    most: Vec<Option<Most>>,
    /// Maximum bytes in use at once.
    filled: u64,
}

impl Pool {
    /// Allocates all memory. With `ring`, logs are rings as long as possible, in one arena, and the first
    /// segments in `division` must suffice for them. With `overlaps`, launches may run concurrently.
    pub(super) fn new(
        device: &mut dyn Device,
        division: Division,
        tracks: u32,
        ring: bool,
        overlaps: bool,
    ) -> Result<Self, SessionError> {
        let mut memory = Memory::new(division.limit, division.place);
        let [claims, table, scratch, accounts, classes, chunks, logs] =
            memory.allocate_all(device, division.parts())?;
        Ok(Self {
            memory,
            division,
            chunks,
            claims,
            table,
            scratch,
            logs,
            accounts,
            classes,
            tracks,
            ring,
            // Ring logs claim no further segments.
            overlaps: overlaps && !ring,
            arenas: vec![None; if ring { 1 } else { division.arenas as usize }],
            filling: None,
            opened: 0,
            most: Vec::new(),
            filled: 0,
        })
    }

    pub(super) const fn arenas(overlaps: bool) -> u32 {
        if overlaps { ARENAS } else { 1 }
    }

    pub(super) fn memory_use(&self) -> MemoryUse {
        MemoryUse { limit: self.division.limit, peak: self.memory.peak(), filled: self.filled }
    }

    fn need(&self, info: &LaunchInfo) -> Need {
        let streams = self.streams_of(info);
        let account_bytes = self.division.accounts_of(self.tracks, info.chosen().count());
        let Most { claimed: [of_streams, of_lanes], parts, .. } =
            self.most(info.kernel()).unwrap_or_default();
        let wanted = wanted([self.overlaps, self.ring], &self.division, (streams, parts));
        let (claimed, least) = match wanted.lanes {
            // A larger launch has shorter first segments, so it may claim even if no earlier one has.
            LANES if self.overlaps => (of_lanes.or(of_streams), wanted.total(streams) / LEAST_CLAIMS_SHARE),
            LANES => (of_lanes.or(of_streams), 0),
            // Nothing is known about launches in which the other lanes must claim.
            _ if self.overlaps && of_streams.is_none() => (of_lanes, wanted.total(streams)),
            _ => (of_streams.max(of_lanes), 0),
        };
        Need { streams, account_bytes, claims: (2 * claimed.unwrap_or(0)).max(least), wanted }
    }

    fn streams_of(&self, info: &LaunchInfo) -> u64 {
        u64::from(self.tracks) * u64::from(info.chosen().count())
    }

    fn most(&self, kernel: u32) -> Option<Most> {
        self.most.get(kernel as usize).copied().flatten()
    }

    /// Returns true if the needs of these launches are known: earlier launches of the same kernels have
    /// ended, with at least half as many streams. The needs of rings are always known.
    fn are_known(&self, infos: &[LaunchInfo], needs: &[Need]) -> bool {
        let is_known = |(info, need): (&LaunchInfo, &Need)| {
            // Lanes with addresses claim far more if only one lane of each stream has a first segment.
            let is_of_layout = |most: &Most| most.claimed[usize::from(need.wanted.lanes == LANES)].is_some();
            self.most(info.kernel()).is_some_and(|most| {
                self.streams_of(info) <= 2 * most.streams
                    && (self.division.data_track == 0 || is_of_layout(&most))
            })
        };
        self.ring || infos.iter().zip(needs).all(is_known)
    }

    fn log_address(&self) -> u64 {
        self.logs.address.next_multiple_of(LOG_ALIGNMENT)
    }

    /// Reserves log memory for recorded launches that begin together. Returns the share of the arena and the
    /// logs of each launch. Fails if no memory is available now.
    pub(super) fn reserve(
        &mut self,
        infos: &[LaunchInfo],
        effort: Effort,
    ) -> Result<(Stay, Vec<LaunchLogs>), Short> {
        let needs: Vec<Need> = infos.iter().map(|info| self.need(info)).collect();
        let is_known = self.are_known(infos, &needs);
        // Partial arenas are for launches whose need is known.
        let parts = self.arenas.len() > 1 && is_known;
        if let Some(at) = self.filling
            && let Some(arena) = &self.arenas[at]
        {
            let layout = plan(arena, &self.division, &needs, effort);
            let (settled, unknown) = (arena.unsettled == 0, arena.unknown > 0);
            let is_enough = !(arena.is_whole && settled && parts) && (arena.is_whole || is_known);
            match (layout, effort) {
                (Ok(layout), Effort::Least) => return Ok(self.take(at, infos, (&layout, &needs), is_known)),
                (Ok(_), _) if unknown => return Err(Short::Unknown),
                (Ok(layout), _) if is_enough => return Ok(self.take(at, infos, (&layout, &needs), is_known)),
                _ => {}
            }
            if settled {
                self.close(at);
            }
        }
        if parts && let Some((at, layout)) = self.open_part(&needs) {
            return Ok(self.take(at, infos, (&layout, &needs), is_known));
        }
        if self.arenas.iter().any(Option::is_some) {
            return Err(Short::Room);
        }
        self.open(0, self.whole(), true, 0);
        let Some(arena) = &self.arenas[0] else { return Err(Short::Never) };
        // In an empty pool, a launch can use everything.
        let layout = plan(arena, &self.division, &needs, Effort::Ample)
            .or_else(|_| plan(arena, &self.division, &needs, Effort::Least));
        match layout {
            Ok(layout) => Ok(self.take(0, infos, (&layout, &needs), is_known)),
            Err(_) => {
                (self.arenas[0], self.filling) = (None, None);
                Err(Short::Never)
            }
        }
    }

    /// Returns the error for launches whose memory need exceeds the pool.
    pub(super) fn refusal(&self, infos: &[LaunchInfo]) -> SessionError {
        let streams = infos.iter().map(|info| self.need(info).streams).max().unwrap_or(0);
        let Division { limit, span_bytes, chunk_bytes, arenas, shortest, .. } = self.division;
        let needed = Division::least(streams, span_bytes, chunk_bytes, arenas, shortest);
        SessionError::Memory { streams, needed, limit }
    }

    /// Returns the log memory available to launches, and all accounts.
    fn whole(&self) -> (Range<u32>, Range<u64>) {
        (RESERVED_ENTRIES..self.division.logs_end(u64::MAX), 0..self.accounts.bytes)
    }

    fn part(&self, at: usize) -> (Range<u32>, Range<u64>) {
        let (logs, accounts) = self.whole();
        let count = self.arenas.len();
        let entry = |at: usize| {
            let entries = u64::from(logs.end - logs.start) * at as u64 / count as u64;
            logs.start + entries as u32 / MAX_SEGMENT_ENTRIES * MAX_SEGMENT_ENTRIES
        };
        let each = size_of::<WarpAccount>() as u64;
        let account = |at: usize| accounts.end / each * at as u64 / count as u64 * each;
        (entry(at)..entry(at + 1), account(at)..account(at + 1))
    }

    fn free_part(&self) -> Option<usize> {
        fn apart<T: Ord>(a: &Range<T>, b: &Range<T>) -> bool {
            a.end <= b.start || b.end <= a.start
        }
        let is_free = |at: &usize| {
            let (logs, accounts) = self.part(*at);
            let mut others = self.arenas.iter().flatten();
            self.arenas[*at].is_none()
                && others.all(|arena| apart(&arena.logs, &logs) && apart(&arena.accounts, &accounts))
        };
        (0..self.arenas.len()).filter(|_| self.arenas.len() > 1).find(is_free)
    }

    /// Opens a free part and closes the arena being filled. `None` if no part is free or large enough.
    fn open_part(&mut self, needs: &[Need]) -> Option<(usize, Layout)> {
        let at = self.free_part()?;
        let (part, filling) = (self.part(at), self.filling);
        let reserve = boundary(&part.0, needs);
        self.open(at, part, false, reserve);
        let layout =
            self.arenas[at].as_ref().and_then(|arena| plan(arena, &self.division, needs, Effort::Ample).ok());
        match layout {
            Some(layout) => {
                if let Some(before) = filling {
                    self.close(before);
                }
                self.filling = Some(at);
                Some((at, layout))
            }
            None => {
                // The whole of log memory may be enough.
                (self.arenas[at], self.filling) = (None, filling);
                self.opened -= 1;
                None
            }
        }
    }

    fn open(&mut self, at: usize, (logs, accounts): (Range<u32>, Range<u64>), is_whole: bool, reserve: u32) {
        let reserve = if is_whole { self.division.reserve() } else { reserve };
        self.opened += 1;
        self.filling = Some(at);
        self.arenas[at] = Some(Arena {
            stage: Stage::Filling,
            order: self.opened,
            accounts,
            claims: self.claims(at),
            is_whole,
            overlaps: self.overlaps,
            ring: self.ring,
            reserve,
            reserve_next: reserve,
            takes_all: false,
            claims_from: logs.start,
            claimed: 0,
            ahead: 0,
            unsettled: 0,
            unknown: 0,
            logs_end: logs.start,
            logs,
            accounts_used: 0,
            logged: Vec::new(),
            ended: Vec::new(),
        });
    }

    fn take(
        &mut self,
        at: usize,
        infos: &[LaunchInfo],
        (layout, needs): (&Layout, &[Need]),
        is_known: bool,
    ) -> (Stay, Vec<LaunchLogs>) {
        let addresses = [self.log_address(), self.accounts.address];
        let stay = Stay { at, ahead: needs.iter().map(|need| need.claims).sum(), is_known };
        let Some(arena) = &mut self.arenas[at] else { return (stay, Vec::new()) };
        arena.unsettled += 1;
        arena.unknown += usize::from(!is_known);
        arena.ahead += stay.ahead;
        (stay, arena.place(infos, layout, &self.division, self.tracks, addresses))
    }

    /// Admits no more launches to an arena. If its launches have ended, its unused memory becomes free.
    fn close(&mut self, at: usize) {
        if self.filling == Some(at) {
            self.filling = None;
        }
        let merged = self.division.log_entries - self.division.logs_end(u64::MAX);
        let Some(arena) = &mut self.arenas[at] else { return };
        arena.stage = Stage::Closed;
        if arena.logged.is_empty() && arena.ended.is_empty() && arena.unsettled == 0 {
            self.arenas[at] = None;
        } else if arena.overlaps && arena.is_whole && arena.unsettled == 0 {
            let end = arena.end_of_logs();
            // The space after all arenas is long enough to merge these logs.
            if end - arena.logs.start <= merged {
                arena.logs.end = end;
                arena.accounts.end = arena.accounts_used;
            }
        }
    }

    pub(super) fn claims(&self, at: usize) -> u64 {
        self.claims.address + at as u64 * size_of::<Claims>() as u64
    }

    /// Registers ended launches with their shares of arena `at`; `claimed` entries of it were claimed so far.
    pub(super) fn settle(&mut self, at: usize, claimed: u64, stays: &[(Stay, Vec<LaunchInfo>)]) {
        let Some(arena) = &mut self.arenas[at] else { return };
        let more = claimed.saturating_sub(arena.claimed);
        arena.claimed = arena.claimed.max(claimed);
        for (stay, infos) in stays {
            arena.leave(stay);
            arena.ended.extend(infos);
        }
        let infos = stays.iter().flat_map(|(_, infos)| infos).filter(|info| info.is_recorded());
        let of_lanes = |info: &LaunchInfo| {
            arena.logged.iter().any(|launch| launch.launch == info.number() && launch.first_lanes == LANES)
        };
        let launches: Vec<_> = infos.map(|info| (*info, usize::from(of_lanes(info)))).collect();
        let claimed = |most: &Most, layout: usize| most.claimed[layout].unwrap_or(0);
        let expected: u64 = launches
            .iter()
            .map(|(info, layout)| claimed(self.most_of(info.kernel()), *layout))
            .fold(0, u64::saturating_add);
        // Of launches that settle together, each may have claimed all that was not expected.
        let unexpected = more.saturating_sub(expected);
        for (info, layout) in launches {
            let streams = self.streams_of(&info);
            let most = self.most_of(info.kernel());
            most.claimed[layout] = Some(claimed(most, layout).saturating_add(unexpected));
            most.streams = most.streams.max(streams);
        }
    }

    /// Adds launches to the ended launches of their arena, at the end of the recording.
    pub(super) fn ends(&mut self, stay: &Stay, infos: &[LaunchInfo]) {
        if let Some(arena) = &mut self.arenas[stay.at] {
            arena.ended.extend(infos);
        }
    }

    pub(super) fn counters(&self) -> Vec<(usize, u64)> {
        let held = (0..self.arenas.len()).filter(|at| self.arenas[*at].is_some());
        held.map(|at| (at, self.claims(at))).collect()
    }

    /// Registers the behavior of a kernel's launch.
    pub(super) fn note_behavior(&mut self, kernel: u32, Behavior { parts, repeats }: Behavior) {
        let most = self.most_of(kernel);
        most.parts = Some(parts || most.parts.unwrap_or(false));
        most.repeats = Some(repeats);
    }

    /// Returns true if an arena may have enough equal streams for finding classes: after the last search, or in
    /// every sixteenth drain.
    fn may_repeat(&self, arena: &Arena) -> bool {
        let repeats = |info: &LaunchInfo| self.most(info.kernel()).and_then(|most| most.repeats);
        let mut recorded = arena.ended.iter().filter(|info| info.is_recorded());
        arena.order.is_multiple_of(SEARCHED_AGAIN) || recorded.any(|info| repeats(info) != Some(false))
    }

    fn most_of(&mut self, kernel: u32) -> &mut Most {
        let kernel = kernel as usize;
        if self.most.len() <= kernel {
            self.most.resize(kernel + 1, None);
        }
        self.most[kernel].get_or_insert_default()
    }

    /// Discards launches that failed or have not begun.
    pub(super) fn pass_over(&mut self, stay: &Stay, infos: &[LaunchInfo]) {
        if let Some(arena) = &mut self.arenas[stay.at] {
            arena.leave(stay);
            arena.pass_over(infos);
        }
    }

    /// Closes the arena being filled if all of its launches have settled or another part is free.
    pub(super) fn close_filling(&mut self) {
        let Some(at) = self.filling else { return };
        let is_settled = self.arenas[at].as_ref().is_some_and(|arena| arena.unsettled == 0);
        if is_settled || self.free_part().is_some() {
            self.close(at);
        }
    }

    pub(super) fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        let Self { claims, table, scratch, accounts, classes, chunks, logs, .. } = *self;
        let parts = [claims, table, scratch, accounts, classes, chunks, logs];
        parts.into_iter().try_for_each(|part| self.memory.free(device, part))
    }
}
