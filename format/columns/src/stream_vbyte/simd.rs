//! Table-driven decoding: the codes for 16 bytes of values select a byte shuffle.

use std::arch::x86_64::{_mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};

use crate::Element;

/// Decodes groups of four values while 32 bytes of data are left. Returns the control and data bytes read.
#[target_feature(enable = "ssse3")]
pub(super) fn decode<T: Element>(control: &[u8], data: &[u8], values: &mut [T]) -> (usize, usize) {
    let shuffled = 16 / size_of::<T>();
    let (mut fours, mut at) = (0, 0);
    for (&codes, four) in control.iter().zip(values.as_chunks_mut::<4>().0) {
        // The bytes of four values, and 16 bytes from the last of them.
        let Some(data) = data.get(at..at + 32) else { break };
        let mut from = 0;
        for (number, values) in four.chunks_exact_mut(shuffled).enumerate() {
            let codes = usize::from(codes) >> (2 * shuffled * number) & (T::SHUFFLES.len() - 1);
            let shuffle = &T::SHUFFLES[codes];
            let bytes: &[u8] = &data[from..from + 16];
            // SAFETY: the instructions require no alignment. Each pointer refers to 16 bytes: a slice, an
            // array, and `shuffled` elements, for which all bit patterns are valid.
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
