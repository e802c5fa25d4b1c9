//! Triangle's text format: `.node` (points), `.ele` (triangles), `.poly` (segments).
//!
//! Each file has a line of counts, then a line per item that starts with the item's number. `#` starts a
//! comment. The number of the first point, 0 or 1, is the base of all indices. Source: J. R. Shewchuk,
//! "Triangle: Engineering a 2D Quality Mesh Generator and Delaunay Triangulator", 1996, and its manual.

use super::error::{LoadError, LoadProblem};
use super::lines::{Fields, Line, Lines};
use super::options::MeshReport;
use crate::inputs::geometry::{Point, coordinate_is_usable, orientation};
use crate::inputs::mesh::{Mesh, MeshError, check_ends};
use std::path::{Path, PathBuf};

/// Contents of a mesh's files, each plain, gzip or xz.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeshBytes<'a> {
    /// Points; optional if `.poly` lists them.
    pub node: Option<&'a [u8]>,
    /// Triangles.
    pub ele: Option<&'a [u8]>,
    /// Segments.
    pub poly: Option<&'a [u8]>,
}

/// Removes the extensions of Triangle's files and of compressors from a path.
pub(super) fn stem(path: &Path) -> PathBuf {
    let ends = |path: &Path, endings: &[&str]| {
        path.extension().is_some_and(|e| endings.iter().any(|ending| e.eq_ignore_ascii_case(ending)))
    };
    let inner = if ends(path, &["gz", "xz"]) { path.with_extension("") } else { path.to_owned() };
    if ends(&inner, &["node", "ele", "poly"]) { inner.with_extension("") } else { path.to_owned() }
}

/// Appends an extension to a stem, which may contain dots.
pub(super) fn with_suffix(stem: &Path, extension: &str) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    path.push(".");
    path.push(extension);
    path.into()
}

/// Finds the file of a mesh with this extension; prefers the uncompressed file.
pub(super) fn find(stem: &Path, extension: &str) -> Option<PathBuf> {
    let plain = with_suffix(stem, extension);
    [plain.clone(), with_suffix(&plain, "gz"), with_suffix(&plain, "xz")]
        .into_iter()
        .find(|path| path.exists())
}

type FileContent<'a> = Option<(&'a Path, &'a [u8])>;

pub(super) fn parse(
    stem: &Path,
    node: FileContent<'_>,
    ele: FileContent<'_>,
    poly: FileContent<'_>,
) -> Result<(Mesh, MeshReport), LoadError> {
    let fault = |path: &Path| {
        let path = path.to_owned();
        move |problem| LoadError { path: path.clone(), problem }
    };
    let missing = |extension, needed| fault(stem)(LoadProblem::MissingFile { extension, needed });

    let (ele_path, ele) = ele.ok_or_else(|| missing("ele", "it lists the triangles"))?;
    let poly = match poly {
        Some((path, bytes)) => Some((path, Poly::open(bytes).map_err(fault(path))?)),
        None => None,
    };
    let (points, first_index) = match (node, &poly) {
        (Some((path, bytes)), _) => parse_node(bytes).map_err(fault(path))?,
        (None, Some((_, Poly { points: Some(points), .. }))) => points.clone(),
        (None, _) => return Err(missing("node", "it lists the points")),
    };
    let numbers = Numbers { first: first_index, points: points.len() };
    let (triangles, triangles_turned) = parse_ele(ele, &numbers, &points).map_err(fault(ele_path))?;
    let segments = match poly {
        Some((path, poly)) => poly.segments(&numbers).map_err(fault(path))?,
        None => Vec::new(),
    };
    let whole = |error: MeshError| fault(stem)(error.into());
    let (mesh, segments_added) = Mesh::with_boundary(points, triangles, segments).map_err(whole)?;
    let unused_points = mesh.unused_points();
    Ok((mesh, MeshReport { first_index, triangles_turned, segments_added, unused_points }))
}

struct Numbers {
    first: u32,
    points: usize,
}

impl Numbers {
    /// Parses the next field as a point and converts it to an index from 0.
    fn point(&self, fields: &mut Fields<'_>) -> Result<u32, LoadProblem> {
        let last = self.first + (self.points as u32).saturating_sub(1);
        Ok(fields.index("a point", self.first, last)? - self.first)
    }

    /// Checks the number at the start of an item's line.
    fn item(&self, fields: &mut Fields<'_>, what: &str, index: usize) -> Result<(), LoadProblem> {
        let number = self.first.saturating_add(index as u32);
        fields.index(&format!("{what} number"), number, number).map(drop)
    }
}

/// Iterates over the lines of a file without comments, which may also follow content in a line.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    Lines::new(bytes).filter_map(|line| {
        let end = line.bytes.iter().position(|byte| *byte == b'#').unwrap_or(line.bytes.len());
        let bytes = line.bytes[..end].trim_ascii();
        (!bytes.is_empty()).then_some(Line { number: line.number, bytes })
    })
}

fn next_line<'a>(
    lines: &mut impl Iterator<Item = Line<'a>>,
    line: u64,
    expected: &str,
) -> Result<Line<'a>, LoadProblem> {
    lines.next().ok_or_else(|| LoadProblem::Syntax {
        line: line + 1,
        found: "the end of the file".to_owned(),
        expected: expected.to_owned(),
    })
}

/// Reads `promised` items, one per line. `item` gets each item's index and fields.
fn items<'a>(
    lines: &mut impl Iterator<Item = Line<'a>>,
    header: u64,
    what: &'static str,
    promised: u32,
    mut item: impl FnMut(usize, &mut Fields<'a>) -> Result<(), LoadProblem>,
) -> Result<(), LoadProblem> {
    for index in 0..promised {
        let Some(line) = lines.next() else {
            return Err(LoadProblem::Count {
                line: header,
                what,
                promised: promised.into(),
                found: index.into(),
            });
        };
        item(index as usize, &mut line.fields())?;
    }
    Ok(())
}

fn no_more<'a>(
    lines: &mut impl Iterator<Item = Line<'a>>,
    header: u64,
    what: &'static str,
    promised: u32,
) -> Result<(), LoadProblem> {
    match lines.next() {
        None => Ok(()),
        Some(_) => {
            let promised = u64::from(promised);
            Err(LoadProblem::Count { line: header, what, promised, found: promised + 1 })
        }
    }
}

type Points = (Vec<Point>, u32);

fn parse_node(bytes: &[u8]) -> Result<Points, LoadProblem> {
    let mut lines = lines(bytes);
    let (points, header, promised) = parse_points(&mut lines, 1)?;
    no_more(&mut lines, header, "points", promised)?;
    points.ok_or_else(|| LoadProblem::Syntax {
        line: header,
        found: "0 points".to_owned(),
        expected: "at least 3 points".to_owned(),
    })
}

/// Reads a header and its points; `None` if their number is 0. Also returns the header's line and the number.
fn parse_points<'a>(
    lines: &mut impl Iterator<Item = Line<'a>>,
    least: u32,
) -> Result<(Option<Points>, u64, u32), LoadProblem> {
    const HEADER: &str = "\"POINTS 2 ATTRIBUTES MARKERS\"";
    let header = next_line(lines, 0, HEADER)?;
    let mut fields = header.fields();
    let promised = fields.index("the number of points", least, u32::MAX - 1)?;
    fields.index("the dimension", 2, 2)?;
    let attributes = fields.index("the number of attributes", 0, u32::MAX)?;
    let markers = fields.index("the number of boundary markers", 0, 1)?;
    fields.end()?;

    let mut points: Vec<Point> = Vec::new();
    let mut first = 0;
    items(lines, header.number, "points", promised, |index, fields| {
        if index == 0 {
            first = fields.clone().index("the first point's number", 0, 1)?;
        }
        Numbers { first, points: 0 }.item(fields, "point", index)?;
        let point = [fields.finite("x")?, fields.finite("y")?];
        if let Some(&value) = point.iter().find(|x| !coordinate_is_usable(**x)) {
            return Err(MeshError::Coordinate { point: index, value }.into());
        }
        for _ in 0..u64::from(attributes) + u64::from(markers) {
            fields.finite("an attribute or boundary marker")?;
        }
        fields.end()?;
        points.push(point);
        Ok(())
    })?;
    Ok(((promised > 0).then_some((points, first)), header.number, promised))
}

/// Reads the triangles. Reverses clockwise ones, and returns their number as well.
fn parse_ele(
    bytes: &[u8],
    numbers: &Numbers,
    points: &[Point],
) -> Result<(Vec<[u32; 3]>, usize), LoadProblem> {
    let mut lines = lines(bytes);
    let header = next_line(&mut lines, 0, "\"TRIANGLES 3 ATTRIBUTES\"")?;
    let mut fields = header.fields();
    let promised = fields.index("the number of triangles", 1, u32::MAX - 1)?;
    fields.index("the number of points per triangle", 3, 3)?;
    let attributes = fields.index("the number of attributes", 0, u32::MAX)?;
    fields.end()?;

    let mut triangles = Vec::new();
    let mut turned = 0;
    items(&mut lines, header.number, "triangles", promised, |index, fields| {
        numbers.item(fields, "triangle", index)?;
        let mut corners = [numbers.point(fields)?, numbers.point(fields)?, numbers.point(fields)?];
        for _ in 0..attributes {
            fields.finite("an attribute")?;
        }
        fields.end()?;
        check_ends("triangle", index, &corners, points.len())?;
        let [a, b, c] = corners.map(|corner| points[corner as usize]);
        if orientation(a, b, c) < 0.0 {
            corners.swap(1, 2);
            turned += 1;
        }
        triangles.push(corners);
        Ok(())
    })?;
    no_more(&mut lines, header.number, "triangles", promised)?;
    Ok((triangles, turned))
}

/// A `.poly` file with parsed points. Its segments are parsed when the base of the numbers is known.
struct Poly<'a> {
    points: Option<Points>,
    after_points: Vec<Line<'a>>,
    last_line: u64,
}

impl<'a> Poly<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, LoadProblem> {
        let mut lines = lines(bytes);
        let (points, _, _) = parse_points(&mut lines, 0)?;
        let after_points = lines.collect();
        let last_line = Lines::new(bytes).last().map_or(0, |line| line.number);
        Ok(Self { points, after_points, last_line })
    }

    /// Parses the segments, and checks the form of the holes. Ignores the lines after the holes (regions).
    fn segments(&self, numbers: &Numbers) -> Result<Vec<[u32; 2]>, LoadProblem> {
        let mut lines = self.after_points.iter().copied();
        let header = next_line(&mut lines, self.last_line, "\"SEGMENTS MARKERS\"")?;
        let mut fields = header.fields();
        let promised = fields.index("the number of segments", 0, u32::MAX - 1)?;
        let markers = fields.index("the number of boundary markers", 0, 1)?;
        fields.end()?;
        let mut segments = Vec::new();
        items(&mut lines, header.number, "segments", promised, |index, fields| {
            numbers.item(fields, "segment", index)?;
            let ends = [numbers.point(fields)?, numbers.point(fields)?];
            for _ in 0..markers {
                fields.finite("a boundary marker")?;
            }
            fields.end()?;
            segments.push(ends);
            Ok(())
        })?;

        let header = next_line(&mut lines, self.last_line, "the number of holes")?;
        let mut fields = header.fields();
        let holes = fields.index("the number of holes", 0, u32::MAX)?;
        fields.end()?;
        items(&mut lines, header.number, "holes", holes, |index, fields| {
            numbers.item(fields, "hole", index)?;
            fields.finite("x")?;
            fields.finite("y")?;
            fields.end()
        })?;
        Ok(segments)
    }
}
