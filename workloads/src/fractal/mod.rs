//! Fractal: a square of the Mandelbrot set, one thread a pixel, double precision.
//!
//! The thesis that this program comes from does not publish the region it computed. The default here is a square
//! of side [`Region::DEFAULT`]`.side` downwards and to the right from its corner; iteration counts, and so event
//! counts and ratios, depend on it.

mod picture;
mod reference;

use std::time::Duration;

use warptrace_host::{Buffer, LaunchShape, Launcher};

pub use self::picture::write_png;
pub use self::reference::{lane_locations, reference};
use crate::{ProgramInfo, WorkloadError};

/// The program's kernels and trace points.
pub const PROGRAM: ProgramInfo = ProgramInfo {
    name: "fractal",
    kernels: &[("fractal", "workloads/kernels/src/fractal.rs")],
    points: &[warptrace_kernels::fractal::at::POINTS],
};

/// Widest picture: its pixels are numbered in 32 bits.
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
    /// A square at the edge of the set, where depths of many thousand steps still tell pixels apart.
    pub const DEFAULT: Self = Self { left: -0.74395, top: -0.10461, side: 0.00578 };
}

/// What to compute.
#[derive(Clone, Copy, Debug)]
pub struct FractalOptions {
    /// Pixels of a side, 1 to [`MAX_WIDTH`].
    pub width: u32,
    /// Most steps a pixel, at least 1.
    pub depth: u32,
    /// The part of the plane.
    pub region: Region,
    /// Threads of a block: a multiple of 32, at most 1,024.
    pub block: u32,
}

impl FractalOptions {
    /// The default region in blocks of 256.
    pub const fn new(width: u32, depth: u32) -> Self {
        Self { width, depth, region: Region::DEFAULT, block: 256 }
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

/// What a run computed.
#[derive(Clone, Debug)]
pub struct FractalOutcome {
    /// Steps taken at each pixel, 1..=depth, row by row from the top.
    pub image: Vec<u32>,
    /// The kernel's time.
    pub kernel: Duration,
}

/// Computes the picture.
///
/// # Errors
/// If an option is out of range, or the device or the recording fails.
pub fn run(launcher: &mut dyn Launcher, options: &FractalOptions) -> Result<FractalOutcome, WorkloadError> {
    options.check()?;
    let pixels = options.width as usize * options.width as usize;
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

/// Warp events that a picture implies, if every warp reconverges at each trace point: for each warp, one event where
/// it enters, one an iteration of its slowest lane, one or two for the ways out of the loop, and, in a grid with more
/// threads than pixels, one for the lanes outside.
pub fn expected_events(image: &[u32], options: &FractalOptions) -> u64 {
    let threads = (image.len() as u64).next_multiple_of(u64::from(options.block));
    let mut events = 0;
    for first in (0..threads).step_by(32) {
        let lanes = first.min(image.len() as u64) as usize..(first + 32).min(image.len() as u64) as usize;
        let inside = &image[lanes];
        events += 1; // ENTER
        events += u64::from(inside.len() < 32); // OUTSIDE
        events += u64::from(inside.iter().copied().max().unwrap_or(0)); // ITERATE
        let (in_set, escaped) = reference::exits(options, first, inside);
        events += u64::from(in_set) + u64::from(escaped);
    }
    events
}
