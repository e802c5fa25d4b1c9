//! The shape of a launch.

use warptrace_host::{Blocks, LaunchShape};

/// Default threads of a block.
const BLOCK: u32 = 256;

/// Number and size of the blocks that run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    shape: LaunchShape,
}

impl LaunchConfig {
    /// Returns a one-dimensional launch with at least one thread per element, in blocks of 256. Some threads
    /// of the last block may have no element. The kernel must check this, as `DisjointSlice::own` does.
    pub fn for_elements(elements: usize) -> Self {
        Self::for_elements_in_blocks(elements, BLOCK)
    }

    /// Like [`for_elements`](Self::for_elements), in blocks of `threads`, 1 to 1,024. The launch rejects a
    /// grid that exceeds the device's limits.
    pub fn for_elements_in_blocks(elements: usize, threads: u32) -> Self {
        let blocks = (elements as u64).div_ceil(u64::from(threads.max(1))).max(1);
        Self::grid([u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1], [threads, 1, 1])
    }

    /// Returns a launch of `blocks` of `threads`, both along x, y and z; at most 1,024 threads per block.
    pub fn grid(blocks: [u32; 3], threads: [u32; 3]) -> Self {
        Self { shape: LaunchShape::new(blocks, threads, Blocks::Independent) }
    }

    /// Declares that blocks wait for each other while the kernel runs. The simulator then interleaves them.
    #[must_use]
    pub fn communicating(mut self) -> Self {
        self.shape.blocks = Blocks::Communicating;
        self
    }

    /// Sets the bytes of dynamic shared memory of each block.
    #[must_use]
    pub fn dynamic_shared(mut self, bytes: u32) -> Self {
        self.shape.dynamic_shared = bytes;
        self
    }

    /// Returns the shape in the form that sessions use.
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
