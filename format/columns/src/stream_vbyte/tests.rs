//! Compares SIMD decoding with the portable path.

use alloc::vec;
use alloc::vec::Vec;

use super::*;

fn values<T: Element>(length: usize) -> Vec<T> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        T::truncate(state >> 20 >> ((state >> 58) as u32 % T::BITS))
    };
    (0..length).map(|_| next()).collect()
}

fn both<T: Element>(bytes: &[u8], length: usize) -> [(Result<Vec<T>, ColumnError>, usize); 2] {
    [false, true].map(|portable| {
        let (mut source, mut values) = (ColumnCursor::new(bytes), vec![T::truncate(1); length]);
        let result = match portable {
            true => decode_with(&mut source, &mut values, |_, _, _| (0, 0)),
            false => decode(&mut source, &mut values),
        };
        let offset = if result.is_ok() { source.offset() } else { 0 };
        (result.map(|()| values), offset)
    })
}

fn compare<T: Element>() {
    for length in (0..40).chain([1000, 20_000]) {
        let expected = values::<T>(length);
        let mut bytes = vec![0; encoded_len(&expected)];
        encode(&expected, &mut bytes);
        let whole = bytes.len();
        for more in [0, 1, 15, 16, 31, 32, 100] {
            bytes.resize(whole + more, 0xa5);
            let [fast, portable] = both::<T>(&bytes, length);
            assert_eq!(fast, portable, "{length} values, {more} bytes behind them");
            assert_eq!(fast, (Ok(expected.clone()), whole));
        }
        for cut in (0..whole).rev().step_by(1 + whole / 50) {
            let [fast, portable] = both::<T>(&bytes[..cut], length);
            assert_eq!(fast, portable, "{length} values, cut at {cut} of {whole}");
            assert!(fast.0.is_err());
        }
    }
}

#[test]
fn shuffles_of_32_bits_are_the_portable_path() {
    compare::<u32>();
}

#[test]
fn shuffles_of_64_bits_are_the_portable_path() {
    compare::<u64>();
}

#[test]
fn every_combination_of_codes_has_its_shuffle() {
    for codes in 0..=u8::MAX {
        let lengths: u8 = (0..4).map(|value| u32::CODED_BYTES[usize::from(codes >> (2 * value) & 3)]).sum();
        assert_eq!(u32::SHUFFLES[usize::from(codes)].length, lengths, "{codes:#b}");
    }
    assert_eq!(u64::SHUFFLES[0b11_01].from[..3], [0, 1, 0x80]);
    assert_eq!(u64::SHUFFLES[0b11_01].from[8..], [2, 3, 4, 5, 6, 7, 8, 9]);
}
