//! Which warps of a launch are recorded: some warps of some blocks; and from where on.
//!
//! The chosen warps of a launch have an *index*, counted from 0 in the order of warps, chosen ones only.
//! Device memory (logs, accounts) is laid out by that index, so that warps that are not chosen take none of
//! it. Everywhere else a warp is named by its number in the launch, chosen or not.

use core::num::NonZeroU32;

use crate::LANES;

/// From where on the lanes of a launch are recorded.
///
/// Each lane counts how often it comes to [`location`](Self::location). It is recorded from the event on at
/// which one of the event's lanes comes there for the [`count`](Self::count)th time, that event included; or
/// from its first event on that it shares with a lane that is recorded. So each event of the trace has all of
/// its lanes, and what is recorded of a lane is an end of what it does. Lanes tell each other by the events
/// that they share: nothing is in memory, and no lane waits.
///
/// What comes before is no loss, and is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct After {
    /// The location.
    pub location: u16,
    /// Which visit is the first one that is recorded, from 1.
    pub count: NonZeroU32,
}

/// The warps of a launch that are recorded. Size 20 bytes, alignment 4; all zero: none.
///
/// ```
/// use warptrace_format::chosen::ChosenWarps;
/// // Of the blocks 1, 4 and 7 the warps 2 and 3.
/// let chosen = ChosenWarps { first_block: 1, blocks: 3, block_step: 3, first_warp: 2, block_warps: 2 };
/// assert_eq!(chosen.count(), 6);
/// assert_eq!((chosen.index(4, 3), chosen.index(4, 1), chosen.index(5, 3)), (Some(3), None, None));
/// // In a launch whose blocks have four warps, that is warp 19.
/// assert_eq!((chosen.warp(3, 4), chosen.warp(6, 4)), (Some(19), None));
/// assert_eq!((chosen.before(19, 4), chosen.before(20, 4)), (3, 4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ChosenWarps {
    /// Linear index of the first chosen block.
    pub first_block: u32,
    /// Chosen blocks.
    pub blocks: u32,
    /// From one chosen block to the next; 0 only if none is chosen.
    pub block_step: u32,
    /// The first chosen warp of each of these blocks.
    pub first_warp: u32,
    /// Chosen warps of each of these blocks, which follow each other.
    pub block_warps: u32,
}

impl ChosenWarps {
    /// No warp.
    pub const NONE: Self = Self { first_block: 0, blocks: 0, block_step: 0, first_warp: 0, block_warps: 0 };

    /// All warps of a launch of this many blocks of this many warps.
    pub const fn all(blocks: u32, warps_per_block: u32) -> Self {
        Self { first_block: 0, blocks, block_step: 1, first_warp: 0, block_warps: warps_per_block }
    }

    /// How many warps are chosen.
    #[inline(always)]
    pub const fn count(&self) -> u32 {
        self.blocks * self.block_warps
    }

    /// Whether no warp is chosen.
    #[inline(always)]
    pub const fn is_none(&self) -> bool {
        self.blocks == 0 || self.block_warps == 0
    }

    /// Whether this can be a choice among this many blocks of this many warps: all of the chosen ones are
    /// there. No warp is chosen only by [`NONE`](Self::NONE).
    pub const fn fits(&self, blocks: u32, warps_per_block: u32) -> bool {
        let Self { first_block, block_step, first_warp, .. } = *self;
        if self.is_none() {
            return self.blocks == 0
                && self.block_warps == 0
                && first_block == 0
                && block_step == 0
                && first_warp == 0;
        }
        // 32-bit factors: nothing overflows 64 bits.
        let last_block = first_block as u64 + (self.blocks - 1) as u64 * block_step as u64;
        block_step > 0
            && last_block < blocks as u64
            && first_warp as u64 + self.block_warps as u64 <= warps_per_block as u64
    }

    /// The index of a warp, given by its block and its number in the block; `None` if it is not chosen.
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

    /// The index of a warp in a launch's tables, which have `warps` warps: of the chosen ones, or of all
    /// where none is chosen.
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

    /// The number in its launch of the chosen warp with this index; `None` if fewer are chosen.
    #[inline(always)]
    pub const fn warp(&self, index: u32, warps_per_block: u32) -> Option<u32> {
        if index >= self.count() {
            return None;
        }
        let block = self.first_block + index / self.block_warps * self.block_step;
        Some(block * warps_per_block + self.first_warp + index % self.block_warps)
    }

    /// How many of the warps with a number below `warp` are chosen: the index of the first chosen one from
    /// `warp` on.
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

    /// Threads of the chosen warps of a block of this many threads. A launch of such blocks has the chosen
    /// warps' lanes.
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
