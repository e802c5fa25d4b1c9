//! Delaunay mesh refinement: replaces bad triangles, many at once, until the mesh has no more.
//!
//! A round takes the first `items` entries of the worklist, one for each thread. It has seven launches; the
//! end of a launch is the barrier between phases:
//!
//! ```text
//! dmr_mark     grows the item's cavity, and claims its triangles: atomic minimum of a key   (phase 1)
//! dmr_check    items that hold their entire claim win                                       (phase 2)
//! dmr_reclaim  losers that touch no winner claim again
//! dmr_verify   checks the second claim                                                      (phase 3)
//! dmr_commit   winners insert the new point and retriangulate their cavity
//! dmr_count    counts what each warp will append to the worklist
//! dmr_emit     appends it
//! ```
//!
//! `dmr_find_bad` and `dmr_enqueue` fill the worklist before the first round.
//!
//! The scheme (worklist, cavities, ownership by priority) follows Nasre, Burtscher and Pingali, "Morph
//! algorithms on GPUs" (PPoPP 2013). The ECL-Tracer thesis traced their LonestarGPU program. Segments are
//! treated as by Ruppert ("A Delaunay refinement algorithm for quality 2-dimensional mesh generation", 1995).
//!
//! For a given number of threads, results do not depend on the order in which they run: ownership is a
//! minimum, and new places are sums over the warps before, not values of a shared counter.
//!
//! # Records
//! Little-endian, 16 bytes, read with one load each:
//! ```text
//! points[i]     x f64 | y f64
//! triangles[t]  corner 0 | corner 1 | corner 2 | flags       u32 each; corners counter-clockwise
//! links[t]      across edge 0 | edge 1 | edge 2 | unused     u32 each
//! ```
//! Edge `e` runs from corner `e` to corner `e + 1` (modulo 3). A link is `triangle << 2 | edge`: the triangle
//! across the edge, and the edge's number in that triangle. Without a triangle it is [`NO_LINK`].

pub mod claim;
pub mod commit;
pub mod emit;
pub mod geometry;
pub mod init;
pub mod layout;
pub mod mark;
mod scan;

pub use layout::*;

/// Trace points of all kernels of the program. Ids are unique over the modules.
#[cfg(not(target_arch = "nvptx64"))]
pub const MODULES: [warptrace_device::KernelModule; 6] =
    [init::MODULE, mark::MODULE, claim::MODULE, commit::MODULE, emit::MODULE, scan::MODULE];

/// The same for the copies that are traced at each decision.
#[cfg(not(target_arch = "nvptx64"))]
pub const AUTOMATIC: [warptrace_device::KernelModule; 6] = [
    init::automatic::MODULE,
    mark::automatic::MODULE,
    claim::automatic::MODULE,
    commit::automatic::MODULE,
    emit::automatic::MODULE,
    scan::automatic::MODULE,
];
