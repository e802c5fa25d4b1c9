//! Kernel launches, and the mapping from linear warp indices to streams.
//!
//! ```text
//! offset  size  field
//!      0     4  number                 unique in the file
//!      4     4  kernel                 index into the metadata's kernels
//!      8    12  grid                   blocks along x, y, z
//!     20    12  block                  threads along x, y, z
//!     32     4  dynamic shared memory  bytes
//!     36     4  reserved               zero
//! ```
//!
//! If not all warps are chosen for recording, the section has version 2 and more fields (0 if untraced):
//! ```text
//!     40     4  first block            linear index of the first chosen block
//!     44     4  blocks                 number of chosen blocks
//!     48     4  step                   distance from one chosen block to the next
//!     52     4  first warp             first chosen warp in each of these blocks
//!     56     4  warps                  number of consecutive chosen warps in each of these blocks
//! ```

use std::ops::Range;

use super::error::FormatError;
use super::fields::Fields;
use super::limits::MAX_BLOCK_THREADS;
use super::section::{SectionKind, encode_section_version};
use crate::chosen::ChosenWarps;

/// Lanes of a warp.
pub const WARP_LANES: u32 = 32;
/// Size of a launch section's body in version 1, in bytes.
pub const LAUNCH_BYTES: usize = 40;
/// Section version of a launch with a choice of warps.
pub(super) const CHOSEN_VERSION: u16 = 2;

const SECTION: &str = "LNCH";

/// An invalid launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A grid or block dimension is 0.
    #[error(
        "launch {launch}: {what} {size:?} has a dimension of 0; use 1 for a dimension that is not needed"
    )]
    ZeroDimension {
        /// Launch number.
        launch: u32,
        /// "grid" or "block".
        what: &'static str,
        /// The dimensions x, y, z.
        size: [u32; 3],
    },
    /// The block has too many threads.
    #[error(
        "launch {launch}: block {block:?} has {threads} threads, at most {MAX_BLOCK_THREADS} are possible"
    )]
    BlockTooLarge {
        /// Launch number.
        launch: u32,
        /// The dimensions x, y, z.
        block: [u32; 3],
        /// Threads of the block.
        threads: u128,
    },
    /// The number of warps exceeds 32 bits.
    #[error(
        "launch {launch}: grid {grid:?} of blocks of {warps_per_block} warps has {warps} warps; \
         warps are numbered in 32 bits, so launch a smaller grid with a loop inside the kernel"
    )]
    TooManyWarps {
        /// Launch number.
        launch: u32,
        /// The dimensions x, y, z.
        grid: [u32; 3],
        /// Warps in one block.
        warps_per_block: u32,
        /// Warps of the launch.
        warps: u128,
    },
    /// The choice is invalid for the launch.
    #[error("launch {launch}: {chosen:?} is no choice among {blocks} blocks of {warps_per_block} warps")]
    Chosen {
        /// Launch number.
        launch: u32,
        /// The choice.
        chosen: ChosenWarps,
        /// Blocks of the launch.
        blocks: u32,
        /// Warps in one block.
        warps_per_block: u32,
    },
}

/// Identity of a warp in the file. The streams of a warp on several tracks share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// Launch number.
    pub launch: u32,
    /// Index of the kernel in the metadata.
    pub kernel: u32,
    /// Block index along x, y, z.
    pub block: [u32; 3],
    /// Number of the warp in its block.
    pub warp_in_block: u32,
}

/// One kernel launch.
///
/// No dimension is 0, a block has at most [`MAX_BLOCK_THREADS`] threads, the number of warps fits in 32 bits,
/// and the chosen warps exist. The linear index of a warp is `block * warps_per_block + warp in block`, where
/// the linear index of block (x, y, z) is `x + grid.x * (y + grid.y * z)`.
///
/// ```
/// use warptrace_format::file::LaunchInfo;
/// let launch = LaunchInfo::new(0, 0, [4, 2, 1], [48, 2, 1], 0)?;
/// assert_eq!((launch.warps_per_block(), launch.warps()), (3, 24));
/// let stream = launch.stream_id(16).expect("a warp of the launch");
/// assert_eq!((stream.block, stream.warp_in_block), ([1, 1, 0], 1));
/// assert_eq!(launch.warp_index(stream.block, stream.warp_in_block), Some(16));
/// # Ok::<(), warptrace_format::file::LaunchError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchInfo {
    number: u32,
    kernel: u32,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared_bytes: u32,
    chosen: ChosenWarps,
}

fn product(size: [u32; 3]) -> u128 {
    size.into_iter().map(u128::from).product()
}

impl LaunchInfo {
    /// Creates launch `number` of the metadata's kernel with index `kernel`, with all warps chosen. Fails for
    /// a dimension of 0, more than [`MAX_BLOCK_THREADS`] threads in a block, and more than 2^32 - 1 warps.
    pub fn new(
        number: u32,
        kernel: u32,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared_bytes: u32,
    ) -> Result<Self, LaunchError> {
        for (what, size) in [("grid", grid), ("block", block)] {
            if size.contains(&0) {
                return Err(LaunchError::ZeroDimension { launch: number, what, size });
            }
        }
        let threads = product(block);
        if threads > u128::from(MAX_BLOCK_THREADS) {
            return Err(LaunchError::BlockTooLarge { launch: number, block, threads });
        }
        let chosen = ChosenWarps::NONE;
        let launch = Self { number, kernel, grid, block, dynamic_shared_bytes, chosen };
        let warps = product(grid) * u128::from(launch.warps_per_block());
        if warps > u128::from(u32::MAX) {
            let warps_per_block = launch.warps_per_block();
            return Err(LaunchError::TooManyWarps { launch: number, grid, warps_per_block, warps });
        }
        Ok(Self { chosen: ChosenWarps::all(launch.blocks(), launch.warps_per_block()), ..launch })
    }

    /// Returns the launch with only these warps chosen, or untraced without any. Fails if one does not exist.
    pub fn with_chosen(self, chosen: ChosenWarps) -> Result<Self, LaunchError> {
        let (launch, blocks, warps_per_block) = (self.number, self.blocks(), self.warps_per_block());
        if !chosen.fits(blocks, warps_per_block) {
            return Err(LaunchError::Chosen { launch, chosen, blocks, warps_per_block });
        }
        Ok(Self { chosen, ..self })
    }

    /// Returns the number of the launch, unique in its file.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the index of the kernel in the metadata.
    pub const fn kernel(&self) -> u32 {
        self.kernel
    }

    /// Returns the number of blocks along x, y, z.
    pub const fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Returns the number of threads of a block along x, y, z.
    pub const fn block(&self) -> [u32; 3] {
        self.block
    }

    /// Returns the dynamic shared memory of a block, in bytes.
    pub const fn dynamic_shared_bytes(&self) -> u32 {
        self.dynamic_shared_bytes
    }

    /// Returns the number of threads of a block, 1..=1024.
    pub const fn threads_per_block(&self) -> u32 {
        self.block[0] * self.block[1] * self.block[2]
    }

    /// Returns the number of warps of a block, 1..=32. The last warp may have fewer lanes.
    pub const fn warps_per_block(&self) -> u32 {
        self.threads_per_block().div_ceil(WARP_LANES)
    }

    /// Returns the number of blocks.
    pub const fn blocks(&self) -> u32 {
        self.grid[0] * self.grid[1] * self.grid[2]
    }

    /// Returns the number of warps. Their linear indices are `0..warps()`.
    pub const fn warps(&self) -> u32 {
        self.blocks() * self.warps_per_block()
    }

    /// Returns the identity of a warp; `None` if it does not exist.
    pub fn stream_id(&self, warp: u32) -> Option<StreamId> {
        if warp >= self.warps() {
            return None;
        }
        let block = warp / self.warps_per_block();
        let [x, y, _] = self.grid;
        Some(StreamId {
            launch: self.number,
            kernel: self.kernel,
            block: [block % x, block / x % y, block / x / y],
            warp_in_block: warp % self.warps_per_block(),
        })
    }

    /// Returns the linear index of a warp; `None` if it does not exist.
    pub fn warp_index(&self, block: [u32; 3], warp_in_block: u32) -> Option<u32> {
        let inside = block.iter().zip(self.grid).all(|(&at, size)| at < size);
        if !inside || warp_in_block >= self.warps_per_block() {
            return None;
        }
        let linear = block[0] + self.grid[0] * (block[1] + self.grid[1] * block[2]);
        Some(linear * self.warps_per_block() + warp_in_block)
    }

    /// Returns the lanes of a warp: all 32, except at the end of some blocks; `None` if it does not exist.
    pub fn lane_mask(&self, warp: u32) -> Option<u32> {
        if warp >= self.warps() {
            return None;
        }
        let first = warp % self.warps_per_block() * WARP_LANES;
        let lanes = (self.threads_per_block() - first).min(WARP_LANES);
        Some(u32::MAX >> (WARP_LANES - lanes))
    }

    /// Returns the end of the first warps that are known to have the same lanes, and these lanes if any.
    pub fn lanes_of(&self, warps: &Range<u32>) -> (u32, Option<u32>) {
        let each = self.warps_per_block();
        let after = each - warps.start % each;
        let end = match after {
            _ if self.threads_per_block().is_multiple_of(WARP_LANES) => warps.end,
            1 => warps.start.saturating_add(1),
            _ => warps.start.saturating_add(after - 1),
        };
        (end.min(warps.end), self.lane_mask(warps.start))
    }

    /// Returns the warps chosen for recording.
    pub const fn chosen(&self) -> ChosenWarps {
        self.chosen
    }

    /// Returns true if any warp is chosen. Otherwise the launch ran untraced.
    pub const fn is_recorded(&self) -> bool {
        !self.chosen.is_none()
    }

    /// Returns true if all warps are chosen.
    pub const fn is_whole(&self) -> bool {
        self.chosen.count() == self.warps()
    }

    /// Returns true if the warp exists and is chosen.
    pub const fn is_chosen(&self, warp: u32) -> bool {
        let warps_per_block = self.warps_per_block();
        self.chosen.index(warp / warps_per_block, warp % warps_per_block).is_some()
    }

    /// Returns the linear index of chosen warp `index`, from 0, or `None` if fewer warps are chosen.
    pub const fn chosen_warp(&self, index: u32) -> Option<u32> {
        if self.is_whole() {
            return if index < self.warps() { Some(index) } else { None };
        }
        self.chosen.warp(index, self.warps_per_block())
    }

    /// Returns the number of chosen warps with a linear index below `warp`.
    pub const fn chosen_before(&self, warp: u32) -> u32 {
        self.chosen.before(warp, self.warps_per_block())
    }

    /// Returns the number of chosen warps in a range of linear indices of warps that the launch has.
    pub const fn chosen_in(&self, warps: &Range<u32>) -> u32 {
        if self.is_whole() {
            return warps.end - warps.start;
        }
        self.chosen_before(warps.end) - self.chosen_before(warps.start)
    }

    /// Returns the version of the launch's section: 1 if all warps are chosen, otherwise 2.
    pub const fn version(&self) -> u16 {
        if self.is_whole() { SectionKind::Launch.version() } else { CHOSEN_VERSION }
    }

    /// Encodes the launch's section, header and body.
    pub fn encode_section(&self) -> Vec<u8> {
        let [gx, gy, gz] = self.grid;
        let [bx, by, bz] = self.block;
        let words = [self.number, self.kernel, gx, gy, gz, bx, by, bz, self.dynamic_shared_bytes, 0];
        let ChosenWarps { first_block, blocks, block_step, first_warp, block_warps } = self.chosen;
        let chosen = [first_block, blocks, block_step, first_warp, block_warps];
        let chosen = if self.is_whole() { &[][..] } else { &chosen[..] };
        let body: Vec<u8> = words.iter().chain(chosen).flat_map(|word| word.to_le_bytes()).collect();
        encode_section_version(SectionKind::Launch, self.version(), &[&body])
    }

    /// Decodes the body of a launch section of this version at file offset `at`. Fails like the constructors.
    pub fn decode(version: u16, body: &[u8], at: u64) -> Result<Self, FormatError> {
        let mut fields = Fields::new(SECTION, body, at);
        let number = fields.u32("number")?;
        let kernel = fields.u32("kernel")?;
        let grid = [fields.u32("grid.x")?, fields.u32("grid.y")?, fields.u32("grid.z")?];
        let block = [fields.u32("block.x")?, fields.u32("block.y")?, fields.u32("block.z")?];
        let dynamic_shared_bytes = fields.u32("dynamic shared memory")?;
        fields.zero::<4>("reserved")?;
        let chosen = match version {
            CHOSEN_VERSION => Some(ChosenWarps {
                first_block: fields.u32("first block")?,
                blocks: fields.u32("blocks")?,
                block_step: fields.u32("step")?,
                first_warp: fields.u32("first warp")?,
                block_warps: fields.u32("warps")?,
            }),
            _ => None,
        };
        fields.end()?;
        let launch = Self::new(number, kernel, grid, block, dynamic_shared_bytes);
        let launch = launch.and_then(|launch| match chosen {
            Some(chosen) => launch.with_chosen(chosen),
            None => Ok(launch),
        });
        launch.map_err(|error| FormatError::Contents {
            section: SECTION,
            offset: at,
            message: error.to_string(),
        })
    }
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
