//! Fractal.

use std::borrow::Cow;

use rayon::prelude::*;
use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Launcher;
use warptrace_kernels::fractal::at;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::fractal::{self, FractalOptions};

use crate::subject::{Case, LaneReference, Run, RunResult, Subject};

pub(super) const NAME: &str = "fractal";

/// The thesis's three depths at a width of 2,048.
const FULL: [(u32, &str); 3] = [
    (1024, "fractal 2048, depth 1024"),
    (2048, "fractal 2048, depth 2048"),
    (4096, "fractal 2048, depth 4096"),
];

pub(super) fn cases(quick: bool) -> Vec<Case> {
    if quick {
        return [64, 128, 256].map(|depth| case(128, depth)).into();
    }
    FULL.map(|(depth, thesis)| case(2048, depth).like(thesis)).into()
}

pub(super) fn twin(quick: bool) -> Case {
    if quick { case(96, 64) } else { case(512, 256) }
}

fn case(width: u32, depth: u32) -> Case {
    let options = FractalOptions::new(width, depth);
    Case::new(NAME, format!("{width} x {width}, depth {depth}"), move || Ok(Fractal { options }))
}

struct Fractal {
    options: FractalOptions,
}

impl Subject for Fractal {
    fn program(&self) -> &'static ProgramInfo {
        &fractal::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<Run<'_>> {
        let outcome = fractal::run(launcher, &self.options)?;
        let result = Picture { options: &self.options, image: outcome.image };
        Ok(Run { kernel: outcome.kernel, launches: 1, result: Box::new(result) })
    }

    fn lanes(&self) -> Option<&dyn LaneReference> {
        Some(self)
    }
}

impl LaneReference for Fractal {
    fn lane(&self, _: u32, thread: u64) -> LaneDigest {
        LaneDigest::of(fractal::lane_locations(&self.options, thread))
    }
}

struct Picture<'s> {
    options: &'s FractalOptions,
    image: Vec<u32>,
}

impl RunResult for Picture<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(bytemuck::cast_slice(&self.image))
    }

    fn check(&self) -> Result<String, String> {
        let expected = fractal::reference(self.options);
        match self.image.iter().zip(&expected).position(|(found, expected)| found != expected) {
            None if self.image.len() == expected.len() => {
                Ok(format!("{} pixels as on the CPU", crate::table::count(expected.len() as u64)))
            }
            None => Err(format!("{} pixels, not {}", self.image.len(), expected.len())),
            Some(pixel) => {
                Err(format!("pixel {pixel} took {} steps, on the CPU {}", self.image[pixel], expected[pixel]))
            }
        }
    }

    fn expected_events(&self) -> Option<u64> {
        Some(expected_events(&self.image, self.options))
    }
}

/// [`fractal::expected_events`] of a picture without threads outside, on all cores: at full size the pixels that
/// reach the depth have to be computed again, a billion steps and more.
fn expected_events(image: &[u32], options: &FractalOptions) -> u64 {
    if !image.len().is_multiple_of(options.block as usize) {
        return fractal::expected_events(image, options);
    }
    let warp = |(warp, pixels): (usize, &[u32])| {
        let mut exits: Vec<u16> = (0..)
            .zip(pixels)
            .map(|(lane, &steps)| {
                // Below the depth only an escape ends the loop.
                let thread = warp as u64 * 32 + lane;
                let exit = (steps >= options.depth).then(|| fractal::lane_locations(options, thread).pop());
                exit.flatten().unwrap_or(at::ESCAPED)
            })
            .collect();
        exits.sort_unstable();
        exits.dedup();
        1 + u64::from(pixels.iter().copied().max().unwrap_or(0)) + exits.len() as u64
    };
    image.par_chunks(32).enumerate().map(warp).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_on_all_cores_is_the_programs() {
        // With pixels that escape at the last step, with warps of both exits, and with threads outside.
        for (width, depth) in [(64, 20), (64, 200), (16, 1), (30, 50)] {
            let options = FractalOptions::new(width, depth);
            let image = fractal::reference(&options);
            assert_eq!(expected_events(&image, &options), fractal::expected_events(&image, &options));
        }
    }
}
