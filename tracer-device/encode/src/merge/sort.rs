//! Sorted lists of keys, merged into one, and the runs brought into that order.
//!
//! Each run of a stream has a key of 8 bytes: when it began, since the earliest run, and the index of its
//! entry. There is memory for two keys a run. So keys move from one half into the other and back, each time
//! with half as many lists. Each thread of the team makes an equal part of the new lists, key by key; a
//! binary search finds where its part begins in the two old ones. Keys of few runs are in shared memory;
//! those of more in the memory that has been claimed for the merged runs.
//!
//! Entries that hold no run have keys too, which come last; their lists are then sorted all the same.
//!
//! In the end the keys are in the second half, and the merged runs are written from the start on: a run
//! overwrites no key but those of runs before it and its own.

use warptrace_abi::log::Entry;
use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt;
use warptrace_format::Memory;

use super::shared::{MAX_SHARED_KEYS, MergedRuns, WarpShared};
use crate::memory::{GlobalMemory, SharedMemory, at_entry};
use crate::merged::merged_words;
use crate::warp::{self, NEVER};

/// Bytes of a key.
pub(super) const KEY_BYTES: u32 = 8;

/// The threads that sort a stream: those of a warp, or all of a block.
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

    /// Waits for all of the team. What they have written can be read then.
    #[inline(always)]
    fn meet(self) {
        if BLOCK {
            warp::sync_threads();
        } else {
            warp::sync_warp();
        }
    }
}

/// When a run began, and where it is.
#[derive(Clone, Copy)]
pub(super) struct Key {
    /// Time since the earliest run.
    pub(super) since: u32,
    /// Index of its entry.
    pub(super) index: u32,
}

impl Key {
    /// The key of an entry that holds no run: it comes after all others.
    pub(super) const NO_RUN: Self = Self { since: NEVER, index: 0 };
}

/// The keys of a stream, one half of their memory.
pub(super) trait Keys: Copy {
    /// Reads the key at a position.
    fn get(self, position: u32) -> Key;
    /// Writes the key at a position.
    fn set(self, position: u32, key: Key);
}

/// Keys in shared memory.
#[derive(Clone, Copy)]
pub(super) struct SharedKeys {
    memory: SharedMemory,
    at: u32,
}

impl SharedKeys {
    /// Both halves, of the warp's own.
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

/// Keys in log memory.
#[derive(Clone, Copy)]
pub(super) struct GlobalKeys {
    address: u64,
}

impl GlobalKeys {
    /// Both halves, where the merged runs are to be.
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

/// How often lists become half as many until there is one.
#[inline(always)]
fn levels(lists: u32) -> u32 {
    (lists - 1).checked_ilog2().map_or(0, |highest| highest + 1)
}

/// Chooses the half in which keys must be at first, so that they are in the second one when they are sorted.
#[inline(always)]
pub(super) fn unsorted<K: Keys>([first, second]: [K; 2], lists: u32) -> K {
    if levels(lists).is_multiple_of(2) { second } else { first }
}

/// Sorts the keys of a stream that has more than one list. If a list is not sorted, says so in shared memory.
#[inline(always)]
pub(super) fn sort<const BLOCK: bool, K: Keys>(
    work: WarpShared,
    merged: &MergedRuns,
    [first, second]: [K; 2],
    team: Team<BLOCK>,
) {
    let levels = levels(merged.lists);
    // Of odd length, so that threads find their keys in different banks.
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
    /// Number of the first.
    list: u32,
    /// Where they start, the second one starts, and they end.
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

    /// The pair that holds a position. Lists become half as many `levels` times, and have done so `level`
    /// times.
    #[inline(always)]
    fn at_position(work: WarpShared, levels: u32, level: u32, position: u32) -> Self {
        // Bit by bit: the last list that starts at that position or before it.
        let (mut list, mut step) = (0, 1 << (levels - 1));
        while step > 1 << level {
            list += if work.start(list + step) <= position { step } else { 0 };
            step /= 2;
        }
        Self::new(work, list, step)
    }

    /// How many keys of the first list are among the first `count` of both merged.
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

/// Writes the positions from `begin` to `end` of the lists that pairs become.
#[inline(always)]
fn merge_part<K: Keys>(work: WarpShared, levels: u32, level: u32, from: K, to: K, begin: u32, end: u32) {
    let mut pair = Pair::at_position(work, levels, level, begin);
    let firsts = pair.split(from, begin - pair.start);
    let (mut one, mut other) = (pair.start + firsts, pair.middle + (begin - pair.start - firsts));
    // After the end of a list, some key of its own part is read and not used.
    let get = |position: u32, end: u32| from.get(if position < end { position } else { begin });
    let (mut first, mut second) = (get(one, pair.middle), get(other, pair.end));
    let mut position = begin;
    while position < end {
        if position == pair.end {
            pair = Pair::new(work, pair.list + (2 << level), 1 << level);
            (one, other) = (pair.start, pair.middle);
            (first, second) = (get(one, pair.middle), get(other, pair.end));
        }
        // Whether the lists are sorted is seen at their old positions, which are the same as the new ones of
        // both.
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

/// Runs that a thread gathers at once, so that as many loads are on their way.
const AT_ONCE: usize = 4;

/// Writes the runs of sorted keys to their positions.
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
            // Of damaged logs some positions have no key, but what was there before.
            let index = indices[i].min(pool.merged_end - 1);
            runs[i] = merged_words(Entry::from_words(at_entry(pool.logs, index).get128(0)));
            i += 1;
        }
        // Before their keys are overwritten.
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
