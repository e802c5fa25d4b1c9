//! Prefix sums of higher order and of tuples, and the differences that they undo.
//!
//! Source: S. Maleki, A. Yang, M. Burtscher, "Higher-order and tuple-based massively-parallel prefix sums",
//! PLDI 2016 (SAM). Only the computation is iterated: values are read and written once, block by block, and
//! all that goes from block to block is a sum for each order and each element of a tuple.
//!
//! Chunks can be summed in any order. What the values before a chunk add to its sums does not depend on the
//! chunk's values, only on how many there are: sum j before reaches sum k behind n values C(n + k - j - 1,
//! k - j) times, the coefficient of x^(k - j) in (1 - x)^-n. So [`Sums::then`] combines neighbours at once
//! for all orders.

use crate::{Element, MAX_ORDER, MAX_TUPLE, Shape};

/// Values that go through all orders while they are in the nearest cache.
pub(crate) const BLOCK: usize = 1024;

/// Replaces values by their differences.
///
/// All values are there: differences of a part of a column begin with predecessors that are 0.
pub fn difference<T: Element>(shape: Shape, values: &mut [T]) {
    let mut last = [[T::default(); MAX_TUPLE]; MAX_ORDER];
    for block in values.chunks_mut(BLOCK) {
        for last in &mut last[..shape.order()] {
            each(shape.tuple(), last, block, |last, value| (value, value.wrapping_sub(last)));
        }
    }
}

/// Replaces differences by the values of which they were taken.
pub fn scan<T: Element>(shape: Shape, differences: &mut [T]) {
    Sums::new(shape).scan(differences);
}

/// Sums of all values so far, of each order and for each element of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums<T> {
    shape: Shape,
    /// By order, less one, and element; element 0 is the one that the next value belongs to.
    sums: [[T; MAX_TUPLE]; MAX_ORDER],
}

impl<T: Element> Sums<T> {
    /// Returns the sums of no values.
    pub fn new(shape: Shape) -> Self {
        Self { shape, sums: [[T::default(); MAX_TUPLE]; MAX_ORDER] }
    }

    /// Adds values, and replaces each by the sum of the highest order up to it.
    pub fn scan(&mut self, values: &mut [T]) {
        for block in values.chunks_mut(BLOCK) {
            for sums in &mut self.sums[..self.shape.order()] {
                each(self.shape.tuple(), sums, block, |sum, value| {
                    let sum = sum.wrapping_add(value);
                    (sum, sum)
                });
            }
        }
    }

    /// Adds values.
    pub fn add(&mut self, values: &[T]) {
        let mut copy = [T::default(); BLOCK];
        for block in values.chunks(BLOCK) {
            let copy = &mut copy[..block.len()];
            copy.copy_from_slice(block);
            self.scan(copy);
        }
    }

    /// Returns the sums of these values and, behind them, of a chunk of `length` values with the sums
    /// `chunk`.
    ///
    /// # Panics
    /// If the shapes differ.
    #[must_use]
    pub fn then(&self, chunk: &Self, length: usize) -> Self {
        assert_eq!(self.shape, chunk.shape, "sums of different shapes");
        let (order, tuple) = (self.shape.order(), self.shape.tuple());
        // Of the tuple's elements the first have a value more than the others in the chunk.
        let fewer = reached(length / tuple);
        let more = product(fewer, [T::ONE; MAX_ORDER]);
        let mut both = *chunk;
        for element in 0..tuple {
            let reached = if element < length % tuple { more } else { fewer };
            let to = (element + tuple - length % tuple) % tuple;
            for from in 0..order {
                for (sums, reached) in both.sums[from..order].iter_mut().zip(reached) {
                    sums[to] = sums[to].wrapping_add(reached.wrapping_mul(self.sums[from][element]));
                }
            }
        }
        both
    }
}

/// Coefficients of (1 - x)^-`values`: how often a sum reaches those 0, 1, 2 and more orders above it.
fn reached<T: Element>(mut values: usize) -> [T; MAX_ORDER] {
    let mut power = [T::ONE; MAX_ORDER];
    let mut all = [T::default(); MAX_ORDER];
    all[0] = T::ONE;
    while values > 0 {
        if values % 2 == 1 {
            all = product(all, power);
        }
        power = product(power, power);
        values /= 2;
    }
    all
}

/// Product of two polynomials, without powers that no order has.
fn product<T: Element>(left: [T; MAX_ORDER], right: [T; MAX_ORDER]) -> [T; MAX_ORDER] {
    let mut product = [T::default(); MAX_ORDER];
    for (power, left) in left.into_iter().enumerate() {
        for (sum, right) in product[power..].iter_mut().zip(right) {
            *sum = sum.wrapping_add(left.wrapping_mul(right));
        }
    }
    product
}

/// Takes each value with the state of its element of a tuple, and sets both.
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

/// [`each`] for tuples of size `N`, whose state is in registers.
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
