//! Conversion of lengths.

/// Converts a length to the format's 32-bit count. Saturates, but memory never holds more than 2^32 - 1 items
/// of a kind that a file counts.
pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
