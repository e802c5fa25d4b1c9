//! Host references and checkers of the programs' results, independent of any kernel.
//!
//! * [`mis`]: is a set independent and maximal; the set that every fixed-priority algorithm must find.
//! * [`mst`]: Kruskal's minimum spanning forest; is a set of arcs one.
//! * [`mesh`]: is a refined mesh conforming, Delaunay, of the same domain, and free of bad triangles.
//! * [`components`]: connected components.
//!
//! The programs' own checks, such as [`mst::check`](crate::mst::check()), build on them.

mod components;
pub mod mesh;
pub mod mis;
pub mod mst;

/// What a check of a program's result found, or what is wrong first: a sentence that `warptrace-bench record` prints.
pub type Checked = Result<String, String>;

pub use components::{DisjointSets, components};
