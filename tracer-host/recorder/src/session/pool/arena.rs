//! A part of the pool that launches fill, and that is drained as one.

use std::ops::Range;

use warptrace_abi::log::{ENTRY_BYTES, FirstSegments, Fixed, LaunchLogs, LoggedLaunch};
use warptrace_format::file::LaunchInfo;

use super::super::memory::Division;
use super::Stay;
use super::plan::{Layout, claims_end, segment_entries};

/// What becomes of an arena: it fills, is closed, and is drained when all of its launches have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Filling,
    Closed,
    Draining,
}

/// Logs and accounts of launches, and where others have room next to them.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    pub(super) stage: Stage,
    /// Arenas are drained in this order.
    pub(super) order: u64,
    /// Entries of log memory.
    pub(super) logs: Range<u32>,
    /// Bytes of the accounts.
    pub(super) accounts: Range<u64>,
    /// Address of the counters of claims.
    pub(super) claims: u64,
    /// Whether it began with all of log memory.
    pub(super) is_whole: bool,
    /// Whether launches may run at the same time.
    pub(super) overlaps: bool,
    pub(super) ring: bool,
    /// The first entry for what is fixed of launches that begin while others run, and the first that is free.
    pub(super) reserve: u32,
    pub(super) reserve_next: u32,
    /// Whether its launch has the reserve, too.
    pub(super) takes_all: bool,
    /// The first entry of a claim if nothing was claimed before; and what was, as far as is known.
    pub(super) claims_from: u32,
    pub(super) claimed: u64,
    /// Further entries that may be claimed: by launches that run, or whose claims were not read since.
    pub(super) ahead: u64,
    /// How many tickets such launches have, and how many of them are the first of a kernel.
    pub(super) unsettled: usize,
    pub(super) unknown: usize,
    /// Index of the entry after the last one that launches may claim.
    pub(super) logs_end: u32,
    pub(super) accounts_used: u64,
    /// Launches that may have left logs.
    pub(super) logged: Vec<LoggedLaunch>,
    /// Launches that have ended, recorded or not.
    pub(super) ended: Vec<LaunchInfo>,
}

impl Arena {
    /// The first entry behind those that are claimed, or are fixed and no reserve's.
    pub(super) fn taken(&self) -> u64 {
        u64::from(self.claims_from) + self.claimed
    }

    pub(super) fn account_bytes(&self) -> u64 {
        self.accounts.end - self.accounts.start
    }

    /// Index of the entry behind all logs.
    pub(super) fn end_of_logs(&self) -> u32 {
        let taken = self.taken().min(self.logs_end.into()) as u32;
        if self.reserve_next > self.reserve { taken.max(self.reserve_next) } else { taken }
    }

    /// Entries that may hold something: those that were claimed or are fixed, and those of the reserve.
    pub(super) fn used(&self) -> [Range<u32>; 2] {
        let taken = self.taken().min(self.logs_end.into()) as u32;
        [self.logs.start..taken.max(self.logs.start), self.reserve..self.reserve_next.max(self.reserve)]
    }

    /// Bytes of logs and accounts that hold something, or are set aside for what is fixed.
    pub(super) fn filled(&self) -> u64 {
        let entries = if self.is_whole {
            u64::from(self.end_of_logs())
        } else {
            self.claimed.min(u64::from(self.reserve - self.claims_from))
                + u64::from(self.reserve_next - self.reserve)
        };
        self.accounts_used + entries * u64::from(ENTRY_BYTES)
    }

    /// Places launches as planned. `at` has the addresses of log memory and of accounts.
    pub(super) fn place(
        &mut self,
        infos: &[LaunchInfo],
        layout: &Layout,
        division: &Division,
        tracks: u32,
        [logs, accounts]: [u64; 2],
    ) -> Vec<LaunchLogs> {
        self.takes_all |= layout.takes_all;
        if let Some((last, _)) = layout.places.last() {
            match layout.in_reserve {
                true => self.reserve_next = last.end as u32,
                false => self.claims_from = (last.end - self.claimed) as u32,
            }
        }
        // They claim behind what all of them have.
        let place = |(info, (fixed, first)): (&LaunchInfo, &(Fixed, FirstSegments))| {
            // Warps that do not record have neither logs nor accounts.
            let chosen = info.chosen();
            let FirstSegments { lanes: first_lanes, entries: first_entries } = *first;
            let (warps, streams) = (chosen.count(), u64::from(tracks) * u64::from(chosen.count()));
            // Below the end of log memory.
            let first_segments = fixed.first_segments as u32;
            let claims_end = claims_end(self, division, streams, self.takes_all);
            self.logs_end = self.logs_end.max(claims_end);
            let ring = u32::from(self.ring);
            let segment_entries = match self.ring {
                true => first_entries / 2,
                false => segment_entries(streams, u64::from(claims_end).saturating_sub(self.taken())),
            };
            let accounts = accounts + self.accounts.start + self.accounts_used;
            self.accounts_used += division.accounts_of(tracks, warps);
            self.logged.push(LoggedLaunch {
                accounts,
                first_lanes,
                first_entries,
                segment_entries,
                warps,
                block_threads: chosen.block_threads(info.threads_per_block()),
                launch: info.number(),
                // Known when it is drained.
                first_stream: 0,
                tracks,
                first_segments,
                ring,
            });
            LaunchLogs {
                logs,
                claims: self.claims,
                accounts,
                first_lanes,
                warps,
                first_entries,
                segment_entries,
                claims_from: self.claims_from,
                claims_end,
                launch: info.number(),
                first_segments,
                ring,
                reserved: 0,
                chosen,
                unused: 0,
            }
        };
        infos.iter().zip(&layout.places).map(place).collect()
    }

    /// Notes that what launches may claim is known.
    pub(super) fn leave(&mut self, stay: &Stay) {
        self.unsettled -= 1;
        self.unknown -= usize::from(!stay.is_known);
        self.ahead -= stay.ahead;
    }

    /// Passes over what launches have logged: they failed, or have not begun.
    pub(super) fn pass_over(&mut self, infos: &[LaunchInfo]) {
        self.logged.retain(|logged| infos.iter().all(|info| info.number() != logged.launch));
    }
}
