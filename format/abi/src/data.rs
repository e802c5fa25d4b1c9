//! What a traced kernel keeps of addresses and values; the entries that it writes are in
//! [`warptrace_format::data`].
//!
//! Entries lie in logs like those of events ([`crate::log`]), whose words they share: the key is the second
//! one, and its lower half is never 0.

pub use warptrace_format::data::*;

/// The most sites that a kernel records.
pub const MAX_KERNEL_SITES: usize = 512;
/// Bytes that a lane keeps for each site, in local memory: a [`LaneRun`], whose words have the order that
/// they have in an entry: lower half of the base, count, step, upper half of the base.
pub const STATE_BYTES: u32 = 16;
