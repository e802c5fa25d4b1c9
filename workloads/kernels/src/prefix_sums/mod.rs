//! Prefix sums of higher order and of tuples, in one pass over the values.
//!
//! A sum of order q is q prefix sums, one after the other. For tuples of t, each value is added to the values
//! t, 2t, ... places before it. Each value is read and written once: a block takes the next chunk, sums it
//! for all orders, and publishes what the chunk adds to each sum. Then it reads what the chunks before it
//! have published, as many chunks at a time as it has threads, back to a chunk with known sums from the
//! start.
//!
//! Sources: S. Maleki, A. Yang, M. Burtscher, "Higher-order and tuple-based massively-parallel prefix sums",
//! PLDI 2016 (SAM): only the computation is iterated. D. Merrill, M. Garland, "Single-pass parallel prefix
//! scan with decoupled look-back", 2016: how far a block looks back. SAM waits for earlier chunks once for
//! each order. These blocks wait once: sum j counts C(n + k - j - 1, k - j) times in sum k, n values later,
//! whatever the values are (`warptrace_columns::scan` has the same for the CPU).

mod kernels;

pub use kernels::*;
use warptrace_device::{Global, atomic, shared_arrays, simt};

/// Four values that one 16-byte access reads or writes.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Words4(pub [u32; 4]);

/// Threads of a block.
pub const BLOCK: u32 = 256;
/// Highest order, and largest tuple, of the kernels.
pub const MAX: usize = 4;

const WARPS: u32 = BLOCK / simt::WARP_LANES;
/// Maximum number of values per thread.
const MOST: u32 = 16;
/// Flag of a published word.
const READY: u64 = 1 << 32;
const ALL: u32 = u32::MAX;

shared_arrays! {
    /// The values of a chunk, by warp.
    fn scan_tile() -> [Words4; BLOCK * MOST / 4];
    /// Sums of the chunk up to the end of each warp.
    fn scan_totals() -> [u32; WARPS * 16];
    /// For each warp, the lanes whose chunks have known sums from the start.
    fn scan_known() -> [u32; WARPS];
    /// Sums that the chunks of each warp add.
    fn scan_added() -> [u32; WARPS * 16];
    /// Number of the block's chunk.
    fn scan_chunk() -> [u32; 1];
}

/// Returns the values of a thread: the same number of each tuple element, in whole vectors.
const fn values_of(tuple: usize) -> usize {
    if tuple == 3 { 12 } else { 16 }
}

/// Returns the values of a chunk.
pub const fn chunk_values(tuple: usize) -> u64 {
    BLOCK as u64 * values_of(tuple) as u64
}

/// Returns the number of words that the kernel needs for `values` values. For each chunk: its own sums, and
/// its sums from the start. All are 0 before the launch.
pub const fn state_words(order: usize, tuple: usize, values: u64) -> u64 {
    2 * (order * tuple) as u64 * values.div_ceil(chunk_values(tuple))
}

/// Sums by order (less one) and tuple element.
type OrderSums<const ORDER: usize, const TUPLE: usize> = [[u32; TUPLE]; ORDER];

/// Returns how often a sum counts in the sums `0..ORDER` orders above it, `length` values later.
#[inline(always)]
fn ways<const ORDER: usize>(length: u64) -> [u32; ORDER] {
    let mut ways = [1; ORDER];
    if ORDER > 1 {
        ways[1] = length as u32;
    }
    if ORDER > 2 {
        ways[2] = (length * (length + 1) / 2) as u32;
    }
    if ORDER > 3 {
        let pair = length * (length + 1) / 2;
        ways[3] = choose3(pair, length + 2);
    }
    ways
}

/// Returns `pair * next / 3` modulo 2^32. The product is a multiple of 3.
#[inline(always)]
fn choose3(pair: u64, next: u64) -> u32 {
    let product =
        if pair.is_multiple_of(3) { (pair / 3).wrapping_mul(next) } else { (next / 3).wrapping_mul(pair) };
    product as u32
}

/// Adds the earlier sums `before` to `sums`. `ways` is [`ways`] of the number of values in `sums`.
#[inline(always)]
fn add_before<const ORDER: usize, const TUPLE: usize>(
    sums: &mut OrderSums<ORDER, TUPLE>,
    before: &OrderSums<ORDER, TUPLE>,
    ways: &[u32; ORDER],
) {
    let mut k = 0;
    while k < ORDER {
        let mut j = 0;
        while j <= k {
            let mut element = 0;
            while element < TUPLE {
                let more = before[j][element].wrapping_mul(ways[k - j]);
                sums[k][element] = sums[k][element].wrapping_add(more);
                element += 1;
            }
            j += 1;
        }
        k += 1;
    }
}

/// Adds values to `sums`. Replaces each value by the sum of the highest order up to it.
#[inline(always)]
fn scan_values<const ORDER: usize, const TUPLE: usize, const VALUES: usize>(
    sums: &mut OrderSums<ORDER, TUPLE>,
    values: &mut [u32; VALUES],
) {
    let mut index = 0;
    while index < VALUES {
        let mut order = 0;
        while order < ORDER {
            let sum = sums[order][index % TUPLE].wrapping_add(values[index]);
            sums[order][index % TUPLE] = sum;
            values[index] = sum;
            order += 1;
        }
        index += 1;
    }
}

/// Calls `each` for all words of sums, with their indices.
#[inline(always)]
fn for_each<const ORDER: usize, const TUPLE: usize>(
    sums: &mut OrderSums<ORDER, TUPLE>,
    mut each: impl FnMut(u32, &mut u32),
) {
    let mut at = 0;
    while at < ORDER * TUPLE {
        each(at as u32, &mut sums[at / TUPLE][at % TUPLE]);
        at += 1;
    }
}

/// Returns the place of vector `vector` of a warp in shared memory. Threads that read four vectors each
/// access different banks.
#[inline(always)]
fn place<const VALUES: usize>(vector: u32) -> u32 {
    if VALUES == 16 { vector ^ (vector >> 3 & 3) } else { vector }
}

/// Returns the sums from the start of all chunks before `chunk`. All threads of the block pass its barriers.
///
/// # Safety
/// All threads of the block call it together, the block has taken `chunk`, and [`state_words`] describes
/// `states`.
#[inline(always)]
unsafe fn look_back<const ORDER: usize, const TUPLE: usize>(
    states: Global<u64>,
    chunk: u32,
    length: u64,
) -> OrderSums<ORDER, TUPLE> {
    let words = (ORDER * TUPLE) as u32;
    let (known_of, added_of) = (scan_known(), scan_added());
    let (lane, warp) = (simt::lane(), simt::warp_in_block());
    let mut carry = [[0; TUPLE]; ORDER];
    let mut back = simt::linear_thread();
    loop {
        // Before the first chunk, sums are known: they are 0.
        let is_there = back < chunk;
        let own = u64::from(chunk.wrapping_sub(1 + back)) * u64::from(2 * words);
        let mut is_whole = !is_there;
        let mut first = 0;
        while first & READY == 0 && is_there {
            // SAFETY: words of a chunk before this one, accessed with atomics.
            let read = unsafe {
                [atomic::load_u64(states.at(own)), atomic::load_u64(states.at(own + u64::from(words)))]
            };
            is_whole = read[1] & READY != 0;
            first = read[is_whole as usize];
            if first & READY == 0 {
                simt::spin_hint();
            }
        }
        // SAFETY: all threads reach the barrier. Each word is read after the barrier that follows its write.
        let (is_covered, is_found, known) = unsafe {
            let known = simt::ballot(ALL, is_whole);
            if lane == 0 {
                known_of.set(warp, known);
            }
            simt::sync_threads();
            let (mut is_covered, mut is_found) = (false, false);
            let mut other = 0;
            while other < WARPS {
                let is_known = known_of.get(other) != 0;
                is_covered |= is_known && other < warp;
                is_found |= is_known;
                other += 1;
            }
            (is_covered, is_found, known)
        };
        // The nearest chunk with known sums includes everything before it.
        let nearest = known & known.wrapping_neg();
        let counts = is_there && !is_covered && (nearest == 0 || 1 << lane <= nearest);
        let mut shifted = [[0; TUPLE]; ORDER];
        if counts {
            let base = own + if is_whole { u64::from(words) } else { 0 };
            let mut found = [[0; TUPLE]; ORDER];
            for_each::<ORDER, TUPLE>(&mut found, |at, word| {
                let mut read = if at == 0 { first } else { 0 };
                while read & READY == 0 {
                    // SAFETY: words of a chunk before this one, accessed with atomics.
                    read = unsafe { atomic::load_u64(states.at(base + u64::from(at))) };
                }
                *word = read as u32;
            });
            add_before(&mut shifted, &found, &ways::<ORDER>(u64::from(back) * length));
        }
        for_each::<ORDER, TUPLE>(&mut shifted, |at, word| {
            let mut distance = 16;
            while distance > 0 {
                // SAFETY: all lanes of the warp reach this call.
                *word = word.wrapping_add(unsafe { simt::shuffle_xor(ALL, *word, distance) });
                distance /= 2;
            }
            if lane == 0 {
                // SAFETY: only this warp writes the word.
                unsafe { added_of.set(warp * words + at, *word) };
            }
        });
        // SAFETY: all threads of the block reach the barrier.
        unsafe { simt::sync_threads() };
        for_each::<ORDER, TUPLE>(&mut carry, |at, word| {
            let mut other = 0;
            while other < WARPS {
                // SAFETY: written before the barrier.
                *word = word.wrapping_add(unsafe { added_of.get(other * words + at) });
                other += 1;
            }
        });
        if is_found {
            return carry;
        }
        back += BLOCK;
    }
}

/// Publishes words of a chunk's state.
///
/// # Safety
/// One lane calls it. `base` is the place of the first word in `states`.
#[inline(always)]
unsafe fn publish<const ORDER: usize, const TUPLE: usize>(
    states: Global<u64>,
    base: u64,
    sums: &mut OrderSums<ORDER, TUPLE>,
) {
    for_each::<ORDER, TUPLE>(sums, |at, word| {
        // SAFETY: only this block writes these words, with atomics.
        unsafe { atomic::store_u64(states.at(base + u64::from(at)), READY | u64::from(*word)) };
    });
}

/// The main function of a block: takes chunks until all are taken.
///
/// # Safety
/// Same as the kernels.
#[inline(always)]
unsafe fn scan_chunks<const ORDER: usize, const TUPLE: usize, const VALUES: usize>(
    input: Global<Words4>,
    output: Global<Words4>,
    states: Global<u64>,
    ticket: Global<u32>,
) {
    const { assert!(VALUES.is_multiple_of(TUPLE) && VALUES.is_multiple_of(4) && VALUES <= MOST as usize) };
    let vectors = VALUES as u32 / 4;
    let (tile, totals, chunk_of) = (scan_tile(), scan_totals(), scan_chunk());
    let words = (ORDER * TUPLE) as u32;
    let (thread, lane, warp) = (simt::linear_thread(), simt::lane(), simt::warp_in_block());
    let own = u64::from(VALUES as u32 / TUPLE as u32);
    let length = own * u64::from(BLOCK);
    let (by_lane, by_warp) =
        (ways::<ORDER>(own * u64::from(lane)), ways::<ORDER>(own * u64::from(warp * simt::WARP_LANES)));
    let chunks = input.len().div_ceil(u64::from(BLOCK * vectors)) as u32;
    let warp_tile = warp * simt::WARP_LANES * vectors;
    loop {
        // SAFETY: barriers separate writes from reads by other threads. All places are in the arrays.
        unsafe {
            if thread == 0 {
                chunk_of.set(0, atomic::add_u32(ticket.at(0), 1));
            }
            simt::sync_threads();
            let chunk = chunk_of.get(0);
            if chunk >= chunks {
                return;
            }
            let first = u64::from(chunk) * u64::from(BLOCK * vectors) + u64::from(warp_tile);
            let mut read = [Words4([0; 4]); 4];
            let mut index = 0;
            while index < vectors {
                let at = first + u64::from(index * simt::WARP_LANES + lane);
                if at < input.len() {
                    read[index as usize] = input.get(at);
                }
                index += 1;
            }
            index = 0;
            while index < vectors {
                tile.set(warp_tile + place::<VALUES>(index * simt::WARP_LANES + lane), read[index as usize]);
                index += 1;
            }
            simt::sync_warp(ALL);
            let mut values = [0; VALUES];
            index = 0;
            while index < vectors {
                let Words4(four) = tile.get(warp_tile + place::<VALUES>(lane * vectors + index));
                let mut word = 0;
                while word < 4 {
                    values[index as usize * 4 + word] = four[word];
                    word += 1;
                }
                index += 1;
            }

            // The warp's sums up to each thread, and the chunk's sums up to each warp.
            let mut sums = [[0; TUPLE]; ORDER];
            scan_values::<ORDER, TUPLE, VALUES>(&mut sums, &mut values.clone());
            add_threads_before::<ORDER, TUPLE>(&mut sums, own, lane, simt::WARP_LANES);
            if lane == simt::WARP_LANES - 1 {
                for_each::<ORDER, TUPLE>(&mut sums, |at, word| totals.set(warp * words + at, *word));
            }
            // The sums before the thread in its warp.
            for_each::<ORDER, TUPLE>(&mut sums, |_, word| {
                let before = simt::shuffle_up_all(*word, 1);
                *word = if lane == 0 { 0 } else { before };
            });
            simt::sync_threads();
            let base = u64::from(chunk) * u64::from(2 * words);
            let mut chunk_sums = [[0; TUPLE]; ORDER];
            let is_last = warp == 0 && lane == WARPS - 1;
            if warp == 0 {
                if lane < WARPS {
                    for_each::<ORDER, TUPLE>(&mut chunk_sums, |at, word| {
                        *word = totals.get(lane * words + at);
                    });
                }
                let own = own * u64::from(simt::WARP_LANES);
                add_threads_before::<ORDER, TUPLE>(&mut chunk_sums, own, lane, WARPS);
                if lane < WARPS {
                    for_each::<ORDER, TUPLE>(&mut chunk_sums, |at, word| {
                        totals.set(lane * words + at, *word);
                    });
                }
                if is_last {
                    publish::<ORDER, TUPLE>(states, base, &mut chunk_sums);
                }
            }
            let carry = look_back::<ORDER, TUPLE>(states, chunk, length);
            if is_last {
                add_before(&mut chunk_sums, &carry, &ways::<ORDER>(length));
                publish::<ORDER, TUPLE>(states, base + u64::from(words), &mut chunk_sums);
            }

            // All sums before the thread. Adds the thread's values to them again.
            let mut before_warp = [[0; TUPLE]; ORDER];
            if warp > 0 {
                for_each::<ORDER, TUPLE>(&mut before_warp, |at, word| {
                    *word = totals.get((warp - 1) * words + at);
                });
            }
            add_before(&mut before_warp, &carry, &by_warp);
            add_before(&mut sums, &before_warp, &by_lane);
            scan_values::<ORDER, TUPLE, VALUES>(&mut sums, &mut values);

            index = 0;
            while index < vectors {
                let mut four = [0; 4];
                let mut word = 0;
                while word < 4 {
                    four[word] = values[index as usize * 4 + word];
                    word += 1;
                }
                tile.set(warp_tile + place::<VALUES>(lane * vectors + index), Words4(four));
                index += 1;
            }
            simt::sync_warp(ALL);
            index = 0;
            while index < vectors {
                let at = first + u64::from(index * simt::WARP_LANES + lane);
                let found = tile.get(warp_tile + place::<VALUES>(index * simt::WARP_LANES + lane));
                if at < output.len() {
                    output.set(at, found);
                }
                index += 1;
            }
            simt::sync_warp(ALL);
        }
    }
}

/// Adds to the sums of each lane the sums of the lanes before it. The first `count` lanes have `own` values
/// each.
///
/// # Safety
/// All lanes of the warp reach this call.
#[inline(always)]
unsafe fn add_threads_before<const ORDER: usize, const TUPLE: usize>(
    sums: &mut OrderSums<ORDER, TUPLE>,
    own: u64,
    lane: u32,
    count: u32,
) {
    let mut distance = 1;
    while distance < count {
        let mut before = *sums;
        for_each::<ORDER, TUPLE>(&mut before, |_, word| {
            // SAFETY: guaranteed by the caller.
            *word = unsafe { simt::shuffle_up_all(*word, distance) };
        });
        if lane >= distance {
            add_before(sums, &before, &ways::<ORDER>(own * u64::from(distance)));
        }
        distance *= 2;
    }
}
