//! Sizes of a tile's columns.

use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;
use warptrace_format::data::tile::{BLOCK, Column, Part, block_bytes, code_bytes, code_of, shift_of};

use super::{CHOICES, COLUMNS, SUMS, Tile, WARP_SUMS, either, either_word, memory, warps};
use crate::warp::{self, NEVER, sum};

/// Repeats statements for each number below a constant of at most 3, so that arrays stay in registers.
macro_rules! unrolled {
    ($number:ident < $count:ident, $body:block) => {
        unrolled!($number < $count, $body, 0 1 2)
    };
    ($number:ident < $count:ident, $body:block, $($at:literal)*) => {$(
        if $at < $count {
            let $number: usize = $at;
            $body
        }
    )*};
}

impl Tile<'_> {
    #[inline(always)]
    pub(super) fn find_shift(&mut self) {
        let (mut bits, mut number) = (0, simt::linear_thread());
        while number < self.count(Part::Values) {
            let [before, entry] = self.entry(Part::Values, number);
            bits |= entry.alignment(&before);
            number += simt::block_threads();
        }
        warp::sync_warp();
        let ([low, high], accesses) = (either(bits), sum(self.accesses));
        let mut sums = memory(SUMS);
        if simt::lane() == 0 {
            sums.set128(16 * simt::warp_in_block(), [low, high, accesses, 0]);
        }
        warp::sync_threads();
        let (mut all, mut other) = (0, 0);
        self.accesses = 0;
        while other < warps() {
            let [low, high, accesses, _] = sums.get128(16 * other);
            all |= u64::from(low) | u64::from(high) << 32;
            self.accesses += accesses;
            other += 1;
        }
        self.shift = shift_of(all);
        warp::sync_threads();
    }

    /// Finds the sizes of all columns in both packings, and stores for each column its prediction, whether bits
    /// are packed, and its bytes.
    #[inline(always)]
    pub(super) fn find_sizes(&self) {
        use Column::{Base, Chunk, Count, Kind, Mask, Owner, Site, Spread, Step, Time};
        self.sizes_of(Part::All, 0, [(Site, 0), (Chunk, 0), (Kind, 0)]);
        self.sizes_of(Part::Headers, 3, [(Mask, 0), (Time, 0), (Spread, 0)]);
        self.sizes_of(Part::Values, 6, [(Owner, 0), (Count, 0)]);
        self.sizes_of(Part::Values, 8, [(Step, 0), (Step, 1), (Step, 2)]);
        self.sizes_of(Part::Values, 11, [(Base, 0), (Base, 1)]);
        warp::sync_threads();
        let number = simt::linear_thread();
        if number < COLUMNS {
            let column = Column::at(number);
            let mut candidate = if column == Base { 11 } else { number };
            let [mut best, mut by] = [[0, 0, NEVER, 0], [0; 4]];
            while by[0] < column.predictions() {
                let [mut as_bits, mut as_bytes, mut other] = [0, self.count(column.part()).div_ceil(4), 0];
                while other < warps() {
                    let [bits, bytes] = memory(SUMS).get64(WARP_SUMS * other + 8 * candidate);
                    (as_bits, as_bytes, other) = (as_bits + bits, as_bytes + bytes, other + 1);
                }
                if as_bits < best[2] {
                    best = [by[0], 1, as_bits, 0];
                }
                if as_bytes < best[2] {
                    best = [by[0], 0, as_bytes, 0];
                }
                (by[0], candidate) = (by[0] + 1, candidate + 1);
            }
            memory(CHOICES).set128(16 * number, best);
        }
        warp::sync_threads();
    }

    /// Stores the warp's parts of the sizes of columns with their predictions, from the candidate `first` on.
    #[inline(always)]
    fn sizes_of<const N: usize>(&self, part: Part, first: u32, candidates: [(Column, u32); N]) {
        let (lane, count) = (simt::lane(), self.count(part));
        let (mut as_bits, mut as_bytes) = ([0; N], [0; N]);
        let mut block = BLOCK * simt::warp_in_block();
        while block < count {
            let values = (count - block).min(BLOCK);
            let (mut bits, mut at) = ([0; N], lane);
            while at < values {
                let [before, entry] = self.entry(part, block + at);
                unrolled!(number < N, {
                    let (column, by) = candidates[number];
                    let value = column.residual(by, self.shift, &before, &entry);
                    bits[number] |= value;
                    as_bytes[number] += code_bytes(code_of(value, column.is_wide()), column.is_wide());
                });
                at += WARP_LANES;
            }
            warp::sync_warp();
            unrolled!(number < N, {
                let all = if candidates[number].0.is_wide() {
                    let [low, high] = either(bits[number]);
                    u64::from(low) | u64::from(high) << 32
                } else {
                    either_word(bits[number] as u32).into()
                };
                as_bits[number] += 1 + block_bytes(values, all);
            });
            block += BLOCK * warps();
        }
        unrolled!(number < N, {
            let bytes = sum(as_bytes[number]);
            if lane == 0 {
                let at = WARP_SUMS * simt::warp_in_block() + 8 * (first + number as u32);
                memory(SUMS).set64(at, [as_bits[number], bytes]);
            }
        });
    }
}
