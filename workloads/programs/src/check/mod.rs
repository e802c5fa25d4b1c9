//! Host references and checkers for the programs' results, independent of the kernels.
//!
//! * [`mis`]: independent and maximal sets; the set that every fixed-priority algorithm finds.
//! * [`mst`]: minimum spanning forests, by Kruskal's algorithm.
//! * [`mesh`]: refined meshes: conforming, Delaunay, of the input's domain, without bad triangles.
//! * [`components`]: connected components.
//!
//! The programs' own checks, such as [`mst::check`](crate::mst::check()), use them.

mod components;
pub mod mesh;
pub mod mis;
pub mod mst;

/// Result of a check: a sentence about the result or its first error. `warptrace-bench record` prints it.
pub type Checked = Result<String, String>;

pub use components::{DisjointSets, components};
