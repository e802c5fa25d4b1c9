//! Why a generator refuses its parameters.

use crate::inputs::graph::GraphError;
use crate::inputs::mesh::MeshError;
use thiserror::Error;

/// Why nothing was generated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A parameter is out of its range.
    #[error("{name} is {found}, expected {expected}")]
    Parameter {
        /// Its name.
        name: &'static str,
        /// Its value.
        found: String,
        /// Its range.
        expected: String,
    },
    /// The model hardly ever gives a new edge any more.
    #[error(
        "only {found} of {wanted} different edges after {draws} draws; ask for fewer edges or more nodes"
    )]
    TooDense {
        /// Edges asked for.
        wanted: u64,
        /// Edges found.
        found: u64,
        /// Edges drawn.
        draws: u64,
    },
    /// Two points to triangulate are the same.
    #[error("points {first} and {second} are the same; points to triangulate must differ")]
    SamePoint {
        /// One of them.
        first: usize,
        /// The other.
        second: usize,
    },
    /// The arcs do not make a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The points do not make a mesh.
    #[error(transparent)]
    Mesh(#[from] MeshError),
}

impl GenerateError {
    pub(super) fn parameter(name: &'static str, found: impl ToString, expected: impl Into<String>) -> Self {
        Self::Parameter { name, found: found.to_string(), expected: expected.into() }
    }
}

/// Checks that a parameter lies from `low` to `high`.
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
