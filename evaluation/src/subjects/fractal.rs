//! Fractal.

use std::borrow::Cow;
use std::sync::OnceLock;

use rayon::prelude::*;
use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Launcher;
use warptrace_kernels::fractal::at;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::fractal::{self, FractalOptions};

use crate::subject::{Case, LaneReference, Run, RunResult, Subject};

pub(crate) const NAME: &str = "fractal";

/// The thesis's three depths at a width of 2,048.
const FULL: [(u32, &str); 3] = [
    (1024, "fractal 2048, depth 1024"),
    (2048, "fractal 2048, depth 2048"),
    (4096, "fractal 2048, depth 4096"),
];

/// Depths for the simulator.
const QUICK: [u32; 3] = [64, 128, 256];

pub(super) fn cases(quick: bool) -> Vec<Case> {
    let cases = sizes(quick).into_iter().map(|(width, depth)| case(width, depth));
    if quick {
        return cases.collect();
    }
    cases.zip(FULL).map(|(case, (_, thesis))| case.like(thesis)).collect()
}

/// Widths and depths of the cases.
pub(crate) fn sizes(quick: bool) -> Vec<(u32, u32)> {
    if quick { QUICK.map(|depth| (128, depth)).into() } else { FULL.map(|(depth, _)| (2048, depth)).into() }
}

pub(super) fn twin(quick: bool) -> Case {
    if quick { case(96, 64) } else { case(512, 256) }
}

pub(crate) fn case(width: u32, depth: u32) -> Case {
    let options = FractalOptions::new(width, depth);
    Case::new(NAME, format!("{width} x {width}, depth {depth}"), move || Ok(Fractal::new(options)))
}

struct Fractal {
    options: FractalOptions,
    /// Every pixel's path on the CPU. At full size that takes ten billion steps, so it is computed once.
    paths: OnceLock<Vec<Path>>,
}

/// A thread's way through the kernel: it enters, steps so often, and leaves.
#[derive(Clone, Copy, Debug)]
struct Path {
    steps: u32,
    exit: u16,
}

impl Fractal {
    fn new(options: FractalOptions) -> Self {
        Self { options, paths: OnceLock::new() }
    }

    fn paths(&self) -> &[Path] {
        let path = |thread| {
            let locations = fractal::lane_locations(&self.options, thread);
            let steps = locations.iter().filter(|&&location| location == at::ITERATE).count() as u32;
            Path { steps, exit: *locations.last().expect("a thread passes where it enters") }
        };
        let pixels = u64::from(self.options.width) * u64::from(self.options.width);
        self.paths.get_or_init(|| (0..pixels).into_par_iter().map(path).collect())
    }
}

impl Subject for Fractal {
    fn program(&self) -> &'static ProgramInfo {
        &fractal::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<Run<'_>> {
        let outcome = fractal::run(launcher, &self.options)?;
        let result = Picture { subject: self, image: outcome.image };
        Ok(Run { kernel: outcome.kernel, launches: 1, result: Box::new(result) })
    }

    fn lanes(&self) -> Option<&dyn LaneReference> {
        // Lanes are asked for in parallel. A task that computed the paths then would wait for others, which wait for it.
        self.paths();
        Some(self)
    }
}

impl LaneReference for Fractal {
    fn lane(&self, _: u32, thread: u64) -> LaneDigest {
        let Some(path) = usize::try_from(thread).ok().and_then(|thread| self.paths().get(thread)) else {
            return LaneDigest::of([at::ENTER, at::OUTSIDE]);
        };
        let steps = std::iter::repeat_n(at::ITERATE, path.steps as usize);
        LaneDigest::of(std::iter::once(at::ENTER).chain(steps).chain([path.exit]))
    }
}

struct Picture<'s> {
    subject: &'s Fractal,
    image: Vec<u32>,
}

impl RunResult for Picture<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(bytemuck::cast_slice(&self.image))
    }

    fn check(&self) -> Result<String, String> {
        let expected = self.subject.paths();
        match self.image.iter().zip(expected).position(|(&found, expected)| found != expected.steps) {
            None if self.image.len() == expected.len() => {
                Ok(format!("{} pixels as on the CPU", crate::table::count(expected.len() as u64)))
            }
            None => Err(format!("{} pixels, not {}", self.image.len(), expected.len())),
            Some(pixel) => Err(format!(
                "pixel {pixel} took {} steps, on the CPU {}",
                self.image[pixel], expected[pixel].steps
            )),
        }
    }

    fn expected_events(&self) -> Option<u64> {
        Some(expected_events(&self.subject.options, self.subject.paths()))
    }

    fn expected_rounds(&self) -> Option<(u16, u64)> {
        let slowest = |warp: &[Path]| u64::from(warp.iter().map(|path| path.steps).max().unwrap_or(0));
        Some((at::ITERATE, self.subject.paths().chunks(32).map(slowest).sum()))
    }
}

/// As [`fractal::expected_events`], from paths that are known already.
fn expected_events(options: &FractalOptions, paths: &[Path]) -> u64 {
    let threads = paths.len().next_multiple_of(options.block as usize);
    let warp = |first: usize| {
        let inside = &paths[first.min(paths.len())..(first + 32).min(paths.len())];
        let slowest = inside.iter().map(|path| path.steps).max().unwrap_or(0);
        let mut exits: Vec<u16> = inside.iter().map(|path| path.exit).collect();
        exits.sort_unstable();
        exits.dedup();
        // They enter together and step as often as the slowest; each way out is one event, and so is having no pixel.
        1 + u64::from(slowest) + exits.len() as u64 + u64::from(inside.len() < 32)
    };
    (0..threads).step_by(32).map(warp).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_counts_are_the_programs() {
        // With pixels that escape at the last step, with warps of both exits, and with threads outside.
        for (width, depth) in [(64, 20), (64, 200), (16, 1), (30, 50), (1, 3)] {
            let subject = Fractal::new(FractalOptions::new(width, depth));
            let (options, paths) = (&subject.options, subject.paths());
            let image = fractal::reference(options);
            assert!(image.iter().eq(paths.iter().map(|path| &path.steps)));
            assert_eq!(expected_events(options, paths), fractal::expected_events(&image, options));
            for thread in (0..u64::from(width * width) + 40).step_by(7) {
                let locations = fractal::lane_locations(options, thread);
                assert_eq!(subject.lane(0, thread), LaneDigest::of(locations), "thread {thread}");
            }
        }
    }
}
