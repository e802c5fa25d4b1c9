//! Loops of constructed control flow.

use super::*;
use crate::figures::Point;

/// Each location has 10 visits and `id` idle slots.
fn rolled(edges: &[(u16, u16, u64)], functions: &[(u16, &'static str)]) -> Part {
    let end = |id: u16| (id != Point::BEGIN).then_some(id);
    let mut edges: Vec<Edge> = edges
        .iter()
        .map(|&(from, to, lanes)| Edge { from: end(from), to: end(to), visits: 1, lanes })
        .collect();
    edges.sort_by_key(|edge| (edge.from, edge.to));
    let ids = edges.iter().flat_map(|edge| [edge.from, edge.to]).flatten();
    let counts = |id: u16| Counts { visits: 10, lanes: 1, idle: id.into(), slots: 320 };
    let kernel = KernelFigures {
        kernel: "k".to_owned(),
        launches: 1,
        counts: Counts::default(),
        time: None,
        warps: 1,
        active: Vec::new(),
        causes: BTreeMap::from([(1, 7)]),
        locations: ids.map(|id| (id, counts(id))).collect(),
        times: BTreeMap::new(),
        edges,
        warp_events: crate::Distribution::default(),
    };
    of_kernel(&kernel, &functions.iter().map(|&(id, function)| (id, ["", function])).collect())
}

/// Returns locations, loops with their heads, and functions as text: `k(1 @2(2 3))`.
fn shape(part: &Part) -> String {
    let inside = || part.parts.iter().map(shape).collect::<Vec<_>>().join(" ");
    match (part.kind, part.location) {
        (PartKind::Location, Some(id)) => id.to_string(),
        (PartKind::Loop, Some(head)) => format!("@{head}({})", inside()),
        _ => format!("{}({})", part.name, inside()),
    }
}

#[test]
fn loops_are_inside_each_other_as_lanes_go_round() {
    // 1; a loop of 2 with an inner loop of 3 and 4, followed by 5; a loop of 6 alone; 7.
    let edges = [
        (0, 1, 32),
        (1, 2, 32),
        (2, 3, 64),
        (3, 4, 90),
        (4, 3, 40),
        (4, 5, 64),
        (5, 2, 32),
        (5, 6, 32),
        (6, 6, 99),
        (6, 7, 32),
        (7, 0, 32),
    ];
    let part = rolled(&edges, &[]);
    assert_eq!(shape(&part), "k(1 @2(2 @3(3 4) 5) @6(6) 7)");
    assert_eq!((part.counts.idle, part.counts.visits, part.own.idle), (28, 70, 8));
    let outer = &part.parts[1];
    assert_eq!((outer.counts.idle, outer.own.idle, outer.parts[1].own.idle), (14, 7, 7));
    assert_eq!((part.caused, part.parts[0].caused), (7, 7));
    let mut stacks = Vec::new();
    part.each_location(&mut Vec::new(), &mut |id, around| stacks.push((id, around.len())));
    assert_eq!(stacks, [(1, 1), (2, 2), (3, 3), (4, 3), (5, 2), (6, 2), (7, 1)]);
}

#[test]
fn most_lanes_come_in_by_the_head() {
    let shape_of = |by_two, by_three| {
        shape(&rolled(&[(0, 1, 9), (1, 2, by_two), (1, 3, by_three), (2, 3, 50), (3, 2, 50), (3, 0, 9)], &[]))
    };
    assert_eq!([shape_of(5, 4), shape_of(4, 5)], ["k(1 @2(2 3))", "k(1 @3(2 3))"]);
}

#[test]
fn functions_are_where_they_are_called() {
    let edges = [(0, 1, 32), (1, 2, 32), (2, 3, 64), (3, 2, 32), (3, 4, 32), (4, 0, 32)];
    let part = rolled(&edges, &[(1, "k"), (3, "f"), (4, "g")]);
    assert_eq!(shape(&part), "k(1 @2(2 f(3)) g(4))");
    assert_eq!((part.parts[1].own.idle, part.parts[1].counts.idle), (2, 5));
}

#[test]
fn any_control_flow_is_rolled_up() {
    let pairs = (1..40_u16).flat_map(|a| (1..40).map(move |b| (a, b, 1)));
    let chain = (40..30_000_u16).map(|a| (a, a + 1, 1));
    let part = rolled(&pairs.chain(chain).collect::<Vec<_>>(), &[]);
    let mut found = Vec::new();
    part.each_location(&mut Vec::new(), &mut |id, _| found.push(id));
    found.sort_unstable();
    assert_eq!(found, (1..=30_000).collect::<Vec<_>>());
}
