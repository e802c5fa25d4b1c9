//! The shape of a launch.

use warptrace_host::{Blocks, LaunchShape};

/// Threads of a block if nothing else is asked for.
const BLOCK: u32 = 256;

/// How many blocks of how many threads run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    shape: LaunchShape,
}

impl LaunchConfig {
    /// At least one thread for each of `elements`, in one-dimensional blocks of 256. Some threads of the last
    /// block have no element: the kernel finds out, as `DisjointSlice::own` does.
    pub fn for_elements(elements: usize) -> Self {
        Self::for_elements_in_blocks(elements, BLOCK)
    }

    /// As [`for_elements`](Self::for_elements), in blocks of `threads`, 1 to 1,024. A grid that a device
    /// cannot have is refused by the launch.
    pub fn for_elements_in_blocks(elements: usize, threads: u32) -> Self {
        let blocks = (elements as u64).div_ceil(u64::from(threads.max(1))).max(1);
        Self::grid([u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1], [threads, 1, 1])
    }

    /// `blocks` along x, y and z, of `threads` along x, y and z; at most 1,024 threads a block.
    pub fn grid(blocks: [u32; 3], threads: [u32; 3]) -> Self {
        Self { shape: LaunchShape::new(blocks, threads, Blocks::Independent) }
    }

    /// Says that blocks wait for each other while the kernel runs. The simulator then has all of them run in
    /// turns.
    #[must_use]
    pub fn communicating(mut self) -> Self {
        self.shape.blocks = Blocks::Communicating;
        self
    }

    /// Gives each block this many bytes of dynamic shared memory.
    #[must_use]
    pub fn dynamic_shared(mut self, bytes: u32) -> Self {
        self.shape.dynamic_shared = bytes;
        self
    }

    /// As sessions take it.
    pub fn shape(&self) -> &LaunchShape {
        &self.shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_a_thread() {
        for (elements, blocks) in [(0, 1), (1, 1), (256, 1), (257, 2), (1 << 20, 4096)] {
            let shape = *LaunchConfig::for_elements(elements).shape();
            assert_eq!((shape.grid, shape.block), ([blocks, 1, 1], [256, 1, 1]));
        }
        assert_eq!(LaunchConfig::for_elements_in_blocks(usize::MAX, 1).shape().grid[0], u32::MAX);
        assert_eq!(LaunchConfig::for_elements_in_blocks(4, 0).shape().block[0], 0, "the launch refuses it");
    }
}
