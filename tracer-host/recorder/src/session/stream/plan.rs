//! Division of the memory in which rounds are encoded.
//!
//! ```text
//! seen                       4 bytes for each segment, kept between rounds
//! claims, claimed, table     counters, and the round's launch for merging
//! freed, links               4 bytes for each segment
//! new headers                8 bytes for each segment
//! indices                    4 bytes for each warp of the launch
//! scratch                    packed chunks
//! warps, outcomes            4 bytes for each warp of the round
//! firsts, accounts           128 and 32 bytes for each stream of the round
//! chunks                     encoded events
//! logs                       heads of flat logs, flat logs, and as much for merged runs
//! ```

use warptrace_abi::log::{ENTRY_BYTES, FLAT, FLAT_ENTRIES, LoggedLaunch, RESERVED_ENTRIES};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_abi::stream::StreamLogs;
use warptrace_encode::FlattenJob;
use warptrace_format::LANES;
use warptrace_format::account::WarpAccount;

use crate::Allocation;

const ALIGN: u64 = 256;
/// Rounds get `SHARE / SHARE_OF` of the session's memory, within these bounds.
const SHARE: u64 = 3;
const SHARE_OF: u64 = 8;
const MIN_BYTES: u64 = 1 << 20;
const MAX_BYTES: u64 = 1536 << 20;
/// Scratch gets at least 1 / `SCRATCH_SHARE` of the memory.
const SCRATCH_SHARE: u64 = 16;
/// The tables of a round's warps get at most 1 / `WARPS_SHARE` of the remaining memory.
const WARPS_SHARE: u64 = 4;
/// Chunks get 3 of 11 parts: a run is assumed to take 16 bytes in a flat log, 16 merged, and 12 in a chunk.
const CHUNK_PARTS: u64 = 3;
const ALL_PARTS: u64 = 11;
/// Minimum entries of flat logs and minimum chunks for useful rounds.
const MIN_ENTRIES: u64 = 1 << 12;
const MIN_CHUNKS: u64 = 16;

/// Returns the bytes of a session's memory for rounds; `None` if it is too small.
pub(super) fn area_bytes(limit: u64) -> Option<u64> {
    let bytes = (limit / SHARE_OF * SHARE).min(MAX_BYTES) / ALIGN * ALIGN;
    (bytes >= MIN_BYTES).then_some(bytes)
}

/// Returns the bytes at the start that are kept between rounds; set to 0 when the segments are laid out.
pub(super) fn seen_bytes(segment_count: u32) -> u64 {
    4 * u64::from(segment_count) + ALIGN
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) area: Allocation,
    pub(super) chunk_bytes: u32,
    pub(super) times: u32,
    pub(super) tracks: u32,
    pub(super) segment_count: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) max_warps: u32,
    pub(super) table: Allocation,
    pub(super) scratch: Allocation,
    pub(super) accounts: u64,
    pub(super) pool: PoolDescriptor,
    pub(super) job: FlattenJob,
}

struct Pieces {
    next: u64,
    end: u64,
}

impl Pieces {
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let at = self.next;
        self.next = at.checked_add(bytes)?.checked_next_multiple_of(ALIGN)?;
        (self.next <= self.end).then_some(at)
    }
}

impl Plan {
    /// Plans the rounds of a launch; `None` if the memory is too small.
    pub(super) fn new(room: Room, logs: &StreamLogs) -> Option<Self> {
        let Room { area, chunk_bytes, times, tracks, segment_count } = room;
        let (start, chunk) = (area.address.next_multiple_of(ALIGN), u64::from(chunk_bytes));
        let mut pieces = Pieces { next: start, end: area.address + area.bytes };
        // The first piece, so that it is at the same address for all launches.
        let seen = pieces.take(seen_bytes(segment_count))?;
        let claims = pieces.take(size_of::<Claims>() as u64)?;
        let claimed = pieces.take(16)?;
        let table_bytes = size_of::<LoggedLaunch>() as u64;
        let table = Allocation { address: pieces.take(table_bytes)?, bytes: table_bytes };
        let freed = pieces.take(16 + 4 * u64::from(segment_count))?;
        let links = pieces.take(4 * u64::from(segment_count))?;
        let new_headers = pieces.take(16 + 8 * u64::from(segment_count))?;
        let indices = pieces.take(4 * u64::from(logs.warps))?;
        let scratch_bytes = (area.bytes / SCRATCH_SHARE).max(chunk) + ALIGN;
        let scratch = Allocation { address: pieces.take(scratch_bytes)?, bytes: scratch_bytes };

        let account_bytes = size_of::<WarpAccount>() as u64;
        let of_stream = u64::from(4 * LANES) + account_bytes + u64::from(FLAT_ENTRIES * ENTRY_BYTES);
        let of_warp = 8 + u64::from(tracks) * of_stream;
        let remaining = (pieces.end - pieces.next).checked_sub(8 * ALIGN)?;
        let max_warps = (remaining / WARPS_SHARE / of_warp).min(logs.warps.into());
        let streams = max_warps * u64::from(tracks);
        let warps = pieces.take(4 * max_warps)?;
        let outcomes = pieces.take(4 * max_warps)?;
        let firsts = pieces.take(u64::from(4 * LANES) * streams)?;
        let accounts = pieces.take(account_bytes * streams)?;
        let flat_logs = RESERVED_ENTRIES.next_multiple_of(FLAT_ENTRIES);
        let flat_from = u64::from(flat_logs) + streams * u64::from(FLAT_ENTRIES);
        let head_bytes = flat_from * u64::from(ENTRY_BYTES);

        let remaining = (pieces.end - pieces.next).checked_sub(head_bytes + 4 * ALIGN)?;
        let chunk_count = remaining / ALL_PARTS * CHUNK_PARTS / chunk;
        let chunks = pieces.take(chunk_count * chunk)?;
        let entries = (pieces.end - pieces.next - head_bytes) / u64::from(ENTRY_BYTES) / 2;
        if max_warps == 0 || chunk_count < MIN_CHUNKS || entries < MIN_ENTRIES {
            return None;
        }
        // All are below 2^32: the memory for rounds is bounded.
        let flat_end = (flat_from + entries) as u32;
        let pool = PoolDescriptor {
            chunks,
            claims,
            logs: pieces.next,
            chunk_count: chunk_count as u32,
            chunk_bytes,
            merged_from: flat_end,
            merged_end: flat_end + entries as u32,
            times,
            // Streamed logs have no data track.
            data_track: 0,
            ..PoolDescriptor::default()
        };
        let job = FlattenJob {
            segments: logs.segments,
            links,
            firsts,
            warps,
            indices,
            outcomes,
            lost: logs.lost,
            freed,
            logs: pool.logs,
            claimed,
            seen,
            new_headers,
            launch_warps: logs.warps,
            launch: logs.launch,
            segment_count,
            segment_entries: logs.segment_entries,
            round_warps: 0,
            tracks,
            flat_logs,
            flat_from: flat_from as u32,
            flat_end,
            unused: 0,
        };
        Some(Self { max_warps: max_warps as u32, table, scratch, accounts, pool, job })
    }

    /// Returns the entry in the table of launches with which a round of this many warps is merged.
    pub(super) fn logged(&self, warps: u32) -> LoggedLaunch {
        LoggedLaunch {
            accounts: self.accounts,
            first_segments: self.job.flat_logs,
            warps,
            // Every lane has a head, also in partial warps.
            block_threads: LANES,
            launch: self.job.launch,
            tracks: self.job.tracks,
            ring: FLAT,
            ..LoggedLaunch::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planned_lies_in_the_memory_and_apart() {
        for limit in [64 << 20, 256 << 20, 1 << 30, 64 << 30_u64] {
            for (warps, tracks, segment_count) in [(1, 1, 2000), (300, 2, 40_000), (300_000, 1, 800_000)] {
                let bytes = area_bytes(limit).unwrap();
                let area = Allocation { address: (1 << 40) + 16, bytes };
                let room = Room { area, chunk_bytes: 4096, times: 0, tracks, segment_count };
                let logs = StreamLogs { warps, segment_entries: 64, ..StreamLogs::default() };
                let Some(plan) = Plan::new(room, &logs) else {
                    assert!(limit < 256 << 20);
                    continue;
                };
                let Plan { max_warps, pool, job, .. } = plan;
                assert!((1..=warps).contains(&max_warps));
                let streams = u64::from(max_warps * tracks);
                let mut parts = vec![
                    (pool.claims, 32),
                    (job.claimed, 8),
                    (job.seen, 4 * u64::from(segment_count)),
                    (job.new_headers, 16 + 8 * u64::from(segment_count)),
                    (plan.table.address, plan.table.bytes),
                    (plan.scratch.address, plan.scratch.bytes),
                    (job.freed, 16 + 4 * u64::from(segment_count)),
                    (job.links, 4 * u64::from(segment_count)),
                    (job.indices, 4 * u64::from(warps)),
                    (job.warps, 4 * u64::from(max_warps)),
                    (job.outcomes, 4 * u64::from(max_warps)),
                    (job.firsts, 128 * streams),
                    (plan.accounts, 32 * streams),
                    (pool.chunks, u64::from(pool.chunk_count) * 4096),
                    (pool.logs, 16 * u64::from(pool.merged_end)),
                ];
                parts.sort_unstable();
                assert!(parts.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{parts:?}");
                let (first, last) = (parts[0], parts[parts.len() - 1]);
                assert!(first.0 >= area.address && last.0 + last.1 <= area.address + area.bytes);
                assert!(parts.iter().all(|(at, _)| at % ALIGN == 0));
                assert!(job.flat_from >= job.flat_logs + streams as u32 * FLAT_ENTRIES);
                assert_eq!(job.flat_end - job.flat_from, pool.merged_end - pool.merged_from);
            }
        }
    }
}
