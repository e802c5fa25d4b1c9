//! Values survive every layout, and the bytes match the documentation.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::common::{KINDS, column};
use proptest::prelude::*;
use warptrace_columns::fuzzing::{decode_arbitrary, round_trip, round_trip_values};
use warptrace_columns::{
    ColumnCursor, ColumnError, Element, Layout, MAX_VALUES, Packing, Shape, decode, encode,
};

fn layouts() -> impl Iterator<Item = Layout> {
    let shapes = (0..=8).flat_map(|order| (1..=8).map(move |tuple| Shape::new(order, tuple).unwrap()));
    shapes.flat_map(|shape| {
        [false, true].into_iter().flat_map(move |zero_runs| {
            Packing::ALL.into_iter().map(move |packing| Layout { shape, zero_runs, packing })
        })
    })
}

fn bytes<T: Element>(layout: (usize, usize, bool, Packing), values: &[T]) -> Vec<u8> {
    let (order, tuple, zero_runs, packing) = layout;
    let mut bytes = Vec::new();
    Layout { shape: Shape::new(order, tuple).unwrap(), zero_runs, packing }.encode(values, &mut bytes);
    bytes
}

#[test]
fn bytes_worked_out_by_hand() {
    use Packing::{Bits, Plain, StreamVByte};
    assert_eq!(bytes::<u32>((0, 1, false, Plain), &[]), [0, 0, 0]);
    assert_eq!(bytes((0, 1, false, Plain), &[1_u32, 0x0403_0201]), [0, 0, 2, 1, 0, 0, 0, 1, 2, 3, 4]);
    // Differences 10, 5, -1 are 20, 10, 1.
    assert_eq!(bytes((1, 1, false, StreamVByte), &[10_u32, 15, 14]), [2, 1, 3, 0, 20, 10, 1]);
    // Codes 0, 1, 2, 3, then one more value.
    assert_eq!(
        bytes((0, 1, false, StreamVByte), &[1_u32, 0x102, 0x1_0203, 0x102_0304, 5]),
        [0, 1, 5, 0b11_10_01_00, 0, 1, 2, 1, 3, 2, 1, 4, 3, 2, 1, 5]
    );
    assert_eq!(
        bytes((0, 1, false, StreamVByte), &[1_u64, 0x102, 0x1_0203, 1 << 32]),
        [1, 1, 4, 0b11_10_01_00, 1, 2, 1, 3, 2, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    );
    // Three bits each: 7 + 1 * 8 + 2 * 64 + 4 * 512.
    assert_eq!(bytes((0, 1, false, Bits), &[7_u32, 1, 2, 4]), [0, 2, 4, 3, 0x8f, 0x08]);
    // Tuples of two: x grows by 1, y by 2; differences of order 2 are 0 except the first ones.
    let pairs = [5_u64, 9, 6, 11, 7, 13, 8, 15, 9, 17];
    // Order 1: 5, 9, 1, 2, 1, 2, ...; order 2: 5, 9, -4, -7, 0, ...; zigzag: 10, 18, 7, 13, then six zeros.
    assert_eq!(
        bytes((2, 2, true, StreamVByte), &pairs),
        [1 | 2 << 1 | 1 << 5, 1 | 4, 10, 6, 0, 0, 10, 18, 7, 13, 0, 5]
    );
    let mut zeros = vec![0_u32; 300];
    zeros[299] = 3;
    // Runs of 256 and 43 zeros, 8 bits per element.
    assert_eq!(bytes((0, 1, true, Bits), &zeros), [0, 2 | 4, 0xac, 0x02, 5, 8, 0, 255, 0, 42, 3]);
}

#[test]
fn every_layout_gives_every_kind_back() {
    for kind in KINDS {
        for length in [0, 1, 2, 7, 8, 9, 127, 128, 129, 256, 257, 1030] {
            let (words, longs) = (column::<u32>(kind, length), column::<u64>(kind, length));
            for layout in layouts() {
                round_trip_values(layout, &words);
                round_trip_values(layout, &longs);
            }
        }
    }
}

#[test]
fn long_columns_come_back() {
    for kind in KINDS {
        for (number, layout) in layouts().enumerate().filter(|(number, _)| number % 29 == 0) {
            let length = (1 << 16) - number;
            round_trip_values(layout, &column::<u32>(kind, length));
            round_trip_values(layout, &column::<u64>(kind, length));
        }
    }
}

#[test]
fn kinds_get_the_layout_that_suits_them() {
    let chosen = |kind| {
        let layout = Layout::smallest(&column::<u64>(kind, 4096), 1);
        (layout.shape.order(), layout.zero_runs, layout.packing)
    };
    assert_eq!(chosen("zero"), (0, false, Packing::Bits));
    assert_eq!(chosen("linear"), (2, true, Packing::StreamVByte));
    assert_eq!(chosen("sparse steps"), (1, true, Packing::StreamVByte));
    // The steps are 400 to 459, so changes of steps are smaller.
    assert_eq!(chosen("clock"), (2, false, Packing::Bits));
    assert_eq!(chosen("random"), (0, false, Packing::Plain));
}

#[test]
fn damage_is_refused() {
    let read = |bytes: &[u8]| decode::<u32>(&mut ColumnCursor::new(bytes)).unwrap_err();
    let invalid = |bytes: &[u8]| match read(bytes) {
        ColumnError::Invalid { field, offset, .. } => (field, offset),
        ColumnError::TooMany { field, offset, .. } => (field, offset),
        error => panic!("{error}"),
    };
    assert_eq!(invalid(&[9 << 1, 0, 0]), ("order", 0));
    assert_eq!(invalid(&[0, 8, 0]), ("packing", 1));
    assert_eq!(invalid(&[0, 3, 0]), ("packing", 1));
    assert_eq!(invalid(&[0, 0, 0x80, 0x80, 0x80, 0x80, 0x10]), ("number of values", 2));
    assert_eq!(invalid(&[0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0]), ("number of values", 2));
    assert_eq!(invalid(&[0, 2, 0x81, 0x80, 0x80, 8]), ("number of values", 2));
    assert_eq!(invalid(&[0, 6, 2, 3, 0, 0, 0, 0]), ("number of elements", 3));
    // 129 values in a byte.
    assert_eq!(invalid(&[0, 6, 0x81, 1, 1, 0]), ("number of values", 2));
    assert_eq!(invalid(&[0, 2, 1, 33, 0, 0, 0, 0, 0]), ("width", 3));
    assert_eq!(invalid(&[0, 2, 1, 3, 8]), ("bits behind the last value", 4));
    assert_eq!(invalid(&[0, 1, 1, 4, 0, 0]), ("codes behind the last value", 3));
    assert_eq!(read(&[1, 0, 0]), ColumnError::Width { found: 64, expected: 32 });
    assert!(matches!(read(&[0, 0, 1, 0, 0, 0]), ColumnError::Short { needed: 4, available: 3, .. }));
    assert!(matches!(read(&[0, 1, 2, 1, 0, 0]), ColumnError::Short { field: "value", offset: 6, .. }));
    let run = |bytes: &[u8]| match read(bytes) {
        ColumnError::ZeroRun { element, .. } => element,
        error => panic!("{error}"),
    };
    assert_eq!(run(&[0, 5, 3, 2, 0, 0, 1]), 2, "fewer values");
    assert_eq!(run(&[0, 5, 3, 2, 0, 0, 3]), 1, "more values");
    assert_eq!(run(&[0, 5, 3, 1, 0, 0]), 0, "no length");
    assert_eq!(run(&[0, 5, 3, 2, 4, 0, 0, 1]), 1, "a length of 257");
}

#[test]
fn every_change_and_every_cut_gives_an_error_or_values() {
    for kind in ["sparse steps", "clock", "random widths"] {
        for layout in layouts().filter(|layout| layout.shape.order() < 3 && layout.shape.tuple() < 3) {
            let mut whole = Vec::new();
            layout.encode(&column::<u64>(kind, 150), &mut whole);
            for at in 0..whole.len() {
                assert!(
                    decode::<u64>(&mut ColumnCursor::new(&whole[..at])).is_err(),
                    "{layout:?} cut at {at}"
                );
                for change in [1, 0x80, 0xff] {
                    let mut bytes = whole.clone();
                    bytes[at] ^= change;
                    decode_arbitrary(&bytes);
                }
            }
        }
    }
}

fn values() -> impl Strategy<Value = Vec<u8>> {
    let word = (any::<u64>(), 0..64_u32).prop_map(|(value, shift)| value >> shift);
    let run = (prop_oneof![Just(0), word], 1..300_usize).prop_map(|(value, times)| vec![value; times]);
    let words = prop::collection::vec(run, 0..20);
    words.prop_map(|runs| runs.concat().into_iter().flat_map(u64::to_le_bytes).collect())
}

proptest! {
    #[test]
    fn any_values_come_back(layout: [u8; 3], values in values()) {
        round_trip(&[&layout[..], &values].concat());
    }

    #[test]
    fn any_bytes_give_an_error_or_values(first in 0..18_u8, tuple in 0..8_u8, packing in 0..7_u8, rest: Vec<u8>) {
        decode_arbitrary(&[&[first | tuple << 5, packing], &rest[..]].concat());
        decode_arbitrary(&rest);
    }

    #[test]
    fn columns_follow_each_other(left: Vec<u32>, right: Vec<u64>) {
        let mut bytes = Vec::new();
        encode(&left, 1, &mut bytes);
        encode(&right, 1, &mut bytes);
        let mut source = ColumnCursor::new(&bytes);
        prop_assert_eq!(decode(&mut source), Ok(left));
        prop_assert_eq!(decode(&mut source), Ok(right));
        prop_assert!(source.rest().is_empty());
    }
}

mod full {
    use super::*;

    #[test]
    fn the_longest_columns_come_back() {
        let layouts = layouts().filter(|layout| layout.shape == Shape::new(2, 3).unwrap());
        for (kind, layout) in KINDS.into_iter().zip(layouts.collect::<Vec<_>>().into_iter().cycle()) {
            round_trip_values(layout, &column::<u32>(kind, MAX_VALUES));
            round_trip_values(layout, &column::<u64>(kind, MAX_VALUES));
        }
    }
}
