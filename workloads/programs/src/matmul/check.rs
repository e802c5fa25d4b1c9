//! Is a product exact?

use std::fmt;

use rand_chacha::rand_core::Rng;
use rayon::prelude::*;

use super::Matrices;
use super::matrices::{STREAM, rng};
use crate::words::count;

/// Random vectors of a check.
const VECTORS: usize = 4;

/// What [`check()`] found of an exact product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Elements of the product.
    pub elements: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elements = count(self.elements);
        if f.alternate() {
            write!(f, "exact: {elements} elements, by Freivalds' check")
        } else {
            write!(f, "exact, by Freivalds' check ({elements} elements)")
        }
    }
}

/// Why a product is not right.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// It has another size than its factors.
    #[error("the product has {found} elements, its factors have {expected}")]
    Length {
        /// Elements given.
        found: usize,
        /// Elements of each factor.
        expected: usize,
    },
    /// A row that is not right.
    #[error("row {row} of the product, times a vector, is {found}; it should be {expected}")]
    Row {
        /// The first such row.
        row: usize,
        /// Its product with a random vector.
        found: f64,
        /// What that should be.
        expected: f64,
    },
}

/// Checks a product without computing it: C x = A (B x) for random vectors x (Freivalds, "Fast Probabilistic
/// Algorithms", 1979), in double precision, where nothing rounds.
///
/// The vectors' elements are odd numbers up to 1,023, so that one wrong element in a row is always found;
/// several wrong ones are missed with a probability of at most 2^-40 a row.
///
/// # Errors
/// Another number of elements, or the first wrong row.
pub fn check(matrices: &Matrices, product: &[f32]) -> Result<Finding, CheckError> {
    let (size, expected) = (matrices.size() as usize, matrices.a().len());
    if product.len() != expected {
        return Err(CheckError::Length { found: product.len(), expected });
    }
    let mut random = rng(0, STREAM + 1);
    for _ in 0..VECTORS {
        let vector: Vec<f64> =
            (0..size).map(|_| f64::from((random.next_u32() % 1024) as i32 * 2 - 1023)).collect();
        let times = |matrix: &[f32], vector: &[f64]| -> Vec<f64> {
            let row = |row: &[f32]| row.iter().zip(vector).map(|(&number, x)| f64::from(number) * x).sum();
            matrix.par_chunks(size).map(row).collect()
        };
        let expected = times(matrices.a(), &times(matrices.b(), &vector));
        let found = times(product, &vector);
        // A NaN differs from everything, so it is wrong.
        let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        if let Some(row) = wrong {
            return Err(CheckError::Row { row, found: found[row], expected: expected[row] });
        }
    }
    Ok(Finding { elements: product.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::reference;

    #[test]
    fn an_exact_product_is_named_with_its_size() {
        let matrices = Matrices::random(72, 1).unwrap();
        let finding = check(&matrices, &reference(&matrices)).unwrap();
        assert_eq!(finding.to_string(), "exact, by Freivalds' check (5,184 elements)");
        assert_eq!(format!("{finding:#}"), "exact: 5,184 elements, by Freivalds' check");
    }

    #[test]
    fn one_wrong_element_is_found() {
        let matrices = Matrices::random(24, 3).unwrap();
        let right = reference(&matrices);
        assert_eq!(check(&matrices, &right), Ok(Finding { elements: 576 }));
        for (at, by) in [(0, 2.0f32.powi(-12)), (575, -1.0), (100, f32::NAN), (101, f32::INFINITY)] {
            let mut wrong = right.clone();
            wrong[at] += by;
            let error = check(&matrices, &wrong).unwrap_err();
            assert!(
                matches!(error, CheckError::Row { row, .. } if row == at / 24),
                "{at} off by {by}: {error}"
            );
        }
        assert_eq!(check(&matrices, &right[1..]), Err(CheckError::Length { found: 575, expected: 576 }));
    }
}
