//! Numbers of things.

/// A length as a file counts it. Nothing of which a file has more than 2^32 is held in memory at once; if it
/// were, the answer would be the highest number, and nothing would be there to go with it.
pub(crate) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
