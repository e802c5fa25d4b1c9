//! The runs of a stream's logs, read by a warp.
//!
//! How many entries its log has, each lane has counted along the links. Now the warp reads all logs segment
//! by segment: the first segment of each log, which lie one behind the other, then the second of each log
//! that has one, and so on; a long segment in pieces. Of each such row of pieces the lanes read neighbouring
//! entries, four of each lane on their way at a time, and the links to the next row with them.

use warptrace_abi::log::{Entry, MAX_SEGMENT_ENTRIES};
use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt;
use warptrace_format::Memory;

use crate::lane_log::{Cursor, DeviceLogs, LogMemory, StreamLogs, follow};
use crate::memory::SharedMemory;
use crate::warp::{self, ALL, maximum};

/// Entries of a piece, at most.
const MAX_PIECE: u32 = MAX_SEGMENT_ENTRIES;
/// Bytes of a slot: index of the piece's first entry, its entries, position of its next run.
const SLOT_BYTES: u32 = 16;
const POSITION: u32 = 8;
/// Entries that a warp reads ahead: four of each lane.
const AHEAD: u32 = 4 * simt::WARP_LANES;

/// The logs of a stream; each lane has its own.
#[derive(Clone, Copy)]
pub(super) struct Logs {
    memory: DeviceLogs,
    stream: StreamLogs,
    /// The first entry of the lane's log.
    first: Cursor,
}

impl Logs {
    /// The logs of a stream, of which the lane's begins at an entry, not at a link.
    #[inline(always)]
    pub(super) fn new(pool: &PoolDescriptor, stream: StreamLogs, first: Cursor) -> Self {
        Self { memory: DeviceLogs { logs: pool.logs, end: pool.merged_from }, stream, first }
    }

    /// Hands over all runs, each with its position, the index of its entry and its words: those of the lane's
    /// own log have the positions from `start` on. Which lane hands over which does not matter. Returns the
    /// position after the last run of the lane's own log. From all lanes of the warp; `slots` are its own.
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
        // Entries of a segment that have not been read, without its link: the same for all logs that go on,
        // unless they are rings of which some entries were passed over.
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
            // The next row takes the slots.
            warp::sync_warp();
        }
    }
}

/// One piece of each log that goes on.
#[derive(Clone, Copy)]
struct PieceRow {
    slots: SharedMemory,
    /// Entries of the longest piece, at least one.
    length: u32,
    /// How many pieces there are, at least one.
    pieces: u32,
}

/// The number of an entry in a row.
#[derive(Clone, Copy)]
struct Number {
    /// Number of its piece.
    rank: u32,
    /// Whether there is such an entry.
    is_there: bool,
    /// Its index; of none, that of some other.
    index: u32,
}

impl PieceRow {
    /// Finds the entry with a number among those of the row.
    #[inline(always)]
    fn find(self, number: u32) -> Number {
        // `max` rules the division by 0 out for the compiler.
        let rank = (number / self.length.max(1)).min(self.pieces - 1);
        let offset = number - rank * self.length;
        let [piece, here] = self.slots.get64(SLOT_BYTES * rank);
        let is_there = offset < here;
        Number { rank, is_there, index: if is_there { piece + offset } else { piece } }
    }

    /// Reads the entry with the number `first` and the lane's. If there is none, another is read and not
    /// used.
    #[inline(always)]
    fn read(self, memory: DeviceLogs, first: u32) -> [u32; 4] {
        memory.entry(self.find(first + simt::lane()).index)
    }

    /// Hands over what [`read`](Self::read) has answered to each lane that has found a run. From all lanes of
    /// the warp.
    #[inline(always)]
    fn hand_over(self, first: u32, words: [u32; 4], take: &mut impl FnMut(u32, u32, [u32; 4])) {
        let (mut slots, lane) = (self.slots, simt::lane());
        let Number { rank, is_there, index } = self.find(first + lane);
        let is_run = is_there & Entry::from_words(words).is_run();
        let runs = warp::ballot(is_run);
        // The lanes that look at the same piece.
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
