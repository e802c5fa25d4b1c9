//! Prefix sums of higher order and of tuples, and their inverse, differences.
//!
//! Source: S. Maleki, A. Yang, M. Burtscher, "Higher-order and tuple-based massively-parallel prefix sums",
//! PLDI 2016 (SAM). Values are read and written once, block by block. Each block passes one sum for each
//! order and each element of a tuple to the next.

use crate::{Element, MAX_ORDER, MAX_TUPLE, Shape};

/// Values that pass through all orders while they are in the L1 cache.
const BLOCK: usize = 1024;

/// Replaces values by their differences.
pub fn difference<T: Element>(shape: Shape, values: &mut [T]) {
    each_order(shape, values, |_| (), |last, value| (value, value.wrapping_sub(last)));
}

/// Replaces differences by the original values.
pub fn scan<T: Element>(shape: Shape, differences: &mut [T]) {
    each_order(shape, differences, |_| (), add);
}

/// Like [`scan`], for differences in zigzag form.
pub(crate) fn scan_zigzag<T: Element>(shape: Shape, numbers: &mut [T]) {
    let unzigzag = |block: &mut [T]| block.iter_mut().for_each(|number| *number = number.unzigzag());
    each_order(shape, numbers, unzigzag, add);
}

#[inline(always)]
fn add<T: Element>(sum: T, value: T) -> (T, T) {
    let sum = sum.wrapping_add(value);
    (sum, sum)
}

/// Applies all orders to the values, block by block, after calling `prepare` for the block.
fn each_order<T: Element>(
    shape: Shape,
    values: &mut [T],
    prepare: impl Fn(&mut [T]),
    step: impl Fn(T, T) -> (T, T) + Copy,
) {
    // Indexed by order, then by element of a tuple; element 0 belongs to the next value.
    let mut states = [[T::default(); MAX_TUPLE]; MAX_ORDER];
    for block in values.chunks_mut(BLOCK) {
        prepare(block);
        for state in &mut states[..shape.order()] {
            each(shape.tuple(), state, block, step);
        }
    }
}

#[inline(always)]
fn each<T: Element>(
    tuple: usize,
    state: &mut [T; MAX_TUPLE],
    values: &mut [T],
    step: impl Fn(T, T) -> (T, T) + Copy,
) {
    match tuple {
        1 => each_of::<T, 1>(state, values, step),
        2 => each_of::<T, 2>(state, values, step),
        3 => each_of::<T, 3>(state, values, step),
        4 => each_of::<T, 4>(state, values, step),
        5 => each_of::<T, 5>(state, values, step),
        6 => each_of::<T, 6>(state, values, step),
        7 => each_of::<T, 7>(state, values, step),
        _ => each_of::<T, 8>(state, values, step),
    }
}

#[inline(always)]
fn each_of<T: Element, const N: usize>(
    state: &mut [T; MAX_TUPLE],
    values: &mut [T],
    step: impl Fn(T, T) -> (T, T) + Copy,
) {
    let mut held: [T; N] = core::array::from_fn(|element| state[element]);
    let (tuples, rest) = values.as_chunks_mut::<N>();
    for tuple in tuples {
        for (state, value) in held.iter_mut().zip(tuple) {
            (*state, *value) = step(*state, *value);
        }
    }
    for (state, value) in held.iter_mut().zip(&mut *rest) {
        (*state, *value) = step(*state, *value);
    }
    held.rotate_left(rest.len());
    state[..N].copy_from_slice(&held);
}
