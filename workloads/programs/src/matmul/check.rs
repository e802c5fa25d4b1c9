//! Check of a matrix product.

use rand_chacha::rand_core::Rng;
use rayon::prelude::*;

use super::Matrices;
use super::matrices::{STREAM, rng};
use crate::check::Checked;
use crate::words::count;

const VECTORS: usize = 4;

/// Checks a product without computing it: C x = A (B x) for random vectors x (Freivalds, "Fast Probabilistic
/// Algorithms", 1979), in double precision without rounding.
///
/// The vectors' elements are odd numbers up to 1,023, so the check always finds a single wrong element in a
/// row. It misses several wrong ones with a probability of at most 2^-40 per row.
///
/// # Errors
/// If the number of elements differs; otherwise, the first wrong row.
pub fn check(matrices: &Matrices, product: &[f32]) -> Checked {
    let (size, expected) = (matrices.size() as usize, matrices.a().len());
    if product.len() != expected {
        return Err(format!("the product has {} elements, its factors have {expected}", product.len()));
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
        // A NaN differs from everything, so it counts as wrong.
        let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        if let Some(row) = wrong {
            let (found, expected) = (found[row], expected[row]);
            return Err(format!(
                "row {row} of the product, times a vector, is {found}; it should be {expected}"
            ));
        }
    }
    Ok(format!("exact, by Freivalds' check ({} elements)", count(product.len() as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::reference;

    #[test]
    fn an_exact_product_is_named_with_its_size() {
        let matrices = Matrices::random(72, 1).unwrap();
        let finding = check(&matrices, &reference(&matrices)).unwrap();
        assert_eq!(finding, "exact, by Freivalds' check (5,184 elements)");
    }

    #[test]
    fn one_wrong_element_is_found() {
        let matrices = Matrices::random(24, 3).unwrap();
        let right = reference(&matrices);
        assert!(check(&matrices, &right).is_ok());
        for (at, by) in [(0, 2.0f32.powi(-12)), (575, -1.0), (100, f32::NAN), (101, f32::INFINITY)] {
            let mut wrong = right.clone();
            wrong[at] += by;
            let error = check(&matrices, &wrong).unwrap_err();
            assert!(error.starts_with(&format!("row {} of", at / 24)), "{at} off by {by}: {error}");
        }
        let error = check(&matrices, &right[1..]).unwrap_err();
        assert_eq!(error, "the product has 575 elements, its factors have 576");
    }
}
