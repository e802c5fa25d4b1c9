//! Graphs and meshes for the traced programs, on the host: types, loaders, writers and seeded generators.
//!
//! * [`Graph`] is a graph in compressed sparse rows, [`Mesh`] a triangulation in the plane. Their
//!   constructors check every index, so kernels can use the indices without bounds checks.
//! * [`load_graph`] reads ECL `.egr`, DIMACS `.gr`, PACE `.gr`, SNAP edge lists and Matrix Market files.
//!   [`load_mesh`] reads Triangle's `.node`, `.ele` and `.poly`. Files may be compressed with gzip or xz.
//! * [`write_egr`] and [`write_mesh`] write files for the loaders.
//! * [`generate`] makes seeded inputs like those in the ECL-Tracer thesis.
//! * [`geometry`] holds the exact predicates and the test for a bad triangle.

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
