//! Parameter of `predict`, and the layout of an encoder's work memory.

use core::ops::RangeInclusive;

use crate::codec::ParamError;

/// Parameter of the `predict` codec, stored in the file. Call [`PredictParams::check`] for other sources.
///
/// ```
/// use warptrace_format::codec::PredictParams;
/// const PARAMS: PredictParams = match PredictParams::new(5) {
///     Ok(params) => params,
///     Err(_) => panic!("out of range"),
/// };
/// assert_eq!(PARAMS.work_bytes(), 8 * 32 + 32);
/// assert!(PredictParams::new(1).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct PredictParams {
    /// log2 S: the table has S = 2^slot_bits slots. 2 to 10.
    pub slot_bits: u8,
}

const TAIL_BYTES: u32 = 32;

impl PredictParams {
    /// Valid values of log2 S.
    pub const SLOT_BITS: RangeInclusive<u8> = 2..=10;

    /// Default parameters: 32 slots, 288 bytes per warp, so that 32 warps take 9 KiB of shared memory
    /// (`docs/contributors/decisions/predict.md`).
    pub const DEFAULT: Self = Self { slot_bits: 5 };

    /// Creates parameters. Fails if `slot_bits` is out of range.
    pub const fn new(slot_bits: u8) -> Result<Self, ParamError> {
        let params = Self { slot_bits };
        match params.check() {
            Ok(()) => Ok(params),
            Err(error) => Err(error),
        }
    }

    /// Checks that the parameter is in range.
    pub const fn check(self) -> Result<(), ParamError> {
        if self.slot_bits < *Self::SLOT_BITS.start() || self.slot_bits > *Self::SLOT_BITS.end() {
            return Err(ParamError::SlotBits(self.slot_bits));
        }
        Ok(())
    }

    /// Returns S, the number of slots.
    #[inline(always)]
    pub const fn slots(self) -> u32 {
        1 << self.slot_bits
    }

    /// Returns the size of an encoder's work memory, in bytes: a multiple of 16.
    ///
    /// ```text
    /// offset    size  field
    /// 0         8 S   slots
    /// 8 S       4     bits that do not fill a word of the payload yet
    /// 8 S + 4   16    stack of masks, the innermost first
    /// 8 S + 20  4     events up to and with the last miss
    /// 8 S + 24  8     unused
    /// ```
    #[inline(always)]
    pub const fn work_bytes(self) -> u32 {
        self.tail_at() + TAIL_BYTES
    }

    /// Returns the offset of the memory after the slots. Only a miss or a change of mask reads it.
    #[inline(always)]
    pub const fn tail_at(self) -> u32 {
        8 << self.slot_bits
    }

    /// Returns the offset of the slot for events after an event at `location`.
    #[inline(always)]
    pub const fn slot_at(self, location: u32) -> u32 {
        (location & (self.slots() - 1)) << 3
    }
}

impl Default for PredictParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}
