//! Host references and checkers for the programs' results, independent of the kernels.
//!
//! * [`mis`]: checks that a set is independent and maximal; the set that every fixed-priority algorithm
//!   finds.
//! * [`mst`]: Kruskal's minimum spanning forest; checks that a set of arcs is one.
//! * [`mesh`]: checks that a refined mesh is conforming, Delaunay, of the input's domain, and without bad
//!   triangles.
//! * [`components`]: connected components.
//!
//! The programs' own checks, such as [`mst::check`](crate::mst::check()), use them.

mod components;
pub mod mesh;
pub mod mis;
pub mod mst;

/// Result of a program's check: a sentence about the result, or about its first error. `warptrace-bench
/// record` prints it.
pub type Checked = Result<String, String>;

pub use components::{DisjointSets, components};
