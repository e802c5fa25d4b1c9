//! Errors of the generators.

use crate::inputs::graph::GraphError;
use crate::inputs::mesh::MeshError;
use thiserror::Error;

/// Reason why a generator failed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A parameter is out of its range.
    #[error("{name} is {found}, expected {expected}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// Value of the parameter.
        found: String,
        /// Allowed range.
        expected: String,
    },
    /// The model rarely produces new edges any more.
    #[error(
        "only {found} of {wanted} different edges after {draws} draws; ask for fewer edges or more nodes"
    )]
    TooDense {
        /// Number of requested edges.
        wanted: u64,
        /// Number of different edges found.
        found: u64,
        /// Number of draws.
        draws: u64,
    },
    /// Two points to triangulate are equal.
    #[error("points {first} and {second} are the same; points to triangulate must differ")]
    SamePoint {
        /// Index of the first point.
        first: usize,
        /// Index of the second point.
        second: usize,
    },
    /// The arcs do not form a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The points do not form a mesh.
    #[error(transparent)]
    Mesh(#[from] MeshError),
}

impl GenerateError {
    pub(super) fn parameter(name: &'static str, found: impl ToString, expected: impl Into<String>) -> Self {
        Self::Parameter { name, found: found.to_string(), expected: expected.into() }
    }
}

pub(super) fn check_range<T: PartialOrd + ToString + std::fmt::Display>(
    name: &'static str,
    value: T,
    low: T,
    high: T,
) -> Result<(), GenerateError> {
    if value >= low && value <= high {
        Ok(())
    } else {
        Err(GenerateError::parameter(name, value, format!("{low} to {high}")))
    }
}
