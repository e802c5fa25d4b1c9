//! What is launched.

/// A launch.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a str,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub dynamic_shared: u32,
    /// The kernel's parameters, each as its bytes.
    pub parameters: Vec<Vec<u8>>,
    /// What the clock of each warp of the first multiprocessor begins with, and `%globaltimer`.
    pub clock: u64,
    /// Multiprocessors, which take blocks in turns. Each one's clock is [`CLOCKS_APART`] ahead of that of the
    /// one before it.
    pub multiprocessors: u32,
    /// Instructions that all groups may execute in all.
    pub max_steps: u64,
}

/// Cycles by which the clocks of two multiprocessors that follow each other differ.
pub const CLOCKS_APART: u64 = 1 << 22;

impl Launch<'_> {
    /// Returns the multiprocessor of the block with this index.
    pub(in crate::interpret) fn multiprocessor(&self, block: usize) -> u32 {
        // Less than the number of multiprocessors.
        (block % self.multiprocessors.max(1) as usize) as u32
    }
}
