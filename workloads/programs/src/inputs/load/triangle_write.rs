//! Writer of Triangle's text format.

use super::error::WriteError;
use super::triangle::with_suffix;
use crate::inputs::mesh::{BOUNDARY, Mesh};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a mesh as `STEM.node`, `STEM.ele` and `STEM.poly`, numbered from 1. Boundary points, and segments
/// with one triangle, have the marker 1. Coordinates have the fewest digits that read back exactly. The error
/// names the file that could not be written.
pub fn write_mesh(stem: impl AsRef<Path>, mesh: &Mesh) -> Result<(), WriteError> {
    let boundary = boundary_edges(mesh);
    let write = |extension: &str, content: &dyn Fn(&mut BufWriter<File>) -> io::Result<()>| {
        let path = with_suffix(stem.as_ref(), extension);
        let outcome = File::create(&path).map(BufWriter::new).and_then(|mut file| {
            content(&mut file)?;
            file.flush()
        });
        outcome.map_err(|source| WriteError::Io { path, source })
    };
    write("node", &|file| write_points(file, mesh, &boundary))?;
    write("ele", &|file| write_triangles(file, mesh))?;
    write("poly", &|file| write_segments(file, mesh, &boundary))
}

/// Returns the edges with one triangle, lower point first, sorted.
fn boundary_edges(mesh: &Mesh) -> Vec<[u32; 2]> {
    let mut edges = Vec::new();
    for (corners, across) in mesh.triangles().iter().zip(mesh.adjacency()) {
        for slot in (0..3).filter(|slot| across[*slot] == BOUNDARY) {
            let (a, b) = (corners[slot], corners[(slot + 1) % 3]);
            edges.push([a.min(b), a.max(b)]);
        }
    }
    edges.sort_unstable();
    edges
}

fn write_points(file: &mut impl Write, mesh: &Mesh, boundary: &[[u32; 2]]) -> io::Result<()> {
    let mut marks = vec![0; mesh.points().len()];
    boundary.iter().flatten().for_each(|point| marks[*point as usize] = 1);
    writeln!(file, "{} 2 0 1", mesh.points().len())?;
    for (index, ([x, y], mark)) in mesh.points().iter().zip(marks).enumerate() {
        writeln!(file, "{} {x} {y} {mark}", index + 1)?;
    }
    Ok(())
}

fn write_triangles(file: &mut impl Write, mesh: &Mesh) -> io::Result<()> {
    writeln!(file, "{} 3 0", mesh.triangles().len())?;
    for (index, corners) in mesh.triangles().iter().enumerate() {
        let [a, b, c] = corners.map(|corner| u64::from(corner) + 1);
        writeln!(file, "{} {a} {b} {c}", index + 1)?;
    }
    Ok(())
}

fn write_segments(file: &mut impl Write, mesh: &Mesh, boundary: &[[u32; 2]]) -> io::Result<()> {
    writeln!(file, "0 2 0 1\n{} 1", mesh.segments().len())?;
    for (index, [a, b]) in mesh.segments().iter().enumerate() {
        let mark = u8::from(boundary.binary_search(&[*a.min(b), *a.max(b)]).is_ok());
        writeln!(file, "{} {} {} {mark}", index + 1, u64::from(*a) + 1, u64::from(*b) + 1)?;
    }
    writeln!(file, "0")
}
