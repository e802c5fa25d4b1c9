//! What can be wrong with an input file.

use super::source::Compression;
use crate::inputs::graph::GraphError;
use crate::inputs::mesh::MeshError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a file could not be loaded.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct LoadError {
    /// The file at fault.
    pub path: PathBuf,
    /// What is wrong with it, and where.
    #[source]
    pub problem: LoadProblem,
}

/// What is wrong with a file, and where. Lines count from 1, byte offsets from 0, both after decompression.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadProblem {
    /// The operating system refused.
    #[error("cannot be read: {0}")]
    Io(#[source] std::io::Error),
    /// The compressed data is damaged or cut short.
    #[error("{compression} data is damaged or cut short after {decompressed} decompressed bytes: {source}")]
    Decompress {
        /// What the content's first bytes said.
        compression: Compression,
        /// Bytes that came out before the damage.
        decompressed: u64,
        /// What the decompressor said.
        source: std::io::Error,
    },
    /// The content is larger than the limit.
    #[error("holds more than {limit} bytes ({compression}); raise the limit on bytes if it should be read")]
    TooLarge {
        /// How it is compressed.
        compression: Compression,
        /// [`super::Limits::bytes`].
        limit: u64,
    },
    /// Nothing in it.
    #[error("is empty; expected a graph or mesh file")]
    Empty,
    /// A mesh lacks a file.
    #[error("no {extension} file found for this mesh (plain, .gz or .xz); {needed}")]
    MissingFile {
        /// Which.
        extension: &'static str,
        /// Why it is needed.
        needed: &'static str,
    },
    /// Neither content nor name says what it is.
    #[error(
        "format not recognised: starts with {found}; expected ECL .egr, DIMACS or PACE .gr, a SNAP edge list or \
         Matrix Market (or name the format)"
    )]
    UnknownFormat {
        /// How it starts.
        found: String,
    },
    /// A kind of file that is known but not read.
    #[error("line {line}: {what} is not supported; {instead}")]
    Unsupported {
        /// Where it says so.
        line: u64,
        /// What it is.
        what: String,
        /// What to do.
        instead: &'static str,
    },
    /// A line of a text file is not what it must be.
    #[error("line {line}: found {found}, expected {expected}")]
    Syntax {
        /// The line.
        line: u64,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
    /// A field of a binary file is not what it must be.
    #[error("byte {offset}: {field} is {found}, expected {expected}")]
    Field {
        /// Where the field starts.
        offset: u64,
        /// Its name.
        field: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
    /// A header's count is not the number of things in the file.
    #[error("line {line} promises {promised} {what}, the file holds {found}{}", if found < promised { "; it may be cut short" } else { "" })]
    Count {
        /// Line of the header.
        line: u64,
        /// What is counted.
        what: &'static str,
        /// The header's number.
        promised: u64,
        /// What is there; for a file with more than promised, the number at which reading stopped.
        found: u64,
    },
    /// More arcs than the limit.
    #[error("holds more than {limit} arcs; raise the limit on arcs if it should be read")]
    TooManyArcs {
        /// [`super::Limits::arcs`].
        limit: u64,
    },
    /// More nodes than the arcs justify.
    #[error(
        "has {nodes} nodes but only {arcs} arcs, more than {limit} nodes are refused; compact the ids or raise the \
         limit on isolated nodes"
    )]
    TooManyNodes {
        /// Nodes by header or highest id.
        nodes: u64,
        /// Arcs read.
        arcs: u64,
        /// Most nodes accepted with this many arcs.
        limit: u64,
    },
    /// The arcs do not make a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The parts do not make a mesh. Its indices count from 0.
    #[error("{0} (indices from 0)")]
    Mesh(#[from] MeshError),
}

/// Why a file could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system refused.
    #[error("{}: cannot be written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A number does not fit the format.
    #[error("{}: {what} {value} does not fit the format's 32-bit signed field", path.display())]
    DoesNotFit {
        /// The file.
        path: PathBuf,
        /// Which number.
        what: &'static str,
        /// Its value.
        value: u32,
    },
}
