//! Parameter errors of the codecs.

/// A codec parameter that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "std", derive(thiserror::Error))]
#[non_exhaustive]
pub enum ParamError {
    /// L, the base-2 logarithm of the table's size.
    #[cfg_attr(feature = "std", error("ecl parameter hash_bits is {0}; it must be 4 to 16"))]
    HashBits(u8),
    /// s, the shift of the hash.
    #[cfg_attr(feature = "std", error("ecl parameter shift is {0}; it must be 1 to 8"))]
    Shift(u8),
    /// log2 W, the base-2 logarithm of the ring's size.
    #[cfg_attr(feature = "std", error("ecl parameter window_bits is {0}; it must be 6 to 20"))]
    WindowBits(u8),
    /// log2 S, the base-2 logarithm of the number of slots.
    #[cfg_attr(feature = "std", error("predict parameter slot_bits is {0}; it must be 2 to 10"))]
    SlotBits(u8),
}
