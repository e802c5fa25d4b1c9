//! The recorded part of a launch: some warps of some blocks, and the start of their recording.
//!
//! Each chosen warp has an *index*, counted from 0 over the chosen warps in launch order. Device memory
//! (logs, accounts) is laid out by index. All other code uses a warp's number in the launch.

use core::num::NonZeroU32;

use crate::LANES;

/// Start of the recording of each lane.
///
/// Each lane counts its visits to [`location`](Self::location). Its recording starts with the event in which
/// a lane reaches the location for the [`count`](Self::count)th time, or with its first event shared with a
/// recorded lane. So each recorded event has all its lanes, and the record of a lane is a suffix of its
/// execution. Events before the start are neither lost nor counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct After {
    /// Location id.
    pub location: u16,
    /// Number of the first recorded visit, from 1.
    pub count: NonZeroU32,
}

/// The warps of a launch that are recorded. All zero means no warp. Size 20 bytes, alignment 4.
///
/// ```
/// use warptrace_format::chosen::ChosenWarps;
/// // Warps 2 and 3 of blocks 1, 4 and 7.
/// let chosen = ChosenWarps { first_block: 1, blocks: 3, block_step: 3, first_warp: 2, block_warps: 2 };
/// assert_eq!(chosen.count(), 6);
/// assert_eq!((chosen.index(4, 3), chosen.index(4, 1), chosen.index(5, 3)), (Some(3), None, None));
/// // In a launch with four warps per block, index 3 is warp 19.
/// assert_eq!((chosen.warp(3, 4), chosen.warp(6, 4)), (Some(19), None));
/// assert_eq!((chosen.before(19, 4), chosen.before(20, 4)), (3, 4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ChosenWarps {
    /// Linear index of the first chosen block.
    pub first_block: u32,
    /// Number of chosen blocks.
    pub blocks: u32,
    /// Distance from one chosen block to the next; 0 only if no warp is chosen.
    pub block_step: u32,
    /// First chosen warp in each chosen block.
    pub first_warp: u32,
    /// Number of consecutive chosen warps in each chosen block.
    pub block_warps: u32,
}

impl ChosenWarps {
    /// No warp.
    pub const NONE: Self = Self { first_block: 0, blocks: 0, block_step: 0, first_warp: 0, block_warps: 0 };

    /// Chooses all warps of a launch.
    pub const fn all(blocks: u32, warps_per_block: u32) -> Self {
        Self { first_block: 0, blocks, block_step: 1, first_warp: 0, block_warps: warps_per_block }
    }

    /// Returns the number of chosen warps.
    #[inline(always)]
    pub const fn count(&self) -> u32 {
        self.blocks * self.block_warps
    }

    /// Returns true if no warp is chosen.
    #[inline(always)]
    pub const fn is_none(&self) -> bool {
        self.blocks == 0 || self.block_warps == 0
    }

    /// Returns true if all chosen warps exist in this launch. Without warps, only [`NONE`](Self::NONE) fits.
    pub const fn fits(&self, blocks: u32, warps_per_block: u32) -> bool {
        let Self { first_block, block_step, first_warp, .. } = *self;
        if self.is_none() {
            return self.blocks == 0
                && self.block_warps == 0
                && first_block == 0
                && block_step == 0
                && first_warp == 0;
        }
        let last_block = first_block as u64 + (self.blocks - 1) as u64 * block_step as u64;
        block_step > 0
            && last_block < blocks as u64
            && first_warp as u64 + self.block_warps as u64 <= warps_per_block as u64
    }

    /// Returns the index of a warp by its block and number in the block, or `None` if it is not chosen.
    #[inline(always)]
    pub const fn index(&self, block: u32, warp_in_block: u32) -> Option<u32> {
        if self.block_step == 0 || block < self.first_block || warp_in_block < self.first_warp {
            return None;
        }
        let (blocks, warp) = (block - self.first_block, warp_in_block - self.first_warp);
        let step_number = blocks / self.block_step;
        if step_number * self.block_step == blocks && step_number < self.blocks && warp < self.block_warps {
            Some(step_number * self.block_warps + warp)
        } else {
            None
        }
    }

    /// Returns a warp's index in tables of `warps` warps: the chosen ones, or all if no warp is chosen.
    #[inline(always)]
    pub const fn table_index(
        &self,
        warps: u32,
        block: u32,
        warp_in_block: u32,
        warps_per_block: u32,
    ) -> Option<u32> {
        if !self.is_none() {
            return self.index(block, warp_in_block);
        }
        let warp = block as u64 * warps_per_block as u64 + warp_in_block as u64;
        if warp < warps as u64 { Some(warp as u32) } else { None }
    }

    /// Returns the linear index in the launch of chosen warp `index`, or `None` if fewer warps are chosen.
    #[inline(always)]
    pub const fn warp(&self, index: u32, warps_per_block: u32) -> Option<u32> {
        if index >= self.count() {
            return None;
        }
        let block = self.first_block + index / self.block_warps * self.block_step;
        Some(block * warps_per_block + self.first_warp + index % self.block_warps)
    }

    /// Returns the number of chosen warps below `warp`: the index of the first chosen warp from `warp` on.
    pub const fn before(&self, warp: u32, warps_per_block: u32) -> u32 {
        let (block, warp_in_block) = (warp / warps_per_block, warp % warps_per_block);
        if self.is_none() || block < self.first_block {
            return 0;
        }
        let blocks = block - self.first_block;
        let step_number = blocks / self.block_step;
        if step_number >= self.blocks {
            return self.count();
        }
        if step_number * self.block_step != blocks {
            return (step_number + 1) * self.block_warps;
        }
        let warps = warp_in_block.saturating_sub(self.first_warp);
        step_number * self.block_warps + if warps < self.block_warps { warps } else { self.block_warps }
    }

    /// Returns the number of threads in the chosen warps of a block with `block_threads` threads.
    pub const fn block_threads(&self, block_threads: u32) -> u32 {
        let end = (self.first_warp + self.block_warps) * LANES;
        (if end < block_threads { end } else { block_threads }).saturating_sub(self.first_warp * LANES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_warp_name_each_other() {
        let (blocks, warps_per_block) = (13, 5);
        for first_block in 0..4 {
            for (block_step, count) in [(1, 9), (2, 5), (3, 3), (5, 2), (9, 1)] {
                for (first_warp, block_warps) in [(0, 5), (0, 1), (1, 3), (4, 1)] {
                    let chosen =
                        ChosenWarps { first_block, blocks: count, block_step, first_warp, block_warps };
                    assert!(chosen.fits(blocks, warps_per_block), "{chosen:?}");
                    let mut next = 0;
                    for warp in 0..blocks * warps_per_block {
                        assert_eq!(chosen.before(warp, warps_per_block), next, "{chosen:?} {warp}");
                        if let Some(index) = chosen.index(warp / warps_per_block, warp % warps_per_block) {
                            assert_eq!(index, next);
                            assert_eq!(chosen.warp(index, warps_per_block), Some(warp));
                            next += 1;
                        }
                    }
                    assert_eq!(next, chosen.count());
                    assert_eq!(chosen.warp(next, warps_per_block), None);
                    assert_eq!(chosen.before(blocks * warps_per_block, warps_per_block), next);
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_a_launch_is_told() {
        let good = ChosenWarps { first_block: 2, blocks: 3, block_step: 4, first_warp: 1, block_warps: 2 };
        assert!(good.fits(11, 3) && !good.fits(10, 3) && !good.fits(11, 2));
        assert!(ChosenWarps::NONE.fits(1, 1) && ChosenWarps::all(7, 3).fits(7, 3));
        for bad in [
            ChosenWarps { block_step: 0, ..good },
            ChosenWarps { blocks: 0, ..good },
            ChosenWarps { block_warps: 0, ..good },
            ChosenWarps { first_block: 3, ..ChosenWarps::NONE },
            ChosenWarps { blocks: u32::MAX, block_step: u32::MAX, ..good },
            ChosenWarps { first_warp: u32::MAX, ..good },
        ] {
            assert!(!bad.fits(11, 3), "{bad:?}");
        }
    }

    #[test]
    fn none_has_no_warp() {
        let none = ChosenWarps::NONE;
        assert_eq!((none.count(), none.index(0, 0), none.warp(0, 4), none.before(9, 4)), (0, None, None, 0));
    }

    #[test]
    fn a_blocks_last_warp_keeps_its_lanes() {
        let of = |first_warp, block_warps| {
            ChosenWarps { first_warp, block_warps, ..ChosenWarps::all(1, 3) }.block_threads(70)
        };
        assert_eq!([of(0, 3), of(0, 1), of(1, 2), of(2, 1), of(1, 1)], [70, 32, 38, 6, 32]);
    }
}
