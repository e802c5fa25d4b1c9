//! Parallel silence coding: replaces a run of zeros by the pair (0, length - 1). Other values stay unchanged.
//!
//! Source: Cheng, Dai, "Parallel silence coding", 2016. Runs end at multiples of [`MAX_RUN`] values, so that
//! blocks of values can be encoded independently.
//!
//! ```text
//! values      7  0  0  0  5  0  9
//! elements    7  0  2  5  0  0  9
//! ```

use crate::{ColumnError, Element};

/// Maximum length of a run of zeros.
pub const MAX_RUN: usize = 256;

#[inline(always)]
fn starts<T: Element>(values: &[T], index: usize) -> bool {
    let zero = T::default();
    values[index] == zero && (index.is_multiple_of(MAX_RUN) || values[index - 1] != zero)
}

/// Returns the length of the run of zeros that starts at `index`; 0 if none starts there.
#[inline(always)]
fn run_length<T: Element>(values: &[T], index: usize) -> usize {
    let end = values.len().min((index / MAX_RUN + 1) * MAX_RUN);
    values[index..end].iter().take_while(|&&value| value == T::default()).count()
}

/// Returns the position of a value or run among the elements, after `zeros` zeros in `runs` runs.
#[inline(always)]
const fn place(index: usize, zeros: usize, runs: usize) -> usize {
    index - zeros + 2 * runs
}

/// Returns the number of elements that [`encode`] writes.
pub fn encoded_len<T: Element>(values: &[T]) -> usize {
    let zeros = values.iter().filter(|&&value| value == T::default()).count();
    let runs = (0..values.len()).filter(|&index| starts(values, index)).count();
    place(values.len(), zeros, runs)
}

/// Encodes values as elements. Panics if the length of `elements` is not [`encoded_len`].
pub fn encode<T: Element>(values: &[T], elements: &mut [T]) {
    let (mut index, mut zeros, mut runs) = (0, 0, 0);
    while index < values.len() {
        let to = place(index, zeros, runs);
        match run_length(values, index) {
            0 => {
                elements[to] = values[index];
                index += 1;
            }
            length => {
                elements[to] = T::default();
                elements[to + 1] = T::truncate(length as u64 - 1);
                (index, zeros, runs) = (index + length, zeros + length, runs + 1);
            }
        }
    }
    assert_eq!(elements.len(), place(index, zeros, runs), "the number of elements");
}

/// Decodes elements into `values`, also runs that cross multiples of [`MAX_RUN`]. Fails with
/// [`ColumnError::ZeroRun`] if the elements do not encode exactly `values.len()` values.
pub fn decode<T: Element>(elements: &[T], values: &mut [T]) -> Result<(), ColumnError> {
    let error = |element, problem| Err(ColumnError::ZeroRun { element, problem });
    let (mut element, mut index) = (0, 0);
    while let Some(&value) = elements.get(element) {
        let mut length = 1;
        if value == T::default() {
            match elements.get(element + 1).map(|length| length.to_u64()) {
                Some(more) if more < MAX_RUN as u64 => length += more as usize,
                Some(_) => return error(element + 1, "a run has at most 256 zeros"),
                None => return error(element, "the length of the run is missing"),
            }
            element += 1;
        }
        let Some(values) = values.get_mut(index..index + length) else {
            return error(element, "more values than the column announces");
        };
        values.fill(value);
        element += 1;
        index += length;
    }
    if index < values.len() {
        return error(element, "fewer values than the column announces");
    }
    Ok(())
}
