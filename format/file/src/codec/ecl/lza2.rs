//! LZa2: the match stage. It emits a count of bytes that repeat the continuation of an equal context, then a
//! literal. Encoder and decoder look up the same candidate, so the count needs no distance and no flag.

use super::EclParams;
use crate::event::RAW_EVENT_BYTES;
use crate::memory::Memory;

/// n: bytes of context that must be equal at a candidate.
pub const CONTEXT_BYTES: u32 = 2;
/// Largest count. A literal always follows a count.
pub const MAX_COUNT: u32 = 255;
/// Most bytes of one chunk. With [`RESTART_AT`] this keeps absolute positions inside `u32`.
pub const MAX_CHUNK_RAW_BYTES: u32 = 1 << 30;
/// A chunk that would start at or after this position clears the table and restarts at 0.
pub const RESTART_AT: u32 = 1 << 31;
/// Position word of the work memory while a chunk is open. It makes the next chunk clear the table.
const OPEN: u32 = u32::MAX;

/// Output for one input byte: nothing while a match continues, a literal, or a count and a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The bytes, the first in the low eight bits.
    pub bytes: u32,
    /// Number of bytes: 0, 1 or 2.
    pub len: u32,
}

/// Encoder state: six words, all zero at the start. Positions are absolute: they increase from chunk to
/// chunk, and from stream to stream in the same work memory. So the value of a table entry shows whether it
/// is older than the chunk. 0 is not a valid candidate, so zeroed work memory is an empty table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Lza2State {
    /// r: absolute position of the next byte.
    position: u32,
    base: u32,
    /// p of the open match: the position of the expected next byte; 0 without a candidate.
    match_at: u32,
    count: u32,
    /// h.
    hash: u32,
    /// The two bytes before `position`, the nearer one in the low eight bits.
    context: u32,
}

impl Lza2State {
    /// Creates a state for [`begin`](Self::begin).
    pub const fn new() -> Self {
        Self { position: 0, base: 0, match_at: 0, count: 0, hash: 0, context: 0 }
    }

    pub(super) const fn from_words(words: [u32; 6]) -> Self {
        let [position, base, match_at, count, hash, context] = words;
        Self { position, base, match_at, count, hash, context }
    }

    pub(super) const fn to_words(self) -> [u32; 6] {
        [self.position, self.base, self.match_at, self.count, self.hash, self.context]
    }

    /// Makes the next [`begin`](Self::begin) clear the tables, which may have any content.
    #[inline(always)]
    pub fn prepare<W: Memory>(params: &EclParams, work: &mut W) {
        work.set32(params.position_at(), RESTART_AT);
    }

    /// Starts a chunk. `work` is zeroed or holds the tables of an earlier chunk with the same parameters.
    /// They are cleared when positions run out (after 2 GiB of events) or after an unfinished chunk.
    #[inline(always)]
    pub fn begin<W: Memory>(&mut self, params: &EclParams, work: &mut W) {
        let mut position = work.get32(params.position_at());
        if position >= RESTART_AT {
            clear_table(params, work);
            position = 0;
        }
        work.set32(params.position_at(), OPEN);
        *self = Self { position, base: position, match_at: 0, count: 0, hash: 0, context: 0 };
    }

    /// Returns the number of bytes since [`begin`](Self::begin).
    #[inline(always)]
    pub const fn taken(&self) -> u32 {
        self.position - self.base
    }

    /// Appends one byte: the low eight bits of `byte`. The others are 0.
    #[inline(always)]
    pub fn push<W: Memory>(&mut self, params: &EclParams, work: &mut W, byte: u32) -> Emitted {
        let ring_at = params.ring_at();
        let ring_mask = params.window() - 1;
        let entry = self.hash << 2;
        if self.count == 0 {
            self.match_at = self.candidate(params, work, entry);
        }
        let matched = self.match_at != 0
            && self.count != MAX_COUNT
            && u32::from(work.get8(ring_at + (self.match_at & ring_mask))) == byte;

        work.set32(entry, self.position);
        work.set8(ring_at + (self.position & ring_mask), byte as u8);
        self.hash = params.next_hash(self.hash, byte);
        self.context = ((self.context << 8) | byte) & 0xffff;
        self.position += 1;

        if matched {
            self.match_at += 1;
            self.count += 1;
            return Emitted { bytes: 0, len: 0 };
        }
        let emitted = if self.match_at != 0 {
            Emitted { bytes: self.count | (byte << 8), len: 2 }
        } else {
            Emitted { bytes: byte, len: 1 }
        };
        self.count = 0;
        emitted
    }

    /// Appends a whole event and returns true if the open match continues over its five bytes. `low` holds
    /// its first four bytes, lowest first; `high` holds the fifth. Equivalent to five calls of
    /// [`push`](Self::push), but a long match waits for memory once per event.
    #[inline(always)]
    pub fn take_event<W: Memory>(&mut self, params: &EclParams, work: &mut W, low: u32, high: u32) -> bool {
        // A nearer candidate would expect bytes of this event, which are not in the ring yet.
        let far_enough = self.position - self.match_at >= RAW_EVENT_BYTES;
        if self.count == 0 || self.count > MAX_COUNT - RAW_EVENT_BYTES || !far_enough {
            return false;
        }
        let ring_at = params.ring_at();
        let ring_mask = params.window() - 1;
        let expected = |i: u32| u32::from(work.get8(ring_at + ((self.match_at + i) & ring_mask)));
        let expected_low = expected(0) | (expected(1) << 8) | (expected(2) << 16) | (expected(3) << 24);
        // `|` instead of `||`, so that the fifth byte is read together with the others.
        if (expected_low != low) | (expected(4) != high) {
            return false;
        }
        let mut rest = low;
        for i in 0..RAW_EVENT_BYTES {
            let byte = if i == RAW_EVENT_BYTES - 1 { high } else { rest & 0xff };
            rest >>= 8;
            work.set32(self.hash << 2, self.position + i);
            work.set8(ring_at + ((self.position + i) & ring_mask), byte as u8);
            self.hash = params.next_hash(self.hash, byte);
        }
        self.context = (low >> 16 & 0xff00) | high;
        self.position += RAW_EVENT_BYTES;
        self.match_at += RAW_EVENT_BYTES;
        self.count += RAW_EVENT_BYTES;
        true
    }

    /// Appends up to `left` more copies of an event while the open match continues over them. Returns their
    /// number. The caller has just appended `copies` copies one by one, and calls
    /// [`restore_ring`](Self::restore_ring) later. A match at a distance of one event predicts all copies.
    /// They write to the same five table entries, because a hash depends only on the last ceil(L / s) bytes;
    /// only the last positions remain. The next search reads at most the last two copies from the ring.
    #[inline(always)]
    pub fn take_copies<W: Memory>(
        &mut self,
        params: &EclParams,
        work: &mut W,
        event: [u8; RAW_EVENT_BYTES as usize],
        copies: u32,
        left: u32,
    ) -> u32 {
        let settled = copies >= 2 && copies * RAW_EVENT_BYTES >= params.hash_span();
        if !settled || self.count == 0 || self.position - self.match_at != RAW_EVENT_BYTES {
            return 0;
        }
        let room = (MAX_COUNT - self.count) / RAW_EVENT_BYTES;
        let chunk_room = (MAX_CHUNK_RAW_BYTES - self.taken()) / RAW_EVENT_BYTES;
        let room = if room < chunk_room { room } else { chunk_room };
        let taken = if left < room { left } else { room };
        if taken == 0 {
            return 0;
        }
        let bytes = taken * RAW_EVENT_BYTES;
        self.position += bytes;
        self.match_at += bytes;
        self.count += bytes;
        let mut i = 0;
        while i < RAW_EVENT_BYTES {
            work.set32(self.hash << 2, self.position - RAW_EVENT_BYTES + i);
            self.hash = params.next_hash(self.hash, u32::from(event[i as usize]));
            i += 1;
        }
        self.restore_ring(params, work, event, 2);
        taken
    }

    /// Writes the last `copies` appended copies of `event` to the ring, or as many as it holds.
    #[inline(always)]
    pub fn restore_ring<W: Memory>(
        &mut self,
        params: &EclParams,
        work: &mut W,
        event: [u8; RAW_EVENT_BYTES as usize],
        copies: u32,
    ) {
        let ring_at = params.ring_at();
        let ring_mask = params.window() - 1;
        let most = params.window() / RAW_EVENT_BYTES + 1;
        let copies = if copies < most { copies } else { most };
        let [a, b, c, d, e] = event;
        // The next bytes, lowest first, repeated cyclically.
        let mut next = u64::from(u32::from_le_bytes([a, b, c, d])) | u64::from(e) << 32;
        let mut at = self.position - copies * RAW_EVENT_BYTES;
        while at != self.position {
            if at.is_multiple_of(4) && self.position - at >= 4 {
                work.set32(ring_at + (at & ring_mask), next as u32);
                at += 4;
                next = (next >> 32 | next << 8) & 0xff_ffff_ffff;
            } else {
                work.set8(ring_at + (at & ring_mask), next as u8);
                at += 1;
                next = (next >> 8 | next << 32) & 0xff_ffff_ffff;
            }
        }
    }

    /// Ends the chunk with the literal of an open match. Stores the position for the next chunk.
    #[inline(always)]
    pub fn finish<W: Memory>(&mut self, params: &EclParams, work: &mut W) -> Emitted {
        work.set32(params.position_at(), self.position);
        if self.count == 0 {
            return Emitted { bytes: 0, len: 0 };
        }
        let bytes = (self.count - 1) | ((self.context & 0xff) << 8);
        self.count = 0;
        Emitted { bytes, len: 2 }
    }

    #[inline(always)]
    fn candidate<W: Memory>(&self, params: &EclParams, work: &W, entry: u32) -> u32 {
        let ring_at = params.ring_at();
        let ring_mask = params.window() - 1;
        let found = work.get32(entry);
        // Checks that the candidate's context is in this chunk (found >= base + 2, also false for older
        // entries and for 0) and still in the ring.
        let limit = self.taken().saturating_sub(CONTEXT_BYTES).min(params.max_distance());
        let distance = self.position.wrapping_sub(found);
        if distance.wrapping_sub(1) >= limit {
            return 0;
        }
        let far = u32::from(work.get8(ring_at + ((found - 2) & ring_mask)));
        let near = u32::from(work.get8(ring_at + ((found - 1) & ring_mask)));
        if (far << 8) | near == self.context { found } else { 0 }
    }
}

/// Clears the table. Inlined although rare: for a call in a branch the GPU's compiler saves barriers.
#[inline(always)]
fn clear_table<W: Memory>(params: &EclParams, work: &mut W) {
    let mut at = 0;
    while at < params.ring_at() {
        work.set32(at, 0);
        at += 4;
    }
}
