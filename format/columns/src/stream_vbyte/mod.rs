//! Stream VByte: values of 1 to 4 bytes (1, 2, 4 or 8 for 64 bits), with separate lengths.
//!
//! Source: D. Lemire, N. Kurz, C. Rupp, "Stream VByte: faster byte-oriented integer compression", 2018. The
//! 32-bit form is the published one. The 64-bit form uses the same control bytes.
//!
//! ```text
//! offset  size                field
//!      0     1 per 4 values   control bytes: the code of value i is in bits 2 * (i % 4) of byte i / 4
//!                             the bytes of each value, as many as its code selects, the lowest first
//! ```

#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod simd;
#[cfg(test)]
mod tests;

use crate::{ColumnCursor, ColumnError, Element};

/// Returns the number of bytes that [`encode`] writes.
pub fn encoded_len<T: Element>(values: &[T]) -> usize {
    let data: usize = values.iter().map(|value| bytes_of::<T>(value.code())).sum();
    values.len().div_ceil(4) + data
}

#[inline(always)]
fn bytes_of<T: Element>(code: u8) -> usize {
    usize::from(T::CODED_BYTES[usize::from(code & 3)])
}

/// Encodes values. Panics if the length of `bytes` is not [`encoded_len`].
pub fn encode<T: Element>(values: &[T], bytes: &mut [u8]) {
    let (control, data) = bytes.split_at_mut(values.len().div_ceil(4));
    let mut at = 0;
    for (control, values) in control.iter_mut().zip(values.chunks(4)) {
        *control = 0;
        for (index, value) in values.iter().enumerate() {
            let (code, value) = (value.code(), value.to_u64().to_le_bytes());
            let length = bytes_of::<T>(code);
            *control |= code << (2 * index);
            // Writes all eight bytes if they fit. The next value overwrites the excess.
            match data[at..].first_chunk_mut() {
                Some(data) => *data = value,
                None => data[at..at + length].copy_from_slice(&value[..length]),
            }
            at += length;
        }
    }
    assert_eq!(at, data.len(), "the number of bytes");
}

/// Decodes values, several at once with SSSE3. Fails if bytes are missing, or codes follow the last value.
pub fn decode<T: Element>(source: &mut ColumnCursor<'_>, values: &mut [T]) -> Result<(), ColumnError> {
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    if std::arch::is_x86_feature_detected!("ssse3") {
        // SAFETY: the processor has SSSE3.
        return decode_with(source, values, |control, data, values| unsafe {
            simd::decode(control, data, values)
        });
    }
    decode_with(source, values, |_, _, _| (0, 0))
}

/// Decodes values, the first ones with `many`, which returns the control and data bytes that it has read.
fn decode_with<T: Element>(
    source: &mut ColumnCursor<'_>,
    values: &mut [T],
    many: impl Fn(&[u8], &[u8], &mut [T]) -> (usize, usize),
) -> Result<(), ColumnError> {
    let control = source.take("control bytes", values.len().div_ceil(4))?;
    let unused = control.last().map_or(0, |last| last >> (2 * ((values.len() + 3) % 4)) >> 2);
    if unused != 0 {
        let (offset, value) = (source.offset() - 1, u64::from(unused));
        return Err(ColumnError::Invalid {
            field: "codes behind the last value",
            offset,
            value,
            expected: "zero",
        });
    }
    let (fours, data) = many(control, source.rest(), values);
    source.take("values", data)?;
    for (control, values) in control[fours..].iter().zip(values[4 * fours..].chunks_mut(4)) {
        for (index, value) in values.iter_mut().enumerate() {
            let length = bytes_of::<T>(control >> (2 * index));
            let mut bytes = [0; 8];
            match source.rest().first_chunk::<8>() {
                Some(window) => {
                    bytes = (u64::from_le_bytes(*window) & (u64::MAX >> (64 - 8 * length))).to_le_bytes();
                    source.take("value", length)?;
                }
                None => bytes[..length].copy_from_slice(source.take("value", length)?),
            }
            *value = T::truncate(u64::from_le_bytes(bytes));
        }
    }
    Ok(())
}

/// Shuffle that moves data bytes to the 16 bytes of elements for a combination of codes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    /// Source byte for each byte of the elements; the high bit is set if the byte is 0.
    pub from: [u8; 16],
    /// Data bytes of the codes.
    pub length: u8,
}

impl Shuffle {
    /// Returns the shuffles of all combinations of codes, with the first code in the lowest bits.
    pub(crate) const fn all<const N: usize>(coded_bytes: [u8; 4], element_bytes: usize) -> [Self; N] {
        let mut all = [Self { from: [0x80; 16], length: 0 }; N];
        let mut codes = 0;
        while codes < N {
            let shuffle = &mut all[codes];
            let mut element = 0;
            while element < 16 / element_bytes {
                let mut byte = 0;
                while byte < coded_bytes[codes >> (2 * element) & 3] {
                    shuffle.from[element * element_bytes + byte as usize] = shuffle.length;
                    shuffle.length += 1;
                    byte += 1;
                }
                element += 1;
            }
            codes += 1;
        }
        all
    }
}
