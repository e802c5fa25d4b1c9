//! Parameters of `ecl`, and the layout of an encoder's work memory.

use core::ops::RangeInclusive;

use crate::codec::ParamError;

/// Parameters of the `ecl` codec, stored in the file. Call [`EclParams::check`] for values from elsewhere.
///
/// ```
/// use warptrace_format::codec::EclParams;
/// const PARAMS: EclParams = match EclParams::new(9, 2, 8) {
///     Ok(params) => params,
///     Err(_) => panic!("out of range"),
/// };
/// assert_eq!(PARAMS.work_bytes(), 4 * 512 + 256 + 16);
/// assert!(EclParams::new(3, 2, 8).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct EclParams {
    /// L: the hash table has 2^L entries. 4 to 16.
    pub hash_bits: u8,
    /// s: each byte shifts the hash left by this many bits. 1 to 8.
    pub shift: u8,
    /// log2 W: the history ring holds W = 2^window_bits bytes. 6 to 20.
    pub window_bits: u8,
}

/// Bytes after the ring: the position of the next chunk, and padding to a multiple of 16.
const TAIL_BYTES: u32 = 16;

impl EclParams {
    /// Valid values of L.
    pub const HASH_BITS: RangeInclusive<u8> = 4..=16;
    /// Valid values of s.
    pub const SHIFT: RangeInclusive<u8> = 1..=8;
    /// Valid values of log2 W.
    pub const WINDOW_BITS: RangeInclusive<u8> = 6..=20;

    /// Default parameters: 1,296 bytes per warp, so that 32 warps fit into 48 KiB of shared memory
    /// (`docs/contributors/decisions/ecl.md`).
    pub const DEFAULT: Self = Self { hash_bits: 8, shift: 2, window_bits: 8 };

    /// Creates parameters. The error names the first one that is out of range.
    pub const fn new(hash_bits: u8, shift: u8, window_bits: u8) -> Result<Self, ParamError> {
        let params = Self { hash_bits, shift, window_bits };
        match params.check() {
            Ok(()) => Ok(params),
            Err(error) => Err(error),
        }
    }

    /// Checks that each parameter is in range. The error names the first one that is not.
    pub const fn check(self) -> Result<(), ParamError> {
        if self.hash_bits < *Self::HASH_BITS.start() || self.hash_bits > *Self::HASH_BITS.end() {
            return Err(ParamError::HashBits(self.hash_bits));
        }
        if self.shift < *Self::SHIFT.start() || self.shift > *Self::SHIFT.end() {
            return Err(ParamError::Shift(self.shift));
        }
        if self.window_bits < *Self::WINDOW_BITS.start() || self.window_bits > *Self::WINDOW_BITS.end() {
            return Err(ParamError::WindowBits(self.window_bits));
        }
        Ok(())
    }

    /// Returns the number of entries of the hash table, 2^L.
    #[inline(always)]
    pub const fn table_entries(self) -> u32 {
        1 << self.hash_bits
    }

    /// Returns W, the size of the history ring in bytes.
    #[inline(always)]
    pub const fn window(self) -> u32 {
        1 << self.window_bits
    }

    /// Returns the largest distance of a candidate: W - 2, as the ring must hold the two bytes before it.
    #[inline(always)]
    pub const fn max_distance(self) -> u32 {
        self.window() - 2
    }

    /// Returns the size of an encoder's work memory, in bytes: a multiple of 16.
    ///
    /// ```text
    /// offset     size  field
    /// 0          4 2^L table: the absolute position stored last under each hash
    /// 4 2^L      W     ring: the byte at position r is at r mod W
    /// 4 2^L + W  4     absolute position at which the next chunk starts, or all ones while a chunk is open
    /// …          12    unused
    /// ```
    #[inline(always)]
    pub const fn work_bytes(self) -> u32 {
        self.position_at() + TAIL_BYTES
    }

    /// Returns the offset of the ring in the work memory: the size of the table before it, in bytes.
    #[inline(always)]
    pub const fn ring_at(self) -> u32 {
        4 << self.hash_bits
    }

    /// Returns the offset of the word that holds the next chunk's position.
    #[inline(always)]
    pub const fn position_at(self) -> u32 {
        self.ring_at() + self.window()
    }

    /// Returns the number of last bytes on which a hash depends: ceil(L / s).
    #[inline(always)]
    pub(crate) const fn hash_span(self) -> u32 {
        (self.hash_bits as u32).div_ceil(self.shift as u32)
    }

    #[inline(always)]
    pub(crate) const fn next_hash(self, hash: u32, byte: u32) -> u32 {
        ((hash << self.shift) ^ byte) & (self.table_entries() - 1)
    }
}

impl Default for EclParams {
    fn default() -> Self {
        Self::DEFAULT
    }
}
