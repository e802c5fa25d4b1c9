//! Is every element right?

use std::fmt;

use super::Arrays;
use crate::words::count;

/// What [`check()`] found of a right array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its elements.
    pub elements: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exact: {} elements", count(self.elements))
    }
}

/// Why an array is not right.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// It has another length than what it was made of.
    #[error("the array has {found} elements, those that were read have {expected}")]
    Length {
        /// Elements given.
        found: usize,
        /// Elements of each array that was read.
        expected: usize,
    },
    /// An element that is not right.
    #[error("element {index} is {found}; it should be {expected}")]
    Element {
        /// The first such element.
        index: usize,
        /// What it is.
        found: f32,
        /// What it should be.
        expected: f32,
    },
}

/// Compares each element with what it should be.
///
/// # Errors
/// Another length, or the first wrong element.
pub fn check(arrays: &Arrays, a: &[f32]) -> Result<Finding, CheckError> {
    if a.len() != arrays.elements() {
        return Err(CheckError::Length { found: a.len(), expected: arrays.elements() });
    }
    for (index, &found) in a.iter().enumerate() {
        let expected = arrays.expected(index);
        // What is no number differs from everything.
        if found != expected {
            return Err(CheckError::Element { index, found, expected });
        }
    }
    Ok(Finding { elements: a.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_element_is_named() {
        let arrays = Arrays::new(2_000).unwrap();
        let right: Vec<f32> = (0..2_000).map(|index| arrays.expected(index)).collect();
        assert_eq!(check(&arrays, &right).unwrap().to_string(), "exact: 2,000 elements");
        for wrong in [f32::NAN, -1.0] {
            let mut other = right.clone();
            (other[1_500], other[1_501]) = (wrong, wrong);
            let error = check(&arrays, &other).unwrap_err();
            assert!(matches!(error, CheckError::Element { index: 1_500, .. }), "{error}");
        }
        assert_eq!(check(&arrays, &right[1..]), Err(CheckError::Length { found: 1_999, expected: 2_000 }));
        assert!(Arrays::new(0).is_err() && Arrays::new(MAX).is_err());
    }

    const MAX: u32 = super::super::MAX_ELEMENTS + 1;
}
