//! Merges sorted lists of keys into one, and brings the runs into that order. Each run of a stream has a key
//! of 8 bytes: its start time since the earliest run, and the index of its entry. Memory holds two keys per
//! run. Keys move from one half of the memory to the other and back, and each move halves the number of
//! lists. Each thread of the team writes an equal part of the new lists, key by key. A binary search finds
//! where its part begins in the two old lists. Small sets of keys are in shared memory. Larger ones are in
//! the memory that is reserved for the merged runs.
//!
//! Entries without a run have keys too, which come last, so lists stay sorted. At the end, the keys are in
//! the second half, and the merged runs are written from the start: a run overwrites only its own key and
//! keys of earlier runs.

use warptrace_abi::log::Entry;
use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt;
use warptrace_format::Memory;

use super::shared::{MAX_SHARED_KEYS, MergedRuns, WarpShared};
use crate::memory::{GlobalMemory, SharedMemory, at_entry};
use crate::merged::merged_words;
use crate::warp::{self, NEVER};

pub(super) const KEY_BYTES: u32 = 8;

/// The threads that sort a stream: a warp, or a block.
#[derive(Clone, Copy)]
pub(super) struct Team<const BLOCK: bool>;

impl<const BLOCK: bool> Team<BLOCK> {
    #[inline(always)]
    fn index(self) -> u32 {
        if BLOCK { simt::linear_thread() } else { simt::lane() }
    }

    #[inline(always)]
    fn threads(self) -> u32 {
        if BLOCK { simt::block_threads() } else { simt::WARP_LANES }
    }

    /// Synchronizes the team and makes its writes visible to all members.
    #[inline(always)]
    fn meet(self) {
        if BLOCK {
            warp::sync_threads();
        } else {
            warp::sync_warp();
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Key {
    /// Time since the earliest run.
    pub(super) since: u32,
    pub(super) index: u32,
}

impl Key {
    /// The key of an entry without a run. It sorts last.
    pub(super) const NO_RUN: Self = Self { since: NEVER, index: 0 };
}

/// One half of the key memory of a stream.
pub(super) trait Keys: Copy {
    fn get(self, position: u32) -> Key;
    fn set(self, position: u32, key: Key);
}

#[derive(Clone, Copy)]
pub(super) struct SharedKeys {
    memory: SharedMemory,
    at: u32,
}

impl SharedKeys {
    #[inline(always)]
    pub(super) fn halves(work: WarpShared) -> [Self; 2] {
        let memory = work.keys;
        [Self { memory, at: 0 }, Self { memory, at: MAX_SHARED_KEYS * KEY_BYTES }]
    }
}

impl Keys for SharedKeys {
    #[inline(always)]
    fn get(self, position: u32) -> Key {
        let [since, index] = self.memory.get64(self.at + KEY_BYTES * position);
        Key { since, index }
    }

    #[inline(always)]
    fn set(mut self, position: u32, key: Key) {
        self.memory.set64(self.at + KEY_BYTES * position, [key.since, key.index]);
    }
}

#[derive(Clone, Copy)]
pub(super) struct GlobalKeys {
    address: u64,
}

impl GlobalKeys {
    #[inline(always)]
    pub(super) fn halves(pool: &PoolDescriptor, merged: &MergedRuns) -> [Self; 2] {
        let address = at_entry(pool.logs, merged.first).address();
        [Self { address }, Self { address: address + u64::from(merged.keys) * u64::from(KEY_BYTES) }]
    }

    #[inline(always)]
    fn at(self, position: u32) -> GlobalMemory {
        GlobalMemory::new(self.address + u64::from(position) * u64::from(KEY_BYTES))
    }
}

impl Keys for GlobalKeys {
    #[inline(always)]
    fn get(self, position: u32) -> Key {
        let [since, index] = self.at(position).get64(0);
        Key { since, index }
    }

    #[inline(always)]
    fn set(self, position: u32, key: Key) {
        self.at(position).set64(0, [key.since, key.index]);
    }
}

/// Returns how often the number of lists must be halved until one is left.
#[inline(always)]
fn levels(lists: u32) -> u32 {
    (lists - 1).checked_ilog2().map_or(0, |highest| highest + 1)
}

/// Returns the half that must hold the unsorted keys, so that the sorted keys are in the second half.
#[inline(always)]
pub(super) fn unsorted<K: Keys>([first, second]: [K; 2], lists: u32) -> K {
    if levels(lists).is_multiple_of(2) { second } else { first }
}

/// Sorts the keys of a stream with several lists. If a list is not sorted, sets a flag in shared memory.
#[inline(always)]
pub(super) fn sort<const BLOCK: bool, K: Keys>(
    work: WarpShared,
    merged: &MergedRuns,
    [first, second]: [K; 2],
    team: Team<BLOCK>,
) {
    let levels = levels(merged.lists);
    // An odd length, so that threads access different banks.
    let each = merged.keys.div_ceil(team.threads()) | 1;
    let begin = (team.index() * each).min(merged.keys);
    let end = (begin + each).min(merged.keys);
    let mut level = 0;
    while level < levels {
        let is_second = (levels - level).is_multiple_of(2);
        let (from, to) = if is_second { (second, first) } else { (first, second) };
        if begin < end {
            merge_part(work, levels, level, from, to, begin, end);
        }
        team.meet();
        level += 1;
    }
}

/// Two lists that become one.
#[derive(Clone, Copy)]
struct Pair {
    list: u32,
    /// Start of the first list, start of the second, and end of both.
    start: u32,
    middle: u32,
    end: u32,
}

impl Pair {
    #[inline(always)]
    fn new(work: WarpShared, list: u32, step: u32) -> Self {
        let (start, middle) = (work.start(list), work.start(list + step));
        Self { list, start, middle, end: work.start(list + 2 * step) }
    }

    /// Returns the pair that contains a position, after `level` of `levels` halvings of the number of lists.
    #[inline(always)]
    fn at_position(work: WarpShared, levels: u32, level: u32, position: u32) -> Self {
        // Binary search for the last list that starts at or before the position.
        let (mut list, mut step) = (0, 1 << (levels - 1));
        while step > 1 << level {
            list += if work.start(list + step) <= position { step } else { 0 };
            step /= 2;
        }
        Self::new(work, list, step)
    }

    /// Returns how many of the first `count` merged keys are from the first list.
    #[inline(always)]
    fn split<K: Keys>(&self, keys: K, count: u32) -> u32 {
        let mut minimum = count.saturating_sub(self.end - self.middle);
        let mut maximum = count.min(self.middle - self.start);
        while minimum < maximum {
            let first = minimum + (maximum - minimum) / 2;
            let (one, other) = (keys.get(self.middle + (count - 1 - first)), keys.get(self.start + first));
            if one.since < other.since {
                maximum = first;
            } else {
                minimum = first + 1;
            }
        }
        minimum
    }
}

/// Writes the positions from `begin` to `end` of the merged lists.
#[inline(always)]
fn merge_part<K: Keys>(work: WarpShared, levels: u32, level: u32, from: K, to: K, begin: u32, end: u32) {
    let mut pair = Pair::at_position(work, levels, level, begin);
    let firsts = pair.split(from, begin - pair.start);
    let (mut one, mut other) = (pair.start + firsts, pair.middle + (begin - pair.start - firsts));
    // At the end of a list, reads an arbitrary valid key that is not used.
    let get = |position: u32, end: u32| from.get(if position < end { position } else { begin });
    let (mut first, mut second) = (get(one, pair.middle), get(other, pair.end));
    let mut position = begin;
    while position < end {
        if position == pair.end {
            pair = Pair::new(work, pair.list + (2 << level), 1 << level);
            (one, other) = (pair.start, pair.middle);
            (first, second) = (get(one, pair.middle), get(other, pair.end));
        }
        // Checks whether the lists are sorted at their old positions. A pair of lists keeps its positions.
        if level == 0
            && position != pair.start
            && position != pair.middle
            && from.get(position).since < from.get(position - 1).since
        {
            work.set_unsorted();
        }
        let is_second = (one == pair.middle) | ((other != pair.end) & (second.since < first.since));
        let (taken, end) = if is_second { (second, pair.end) } else { (first, pair.middle) };
        to.set(position, taken);
        let next_at = if is_second { other + 1 } else { one + 1 };
        let next = get(next_at, end);
        if is_second {
            (other, second) = (next_at, next);
        } else {
            (one, first) = (next_at, next);
        }
        position += 1;
    }
}

/// Runs that a thread gathers at once, to keep that many loads in flight.
const AT_ONCE: usize = 4;

#[inline(always)]
pub(super) fn gather<const BLOCK: bool, K: Keys>(
    pool: &PoolDescriptor,
    merged: &MergedRuns,
    [_, keys]: [K; 2],
    team: Team<BLOCK>,
) {
    let mut first = 0;
    while first < merged.kept {
        let (mut indices, mut runs) = ([0; AT_ONCE], [[0; 4]; AT_ONCE]);
        let own = first + team.index();
        let mut i = 0;
        while i < AT_ONCE {
            let position = (own + i as u32 * team.threads()).min(merged.keys - 1);
            indices[i] = keys.get(position).index;
            i += 1;
        }
        i = 0;
        while i < AT_ONCE {
            // In damaged logs, some positions hold arbitrary data instead of a key.
            let index = indices[i].min(pool.merged_end - 1);
            runs[i] = merged_words(Entry::from_words(at_entry(pool.logs, index).get128(0)));
            i += 1;
        }
        // Reads all runs before their keys are overwritten.
        team.meet();
        i = 0;
        while i < AT_ONCE {
            let position = own + i as u32 * team.threads();
            if position < merged.kept {
                at_entry(pool.logs, merged.first + position).set128(0, runs[i]);
            }
            i += 1;
        }
        first += AT_ONCE as u32 * team.threads();
    }
    team.meet();
}
