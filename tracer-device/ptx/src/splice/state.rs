//! Storage of a lane's record and write pointers while its kernel runs. A lane's *record* is its current run:
//! mask, key (location and count) and the clock at its start. In addition, each track has the address of the
//! next log entry and of the link at the segment's end.
//!
//! In shared memory a warp's state has an array for each pair of words, so that a warp's access touches each
//! bank once:
//! ```text
//! offset  size  field
//!      0   256  for each lane: mask, key
//!    256   256  for each lane: address of the next entry
//!    512   256  for each lane: clock
//!    768   256  for each lane: lower half of the link's address; a streamed log's tag
//!   1024   512  with a raw shadow: its next entry and link
//!      …    64  where functions record too: the launch's descriptor; 88 in a kernel that chooses its warps
//! ```
//! In local memory the same pairs are 8 bytes apart; the hardware interleaves the lanes.

use std::mem::offset_of;

use warptrace_abi::log::LaunchLogs;
pub(super) use warptrace_abi::recording::Placement;

/// Size in bytes of a pair of words for all lanes of a warp.
const PAIR_BYTES: u32 = 8 * 32;
/// Size in bytes of the launch's descriptor in a kernel's parameters; larger in kernels that choose warps.
pub(super) const fn descriptor_bytes(chooses: bool) -> u32 {
    (if chooses { size_of::<LaunchLogs>() } else { offset_of!(LaunchLogs, chosen) }) as u32
}

#[derive(Clone, Copy)]
pub(super) enum Pair {
    Record,
    /// Address of the next entry.
    Log,
    Time,
    /// Lower half of the link's address, and a streamed log's tag.
    Link,
    /// Address of the raw shadow's next entry.
    ShadowLog,
    /// Lower half of the address of the raw shadow's link.
    ShadowLink,
    /// Address of the next data entry. Always in local memory, before the runs of the sites.
    DataLog,
    /// Lower half of the address of the data log's link. Follows [`Pair::DataLog`].
    DataLink,
}

impl Pair {
    const fn number(self) -> u32 {
        match self {
            Self::Record => 0,
            Self::Log => 1,
            Self::Time => 2,
            Self::Link => 3,
            Self::ShadowLog => 4,
            Self::ShadowLink => 5,
            Self::DataLog => 0,
            Self::DataLink => 1,
        }
    }

    pub(super) const fn offset(self, placement: Placement) -> u32 {
        match placement {
            _ if matches!(self, Self::DataLog | Self::DataLink) => 8 * self.number(),
            Placement::Shared => PAIR_BYTES * self.number(),
            _ => 8 * self.number(),
        }
    }
}

const fn pairs(dual: bool) -> u32 {
    if dual { 6 } else { 4 }
}

/// Size in bytes of a warp's state in shared memory.
pub(super) const fn warp_bytes(dual: bool, with_descriptor: bool, chooses: bool) -> u32 {
    pairs(dual) * PAIR_BYTES + if with_descriptor { descriptor_bytes(chooses) } else { 0 }
}

pub(super) const fn descriptor_offset(dual: bool) -> u32 {
    pairs(dual) * PAIR_BYTES
}

/// Size in bytes of a lane's state in local memory.
pub(super) const fn local_bytes(dual: bool) -> u32 {
    8 * pairs(dual)
}
