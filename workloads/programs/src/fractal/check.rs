//! Is a picture the CPU's?

use std::fmt;

use rayon::prelude::*;

use super::reference::pixel;
use super::{FractalOptions, Paths};
use crate::words::count;

/// What [`check()`] found of a picture that is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Pixels, all of them compared.
    pub pixels: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pixels = count(self.pixels);
        if f.alternate() {
            write!(f, "{pixels} pixels as on the CPU")
        } else {
            write!(f, "every pixel as on the CPU ({pixels})")
        }
    }
}

/// Why a picture is not right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The picture is of another size.
    #[error("{found} pixels, not {expected}")]
    Length {
        /// Pixels given.
        found: usize,
        /// Pixels of the options' square.
        expected: u64,
    },
    /// A pixel took another number of steps.
    #[error("pixel {pixel} took {found} steps, on the CPU {expected}")]
    Steps {
        /// The first such pixel, row by row from the top.
        pixel: usize,
        /// Its steps.
        found: u32,
        /// Its steps on the CPU.
        expected: u32,
    },
}

/// Checks that every pixel took as many steps as on the CPU.
///
/// It computes the picture anew, in parallel, and keeps none of it. Where more is asked of the same options,
/// [`Paths::check`] computes them once.
///
/// # Errors
/// Another number of pixels, or the first one that differs.
pub fn check(options: &FractalOptions, image: &[u32]) -> Result<Finding, CheckError> {
    compare(image, options.pixels(), |index| pixel(options, index as u64).steps)
}

impl Paths {
    /// As [`check()`], with the steps that are known already.
    ///
    /// # Errors
    /// Another number of pixels, or the first one that differs.
    pub fn check(&self, image: &[u32]) -> Result<Finding, CheckError> {
        compare(image, self.paths.len() as u64, |index| self.paths[index].steps)
    }
}

fn compare(
    image: &[u32],
    pixels: u64,
    expected: impl Fn(usize) -> u32 + Sync,
) -> Result<Finding, CheckError> {
    if image.len() as u64 != pixels {
        return Err(CheckError::Length { found: image.len(), expected: pixels });
    }
    let wrong = image.par_iter().enumerate().find_map_first(|(pixel, &found)| {
        let expected = expected(pixel);
        (found != expected).then_some(CheckError::Steps { pixel, found, expected })
    });
    wrong.map_or(Ok(Finding { pixels }), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fractal::reference;

    #[test]
    fn pictures_are_judged() {
        let options = FractalOptions::new(40, 60);
        let mut image = reference(&options);
        let paths = Paths::new(&options);
        let both = |image: &[u32]| {
            let found = check(&options, image);
            assert_eq!(paths.check(image), found);
            found
        };
        let finding = both(&image).unwrap();
        assert_eq!(finding.to_string(), "every pixel as on the CPU (1,600)");
        assert_eq!(format!("{finding:#}"), "1,600 pixels as on the CPU");

        let right = image[71];
        (image[71], image[1599]) = (right + 1, 0);
        let error = both(&image).unwrap_err();
        assert_eq!(error, CheckError::Steps { pixel: 71, found: right + 1, expected: right });
        assert_eq!(error.to_string(), format!("pixel 71 took {} steps, on the CPU {right}", right + 1));
        image.pop();
        assert_eq!(both(&image).unwrap_err().to_string(), "1599 pixels, not 1600");
    }
}
