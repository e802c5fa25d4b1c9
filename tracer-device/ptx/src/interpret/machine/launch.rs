//! Launch parameters.

/// A launch.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// Name of the kernel.
    pub kernel: &'a str,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block in bytes.
    pub dynamic_shared: u32,
    /// Bytes of each kernel parameter.
    pub parameters: Vec<Vec<u8>>,
    /// Initial value of `%globaltimer`, and of the clock of warps on the first multiprocessor.
    pub clock: u64,
    /// Number of multiprocessors. They take blocks in turn; their clocks are [`CLOCKS_APART`] cycles apart.
    pub multiprocessors: u32,
    /// Maximum number of instructions of all groups together.
    pub max_steps: u64,
}

/// Difference in cycles between the clocks of consecutive multiprocessors.
pub const CLOCKS_APART: u64 = 1 << 22;

impl Launch<'_> {
    pub(in crate::interpret) fn multiprocessor(&self, block: usize) -> u32 {
        // Less than the number of multiprocessors.
        (block % self.multiprocessors.max(1) as usize) as u32
    }
}
