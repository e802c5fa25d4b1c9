use std::ops::Range;

use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::PoolDescriptor;
use warptrace_format::file::LaunchInfo;

use super::Pool;
use super::arena::{Arena, Stage};
use crate::session::memory::Division;
use crate::{Allocation, MemoryType};

/// An arena in the form for a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Filled {
    pub(in super::super) arena: usize,
    pub(in super::super) pool: PoolDescriptor,
    pub(in super::super) logged: Vec<LoggedLaunch>,
    pub(in super::super) table: Allocation,
    pub(in super::super) scratch: Allocation,
    /// Address and bytes of the used accounts.
    pub(in super::super) accounts: (u64, u64),
    /// Entries of log memory that may be in use.
    pub(in super::super) logs: [Range<u32>; 2],
    /// Addresses of the `finished` fields of warps that have not finished.
    pub(in super::super) unfinished: Vec<u64>,
    /// Bytes of a warp's span; spans follow the accounts of their launch. 0 if spans are not recorded.
    pub(in super::super) span_bytes: u64,
    pub(in super::super) on_host: bool,
    /// Launches that have ended, recorded or not, ordered by number.
    pub(in super::super) launches: Vec<LaunchInfo>,
}

impl Pool {
    /// Returns true if the arena being filled is full enough for a drain while the program continues.
    pub(in super::super) fn should_drain(&self) -> bool {
        let filling = self.filling.and_then(|at| self.arenas[at].as_ref());
        filling.is_some_and(|arena| {
            4 * arena.taken() >= 3 * u64::from(arena.logs_end)
                || 4 * arena.accounts_used >= 3 * arena.account_bytes()
        })
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.arenas.iter().flatten().all(|arena| arena.logged.is_empty() && arena.ended.is_empty())
    }

    /// Returns true if a closed arena waits for its launches to end.
    pub(in super::super) fn is_closing(&self) -> bool {
        self.arenas.iter().flatten().any(|arena| arena.stage == Stage::Closed)
    }

    /// Returns the oldest closed arena whose launches have ended. At most one arena is drained at a time.
    pub(in super::super) fn next_filled(&mut self) -> Option<Filled> {
        if self.arenas.iter().flatten().any(|arena| arena.stage == Stage::Draining) {
            return None;
        }
        let is_ready = |arena: &Arena| arena.stage == Stage::Closed && arena.unsettled == 0;
        let ready = (0..self.arenas.len()).filter(|at| self.arenas[*at].as_ref().is_some_and(is_ready));
        let at = ready.min_by_key(|at| self.arenas[*at].as_ref().map(|arena| arena.order))?;
        self.arenas[at].as_mut()?.stage = Stage::Draining;
        self.filled(at)
    }

    /// Returns the arenas in use, in order, and whether part of each may be in the file already.
    pub(in super::super) fn take_all(&mut self, claimed: &[(usize, u64)]) -> Vec<(Filled, bool)> {
        for (at, claimed) in claimed {
            if let Some(arena) = &mut self.arenas[*at] {
                arena.claimed = arena.claimed.max(*claimed);
            }
        }
        let mut all: Vec<(u64, usize, bool)> = Vec::new();
        for (at, arena) in self.arenas.iter().enumerate() {
            all.extend(arena.as_ref().map(|arena| (arena.order, at, arena.stage == Stage::Draining)));
        }
        all.sort_unstable();
        all.into_iter().filter_map(|(_, at, is_drained)| Some((self.filled(at)?, is_drained))).collect()
    }

    fn filled(&mut self, at: usize) -> Option<Filled> {
        let (logs, accounts) = (self.log_address(), self.accounts.address);
        let Division { chunk_count, chunk_bytes, log_entries, times, data_track, .. } = self.division;
        let behind_all = self.division.logs_end(u64::MAX);
        let claims = self.claims(at);
        let may_repeat = self.may_repeat(self.arenas[at].as_ref()?);
        let finds_classes = times == 0 && !self.ring && may_repeat;
        let arena = self.arenas[at].as_mut()?;
        // Merged runs may use all log memory that holds no logs and gets none during the drain.
        let has_all = arena.is_whole && arena.logs.end == behind_all || !arena.overlaps;
        let merged_from = if has_all { arena.end_of_logs() } else { behind_all };
        let used = arena.used();
        let mut logged = arena.logged.clone();
        let mut streams = 0;
        for launch in &mut logged {
            launch.first_stream = streams;
            streams += launch.tracks * launch.warps;
        }
        // Four bytes per stream, and 6 to 12 bytes per stream for the table.
        let class_slots = if finds_classes && streams > 1 { 1 << (3 * streams).ilog2() } else { 0 };
        let mut launches = arena.ended.clone();
        launches.sort_unstable_by_key(LaunchInfo::number);
        Some(Filled {
            arena: at,
            pool: PoolDescriptor {
                chunks: self.chunks.address,
                claims,
                logs,
                chunk_count,
                chunk_bytes,
                merged_from,
                merged_end: log_entries,
                times,
                data_track,
                classes: if class_slots == 0 { 0 } else { self.classes.address },
                class_slots,
                reserved: 0,
            },
            logged,
            table: self.table,
            scratch: self.scratch,
            accounts: (accounts + arena.accounts.start, arena.accounts_used),
            logs: used,
            unfinished: Vec::new(),
            span_bytes: self.division.span_bytes,
            on_host: self.division.place == MemoryType::Host,
            launches,
        })
    }

    /// Frees a drained arena. Its merged runs and chunks took at most `bytes` bytes.
    pub(in super::super) fn emptied(&mut self, at: usize, bytes: u64) {
        let logs: u64 = self.arenas.iter().flatten().map(Arena::filled).sum();
        self.filled = self.filled.max(logs + bytes);
        self.arenas[at] = None;
    }
}
