//! Prefix sums of any order and tuple are those of plain loops, also if chunks are summed alone.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::common::{Random, column};
use warptrace_columns::{Element, Shape, Sums, difference, scan};

const LENGTHS: [usize; 9] = [0, 1, 2, 7, 8, 63, 1023, 1025, 4999];

fn shapes() -> impl Iterator<Item = Shape> {
    (0..=8).flat_map(|order| (1..=8).map(move |tuple| Shape::new(order, tuple).unwrap()))
}

/// The definition: each order is a loop of its own.
fn naive<T: Element>(shape: Shape, values: &mut [T]) {
    for _ in 0..shape.order() {
        for index in shape.tuple()..values.len() {
            values[index] = values[index].wrapping_add(values[index - shape.tuple()]);
        }
    }
}

/// As persistent blocks do: block j takes chunks j, j + `blocks`, ..., sums each chunk alone, and takes what
/// is before it from its own last chunk and the sums that others left since.
fn in_chunks<T: Element>(shape: Shape, blocks: usize, chunk: usize, values: &mut [T]) {
    let local = |values: &[T]| {
        let mut sums = Sums::new(shape);
        sums.add(values);
        (sums, values.len())
    };
    // In any order: none knows of another.
    let mut all: Vec<_> = values.chunks(chunk).rev().map(local).collect();
    all.reverse();
    let mut own = vec![(Sums::new(shape), 0); blocks];
    for (number, values) in values.chunks_mut(chunk).enumerate() {
        let (mut before, from) = own[number % blocks];
        for (sums, length) in &all[from..number] {
            before = before.then(sums, *length);
        }
        own[number % blocks] = (before.then(&all[number].0, all[number].1), number + 1);
        before.scan(values);
        assert_eq!(before, own[number % blocks].0, "{shape:?}: the sums behind chunk {number}");
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

    let mut random = Random(length as u64);
    for _ in 0..2 {
        let (blocks, chunk) = (1 + random.below(5) as usize, 1 + random.below(1500) as usize);
        let mut chunked = values.clone();
        in_chunks(shape, blocks, chunk.max(length / 50), &mut chunked);
        assert!(chunked == expected, "{shape:?}, {length} values, {blocks} blocks, chunks of {chunk}");
    }
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
fn sums_go_on_wherever_values_are_cut() {
    for shape in shapes() {
        let values = column::<u64>("random", 3000);
        let mut expected = values.clone();
        scan(shape, &mut expected);
        let (mut sums, mut random, mut found) = (Sums::new(shape), Random(1), Vec::new());
        while found.len() < values.len() {
            let end = values.len().min(found.len() + random.below(20) as usize);
            let mut part = values[found.len()..end].to_vec();
            sums.scan(&mut part);
            found.extend(part);
        }
        assert_eq!(found, expected, "{shape:?}");
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
