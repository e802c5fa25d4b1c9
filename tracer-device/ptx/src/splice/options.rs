//! Options and result of splicing.

use super::{Placement, Recording};

/// Options of [`splice`](super::splice).
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The kernels to keep; `None` keeps all.
    pub kernels: Option<&'a [&'a str]>,
    /// The recording of the traced copies; `None` makes no copies.
    pub recording: Option<Recording>,
    /// Register limits of the traced copies, by kernel name; of the kernels themselves if no copies are made.
    /// The assembler chooses for other kernels. By default it uses few registers: if recording takes some of
    /// them, it may move loads down to their uses, and a loop then waits for memory at each use.
    pub registers: &'a [(&'a str, u32)],
    /// Whether these limits also apply to kernels with a stated block size, which already limits registers.
    pub limits_bounded: bool,
    /// The target architecture, 90 for `sm_90`; 0 if unknown. It affects where lanes diverge.
    pub architecture: u32,
    /// Number of `pmevent.mask` instructions for each event at each marker, in untraced and traced kernels.
    /// The mask of the first is the location, so that hardware counters count visits of warps and lanes. The
    /// others have the mask 0, which is not a location; they only add a delay.
    pub marks: u32,
    /// Number of such delay instructions at the start of each marked untraced kernel.
    pub delay: u32,
}

/// A module with traced kernels.
#[derive(Clone, Debug)]
pub struct Spliced {
    /// The PTX text.
    pub text: String,
    /// The traced kernels.
    pub kernels: Vec<TracedKernel>,
    /// Kernels that cannot be traced, with the reason, if no kernels were named.
    pub left_out: Vec<(String, String)>,
}

/// A traced copy of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedKernel {
    /// Name of the original kernel.
    pub name: String,
    /// Name of the copy.
    pub traced_name: String,
    /// Placement of the lanes' records.
    pub placement: Placement,
    /// Bytes that each warp needs at the end of the block's dynamic shared memory, from a multiple of 16 on.
    pub shared_bytes: u32,
    /// Number of markers in the kernel that record events.
    pub markers: usize,
    /// Number of markers in the kernel that record addresses or values.
    pub sites: usize,
    /// Locations of the counted loops in the kernel, in ascending order.
    pub counted: Vec<u16>,
}
