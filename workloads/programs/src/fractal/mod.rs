//! Fractal: a square of the Mandelbrot set in double precision, one thread per pixel.
//!
//! The thesis that introduced this program does not publish its region. The default is a square with the side
//! [`Region::DEFAULT`]`.side`, to the right of and below its corner. Event counts and ratios depend on it.

mod check;
mod paths;
mod reference;

use std::time::Duration;

use warptrace_host::{Buffer, LaunchShape, Launcher};

pub use self::check::check;
pub use self::paths::{Path, Paths};
pub use self::reference::{lane_locations, reference};
use crate::{ProgramInfo, WorkloadError};

/// The program's kernels and trace points.
pub const PROGRAM: ProgramInfo = ProgramInfo {
    name: "fractal",
    modules: &[warptrace_kernels::fractal::MODULE],
    automatic: &[warptrace_kernels::fractal::automatic::MODULE],
};

/// Largest width: pixels are numbered in 32 bits.
pub const MAX_WIDTH: u32 = 1 << 15;

/// A square of the complex plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Real part of the left edge.
    pub left: f64,
    /// Imaginary part of the upper edge.
    pub top: f64,
    /// Side of the square.
    pub side: f64,
}

impl Region {
    /// A square at the edge of the set, where pixels still differ at depths of many thousand steps.
    pub const DEFAULT: Self = Self { left: -0.74395, top: -0.10461, side: 0.00578 };
}

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct FractalOptions {
    /// Pixels per side, 1 to [`MAX_WIDTH`].
    pub width: u32,
    /// Maximum number of steps per pixel, at least 1.
    pub depth: u32,
    /// Region of the complex plane.
    pub region: Region,
    /// Threads per block: a multiple of 32, at most 1,024.
    pub block: u32,
}

impl FractalOptions {
    /// Creates options with the default region and blocks of 256 threads.
    pub const fn new(width: u32, depth: u32) -> Self {
        Self { width, depth, region: Region::DEFAULT, block: 256 }
    }

    fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.width)
    }

    /// Side of a pixel.
    pub(crate) fn pixel(&self) -> f64 {
        self.region.side / f64::from(self.width)
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let error = |option, value: String, allowed| Err(WorkloadError::Option { option, value, allowed });
        if self.width == 0 || self.width > MAX_WIDTH {
            return error("width", self.width.to_string(), "a width is 1 to 32,768 pixels");
        }
        if self.depth == 0 {
            return error("depth", self.depth.to_string(), "the depth is at least 1");
        }
        if self.block == 0 || self.block > 1024 || !self.block.is_multiple_of(32) {
            return error(
                "block",
                self.block.to_string(),
                "a block has 32 to 1,024 threads, a multiple of 32",
            );
        }
        let Region { left, top, side } = self.region;
        if !(left.is_finite() && top.is_finite() && side.is_finite() && side > 0.0) {
            return error("region", format!("{:?}", self.region), "a region is finite, with a side above 0");
        }
        Ok(())
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct FractalOutcome {
    /// Steps taken at each pixel, 1..=depth, row by row from the top.
    pub image: Vec<u32>,
    /// Kernel time.
    pub kernel: Duration,
}

/// Computes the picture. Fails if an option is out of range, or the device or the recording fails.
pub fn run(launcher: &mut dyn Launcher, options: &FractalOptions) -> Result<FractalOutcome, WorkloadError> {
    options.check()?;
    let pixels = options.pixels() as usize;
    let image = Buffer::<u32>::filled(launcher.device(), pixels, 0)?;
    let Region { left, top, .. } = options.region;
    let call = warptrace_kernels::fractal::fractal(
        image.global(),
        options.width,
        options.depth,
        left,
        top,
        options.pixel(),
    );
    // SAFETY: the kernel writes the pixels of `image` and nothing else, and `image` outlives the launch.
    let time = unsafe { launcher.launch(&call, &LaunchShape::linear(pixels as u64, options.block)) }?;
    let pixels = image.download(launcher.device())?;
    image.free(launcher.device())?;
    Ok(FractalOutcome { image: pixels, kernel: time.kernel })
}

/// Returns the number of warp events that a picture implies; see [`Paths::expected_events`] (also for
/// panics).
pub fn expected_events(image: &[u32], options: &FractalOptions) -> u64 {
    Paths::implied(image, options).expected_events()
}
