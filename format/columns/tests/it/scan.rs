//! Prefix sums of any order and tuple match plain loops.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::common::column;
use warptrace_columns::{Element, Shape, difference, scan};

const LENGTHS: [usize; 9] = [0, 1, 2, 7, 8, 63, 1023, 1025, 4999];

fn shapes() -> impl Iterator<Item = Shape> {
    (0..=8).flat_map(|order| (1..=8).map(move |tuple| Shape::new(order, tuple).unwrap()))
}

/// Computes the definition with a separate loop for each order.
fn naive<T: Element>(shape: Shape, values: &mut [T]) {
    for _ in 0..shape.order() {
        for index in shape.tuple()..values.len() {
            values[index] = values[index].wrapping_add(values[index - shape.tuple()]);
        }
    }
}

fn compare<T: Element>(shape: Shape, length: usize) {
    let values = column::<T>("random", length);
    let mut expected = values.clone();
    naive(shape, &mut expected);
    let mut scanned = values.clone();
    scan(shape, &mut scanned);
    assert!(scanned == expected, "{shape:?}, {length} values");
    difference(shape, &mut scanned);
    assert!(scanned == values, "{shape:?}, {length} values, and back");
}

#[test]
fn scans_are_loops() {
    for shape in shapes() {
        for length in LENGTHS {
            compare::<u32>(shape, length);
            compare::<u64>(shape, length);
        }
    }
}

#[test]
fn long_scans_are_loops() {
    for shape in shapes().step_by(7) {
        compare::<u32>(shape, (1 << 18) + 5);
        compare::<u64>(shape, (1 << 18) + 5);
    }
}

#[test]
fn a_worked_out_example() {
    // 5, 2, -1 more each time: order 2 of 5, -3, -3, 0.
    let mut values = [5_u32, 0_u32.wrapping_sub(3), 0_u32.wrapping_sub(3), 0];
    scan(Shape::new(2, 1).unwrap(), &mut values);
    assert_eq!(values, [5, 7, 6, 5]);
    let mut pairs = [1_u64, 10, 1, 10, 1, 10, 1];
    scan(Shape::new(1, 2).unwrap(), &mut pairs);
    assert_eq!(pairs, [1, 10, 2, 20, 3, 30, 4]);
}

#[test]
fn only_shapes_in_range_exist() {
    assert!(Shape::new(8, 8).is_some());
    for (order, tuple) in [(9, 1), (0, 0), (0, 9), (usize::MAX, 1)] {
        assert_eq!(Shape::new(order, tuple), None);
    }
}
