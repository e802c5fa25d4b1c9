//! Graphs and meshes for the traced programs: types, loaders, writers and seeded generators.
//!
//! * [`Graph`] is a graph in compressed sparse rows, [`Mesh`] a triangulation in the plane. Their
//!   constructors check every index, so that a kernel may follow them without bounds of its own.
//! * [`load_graph`] reads ECL `.egr`, DIMACS `.gr`, PACE `.gr`, SNAP edge lists and Matrix Market files,
//!   [`load_mesh`] reads Triangle's `.node`, `.ele` and `.poly`; each plain or through gzip or xz. Format and
//!   compression are found by content.
//! * [`write_egr`] and [`write_mesh`] write what the loaders read.
//! * [`generate`] makes the families of the ECL-Tracer thesis's inputs from a seed.
//! * [`geometry`] holds the exact predicates and the test for a bad triangle.
//!
//! Everything here runs on the host and knows of no device.

mod arcs;
pub mod generate;
pub mod geometry;
mod graph;
mod load;
mod mesh;
mod topology;

pub use arcs::{Arc, ArcList, CleanReport, Cleaning};
pub use graph::{Graph, GraphError};
pub use load::{
    Compression, GraphFormat, GraphReport, Limits, LoadError, LoadOptions, LoadProblem, MeshBytes,
    MeshReport, WriteError, load_graph, load_graph_bytes, load_mesh, load_mesh_bytes, mesh_files, write_egr,
    write_mesh,
};
pub use mesh::{BOUNDARY, Mesh, MeshError, MeshView};
pub(crate) use topology::for_each_edge;
