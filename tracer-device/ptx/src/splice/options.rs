//! What to make of a module, and what became of it.

use super::{Placement, Recording};

/// What to make of a module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The kernels to keep; `None` keeps all.
    pub kernels: Option<&'a [&'a str]>,
    /// What the traced copies record; `None` makes none.
    pub recording: Option<Recording>,
    /// How many registers traced copies of kernels may have, or, where none are made, the kernels themselves;
    /// the assembler chooses for those that are not named. Left to itself it uses few, and where recording
    /// takes some, it may bring loads down to their uses one by one: a loop then waits for memory at each of
    /// them.
    pub registers: &'a [(&'a str, u32)],
    /// Whether these limits hold for kernels that state the size of their blocks, too. (That limits registers so far
    /// that one block fits.)
    pub limits_bounded: bool,
    /// The architecture that the module is for, 90 for `sm_90`; 0 if that is not known. What parts lanes
    /// differs.
    pub architecture: u32,
    /// How many `pmevent.mask` to put at each marker for each event, in untraced and traced kernels. The mask
    /// of the first is the location: hardware counters then tell how often warps and lanes come there. The
    /// others have the mask 0, which is no location, and only take time.
    pub marks: u32,
    /// How many such instructions that only take time to put at the start of each marked kernel that is not
    /// traced.
    pub delay: u32,
}

/// A module with traced kernels.
#[derive(Clone, Debug)]
pub struct Spliced {
    /// PTX.
    pub text: String,
    /// The traced kernels.
    pub kernels: Vec<TracedKernel>,
    /// Kernels that cannot be traced, with the reason, where no kernels were named.
    pub left_out: Vec<(String, String)>,
}

/// A traced copy of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedKernel {
    /// The kernel's own name.
    pub name: String,
    /// That of the copy.
    pub traced_name: String,
    /// Where lanes keep their records.
    pub placement: Placement,
    /// Bytes that each warp of a block needs at the end of the block's dynamic shared memory, which begins at
    /// a multiple of 16.
    pub shared_bytes: u32,
    /// Markers at which events are recorded, in the kernel itself.
    pub markers: usize,
    /// Markers at which addresses and values are recorded.
    pub sites: usize,
    /// Locations of the loops in the kernel itself that are counted, in ascending order.
    pub counted: Vec<u16>,
}
