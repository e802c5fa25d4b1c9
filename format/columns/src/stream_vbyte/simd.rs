//! Decoding by table and shuffle: the codes of 16 bytes of values say where each byte comes from.

use std::arch::x86_64::{_mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};

use crate::Element;

/// Reads values, four at a time, as long as it may read 16 bytes wherever one starts.
///
/// Returns how many control bytes and data bytes it has read.
#[target_feature(enable = "ssse3")]
pub(super) fn decode<T: Element>(control: &[u8], data: &[u8], values: &mut [T]) -> (usize, usize) {
    let shuffled = 16 / size_of::<T>();
    let (mut fours, mut at) = (0, 0);
    for (&codes, four) in control.iter().zip(values.as_chunks_mut::<4>().0) {
        // The bytes of four values, and the 16 bytes that are read for the last of them.
        let Some(data) = data.get(at..at + 32) else { break };
        let mut from = 0;
        for (number, values) in four.chunks_exact_mut(shuffled).enumerate() {
            let codes = usize::from(codes) >> (2 * shuffled * number) & (T::SHUFFLES.len() - 1);
            let shuffle = &T::SHUFFLES[codes];
            let bytes: &[u8] = &data[from..from + 16];
            // SAFETY: each pointer is to 16 bytes, of which no alignment is asked: a slice of them, an array
            // of them, and `shuffled` elements, for which all bytes are values.
            unsafe {
                let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
                let places = _mm_loadu_si128(shuffle.from.as_ptr().cast());
                _mm_storeu_si128(values.as_mut_ptr().cast(), _mm_shuffle_epi8(bytes, places));
            }
            from += usize::from(shuffle.length);
        }
        at += from;
        fours += 1;
    }
    (fours, at)
}
