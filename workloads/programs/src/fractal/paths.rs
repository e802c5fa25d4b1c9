//! Paths of all threads through the kernel, and the event counts that they imply.

use std::iter;

use rayon::prelude::*;
use warptrace_kernels::fractal::at;

use super::FractalOptions;
use super::reference::pixel;

const WARP: usize = 32;

/// Path of a thread that has a pixel: it enters, takes `steps` steps and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Steps, 1..=depth.
    pub steps: u32,
    /// Whether the pixel escaped at the last step.
    pub escaped: bool,
}

/// Returns the locations of a thread, in order; `None` is a thread without a pixel.
pub(super) fn locations(path: Option<Path>) -> impl Iterator<Item = u16> {
    let (steps, exit) = match path {
        Some(Path { steps, escaped: true }) => (steps, at::ESCAPED),
        Some(Path { steps, escaped: false }) => (steps, at::IN_SET),
        None => (0, at::OUTSIDE),
    };
    iter::once(at::ENTER).chain(iter::repeat_n(at::ITERATE, steps as usize)).chain([exit])
}

/// Paths of all threads that have a pixel. At the thesis's sizes they take ten billion steps to compute.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Threads per block.
    block: u32,
    /// Row by row from the top.
    pub(super) paths: Vec<Path>,
}

impl Paths {
    /// Computes the paths on the CPU.
    pub fn new(options: &FractalOptions) -> Self {
        let paths = (0..options.pixels()).into_par_iter().map(|index| pixel(options, index)).collect();
        Self { block: options.block, paths }
    }

    pub(super) fn implied(image: &[u32], options: &FractalOptions) -> Self {
        let path = |(index, &steps): (usize, &u32)| {
            // A pixel below the depth has escaped. At the depth, only a computation can tell.
            let escaped = steps < options.depth || pixel(options, index as u64).escaped;
            Path { steps, escaped }
        };
        Self { block: options.block, paths: image.par_iter().enumerate().map(path).collect() }
    }

    /// Returns the steps at each pixel, row by row from the top.
    pub fn image(&self) -> impl ExactSizeIterator<Item = u32> {
        self.paths.iter().map(|path| path.steps)
    }

    /// Returns the locations of thread `thread`, in order.
    pub fn lane_locations(&self, thread: u64) -> impl Iterator<Item = u16> + use<> {
        let path = usize::try_from(thread).ok().and_then(|thread| self.paths.get(thread));
        locations(path.copied())
    }

    /// Returns the number of warp events if every warp reconverges at each trace point: one at its entry, one
    /// per iteration of its slowest lane, one or two at the exits of the loop, and one for lanes without a
    /// pixel. Panics if the block size is 0.
    pub fn expected_events(&self) -> u64 {
        let threads = self.paths.len().next_multiple_of(self.block as usize);
        let pixels = |first: usize| first.min(self.paths.len());
        (0..threads)
            .step_by(WARP)
            .map(|first| {
                let inside = &self.paths[pixels(first)..pixels(first + WARP)];
                let leaves = |escaped| u64::from(inside.iter().any(|path| path.escaped == escaped));
                1 + slowest(inside) + leaves(true) + leaves(false) + u64::from(inside.len() < WARP)
            })
            .sum()
    }

    /// Returns the number of loop events among them, which does not assume that lanes reconverge after loops.
    pub fn expected_rounds(&self) -> u64 {
        self.paths.chunks(WARP).map(slowest).sum()
    }
}

fn slowest(warp: &[Path]) -> u64 {
    u64::from(warp.iter().map(|path| path.steps).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fractal::{expected_events, lane_locations, reference};

    /// Counts events by location: in a warp whose lanes wait for each other, the most visits of any lane.
    fn counted(options: &FractalOptions) -> BTreeMap<u16, u64> {
        let mut events = BTreeMap::new();
        let threads = options.pixels().next_multiple_of(options.block.into());
        for first in (0..threads).step_by(WARP) {
            let mut most: BTreeMap<u16, u64> = BTreeMap::new();
            for thread in first..first + WARP as u64 {
                let mut passed: BTreeMap<u16, u64> = BTreeMap::new();
                lane_locations(options, thread).iter().for_each(|&at| *passed.entry(at).or_default() += 1);
                for (location, times) in passed {
                    let most = most.entry(location).or_default();
                    *most = times.max(*most);
                }
            }
            most.into_iter().for_each(|(location, times)| *events.entry(location).or_default() += times);
        }
        events
    }

    #[test]
    fn paths_are_the_references_and_their_events_add_up() {
        // Includes pixels that escape at the last step, warps with both exits, and threads outside.
        for (width, depth) in [(64, 20), (64, 200), (16, 1), (30, 50), (1, 3)] {
            let options = FractalOptions::new(width, depth);
            let (paths, image) = (Paths::new(&options), reference(&options));
            assert!(paths.image().eq(image.iter().copied()));
            assert_eq!(Paths::implied(&image, &options).paths, paths.paths);
            let events = counted(&options);
            assert_eq!(paths.expected_events(), events.values().sum::<u64>(), "{options:?}");
            assert_eq!(expected_events(&image, &options), paths.expected_events());
            assert_eq!(paths.expected_rounds(), events[&at::ITERATE], "{options:?}");
            for thread in (0..options.pixels() + 40).step_by(7) {
                assert!(paths.lane_locations(thread).eq(lane_locations(&options, thread)), "thread {thread}");
            }
        }
    }
}
