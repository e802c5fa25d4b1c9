//! Delaunay mesh refinement: bad triangles are replaced, many at once, until none is left.
//!
//! A round takes the first `items` entries of the worklist, one a thread, and consists of seven launches; the
//! end of a launch is the barrier between phases:
//!
//! ```text
//! dmr_mark     grow the item's cavity, claim its triangles: atomic minimum of a key   (phase 1)
//! dmr_check    does the item hold all it claimed? then it has won                      (phase 2)
//! dmr_reclaim  a loser that touches no winner claims a second time
//! dmr_verify   does the second claim hold?                                             (phase 3)
//! dmr_commit   winners put the new point in and retriangulate their cavity
//! dmr_count    what will each warp append to the worklist?
//! dmr_emit     append it
//! ```
//!
//! `dmr_find_bad` and `dmr_enqueue` fill the worklist before the first round.
//!
//! The scheme (worklist, cavities, ownership by priority) is that of Nasre, Burtscher and Pingali, "Morph
//! algorithms on GPUs" (PPoPP 2013), whose LonestarGPU program the ECL-Tracer thesis traced; the treatment of
//! segments is Ruppert's ("A Delaunay refinement algorithm for quality 2-dimensional mesh generation", 1995).
//!
//! Every result is the same for the same number of threads, whatever the order in which they run: ownership
//! is a minimum, and new places come from sums over the warps before, never from a shared counter.
//!
//! # Records
//! Little-endian, 16 bytes, read with one load each:
//! ```text
//! points[i]     x f64 | y f64
//! triangles[t]  corner 0 | corner 1 | corner 2 | flags       u32 each; corners counter-clockwise
//! links[t]      across edge 0 | edge 1 | edge 2 | unused     u32 each
//! ```
//! Edge `e` runs from corner `e` to corner `e + 1` (modulo 3). A link is `triangle << 2 | edge`: the triangle
//! across and the number that the shared edge has there, or [`NO_LINK`].

pub mod claim;
pub mod commit;
pub mod emit;
pub mod geometry;
pub mod init;
pub mod layout;
pub mod mark;
mod scan;

pub use layout::*;

/// The trace points of all kernels of the program; ids are unique over the modules.
#[cfg(not(target_arch = "nvptx64"))]
pub const MODULES: [warptrace_device::KernelModule; 6] =
    [init::MODULE, mark::MODULE, claim::MODULE, commit::MODULE, emit::MODULE, scan::MODULE];

/// The same of the copies that are traced at every decision.
#[cfg(not(target_arch = "nvptx64"))]
pub const AUTOMATIC: [warptrace_device::KernelModule; 6] = [
    init::automatic::MODULE,
    mark::automatic::MODULE,
    claim::automatic::MODULE,
    commit::automatic::MODULE,
    emit::automatic::MODULE,
    scan::automatic::MODULE,
];
