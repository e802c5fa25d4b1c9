//! The stream parameters of `predict`, and the layout of the memory an encoder works in.

use core::ops::RangeInclusive;

use crate::codec::ParamError;

/// Parameters of the `predict` codec, written into the file so that a decoder needs no agreement at build
/// time.
///
/// The field is as a file holds it and can be anything; [`PredictParams::new`] makes only valid ones, and
/// [`PredictParams::check`] must have accepted what came from elsewhere before a codec is given it.
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
    /// log2 S: there are S = 2^slot_bits slots. 2 to 10.
    pub slot_bits: u8,
}

/// Bytes of the work memory behind the slots.
const TAIL_BYTES: u32 = 32;

impl PredictParams {
    /// Valid values of log2 S.
    pub const SLOT_BITS: RangeInclusive<u8> = 2..=10;

    /// The parameters used when nothing else is asked for: 32 slots, 288 bytes a warp, so that 32 warps (the
    /// largest block) take 9 KiB of shared memory. `docs/contributors/decisions/predict.md` has the comparison.
    pub const DEFAULT: Self = Self { slot_bits: 5 };

    /// Checks and makes parameters.
    ///
    /// - `slot_bits`: log2 S, where S is the number of slots; 2 to 10.
    ///
    /// # Errors
    /// [`ParamError`] names the parameter if it is out of range.
    pub const fn new(slot_bits: u8) -> Result<Self, ParamError> {
        let params = Self { slot_bits };
        match params.check() {
            Ok(()) => Ok(params),
            Err(error) => Err(error),
        }
    }

    /// Whether the parameter is in its range.
    ///
    /// # Errors
    /// [`ParamError`] names the parameter if it is not.
    pub const fn check(self) -> Result<(), ParamError> {
        if self.slot_bits < *Self::SLOT_BITS.start() || self.slot_bits > *Self::SLOT_BITS.end() {
            return Err(ParamError::SlotBits(self.slot_bits));
        }
        Ok(())
    }

    /// S: the number of slots.
    #[inline(always)]
    pub const fn slots(self) -> u32 {
        1 << self.slot_bits
    }

    /// Bytes of memory one encoder works in; a multiple of 16.
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

    /// Offset of what lies behind the slots, which only a miss or a change of mask reads.
    #[inline(always)]
    pub const fn tail_at(self) -> u32 {
        8 << self.slot_bits
    }

    /// Offset of the slot for events that follow one at `location`.
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
