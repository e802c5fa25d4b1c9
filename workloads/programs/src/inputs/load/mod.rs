//! Readers and writers of graph and mesh files.
//!
//! A file is read whole, through its decompressor, up to [`Limits::bytes`]; then its format is detected by
//! content, and it is parsed. Counts in headers are compared with the content and never determine an
//! allocation.

mod detect;
mod dimacs;
mod egr;
mod error;
mod lines;
mod matrix_market;
mod options;
mod snap;
mod source;
mod triangle;
mod triangle_write;

pub use detect::GraphFormat;
pub use egr::write_egr;
pub use error::{LoadError, LoadProblem, WriteError};
pub use options::{GraphReport, Limits, LoadOptions, MeshReport};
pub use source::Compression;
pub use triangle::MeshBytes;
pub use triangle_write::write_mesh;

use super::arcs::ArcList;
use super::graph::Graph;
use super::mesh::Mesh;
use std::path::{Path, PathBuf};

/// Reads a graph from a file in any [`GraphFormat`], plain, gzip or xz. Fails if the file cannot be read or
/// decompressed, exceeds a limit, has an unknown format, is malformed, or does not hold a graph.
pub fn load_graph(path: impl AsRef<Path>, options: &LoadOptions) -> Result<(Graph, GraphReport), LoadError> {
    let path = path.as_ref();
    graph_from(path, source::read_file(path, &options.limits), options)
}

/// Like [`load_graph`], but reads from bytes. `name` replaces the path in errors, and its extension decides
/// the format if the content is inconclusive.
pub fn load_graph_bytes(
    name: impl AsRef<Path>,
    bytes: &[u8],
    options: &LoadOptions,
) -> Result<(Graph, GraphReport), LoadError> {
    graph_from(name.as_ref(), source::read_from(bytes, &options.limits), options)
}

type Content = Result<(Vec<u8>, Compression), LoadProblem>;

fn graph_from(
    path: &Path,
    content: Content,
    options: &LoadOptions,
) -> Result<(Graph, GraphReport), LoadError> {
    let extension = source::inner_extension(path);
    content
        .and_then(|(bytes, compression)| parse_graph(&bytes, &extension, compression, options))
        .map_err(|problem| LoadError { path: path.to_owned(), problem })
}

fn parse_graph(
    bytes: &[u8],
    extension: &str,
    compression: Compression,
    options: &LoadOptions,
) -> Result<(Graph, GraphReport), LoadProblem> {
    let format = match options.format {
        Some(format) => format,
        None => detect::detect(bytes, extension)?,
    };
    let list = match format {
        GraphFormat::Egr => egr::parse(bytes, options),
        GraphFormat::Dimacs => dimacs::parse_dimacs(bytes, options),
        GraphFormat::Pace => dimacs::parse_pace(bytes, options),
        GraphFormat::Snap => snap::parse(bytes, options),
        GraphFormat::MatrixMarket => matrix_market::parse(bytes, options),
    }?;
    let (graph, clean) = finish(list, options)?;
    Ok((graph, GraphReport { format, compression, clean }))
}

/// Refuses a node count far above the number of nodes that the arcs can touch, before allocating rows.
fn finish(list: ArcList, options: &LoadOptions) -> Result<(Graph, super::CleanReport), LoadProblem> {
    let touched = (list.arcs.len() as u64).saturating_mul(2);
    let limit = touched.saturating_add(u64::from(options.limits.isolated_nodes));
    if u64::from(list.nodes) > limit {
        return Err(LoadProblem::TooManyNodes {
            nodes: list.nodes.into(),
            arcs: list.arcs.len() as u64,
            limit,
        });
    }
    Ok(list.into_graph(&options.cleaning)?)
}

/// Reads a mesh in Triangle's text format: `.node`, `.ele` and, if it exists, `.poly` with the segments;
/// otherwise the edges with one triangle become the segments. `path` is the common stem, such as `spiral.2`,
/// or any of the files. Each may have the suffix `.gz` or `.xz`; compression is detected by content. Fails
/// like [`load_graph`]; the error has the stem as its path if the parts form no mesh together.
pub fn load_mesh(path: impl AsRef<Path>, limits: &Limits) -> Result<(Mesh, MeshReport), LoadError> {
    let stem = triangle::stem(path.as_ref());
    mesh_from(&stem, |extension| {
        let path = triangle::find(&stem, extension)?;
        let content = source::read_file(&path, limits);
        Some((path, content))
    })
}

fn mesh_from(
    stem: &Path,
    read: impl Fn(&str) -> Option<(PathBuf, Content)>,
) -> Result<(Mesh, MeshReport), LoadError> {
    let file = |extension| match read(extension) {
        Some((path, Ok((bytes, _)))) => Ok(Some((path, bytes))),
        Some((path, Err(problem))) => Err(LoadError { path, problem }),
        None => Ok(None),
    };
    let files = [file("node")?, file("ele")?, file("poly")?];
    let [node, ele, poly] =
        files.each_ref().map(|file| file.as_ref().map(|(path, bytes)| (path.as_path(), bytes.as_slice())));
    triangle::parse(stem, node, ele, poly)
}

/// Returns the files that [`load_mesh`] reads.
#[must_use]
pub fn mesh_files(path: impl AsRef<Path>) -> Vec<PathBuf> {
    let stem = triangle::stem(path.as_ref());
    ["node", "ele", "poly"].iter().filter_map(|extension| triangle::find(&stem, extension)).collect()
}

/// Like [`load_mesh`], but reads from bytes; `stem` replaces the path in errors.
pub fn load_mesh_bytes(
    stem: impl AsRef<Path>,
    files: MeshBytes<'_>,
    limits: &Limits,
) -> Result<(Mesh, MeshReport), LoadError> {
    let stem = stem.as_ref();
    mesh_from(stem, |extension| {
        let bytes = match extension {
            "node" => files.node,
            "ele" => files.ele,
            _ => files.poly,
        };
        Some((triangle::with_suffix(stem, extension), source::read_from(bytes?, limits)))
    })
}
