//! Bit packing: blocks of 128 values. Each value has the width of the largest value in its block.
//!
//! ```text
//! offset  size                    field
//!      0     1 per block          width: bits of each value, 0 to 64
//!         bits * values / 8       per block: values, the lowest bit first, then zeros up to a whole byte
//! ```
//!
//! Widths are stored separately, so that a scan of them yields the starts of the blocks.

use crate::{ColumnCursor, ColumnError, Element};

/// Values of a block; the last block may have fewer.
pub const BLOCK: usize = 128;

/// Bytes that [`Element::at_bit`] requires from an element's first byte.
const WINDOW: usize = 16;

#[inline(always)]
fn width<T: Element>(block: &[T]) -> usize {
    let all = block.iter().fold(0, |all, value| all | value.to_u64());
    (u64::BITS - all.leading_zeros()) as usize
}

/// Returns the number of bytes that [`encode`] writes.
pub fn encoded_len<T: Element>(values: &[T]) -> usize {
    values.chunks(BLOCK).map(|block| 1 + (block.len() * width(block)).div_ceil(8)).sum()
}

/// Encodes values. Panics if the length of `bytes` is not [`encoded_len`].
pub fn encode<T: Element>(values: &[T], bytes: &mut [u8]) {
    let (widths, mut rest) = bytes.split_at_mut(values.len().div_ceil(BLOCK));
    for (block, to) in values.chunks(BLOCK).zip(widths) {
        let width = width(block);
        *to = width as u8;
        let packed;
        (packed, rest) = rest.split_at_mut((block.len() * width).div_ceil(8));
        pack(block, width, packed);
    }
    assert!(rest.is_empty(), "the number of bytes");
}

fn pack<T: Element>(block: &[T], width: usize, packed: &mut [u8]) {
    let (words, last) = packed.as_chunks_mut();
    let mut words = words.iter_mut();
    let (mut bits, mut filled) = (0, 0);
    for value in block {
        bits |= u128::from(value.to_u64()) << filled;
        filled += width;
        if filled >= 64
            && let Some(word) = words.next()
        {
            *word = (bits as u64).to_le_bytes();
            bits >>= 64;
            filled -= 64;
        }
    }
    // The remaining bits fill the next whole word or the last bytes.
    match words.next() {
        Some(word) => *word = (bits as u64).to_le_bytes(),
        None => last.copy_from_slice(&bits.to_le_bytes()[..last.len()]),
    }
}

/// Decodes values. Fails if the bytes end too early, a width is too large, or bits follow a block's values.
pub fn decode<T: Element>(source: &mut ColumnCursor<'_>, values: &mut [T]) -> Result<(), ColumnError> {
    let widths_at = source.offset();
    let widths = source.take("widths", values.len().div_ceil(BLOCK))?;
    for (number, (block, &width)) in values.chunks_mut(BLOCK).zip(widths).enumerate() {
        let offset = widths_at + number;
        if u32::from(width) > T::BITS {
            let (value, expected) = (u64::from(width), "at most the bits of an element");
            return Err(ColumnError::Invalid { field: "width", offset, value, expected });
        }
        let bits = block.len() * usize::from(width);
        // Includes bytes after the block, which are read and masked.
        let window = source.rest();
        let packed = source.take("packed values", bits.div_ceil(8))?;
        let unused = packed.last().map_or(0, |last| last >> ((bits + 7) % 8) >> 1);
        if unused != 0 {
            let (offset, value) = (source.offset() - 1, u64::from(unused));
            let (field, expected) = ("bits behind the last value", "zero");
            return Err(ColumnError::Invalid { field, offset, value, expected });
        }
        if window.len() >= packed.len() + WINDOW {
            unpack(window, usize::from(width), block);
        } else {
            let mut padded = [0; BLOCK * 8 + WINDOW];
            padded[..packed.len()].copy_from_slice(packed);
            unpack(&padded, usize::from(width), block);
        }
    }
    Ok(())
}

/// Reads the values of a block, `width` bits each. 16 bytes are readable from the first byte of each value.
fn unpack<T: Element>(window: &[u8], width: usize, block: &mut [T]) {
    let mask = T::truncate(u64::MAX.checked_shr(64 - width as u32).unwrap_or(0));
    let (eights, rest) = block.as_chunks_mut();
    macro_rules! by_width {
        ($($bits:literal)*) => {
            match width {
                $($bits => unpack_eights::<T, $bits>(window, mask, eights),)*
                _ => unpack_eights::<T, 64>(window, mask, eights),
            }
        };
    }
    by_width!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28
        29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54
        55 56 57 58 59 60 61 62 63
    );
    let window = &window[eights.len() * width..];
    for (index, value) in rest.iter_mut().enumerate() {
        *value = T::at_bit(window, index * width, mask);
    }
}

/// Reads groups of eight values, each of `BITS` bytes, so that offsets and shifts are constants.
fn unpack_eights<T: Element, const BITS: usize>(window: &[u8], mask: T, eights: &mut [[T; 8]]) {
    for (number, values) in eights.iter_mut().enumerate() {
        let window = &window[number * BITS..number * BITS + BITS + WINDOW];
        for (index, value) in values.iter_mut().enumerate() {
            *value = T::at_bit(window, index * BITS, mask);
        }
    }
}
