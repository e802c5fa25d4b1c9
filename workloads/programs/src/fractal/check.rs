//! Check of a picture against the CPU.

use rayon::prelude::*;

use super::reference::pixel;
use super::{FractalOptions, Paths};
use crate::check::Checked;
use crate::words::count;

/// Checks that every pixel took as many steps as on the CPU. Returns the first that differs, or a wrong
/// number of pixels. Computes the picture again, in parallel; for several checks, use [`Paths::check`].
pub fn check(options: &FractalOptions, image: &[u32]) -> Checked {
    compare(image, options.pixels(), |index| pixel(options, index as u64).steps)
}

impl Paths {
    /// Like [`check()`], but uses the stored steps.
    pub fn check(&self, image: &[u32]) -> Checked {
        compare(image, self.paths.len() as u64, |index| self.paths[index].steps)
    }
}

fn compare(image: &[u32], pixels: u64, expected: impl Fn(usize) -> u32 + Sync) -> Checked {
    if image.len() as u64 != pixels {
        return Err(format!("{} pixels, not {pixels}", image.len()));
    }
    let wrong = image.par_iter().enumerate().find_map_first(|(pixel, &found)| {
        let expected = expected(pixel);
        (found != expected).then(|| format!("pixel {pixel} took {found} steps, on the CPU {expected}"))
    });
    wrong.map_or_else(|| Ok(format!("every pixel as on the CPU ({})", count(pixels))), Err)
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
        assert_eq!(finding, "every pixel as on the CPU (1,600)");

        let right = image[71];
        (image[71], image[1599]) = (right + 1, 0);
        let error = both(&image).unwrap_err();
        assert_eq!(error, format!("pixel 71 took {} steps, on the CPU {right}", right + 1));
        image.pop();
        assert_eq!(both(&image).unwrap_err(), "1599 pixels, not 1600");
    }
}
