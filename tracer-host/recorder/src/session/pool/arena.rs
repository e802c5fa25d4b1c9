//! An arena: a part of the pool that launches fill, and that is drained as a unit.

use std::ops::Range;

use warptrace_abi::log::{ENTRY_BYTES, FirstSegments, Fixed, LaunchLogs, LoggedLaunch};
use warptrace_format::file::LaunchInfo;

use super::super::memory::Division;
use super::Stay;
use super::plan::{Layout, claims_end, segment_entries};

/// State of an arena. A closed arena is drained when all of its launches have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Filling,
    Closed,
    Draining,
}

/// Logs and accounts of launches, and the free space next to them.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    pub(super) stage: Stage,
    pub(super) order: u64,
    /// Entries of log memory.
    pub(super) logs: Range<u32>,
    /// Bytes of the accounts.
    pub(super) accounts: Range<u64>,
    /// Address of the counters of claims.
    pub(super) claims: u64,
    pub(super) is_whole: bool,
    pub(super) overlaps: bool,
    pub(super) ring: bool,
    /// First entry of the reserve, for fixed segments of overlapping launches, and its first free entry.
    pub(super) reserve: u32,
    pub(super) reserve_next: u32,
    pub(super) takes_all: bool,
    /// First entry for claims, and number of claimed entries as far as known.
    pub(super) claims_from: u32,
    pub(super) claimed: u64,
    /// Entries that may still be claimed, by running launches or launches whose counters were not read since.
    pub(super) ahead: u64,
    /// Number of tickets of such launches, and how many of them have an unknown need.
    pub(super) unsettled: usize,
    pub(super) unknown: usize,
    /// End of the entries that launches may claim.
    pub(super) logs_end: u32,
    pub(super) accounts_used: u64,
    /// Launches that may have left logs.
    pub(super) logged: Vec<LoggedLaunch>,
    pub(super) ended: Vec<LaunchInfo>,
}

impl Arena {
    /// Returns the end of the entries that are claimed, or fixed outside the reserve.
    pub(super) fn taken(&self) -> u64 {
        u64::from(self.claims_from) + self.claimed
    }

    pub(super) fn account_bytes(&self) -> u64 {
        self.accounts.end - self.accounts.start
    }

    pub(super) fn end_of_logs(&self) -> u32 {
        let taken = self.taken().min(self.logs_end.into()) as u32;
        if self.reserve_next > self.reserve { taken.max(self.reserve_next) } else { taken }
    }

    /// Returns the entries that may be in use: claimed and fixed ones, and the used part of the reserve.
    pub(super) fn used(&self) -> [Range<u32>; 2] {
        let taken = self.taken().min(self.logs_end.into()) as u32;
        [self.logs.start..taken.max(self.logs.start), self.reserve..self.reserve_next.max(self.reserve)]
    }

    /// Returns the bytes of logs and accounts that are in use or fixed.
    pub(super) fn filled(&self) -> u64 {
        let entries = if self.is_whole {
            u64::from(self.end_of_logs())
        } else {
            self.claimed.min(u64::from(self.reserve - self.claims_from))
                + u64::from(self.reserve_next - self.reserve)
        };
        self.accounts_used + entries * u64::from(ENTRY_BYTES)
    }

    /// Places launches as planned. `logs` and `accounts` are the addresses of log memory and accounts.
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
        // Claims begin after the fixed segments of all launches.
        let place = |(info, (fixed, first)): (&LaunchInfo, &(Fixed, FirstSegments))| {
            // Unrecorded warps have neither logs nor accounts.
            let chosen = info.chosen();
            let FirstSegments { lanes: first_lanes, entries: first_entries } = *first;
            let (warps, streams) = (chosen.count(), u64::from(tracks) * u64::from(chosen.count()));
            // The index is below the end of log memory.
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
                // Set when the arena is drained.
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

    /// Removes the share of launches whose claims are known.
    pub(super) fn leave(&mut self, stay: &Stay) {
        self.unsettled -= 1;
        self.unknown -= usize::from(!stay.is_known);
        self.ahead -= stay.ahead;
    }

    pub(super) fn pass_over(&mut self, infos: &[LaunchInfo]) {
        self.logged.retain(|logged| infos.iter().all(|info| info.number() != logged.launch));
    }
}
