//! Grids of persistent blocks.

use std::fmt;
use std::str::FromStr;

use warptrace_host::{Blocks, Device, LaunchShape};

use crate::WorkloadError;

/// A one-dimensional grid for kernels whose threads stride over their work: any size is correct. As text
/// `192x256`, blocks x threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    blocks: u32,
    threads: u32,
}

impl Grid {
    /// Maximum number of threads in a grid.
    pub const MAX_THREADS: u64 = 1 << 30;

    const DEFAULT_BLOCK: u32 = 256;
    /// Blocks of [`DEFAULT_BLOCK`](Self::DEFAULT_BLOCK) threads that a multiprocessor holds at once with
    /// every codec, given up to 64 registers per thread and 1,024 threads (the smallest cards).
    const BLOCKS_PER_MULTIPROCESSOR: u32 = 4;

    /// Creates a grid of `blocks` blocks with `threads` threads each.
    ///
    /// # Errors
    /// [`WorkloadError::Option`] if `blocks` is 0, if `threads` is not a multiple of 32 from 32 to 1,024, or
    /// if the grid has more than [`MAX_THREADS`](Self::MAX_THREADS) threads.
    pub fn new(blocks: u32, threads: u32) -> Result<Self, WorkloadError> {
        let error = |value: String, allowed| Err(WorkloadError::Option { option: "grid", value, allowed });
        let written = format!("{blocks}x{threads}");
        if blocks == 0 {
            return error(written, "a grid has at least one block");
        }
        if threads == 0 || threads > 1024 || !threads.is_multiple_of(32) {
            return error(written, "a block has 32 to 1,024 threads, a multiple of 32");
        }
        if u64::from(blocks) * u64::from(threads) > Self::MAX_THREADS {
            return error(written, "a grid has at most 2^30 threads");
        }
        Ok(Self { blocks, threads })
    }

    /// Returns the grid that fills the device, but with no more blocks than `items` items need.
    pub fn filling(device: &dyn Device, items: u64) -> Self {
        let card = device.facts().multiprocessors.saturating_mul(Self::BLOCKS_PER_MULTIPROCESSOR);
        let needed = items.div_ceil(u64::from(Self::DEFAULT_BLOCK));
        let most = Self::MAX_THREADS / u64::from(Self::DEFAULT_BLOCK);
        let blocks = u64::from(card).min(needed).clamp(1, most);
        Self { blocks: blocks as u32, threads: Self::DEFAULT_BLOCK }
    }

    /// Returns the grid with as many threads as the device holds at once, if the kernel needs few registers
    /// and no shared memory. Equals [`filling`](Self::filling) on devices without such a limit.
    pub fn as_many_as_fit(device: &dyn Device) -> Self {
        let blocks = device.facts().resident_threads / u64::from(Self::DEFAULT_BLOCK);
        match u32::try_from(blocks) {
            Ok(blocks) if blocks > 0 => Self { blocks, threads: Self::DEFAULT_BLOCK },
            _ => Self::filling(device, u64::MAX),
        }
    }

    /// Number of blocks.
    pub fn blocks(self) -> u32 {
        self.blocks
    }

    /// Threads per block.
    pub fn threads(self) -> u32 {
        self.threads
    }

    pub(crate) fn independent(self) -> LaunchShape {
        LaunchShape { blocks: Blocks::Independent, ..self.communicating() }
    }

    pub(crate) fn communicating(self) -> LaunchShape {
        LaunchShape::persistent(self.blocks, self.threads)
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.blocks, self.threads)
    }
}

impl FromStr for Grid {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let parts = text
            .split_once('x')
            .and_then(|(blocks, threads)| Some((blocks.trim().parse().ok()?, threads.trim().parse().ok()?)));
        match parts {
            Some((blocks, threads)) => Self::new(blocks, threads),
            None => Err(WorkloadError::Option {
                option: "grid",
                value: format!("`{text}`"),
                allowed: "a grid is written as blocks x threads, like 192x256",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warptrace_host::{SimDevice, SimOptions};

    fn message(text: &str) -> String {
        text.parse::<Grid>().unwrap_err().to_string()
    }

    #[test]
    fn a_grid_reads_back_as_it_is_written() {
        let grid: Grid = "192x256".parse().unwrap();
        assert_eq!((grid.blocks(), grid.threads()), (192, 256));
        assert_eq!(grid.to_string(), "192x256");
    }

    #[test]
    fn impossible_grids_are_refused_by_name() {
        for text in ["0x256", "192x0", "192x1056", "192x48", "4294967295x1024"] {
            assert!(message(text).starts_with(&format!("grid is {text}: ")), "{}", message(text));
        }
        for text in ["", "192", "x", "192x", "-1x32", "4294967296x32", "1x32x1"] {
            assert!(message(text).contains("like 192x256"), "{}", message(text));
        }
    }

    #[test]
    fn the_default_fills_the_device_but_not_more_than_the_work() {
        let device = SimDevice::new(SimOptions { threads: Some(3), ..SimOptions::default() });
        assert_eq!(Grid::filling(&device, u64::MAX).to_string(), "12x256");
        assert_eq!(Grid::filling(&device, 257).to_string(), "2x256");
        assert_eq!(Grid::filling(&device, 0).to_string(), "1x256");
    }
}
