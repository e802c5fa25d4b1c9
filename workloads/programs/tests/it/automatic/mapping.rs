//! Maps automatic trace points to those placed by hand, from their common source.

use std::collections::BTreeMap;

use warptrace_device::{KernelModule, LocationKind, SourceLocation};
use warptrace_workloads::ProgramInfo;

/// Points after branches have reconverged. They mark no decision, so no automatic point corresponds.
pub(crate) const JOINS: [&str; 3] = ["COUNT_DONE", "EMIT_DONE", "VERIFY_DONE"];

/// For each automatic location, the ids of the hand-placed locations that lanes pass next, in order.
pub(crate) type Mapping = BTreeMap<u16, Vec<u16>>;

/// Panics if a hand-placed trace point has no automatic counterpart.
pub(crate) fn mapping_of(program: &ProgramInfo) -> Mapping {
    let mut mapping = Mapping::new();
    for marked in program.modules {
        let module = program.automatic.iter().find(|module| module.file == marked.file);
        let module = module.unwrap_or_else(|| panic!("{}: it has no copy", marked.file));
        // In source order, which is the order in which lanes pass the points of one counterpart.
        let mut points: Vec<_> =
            marked.locations.iter().filter(|point| !JOINS.contains(&point.name)).collect();
        points.sort_by_key(|point| (point.line, point.column));
        for point in points {
            mapping.entry(counterpart(module, marked, point).id).or_default().push(point.id);
        }
    }
    mapping
}

/// For `trace_loop!`, the body of the loop that follows; otherwise, the last location before the point.
fn counterpart<'m>(
    module: &'m KernelModule,
    marked: &KernelModule,
    point: &SourceLocation,
) -> &'m SourceLocation {
    let at = (point.line, point.column);
    let line = marked.source.lines().nth(at.0 as usize - 1).unwrap_or_default();
    let position = |location: &SourceLocation| (location.line, location.column);
    let mut locations = module.locations.iter();
    let found = if line[at.1 as usize - 1..].starts_with("trace_loop!(") {
        let bodies = locations.filter(|location| location.kind == LocationKind::LoopBody);
        bodies.filter(|location| position(location) > at).min_by_key(|location| position(location))
    } else {
        let before = locations.clone().filter(|location| position(location) < at);
        let last = before.map(position).max();
        // The location of an implicit `else` is the end of its `if`.
        locations.find(|location| Some(position(location)) == last)
    };
    found.unwrap_or_else(|| panic!("{}: {} has no automatic counterpart", marked.file, point.name))
}
