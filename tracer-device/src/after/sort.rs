//! Sorted lists of keys, merged into one, and the runs brought into that order.
//!
//! Each run of a stream has a key of 8 bytes, in the memory that has been claimed for the merged runs: when it began, after the earliest, and its unit. That
//! memory has room for two keys a run. So keys go from one half into the other and back, each time with half as many lists: a key's place among those of two
//! lists is its place in its own, and how many of the other's come before it, which a binary search finds. All threads of the team take keys at the same
//! time, `AT_ONCE` each, so that as many loads are on their way; nothing else waits for memory.
//!
//! In the end the keys are in the second half, and the runs take their places from the start on: a run overwrites no key but those of runs before it and
//! its own.

use warptrace_format::Memory;
use warptrace_format::pool::PoolDescriptor;

use super::board::{Board, Order};
use super::logs::{Run, run};
use super::warp_ops::ALL;
use crate::log::at_unit;
use crate::simt;
use crate::space::GlobalMemory;

/// Bytes of a key.
const KEY_BYTES: u32 = 8;

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

/// The keys of a stream, in one half of its memory.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    memory: GlobalMemory,
}

impl Keys {
    #[inline(always)]
    fn half(pool: &PoolDescriptor, order: &Order, second: bool) -> Self {
        let to = at_unit(pool.logs, order.to).address();
        let skipped = if second { u64::from(order.runs) * u64::from(KEY_BYTES) } else { 0 };
        Self { memory: GlobalMemory::new(to + skipped, true) }
    }

    /// Where keys have to be so that they are in the second half in the end.
    #[inline(always)]
    pub(super) fn unsorted(pool: &PoolDescriptor, order: &Order) -> Self {
        Self::half(pool, order, levels(order.lists).is_multiple_of(2))
    }

    /// The key at a place.
    #[inline(always)]
    fn at(self, place: u32) -> GlobalMemory {
        GlobalMemory::new(self.memory.address() + u64::from(place) * u64::from(KEY_BYTES), true)
    }

    #[inline(always)]
    fn get(self, place: u32) -> Key {
        let [after, unit] = self.at(place).get64(0);
        Key { after, unit }
    }

    #[inline(always)]
    pub(super) fn set(self, place: u32, key: Key) {
        self.at(place).set64(0, [key.after, key.unit]);
    }
}

/// When a run began, and where it is.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) after: u32,
    pub(super) unit: u32,
}

/// How often lists become half as many until there is one.
#[inline(always)]
fn levels(lists: u32) -> u32 {
    (lists - 1).checked_ilog2().map_or(0, |highest| highest + 1)
}

/// Sorts the keys of a stream that has more than one list. If a list is not sorted, says so on the board.
#[inline(always)]
pub(super) fn sort<const BLOCK: bool, const AT_ONCE: usize>(
    pool: &PoolDescriptor,
    board: Board,
    order: &Order,
    team: Team<BLOCK>,
) {
    let levels = levels(order.lists);
    let mut level = 0;
    while level < levels {
        let is_second = (levels - level).is_multiple_of(2);
        let (from, to) = (Keys::half(pool, order, is_second), Keys::half(pool, order, !is_second));
        let mut first = team.index();
        while first < order.runs {
            let (mut own, mut places) = ([Key { after: 0, unit: 0 }; AT_ONCE], [0; AT_ONCE]);
            let mut i = 0;
            while i < AT_ONCE {
                // Behind the last one it is taken again, and once more put into its place.
                places[i] = (first + i as u32 * team.threads()).min(order.runs - 1);
                own[i] = from.get(places[i]);
                i += 1;
            }
            let mut searches = [Search::EMPTY; AT_ONCE];
            i = 0;
            while i < AT_ONCE {
                searches[i] = Search::of(board, levels, level, places[i]);
                i += 1;
            }
            if level == 0 {
                i = 0;
                while i < AT_ONCE {
                    if places[i] != searches[i].own_start {
                        let before = from.get(places[i] - 1);
                        if comes_first(pool, own[i], before, false) {
                            board.set_unsorted();
                        }
                    }
                    i += 1;
                }
            }
            find_together(pool, from, order.runs, &own, &mut searches);
            i = 0;
            while i < AT_ONCE {
                to.set(places[i] + searches[i].at - searches[i].middle, own[i]);
                i += 1;
            }
            first += AT_ONCE as u32 * team.threads();
        }
        team.meet();
        level += 1;
    }
}

/// For a key its place in the other list.
#[derive(Clone, Copy)]
struct Search {
    /// Where the key's own list starts.
    own_start: u32,
    /// Where the second list starts. The key's place in both together is that in its own, and how far `at` is from the other's start: its place so far and
    /// `at`, less this.
    middle: u32,
    /// How far it has come, and where the other list ends.
    at: u32,
    end: u32,
    /// Whether the key is of the second list, so that others of the same time come before it.
    is_second: bool,
}

impl Search {
    const EMPTY: Self = Self { own_start: 0, middle: 0, at: 0, end: 0, is_second: false };

    /// For the key at a place. Lists become half as many `levels` times, and have so `level` times.
    #[inline(always)]
    fn of(board: Board, levels: u32, level: u32, place: u32) -> Self {
        // The pair of lists: bit by bit, the last that starts at that place or before it.
        let (mut list, mut step) = (0, 1 << (levels - 1));
        while step > 1 << level {
            list += if board.start(list + step) <= place { step } else { 0 };
            step /= 2;
        }
        let (start, middle, end) =
            (board.start(list), board.start(list + step), board.start(list + 2 * step));
        let is_second = place >= middle;
        if is_second {
            Self { own_start: middle, middle, at: start, end: middle, is_second }
        } else {
            Self { own_start: start, middle, at: middle, end, is_second }
        }
    }
}

/// Brings all searches to their ends, step by step together.
#[inline(always)]
fn find_together<const AT_ONCE: usize>(
    pool: &PoolDescriptor,
    keys: Keys,
    runs: u32,
    own: &[Key; AT_ONCE],
    searches: &mut [Search; AT_ONCE],
) {
    let (mut longest, mut i) = (0, 0);
    while i < AT_ONCE {
        longest = longest.max(searches[i].end - searches[i].at);
        i += 1;
    }
    let mut step = longest.checked_ilog2().map_or(0, |highest| 1 << highest);
    while step != 0 {
        let (mut others, mut ties) = ([0; AT_ONCE], false);
        i = 0;
        while i < AT_ONCE {
            let other = (searches[i].at + step - 1).min(runs - 1);
            others[i] = keys.at(other).get32(0);
            i += 1;
        }
        i = 0;
        while i < AT_ONCE {
            let is_inside = searches[i].at + step <= searches[i].end;
            ties |= is_inside && others[i] == own[i].after;
            searches[i].at += if is_inside && others[i] < own[i].after { step } else { 0 };
            i += 1;
        }
        // Seldom.
        if ties {
            i = 0;
            while i < AT_ONCE {
                let next = searches[i].at + step;
                if others[i] == own[i].after && next <= searches[i].end {
                    let other = keys.get(next - 1);
                    let is_first = comes_first(pool, other, own[i], searches[i].is_second);
                    searches[i].at += if is_first { step } else { 0 };
                }
                i += 1;
            }
        }
        step /= 2;
    }
}

/// Whether a run comes before another; if they began at the same time and have the same rank, it does if `otherwise` says so.
#[inline(always)]
fn comes_first(pool: &PoolDescriptor, one: Key, other: Key, otherwise: bool) -> bool {
    if one.after != other.after {
        return one.after < other.after;
    }
    let (one, other) = (run_at(pool, one.unit).rank, run_at(pool, other.unit).rank);
    one < other || (one == other && otherwise)
}

/// The run in a unit. (Logs that are not as they should be may leave places without a key.)
#[inline(always)]
fn run_at(pool: &PoolDescriptor, unit: u32) -> Run {
    run(at_unit(pool.logs, unit.min(pool.log_units - 1)).get128(0))
}

/// Puts the runs of sorted keys into their places.
#[inline(always)]
pub(super) fn gather<const BLOCK: bool, const AT_ONCE: usize>(
    pool: &PoolDescriptor,
    order: &Order,
    team: Team<BLOCK>,
) {
    let keys = Keys::half(pool, order, true);
    let mut first = 0;
    while first < order.kept {
        let (mut units, mut runs) = ([0; AT_ONCE], [[0; 4]; AT_ONCE]);
        let own = first + team.index();
        let mut i = 0;
        while i < AT_ONCE {
            let place = (own + i as u32 * team.threads()).min(order.runs - 1);
            units[i] = keys.at(place).get32(4);
            i += 1;
        }
        i = 0;
        while i < AT_ONCE {
            runs[i] = run_at(pool, units[i]).merged();
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
