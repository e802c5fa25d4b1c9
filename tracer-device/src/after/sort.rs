//! Sorted lists of keys, merged into one, and the runs brought into that order.
//!
//! Each run of a stream has a key of 8 bytes: when it began, after the earliest, and its unit. There is room for two keys a run. So keys go from one half
//! into the other and back, each time with half as many lists. Each thread of the team makes an equal part of the new lists, key by key; where its part
//! begins in the two old ones, a binary search finds. Keys of few runs are in shared memory; those of more in the memory that has been claimed for the
//! merged runs.
//!
//! In the end the keys are in the second half, and the runs take their places from the start on: a run overwrites no key but those of runs before it and
//! its own.

use warptrace_format::Memory;
use warptrace_format::pool::PoolDescriptor;

use super::board::{Board, NEAR_RUNS, Order};
use super::logs::{merged, run};
use super::warp_ops::ALL;
use crate::log::at_unit;
use crate::simt;
use crate::space::{GlobalMemory, SharedMemory};
use crate::unit::Run;

/// Bytes of a key.
pub(super) const KEY_BYTES: u32 = 8;

/// Who sorts a stream: a warp alone, or all threads of a block together.
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

    /// Waits for all of it. What they have written can be read then.
    #[inline(always)]
    fn meet(self) {
        if BLOCK {
            simt::sync_threads();
        } else {
            simt::sync_warp(ALL);
        }
    }
}

/// When a run began, and where it is.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) after: u32,
    pub(super) unit: u32,
}

/// The keys of a stream, one half of their memory.
pub(super) trait Keys: Copy {
    /// The key at a place.
    fn get(self, place: u32) -> Key;
    /// Puts a key to a place.
    fn set(self, place: u32, key: Key);
}

/// Keys in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Near {
    memory: SharedMemory,
    at: u32,
}

impl Near {
    /// Both halves, of the warp's own.
    #[inline(always)]
    pub(super) fn halves(board: Board) -> [Self; 2] {
        let memory = board.keys;
        [Self { memory, at: 0 }, Self { memory, at: NEAR_RUNS * KEY_BYTES }]
    }
}

impl Keys for Near {
    #[inline(always)]
    fn get(self, place: u32) -> Key {
        let [after, unit] = self.memory.get64(self.at + KEY_BYTES * place);
        Key { after, unit }
    }

    #[inline(always)]
    fn set(mut self, place: u32, key: Key) {
        self.memory.set64(self.at + KEY_BYTES * place, [key.after, key.unit]);
    }
}

/// Keys in log memory.
#[derive(Clone, Copy)]
pub(super) struct Far {
    address: u64,
}

impl Far {
    /// Both halves, where the merged runs are to be.
    #[inline(always)]
    pub(super) fn halves(pool: &PoolDescriptor, order: &Order) -> [Self; 2] {
        let address = at_unit(pool.logs, order.to).address();
        [Self { address }, Self { address: address + u64::from(order.runs) * u64::from(KEY_BYTES) }]
    }

    #[inline(always)]
    fn at(self, place: u32) -> GlobalMemory {
        GlobalMemory::new(self.address + u64::from(place) * u64::from(KEY_BYTES), true)
    }
}

impl Keys for Far {
    #[inline(always)]
    fn get(self, place: u32) -> Key {
        let [after, unit] = self.at(place).get64(0);
        Key { after, unit }
    }

    #[inline(always)]
    fn set(self, place: u32, key: Key) {
        self.at(place).set64(0, [key.after, key.unit]);
    }
}

/// How often lists become half as many until there is one.
#[inline(always)]
fn levels(lists: u32) -> u32 {
    (lists - 1).checked_ilog2().map_or(0, |highest| highest + 1)
}

/// Of two halves that in which keys have to be so that they are in the second one in the end.
#[inline(always)]
pub(super) fn unsorted<K: Keys>([first, second]: [K; 2], lists: u32) -> K {
    if levels(lists).is_multiple_of(2) { second } else { first }
}

/// Sorts the keys of a stream that has more than one list. If a list is not sorted, says so on the board.
#[inline(always)]
pub(super) fn sort<const BLOCK: bool, K: Keys>(
    board: Board,
    order: &Order,
    [first, second]: [K; 2],
    team: Team<BLOCK>,
) {
    let levels = levels(order.lists);
    // Of odd length, so that threads find their keys in different banks.
    let each = order.runs.div_ceil(team.threads()) | 1;
    let begin = (team.index() * each).min(order.runs);
    let end = (begin + each).min(order.runs);
    let mut level = 0;
    while level < levels {
        let is_second = (levels - level).is_multiple_of(2);
        let (from, to) = if is_second { (second, first) } else { (first, second) };
        if begin < end {
            merge_part(board, levels, level, from, to, begin, end);
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
    fn new(board: Board, list: u32, step: u32) -> Self {
        let (start, middle) = (board.start(list), board.start(list + step));
        Self { list, start, middle, end: board.start(list + 2 * step) }
    }

    /// The pair in which a place is. Lists become half as many `levels` times, and have so `level` times.
    #[inline(always)]
    fn of(board: Board, levels: u32, level: u32, place: u32) -> Self {
        // Bit by bit: the last list that starts at that place or before it.
        let (mut list, mut step) = (0, 1 << (levels - 1));
        while step > 1 << level {
            list += if board.start(list + step) <= place { step } else { 0 };
            step /= 2;
        }
        Self::new(board, list, step)
    }

    /// How many keys of the first list are among the first `count` of both together.
    #[inline(always)]
    fn split<K: Keys>(&self, keys: K, count: u32) -> u32 {
        let mut least = count.saturating_sub(self.end - self.middle);
        let mut most = count.min(self.middle - self.start);
        while least < most {
            let first = (least + most) / 2;
            let (one, other) = (keys.get(self.middle + (count - 1 - first)), keys.get(self.start + first));
            if one.after < other.after {
                most = first;
            } else {
                least = first + 1;
            }
        }
        least
    }
}

/// Makes the places from `begin` to `end` of the lists that come of pairs.
#[inline(always)]
fn merge_part<K: Keys>(board: Board, levels: u32, level: u32, from: K, to: K, begin: u32, end: u32) {
    let mut pair = Pair::of(board, levels, level, begin);
    let firsts = pair.split(from, begin - pair.start);
    let (mut one, mut other) = (pair.start + firsts, pair.middle + (begin - pair.start - firsts));
    // Behind the end of a list is a key of another, or none: some that there is is taken, and not looked at.
    let get = |place: u32, end: u32| from.get(if place < end { place } else { begin });
    let (mut first, mut second) = (get(one, pair.middle), get(other, pair.end));
    let mut place = begin;
    while place < end {
        if place == pair.end {
            pair = Pair::new(board, pair.list + (2 << level), 1 << level);
            (one, other) = (pair.start, pair.middle);
            (first, second) = (get(one, pair.middle), get(other, pair.end));
        }
        // Whether the lists are sorted is seen at their old places, which are the same as the new ones of both.
        if level == 0
            && place != pair.start
            && place != pair.middle
            && from.get(place).after < from.get(place - 1).after
        {
            board.set_unsorted();
        }
        let is_second = (one == pair.middle) | ((other != pair.end) & (second.after < first.after));
        let (taken, end) = if is_second { (second, pair.end) } else { (first, pair.middle) };
        to.set(place, taken);
        let next_at = if is_second { other + 1 } else { one + 1 };
        let next = get(next_at, end);
        if is_second {
            (other, second) = (next_at, next);
        } else {
            (one, first) = (next_at, next);
        }
        place += 1;
    }
}

/// The run in a unit. (Logs that are not as they should be may leave places without a key.)
#[inline(always)]
fn run_at(pool: &PoolDescriptor, unit: u32) -> Run {
    run(at_unit(pool.logs, unit.min(pool.log_units - 1)).get128(0))
}

/// Runs that a thread gathers at once, so that as many loads are on their way.
const AT_ONCE: usize = 4;

/// Puts the runs of sorted keys into their places.
#[inline(always)]
pub(super) fn gather<const BLOCK: bool, K: Keys>(
    pool: &PoolDescriptor,
    order: &Order,
    [_, keys]: [K; 2],
    team: Team<BLOCK>,
) {
    let mut first = 0;
    while first < order.kept {
        let (mut units, mut runs) = ([0; AT_ONCE], [[0; 4]; AT_ONCE]);
        let own = first + team.index();
        let mut i = 0;
        while i < AT_ONCE {
            let place = (own + i as u32 * team.threads()).min(order.runs - 1);
            units[i] = keys.get(place).unit;
            i += 1;
        }
        i = 0;
        while i < AT_ONCE {
            runs[i] = merged(run_at(pool, units[i]));
            i += 1;
        }
        // Before their keys are overwritten.
        team.meet();
        i = 0;
        while i < AT_ONCE {
            let place = own + i as u32 * team.threads();
            if place < order.kept {
                at_unit(pool.logs, order.to + place).set128(0, runs[i]);
            }
            i += 1;
        }
        first += AT_ONCE as u32 * team.threads();
    }
    team.meet();
}
