//! Helpers for the tests of several programs: graphs of all shapes, and recordings with checks.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use warptrace_analysis::fuzzing::check_trace;
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::Counting;
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_host::{DEVICE_ECL, Launcher, MemorySize, RecordingSpec, Session, SimDevice, SimOptions};
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::inputs::generate::{
    Rmat, RoadGrid, THESIS_WEIGHTS, random_weights, rmat, road_grid,
};
use warptrace_workloads::inputs::geometry::{Point, in_circle, orientation};
use warptrace_workloads::inputs::{ArcList, Cleaning, Graph, LoadOptions, Mesh, load_graph};

/// Creates a simulator whose communicating blocks interleave according to `seed`.
pub(crate) fn simulator(seed: u64) -> SimDevice {
    SimDevice::new(SimOptions { seed, ..SimOptions::default() })
}

/// Verifies the file: it is complete, nothing is lost, and both tracks of a dual recording are equal.
pub(crate) fn record<T>(
    device: &mut SimDevice,
    program: &ProgramInfo,
    codec: CodecSpec,
    dual: bool,
    run: impl FnOnce(&mut dyn Launcher) -> T,
) -> (T, TraceFile) {
    record_as(device, program, &Recording { codec, dual, counting: Counting::Never }, run)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Recording {
    codec: CodecSpec,
    dual: bool,
    counting: Counting,
}

/// Ways to record; every codec occurs.
pub(crate) const RECORDINGS: [Recording; 4] = [
    Recording { codec: CodecSpec::Raw, dual: false, counting: Counting::Never },
    Recording { codec: CodecSpec::Ecl(DEVICE_ECL), dual: true, counting: Counting::Never },
    Recording { codec: CodecSpec::Predict(PredictParams::DEFAULT), dual: true, counting: Counting::Never },
    Recording { codec: CodecSpec::Predict(PredictParams::DEFAULT), dual: true, counting: Counting::All },
];

pub(crate) fn record_as<T>(
    device: &mut SimDevice,
    program: &ProgramInfo,
    recording: &Recording,
    run: impl FnOnce(&mut dyn Launcher) -> T,
) -> (T, TraceFile) {
    let Recording { codec, dual, counting } = *recording;
    let options =
        RecordingSpec { dual, counting, memory: Some(MemorySize(256 << 20)), ..RecordingSpec::new(codec) };
    let mut session = Session::start(device, &program.traced(), &options, Vec::new()).unwrap();
    let result = run(&mut session);
    let (bytes, _, report) = session.finish().unwrap();
    assert_eq!((report.lost, report.recorded), (0, report.attempted));
    let file = TraceFile::from_bytes(bytes).unwrap();
    let verified = file.verify();
    assert!(verified.is_ok(), "{verified:?}");
    check_trace(&file);
    (result, file)
}

/// Number of lanes that passed each location over all launches, by id.
pub(crate) struct LaneCounts([u64; 256]);

impl LaneCounts {
    pub(crate) fn new(file: &TraceFile) -> Self {
        let mut counts = [0; 256];
        for launch in file.launches() {
            let flow = file.decode_all(launch.number(), 0, &WarpFilter::all(), &mut |block| {
                for event in block.events {
                    counts[usize::from(event.location)] += u64::from(event.mask.count_ones());
                }
                ControlFlow::Continue(())
            });
            assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
        }
        Self(counts)
    }

    pub(crate) fn at(&self, location: u16) -> u64 {
        self.0[usize::from(location)]
    }
}

pub(crate) fn assert_ids_are_unique(program: &ProgramInfo) {
    let mut ids: Vec<u16> = program.locations().map(|location| location.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    assert!(ids[0] >= 1 && ids[count - 1] <= 255);
}

fn from_edges(nodes: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Graph {
    let mut list = ArcList::new(nodes, false);
    edges.into_iter().for_each(|(u, v)| list.push_edge(u, v, 0));
    list.into_graph(&Cleaning::default()).unwrap().0
}

/// Graphs of many shapes; all are unweighted and symmetric, without self-loops.
pub(crate) fn zoo() -> Vec<(&'static str, Graph)> {
    let grid = |width: u32, height: u32| {
        let at = move |x: u32, y: u32| y * width + x;
        let across = (0..height).flat_map(move |y| (1..width).map(move |x| (at(x - 1, y), at(x, y))));
        let down = (1..height).flat_map(move |y| (0..width).map(move |x| (at(x, y - 1), at(x, y))));
        from_edges(width * height, across.chain(down))
    };
    vec![
        ("r-mat", rmat(&Rmat { scale: 9, edges: 2_000, a: 0.55, b: 0.1, c: 0.1, d: 0.25 }, 5).unwrap()),
        ("road", road_grid(&RoadGrid { width: 25, height: 16, arcs_per_node: 2.762 }, 5).unwrap()),
        ("grid", grid(21, 17)),
        ("path", from_edges(700, (1..700).map(|node| (node - 1, node)))),
        ("ring", from_edges(333, (0..333).map(|node| (node, (node + 1) % 333)))),
        ("star", from_edges(300, (1..300).map(|ray| (0, ray)))),
        ("complete", from_edges(40, (0..40).flat_map(|u| (0..u).map(move |v| (u, v))))),
        ("no edges", from_edges(75, [])),
        ("one node", from_edges(1, [])),
        ("one edge", from_edges(2, [(0, 1)])),
        ("islands", from_edges(90, (0..20).flat_map(|i| [(4 * i, 4 * i + 1), (4 * i + 1, 4 * i + 2)]))),
        ("repeated edges", repeated()),
    ]
}

fn repeated() -> Graph {
    let mut list = ArcList::new(60, false);
    for node in 0..60 {
        for _ in 0..if node % 3 == 0 { 3 } else { 1 } {
            list.push_edge(node, (node + 1) % 60, 0);
        }
    }
    list.into_graph(&Cleaning::NONE).unwrap().0
}

/// The graphs of [`zoo`] with few different weights (so that many are equal), with many, and without weights.
pub(crate) fn weighted_zoo() -> Vec<(String, Graph)> {
    let mut all = Vec::new();
    for (name, graph) in zoo() {
        for most in [3, 1_000] {
            // Rows with repeated edges must be sorted by weight, which random weights do not satisfy.
            if graph.duplicates() == 0 {
                let weighted = random_weights(graph.clone(), 1..=most, 9).unwrap();
                all.push((format!("{name}, weights to {most}"), weighted));
            }
        }
        all.push((format!("{name}, unweighted"), graph));
    }
    all
}

pub(crate) fn one_way() -> Graph {
    let mut list = ArcList::new(3, false);
    list.push_edge(0, 1, 0);
    list.push_edge(1, 2, 0);
    let (graph, _) = list.into_graph(&Cleaning::NONE).unwrap();
    let mut offsets = graph.offsets().to_vec();
    offsets[3] -= 1;
    Graph::from_csr(offsets, graph.neighbours()[..3].to_vec(), None).unwrap()
}

pub(crate) fn with_self_loop() -> Graph {
    let mut list = ArcList::new(3, false);
    list.push_edge(0, 1, 0);
    list.push_edge(1, 1, 0);
    list.push_edge(1, 2, 0);
    list.into_graph(&Cleaning::NONE).unwrap().0
}

/// Inserts one point after another, corners included, in quadratic time. The evaluation's function needs a
/// library that the fast test tier does not build.
pub(crate) fn triangulate(points: Vec<Point>) -> Mesh {
    let at = |point: u32| points[point as usize];
    let corners = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.5, 0.75f64.sqrt()], [0.0, 1.0]];
    let number = |corner| points.iter().position(|point| point == corner).map(|number| number as u32);
    let hull: Vec<u32> = corners.iter().filter_map(number).collect();
    let mut triangles: Vec<[u32; 3]> = (2..hull.len()).map(|i| [hull[0], hull[i - 1], hull[i]]).collect();
    for point in (0..points.len() as u32).filter(|point| !hull.contains(point)) {
        let is_hit = |&[a, b, c]: &[u32; 3]| in_circle(at(a), at(b), at(c), at(point)) > 0.0;
        let cavity: Vec<_> = triangles.extract_if(.., |corners| is_hit(corners)).collect();
        let edges: Vec<_> = cavity.iter().flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]).collect();
        let is_seen =
            |&&[a, b]: &&[u32; 2]| !edges.contains(&[b, a]) && orientation(at(a), at(b), at(point)) > 0.0;
        triangles.extend(edges.iter().filter(is_seen).map(|&[a, b]| [a, b, point]));
    }
    for corners in &mut triangles {
        let lowest = (0..3).min_by_key(|&slot| corners[slot]).unwrap();
        corners.rotate_left(lowest);
    }
    triangles.sort_unstable();
    Mesh::with_boundary(points, triangles, Vec::new()).unwrap().0
}

/// New York's road network with seeded weights. Prints a message and returns `None` without the file.
pub(crate) fn new_york(test: &str) -> Option<Graph> {
    let folder = std::env::var_os("WARPTRACE_INPUTS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/inputs"), PathBuf::from);
    let file = folder.join("graphs/USA-road-d.NY.pace.gr.xz");
    if !file.is_file() || cfg!(not(feature = "evaluation")) {
        println!("{test}: skipped, no {} (set WARPTRACE_INPUTS), or no feature `evaluation`", file.display());
        return None;
    }
    let (graph, _) = load_graph(file, &LoadOptions::default()).unwrap();
    Some(random_weights(graph, THESIS_WEIGHTS, 1).unwrap())
}
