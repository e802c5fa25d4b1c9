//! Conversion of lengths.

/// Converts a length to the format's 32-bit count. Saturates; memory never holds more items.
pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
