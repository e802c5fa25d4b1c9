//! Reads the runs of a stream's logs with one warp. Each lane has counted the entries of its log along the
//! links. The warp now reads all logs segment by segment: the first segment of each log (these are adjacent
//! in memory), then the second segment of each log that has one, and so on. It splits long segments into
//! pieces. The pieces that are read together form a row. Lanes read adjacent entries of a row, with four
//! loads per lane in flight, together with the links to the next row.

use warptrace_abi::log::{Entry, MAX_SEGMENT_ENTRIES};
use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt;
use warptrace_format::Memory;

use crate::lane_log::{Cursor, DeviceLogs, LogMemory, StreamLogs, follow};
use crate::memory::SharedMemory;
use crate::warp::{self, ALL, maximum};

const MAX_PIECE: u32 = MAX_SEGMENT_ENTRIES;
/// Bytes of a slot: index of the piece's first entry, its number of entries, position of its next run.
const SLOT_BYTES: u32 = 16;
const POSITION: u32 = 8;
/// Entries that a warp prefetches: four per lane.
const AHEAD: u32 = 4 * simt::WARP_LANES;

#[derive(Clone, Copy)]
pub(super) struct Logs {
    memory: DeviceLogs,
    stream: StreamLogs,
    first: Cursor,
}

impl Logs {
    /// Creates a reader. `first` is at an entry of the lane's log, not at a link.
    #[inline(always)]
    pub(super) fn new(pool: &PoolDescriptor, stream: StreamLogs, first: Cursor) -> Self {
        Self { memory: DeviceLogs { logs: pool.logs, end: pool.merged_from }, stream, first }
    }

    /// Calls `take` for all runs with their position, entry index and words. The lane's log has the positions
    /// from `start` on, but any lane may pass its runs to `take`. Returns the position after the log's last
    /// run. All lanes of the warp call it; each warp needs separate `slots`.
    #[inline(always)]
    pub(super) fn for_each(
        &self,
        slots: SharedMemory,
        start: u32,
        mut take: impl FnMut(u32, u32, [u32; 4]),
    ) -> u32 {
        let (mut slots, lane) = (slots, simt::lane());
        let Cursor { index: mut piece, link, mut remaining } = self.first;
        let mut position = start;
        // Unread entries of a segment, without its link. All remaining logs have the same number, except
        // rings in which entries were skipped.
        let mut length = link - piece;
        loop {
            let most = length.min(MAX_PIECE);
            let here = remaining.min(most);
            let owners = warp::ballot(here != 0);
            if owners == 0 {
                return position;
            }
            let has_piece = here != 0;
            let rank = (owners & ((1 << lane) - 1)).count_ones();
            if has_piece {
                slots.set128(SLOT_BYTES * rank, [piece, here, position, 0]);
            }
            remaining -= here;
            if most < length {
                piece += most;
                length -= most;
            } else {
                if remaining != 0 {
                    match follow(self.memory, piece + length, self.stream) {
                        Some(next) => piece = next,
                        None => remaining = 0,
                    }
                }
                length = self.stream.segment_entries - 1;
            }
            warp::sync_warp();
            let row = PieceRow { slots, length: maximum(here), pieces: owners.count_ones() };
            let mut first = 0;
            let mut ahead = row.read(self.memory, AHEAD - simt::WARP_LANES);
            let (mut a, mut b) = (row.read(self.memory, 0), row.read(self.memory, simt::WARP_LANES));
            let mut c = row.read(self.memory, 2 * simt::WARP_LANES);
            while first < row.pieces * row.length {
                row.hand_over(first, a, &mut take);
                (a, b, c) = (b, c, ahead);
                ahead = row.read(self.memory, first + AHEAD);
                first += simt::WARP_LANES;
            }
            if has_piece {
                position = slots.get32(SLOT_BYTES * rank + POSITION);
            }
            // The next row overwrites the slots.
            warp::sync_warp();
        }
    }
}

#[derive(Clone, Copy)]
struct PieceRow {
    slots: SharedMemory,
    /// Entries of the longest piece, at least one.
    length: u32,
    /// At least one.
    pieces: u32,
}

#[derive(Clone, Copy)]
struct Number {
    rank: u32,
    is_there: bool,
    /// Index of the entry. If it does not exist, index of another entry.
    index: u32,
}

impl PieceRow {
    #[inline(always)]
    fn find(self, number: u32) -> Number {
        // `max` shows the compiler that the divisor is not 0.
        let rank = (number / self.length.max(1)).min(self.pieces - 1);
        let offset = number - rank * self.length;
        let [piece, here] = self.slots.get64(SLOT_BYTES * rank);
        let is_there = offset < here;
        Number { rank, is_there, index: if is_there { piece + offset } else { piece } }
    }

    /// Reads the lane's entry, number `first` plus the lane. If it does not exist, reads another, unused one.
    #[inline(always)]
    fn read(self, memory: DeviceLogs, first: u32) -> [u32; 4] {
        memory.entry(self.find(first + simt::lane()).index)
    }

    /// Passes the entries from [`read`](Self::read) that hold runs to `take`. All lanes of the warp call it.
    #[inline(always)]
    fn hand_over(self, first: u32, words: [u32; 4], take: &mut impl FnMut(u32, u32, [u32; 4])) {
        let (mut slots, lane) = (self.slots, simt::lane());
        let Number { rank, is_there, index } = self.find(first + lane);
        let is_run = is_there & Entry::from_words(words).is_run();
        let runs = warp::ballot(is_run);
        // Mask of the lanes with runs of the same piece.
        let begin = (rank * self.length).saturating_sub(first);
        let end = (rank * self.length + self.length - first).min(simt::WARP_LANES);
        let same = runs & (ALL >> (simt::WARP_LANES - end)) & !((1 << begin) - 1);
        let at = SLOT_BYTES * rank + POSITION;
        let position = slots.get32(at);
        if is_run {
            take(position + (same & ((1 << lane) - 1)).count_ones(), index, words);
        }
        warp::sync_warp();
        if lane == begin {
            slots.set32(at, position + same.count_ones());
        }
        warp::sync_warp();
    }
}
