//! `ecl`: CUT, then LZa2, then RLE.

/// Parameters of the `ecl` codec, written into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct EclParams {
    /// L: the hash table has 2^L entries. 4..=16.
    pub hash_bits: u8,
    /// s: the hash is shifted left by this for each byte. 1..=8.
    pub shift: u8,
    /// log2 W: the history ring holds W = 2^window_bits bytes. 6..=20.
    pub window_bits: u8,
}

impl EclParams {
    /// Table entries are four bytes (a position), the ring follows.
    pub const fn work_bytes(self) -> u32 {
        (4 << self.hash_bits) + (1 << self.window_bits)
    }
}
