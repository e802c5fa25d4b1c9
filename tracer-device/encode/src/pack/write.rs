//! Writing of a tile.

use core::ptr::with_exposed_provenance_mut;

use warptrace_device::atomic;
use warptrace_device::simt::{self, WARP_LANES};
use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::data::tile::{
    BLOCK, Column, PARAMETER_BYTES, TABLE_BYTES, code_bytes, code_of, column_header,
};

use super::{ALIGN, CHOICES, COLUMNS, PLACE, SUMS, TABLE, Tile, VALUES, either, memory, warps};
use crate::memory::{GlobalMemory, SharedMemory};
use crate::warp::{self, sum, sum_up_to};

impl Tile<'_> {
    /// Reserves memory for the tile and writes its header. Returns the address of the columns and of the payload;
    /// `None` if it does not fit.
    #[inline(always)]
    pub(super) fn reserve(&self) -> Option<(GlobalMemory, GlobalMemory)> {
        let (mut length, mut number, mut predictions) = (TABLE_BYTES * self.chunks + PARAMETER_BYTES, 0, 0);
        while number < COLUMNS {
            let column = Column::at(number);
            let [by, is_bits, bytes, _] = memory(CHOICES).get128(16 * number);
            length += column_header(self.count(column.part()), column.is_wide(), is_bits != 0).1 + bytes;
            predictions = predictions << 4 | by;
            number += 1;
        }
        let bytes = (CHUNK_HEADER_BYTES + length).next_multiple_of(ALIGN);
        let mut shared = memory(PLACE);
        if simt::linear_thread() == 0 {
            // SAFETY: `cursor` is the address of the counter.
            let at = unsafe { atomic::add_u32(with_exposed_provenance_mut(self.job.cursor as usize), bytes) };
            shared.set32(0, at);
        }
        warp::sync_threads();
        let at = shared.get32(0);
        if at > self.job.capacity || bytes > self.job.capacity - at {
            return None;
        }
        let mut base = GlobalMemory::new(self.job.target + u64::from(at) + u64::from(CHUNK_HEADER_BYTES));
        if simt::linear_thread() == 0 {
            let mut header = GlobalMemory::new(base.address() - u64::from(CHUNK_HEADER_BYTES));
            header.set128(0, [self.chunks, 0, self.accesses, length]);
            header.set128(16, [self.launch, self.job.data_track, 0, 0]);
            base.set8(TABLE_BYTES * self.chunks, self.shift as u8);
            base.set8(TABLE_BYTES * self.chunks + 1, predictions as u8);
        }
        let columns = base.address() + u64::from(TABLE_BYTES * self.chunks + PARAMETER_BYTES);
        Some((GlobalMemory::new(columns), base))
    }

    #[inline(always)]
    pub(super) fn write_table(&self, mut payload: GlobalMemory) {
        let mut number = simt::linear_thread();
        while number < self.chunks {
            let [chunk, _, counts, time] = memory(TABLE).get128(TABLE_BYTES * number);
            let [warp, sequence, ..] = self.job.chunk(chunk).get128(0);
            payload.set128(TABLE_BYTES * number, [warp, sequence, counts, time]);
            number += simt::block_threads();
        }
    }

    /// Writes a column. Returns the memory behind it.
    #[inline(always)]
    pub(super) fn write_column(
        &self,
        column: Column,
        [by, is_bits, bytes, _]: [u32; 4],
        mut to: GlobalMemory,
    ) -> GlobalMemory {
        let (count, is_wide, lane) = (self.count(column.part()), column.is_wide(), simt::lane());
        let (header, header_bytes) = column_header(count, is_wide, is_bits != 0);
        // Each warp computes the values of its blocks. Sums of blocks are their widths, or the bytes of values.
        let (mut values, mut sums) = (memory(VALUES), memory(SUMS));
        warp::sync_threads();
        let mut first = BLOCK * simt::warp_in_block();
        // All values are 0 if the blocks have only widths.
        let is_zero = is_bits != 0 && bytes == count.div_ceil(BLOCK);
        while first < count && is_zero {
            if lane == 0 {
                sums.set32(4 * (first / BLOCK), 0);
            }
            first += BLOCK * warps();
        }
        while first < count {
            let (mut bits, mut length, mut at) = (0, 0, first + lane);
            while at < count.min(first + BLOCK) {
                let [before, entry] = self.entry(column.part(), at);
                let value = column.residual(by, self.shift, &before, &entry);
                values.set64(8 * at, [value as u32, (value >> 32) as u32]);
                bits |= value;
                length += code_bytes(code_of(value, is_wide), is_wide);
                at += WARP_LANES;
            }
            warp::sync_warp();
            let ([low, high], length) = (either(bits), sum(length));
            let width = 64 - (u64::from(low) | u64::from(high) << 32).leading_zeros();
            if lane == 0 {
                sums.set32(4 * (first / BLOCK), if is_bits != 0 { width } else { length });
            }
            first += BLOCK * warps();
        }
        warp::sync_threads();
        let mut at = simt::linear_thread();
        while at < header_bytes {
            to.set8(at, (u32::from_le_bytes(header) >> (8 * at)) as u8);
            at += simt::block_threads();
        }
        let column = Packed { values, sums, count, is_wide };
        let packed = GlobalMemory::new(to.address() + u64::from(header_bytes));
        if is_bits != 0 {
            column.write_bits(packed);
        } else {
            column.write_bytes(packed);
        }
        GlobalMemory::new(packed.address() + u64::from(bytes))
    }
}

/// Values of a column in shared memory.
#[derive(Clone, Copy)]
struct Packed {
    values: SharedMemory,
    /// For each block of values, the width or the bytes.
    sums: SharedMemory,
    count: u32,
    is_wide: bool,
}

impl Packed {
    #[inline(always)]
    fn get(&self, at: u32) -> u64 {
        let [low, high] = self.values.get64(8 * at);
        u64::from(low) | u64::from(high) << 32
    }

    #[inline(always)]
    fn values_in(&self, block: u32) -> u32 {
        (self.count - BLOCK * block).min(BLOCK)
    }

    /// Returns where each block of values begins, in the lane with its number: `bytes` are its bytes.
    #[inline(always)]
    fn starts(&self, first: u32, bytes: impl Fn(u32) -> u32) -> u32 {
        let lane = simt::lane();
        let block = lane.min(self.count.div_ceil(BLOCK).max(1) - 1);
        let own = bytes(block) * u32::from(BLOCK * lane < self.count);
        first + sum_up_to(own) - own
    }

    /// Writes blocks of packed bits: their widths, and then their values. A warp writes a block, and a lane a
    /// byte at a time.
    #[inline(always)]
    fn write_bits(&self, mut to: GlobalMemory) {
        let blocks = self.count.div_ceil(BLOCK);
        let bits_of = |block: u32| self.values_in(block) * self.sums.get32(4 * block);
        let starts = self.starts(blocks, |block| bits_of(block).div_ceil(8));
        let mut block = simt::warp_in_block();
        while block < blocks {
            let (width, start) = (self.sums.get32(4 * block), warp::shuffle(starts, block));
            let bytes = bits_of(block).div_ceil(8);
            if simt::lane() == 0 {
                to.set8(block, width as u8);
            }
            let mut at = simt::lane();
            while at < bytes {
                // `filled` is negative for the bits of the first value that are in bytes before.
                let mut value = 8 * at / width;
                let (mut byte, mut filled) = (0, (value * width).wrapping_sub(8 * at));
                while filled.cast_signed() < 8 && value < self.values_in(block) {
                    let bits = self.get(BLOCK * block + value);
                    byte |=
                        if filled.cast_signed() < 0 { bits >> filled.wrapping_neg() } else { bits << filled };
                    (value, filled) = (value + 1, filled.wrapping_add(width));
                }
                to.set8(start + at, byte as u8);
                at += WARP_LANES;
            }
            warp::sync_warp();
            block += warps();
        }
    }

    /// Writes control bytes, and then the bytes of values (Stream VByte).
    #[inline(always)]
    fn write_bytes(&self, mut to: GlobalMemory) {
        let code = |at: u32| if at < self.count { code_of(self.get(at), self.is_wide) } else { 0 };
        let controls = self.count.div_ceil(4);
        let mut at = simt::linear_thread();
        while at < controls {
            let own = 4 * at;
            to.set8(at, (code(own) | code(own + 1) << 2 | code(own + 2) << 4 | code(own + 3) << 6) as u8);
            at += simt::block_threads();
        }
        warp::sync_warp();
        let starts = self.starts(controls, |block| self.sums.get32(4 * block));
        let mut block = simt::warp_in_block();
        while BLOCK * block < self.count {
            let mut start = warp::shuffle(starts, block);
            let mut first = BLOCK * block;
            while first < self.count.min(BLOCK * (block + 1)) {
                let own = first + simt::lane();
                // Without a branch, which the compiler may extend over the shuffles.
                let value = self.get(own.min(self.count - 1));
                let length =
                    code_bytes(code_of(value, self.is_wide), self.is_wide) * u32::from(own < self.count);
                let (end, mut byte) = (start + sum_up_to(length), 0);
                while byte < length {
                    to.set8(end - length + byte, (value >> (8 * byte)) as u8);
                    byte += 1;
                }
                warp::sync_warp();
                start = warp::shuffle(end, WARP_LANES - 1);
                first += WARP_LANES;
            }
            block += warps();
        }
    }
}
