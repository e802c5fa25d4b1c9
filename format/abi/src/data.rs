//! State of a traced kernel that records addresses and values. [`warptrace_format::data`] defines the
//! entries.
//!
//! Entries are stored in logs like those for events ([`crate::log`]) and have the same word layout: the
//! second word is the key, and its lower half is never 0.

pub use warptrace_format::data::*;

/// Maximum number of sites that a kernel records.
pub const MAX_KERNEL_SITES: usize = 512;
/// Bytes that a lane keeps in local memory for each site: a [`LaneRun`] with its words in the order of an
/// entry, which is lower half of the base, count, step, upper half of the base.
pub const STATE_BYTES: u32 = 16;
