//! Integers of a column.

use core::fmt::Debug;

use crate::stream_vbyte::Shuffle;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// Integer of a column: `u32` or `u64`, also the bits of signed integers and floats. Arithmetic wraps.
pub trait Element: sealed::Sealed + Copy + Debug + Default + Ord + Send + Sync + 'static {
    /// Bits of an element, 32 or 64.
    const BITS: u32;
    /// Bytes of an element, by its Stream VByte code.
    const CODED_BYTES: [u8; 4];
    /// Shuffles that decode 16 bytes of elements at once, indexed by the combined codes.
    #[doc(hidden)]
    const SHUFFLES: &'static [Shuffle];

    /// Returns the sum modulo 2^[`BITS`](Self::BITS).
    fn wrapping_add(self, other: Self) -> Self;
    /// Returns the difference modulo 2^[`BITS`](Self::BITS).
    fn wrapping_sub(self, other: Self) -> Self;
    /// Returns the zigzag number of a signed difference: 0, -1, 1, -2 become 0, 1, 2, 3.
    fn zigzag(self) -> Self;
    /// Inverse of [`zigzag`](Self::zigzag).
    fn unzigzag(self) -> Self;
    /// Returns the element, extended to 64 bits.
    fn to_u64(self) -> u64;
    /// Returns the low bits of `number`.
    fn truncate(number: u64) -> Self;
    /// Returns the element that starts at bit `bit` of `bytes`, masked by `mask`. Panics if `bytes` has fewer
    /// than 16 bytes from that bit's byte on.
    fn at_bit(bytes: &[u8], bit: usize, mask: Self) -> Self;

    /// Returns the code of the fewest bytes that hold the element.
    #[inline(always)]
    fn code(self) -> u8 {
        let over = |code: usize| u8::from(self.to_u64() >> (8 * u32::from(Self::CODED_BYTES[code])) != 0);
        over(0) + over(1) + over(2)
    }
}

macro_rules! element {
    ($type:ident, $coded_bytes:expr, $shuffles:expr, $window:ident) => {
        impl Element for $type {
            const BITS: u32 = $type::BITS;
            const CODED_BYTES: [u8; 4] = $coded_bytes;
            const SHUFFLES: &'static [Shuffle] = {
                const SHUFFLES: [Shuffle; $shuffles] = Shuffle::all($coded_bytes, size_of::<$type>());
                &SHUFFLES
            };

            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self {
                $type::wrapping_add(self, other)
            }
            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self {
                $type::wrapping_sub(self, other)
            }
            #[inline(always)]
            fn zigzag(self) -> Self {
                self << 1 ^ (self.cast_signed() >> (Self::BITS - 1)).cast_unsigned()
            }
            #[inline(always)]
            fn unzigzag(self) -> Self {
                self >> 1 ^ (self & 1).wrapping_neg()
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn truncate(number: u64) -> Self {
                number as Self
            }
            #[inline(always)]
            fn at_bit(bytes: &[u8], bit: usize, mask: Self) -> Self {
                let (bytes, _) = bytes[bit / 8..].split_first_chunk().expect("16 bytes follow");
                ($window::from_le_bytes(*bytes) >> (bit % 8)) as Self & mask
            }
        }
    };
}

// The window holds an element and up to seven bits before it.
element!(u32, [1, 2, 3, 4], 256, u64);
element!(u64, [1, 2, 4, 8], 16, u128);
