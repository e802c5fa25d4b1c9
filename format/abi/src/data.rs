//! State of a traced kernel that records addresses and values. Its entries ([`warptrace_format::data`]) are
//! in logs like those for events ([`crate::log`]): the second word is the key, and its lower half is never 0.

pub use warptrace_format::data::*;

/// Maximum number of sites that a kernel records.
pub const MAX_KERNEL_SITES: usize = 512;
/// Bytes of a lane's [`LaneRun`] at a site, in local memory: lower half of the base, count, step, upper half.
pub const STATE_BYTES: u32 = 16;
