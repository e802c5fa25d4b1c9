//! Errors of input and output files.

use super::source::Compression;
use crate::inputs::graph::GraphError;
use crate::inputs::mesh::MeshError;
use std::path::PathBuf;
use thiserror::Error;

/// Error of loading a file.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct LoadError {
    /// The file with the error.
    pub path: PathBuf,
    /// The error and its place.
    #[source]
    pub problem: LoadProblem,
}

/// Error in a file. Line numbers start at 1, byte offsets at 0; both refer to the decompressed content.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadProblem {
    /// The operating system reported an error.
    #[error("cannot be read: {0}")]
    Io(#[source] std::io::Error),
    /// The compressed data is damaged or truncated.
    #[error("{compression} data is damaged or cut short after {decompressed} decompressed bytes: {source}")]
    Decompress {
        /// Compression, detected by the first bytes.
        compression: Compression,
        /// Number of bytes decompressed before the error.
        decompressed: u64,
        /// Error of the decompressor.
        source: std::io::Error,
    },
    /// The content is larger than the limit.
    #[error("holds more than {limit} bytes ({compression}); raise the limit on bytes if it should be read")]
    TooLarge {
        /// Compression of the file.
        compression: Compression,
        /// [`super::Limits::bytes`].
        limit: u64,
    },
    /// The file is empty.
    #[error("is empty; expected a graph or mesh file")]
    Empty,
    /// A file of a mesh is missing.
    #[error("no {extension} file found for this mesh (plain, .gz or .xz); {needed}")]
    MissingFile {
        /// Extension of the file.
        extension: &'static str,
        /// Reason why the file is needed.
        needed: &'static str,
    },
    /// Neither content nor name identifies the format.
    #[error(
        "format not recognised: starts with {found}; expected ECL .egr, DIMACS or PACE .gr, a SNAP edge list or \
         Matrix Market (or name the format)"
    )]
    UnknownFormat {
        /// First bytes of the file.
        found: String,
    },
    /// The format or variant is known but not supported.
    #[error("line {line}: {what} is not supported; {instead}")]
    Unsupported {
        /// Line that names it.
        line: u64,
        /// The unsupported variant.
        what: String,
        /// Suggested alternative.
        instead: &'static str,
    },
    /// A line of a text file is malformed.
    #[error("line {line}: found {found}, expected {expected}")]
    Syntax {
        /// Number of the line.
        line: u64,
        /// Text found.
        found: String,
        /// Text expected.
        expected: String,
    },
    /// A field of a binary file has a wrong value.
    #[error("byte {offset}: {field} is {found}, expected {expected}")]
    Field {
        /// Offset of the field.
        offset: u64,
        /// Name of the field.
        field: String,
        /// Value found.
        found: String,
        /// Value expected.
        expected: String,
    },
    /// The count in a header differs from the number of items in the file.
    #[error("line {line} promises {promised} {what}, the file holds {found}{}", if found < promised { "; it may be cut short" } else { "" })]
    Count {
        /// Line of the header.
        line: u64,
        /// Kind of the items.
        what: &'static str,
        /// Count in the header.
        promised: u64,
        /// Number of items found; if the file has more than `promised`, the number at which reading stopped.
        found: u64,
    },
    /// The file has more arcs than the limit.
    #[error("holds more than {limit} arcs; raise the limit on arcs if it should be read")]
    TooManyArcs {
        /// [`super::Limits::arcs`].
        limit: u64,
    },
    /// The file has more nodes than its arcs justify.
    #[error(
        "has {nodes} nodes but only {arcs} arcs, more than {limit} nodes are refused; compact the ids or raise the \
         limit on isolated nodes"
    )]
    TooManyNodes {
        /// Number of nodes, by header or highest id.
        nodes: u64,
        /// Number of arcs read.
        arcs: u64,
        /// Maximum number of nodes with this many arcs.
        limit: u64,
    },
    /// The arcs do not form a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The parts do not form a mesh. Indices start at 0.
    #[error("{0} (indices from 0)")]
    Mesh(#[from] MeshError),
}

/// Error of writing a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system reported an error.
    #[error("{}: cannot be written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A number does not fit the format.
    #[error("{}: {what} {value} does not fit the format's 32-bit signed field", path.display())]
    DoesNotFit {
        /// The file.
        path: PathBuf,
        /// Kind of the number.
        what: &'static str,
        /// The number.
        value: u32,
    },
}
