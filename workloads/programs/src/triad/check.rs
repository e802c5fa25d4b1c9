//! Check of the result.

use super::Arrays;
use crate::check::Checked;
use crate::words::count;

/// Compares each element with its expected value. Returns the first wrong element or a wrong length.
pub fn check(arrays: &Arrays, a: &[f32]) -> Checked {
    let expected = arrays.elements();
    if a.len() != expected {
        return Err(format!("the array has {} elements, those that were read have {expected}", a.len()));
    }
    for (index, &found) in a.iter().enumerate() {
        let expected = arrays.expected(index);
        // A NaN differs from everything.
        if found != expected {
            return Err(format!("element {index} is {found}; it should be {expected}"));
        }
    }
    Ok(format!("exact: {} elements", count(a.len() as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_element_is_named() {
        let arrays = Arrays::new(2_000).unwrap();
        let right: Vec<f32> = (0..2_000).map(|index| arrays.expected(index)).collect();
        assert_eq!(check(&arrays, &right).unwrap(), "exact: 2,000 elements");
        for wrong in [f32::NAN, -1.0] {
            let mut other = right.clone();
            (other[1_500], other[1_501]) = (wrong, wrong);
            let error = check(&arrays, &other).unwrap_err();
            assert!(error.starts_with(&format!("element 1500 is {wrong}; ")), "{error}");
        }
        let error = check(&arrays, &right[1..]).unwrap_err();
        assert_eq!(error, "the array has 1999 elements, those that were read have 2000");
        assert!(Arrays::new(0).is_err() && Arrays::new(MAX).is_err());
    }

    const MAX: u32 = super::super::MAX_ELEMENTS + 1;
}
