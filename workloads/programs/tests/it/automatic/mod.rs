//! Compares kernels with automatic trace points with the same kernels with hand-placed ones: the results are
//! equal, and each lane takes the same decisions in the same order.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mapping;

use std::collections::BTreeSet;

use crate::programs::triangulate;
use mapping::{JOINS, Mapping};
use warptrace_decoder::TraceFile;
use warptrace_format::Counting;
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_host::{Launcher, MemorySize, RecordingSpec, Session, SimDevice, SimOptions, Untraced};
use warptrace_workloads::dmr::{self, DmrOptions};
use warptrace_workloads::fractal::{self, FractalOptions};
use warptrace_workloads::inputs::{ArcList, Cleaning, Graph, generate};
use warptrace_workloads::matmul;
use warptrace_workloads::mis::{self, MisOptions};
use warptrace_workloads::mst::{self, MstOptions};
use warptrace_workloads::nbody::{self, NbodyOptions};
use warptrace_workloads::stress::{self, StressOptions};
use warptrace_workloads::{Automatic, ProgramInfo, triad};

fn simulator() -> SimDevice {
    SimDevice::new(SimOptions::default())
}

fn record<T>(
    program: &ProgramInfo,
    counting: Counting,
    run: impl FnOnce(&mut dyn Launcher) -> T,
) -> (T, TraceFile) {
    let predict = CodecSpec::Predict(PredictParams::DEFAULT);
    let options = RecordingSpec {
        counting,
        dual: true,
        memory: Some(MemorySize(256 << 20)),
        ..RecordingSpec::new(predict)
    };
    let mut device = simulator();
    let mut session = Session::start(&mut device, &program.traced(), &options, Vec::new()).unwrap();
    let result = run(&mut session);
    let (bytes, _, report) = session.finish().unwrap();
    assert_eq!((report.lost, report.recorded), (0, report.attempted), "{}", program.name);
    let file = TraceFile::from_bytes(bytes).unwrap();
    assert!(file.verify().is_ok(), "{}", file.verify());
    (result, file)
}

fn both<T: PartialEq + std::fmt::Debug>(
    program: &ProgramInfo,
    counting: Counting,
    run: impl Fn(&mut dyn Launcher) -> T,
) -> [TraceFile; 2] {
    let untraced = run(&mut Untraced(&mut simulator()));
    let alone = run(&mut Automatic(&mut Untraced(&mut simulator())));
    let (by_hand, first) = record(program, counting, |launcher| run(launcher));
    let automatic = program.automatic().unwrap();
    let (recorded, second) = record(&automatic, counting, |launcher| run(&mut Automatic(launcher)));
    assert!(untraced == alone && untraced == by_hand && untraced == recorded, "{}", program.name);
    [first, second]
}

/// Checks that each lane passes the same hand-placed trace points, except [`JOINS`], in both traces.
fn compare_lanes(program: &ProgramInfo, [by_hand, automatic]: &[TraceFile; 2], mapping: &Mapping) {
    let joins = program.locations().filter(|point| JOINS.contains(&point.name));
    let joins: BTreeSet<u16> = joins.map(|point| point.id).collect();
    assert_eq!(by_hand.launches().count(), automatic.launches().count(), "{}", program.name);
    for launch in by_hand.launches() {
        for warp in 0..launch.warps() {
            for lane in 0..32 {
                let passed = |file: &TraceFile| -> Vec<u16> {
                    let found = file.lane_locations(launch.number(), warp, 0, lane).unwrap();
                    found.map(|location| location.unwrap()).collect()
                };
                let expected: Vec<u16> =
                    passed(by_hand).into_iter().filter(|id| !joins.contains(id)).collect();
                let found = passed(automatic);
                let found: Vec<u16> =
                    found.iter().flat_map(|id| mapping.get(id).into_iter().flatten()).copied().collect();
                let name = program.name;
                assert_eq!(found, expected, "{name}: launch {}, warp {warp}, lane {lane}", launch.number());
            }
        }
    }
}

fn check<T: PartialEq + std::fmt::Debug>(program: &ProgramInfo, run: impl Fn(&mut dyn Launcher) -> T) {
    let mapping = mapping::mapping_of(program);
    for counting in [Counting::Never, Counting::All] {
        compare_lanes(program, &both(program, counting, &run), &mapping);
    }
}

fn graph(nodes: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Graph {
    let mut list = ArcList::new(nodes, false);
    edges.into_iter().for_each(|(u, v)| list.push_edge(u, v, 0));
    list.into_graph(&Cleaning::default()).unwrap().0
}

#[test]
fn fractal_takes_the_same_decisions() {
    let options = FractalOptions::new(50, 60);
    check(&fractal::PROGRAM, |launcher| fractal::run(launcher, &options).unwrap().image);
    let image = fractal::run(&mut Automatic(&mut Untraced(&mut simulator())), &options).unwrap().image;
    assert_eq!(image, fractal::reference(&options));
}

#[test]
fn stress_takes_the_same_decisions() {
    let options = StressOptions { block: 64, seed: 7, ..StressOptions::new(150, 12) };
    check(&stress::PROGRAM, |launcher| stress::run(launcher, &options).unwrap().result);
    let walked = stress::run(&mut Automatic(&mut Untraced(&mut simulator())), &options).unwrap().result;
    assert_eq!(walked, stress::reference(&options));
}

#[test]
fn nbody_takes_the_same_decisions() {
    let program = &nbody::PROGRAM;
    // The loop over rounds has eight events per round; the loop over the rest follows.
    let mut mapping = mapping::mapping_of(program);
    let interact = warptrace_kernels::nbody::at::INTERACT;
    let loops: Vec<u16> = program.automatic[0]
        .locations
        .iter()
        .filter(|location| location.kind == warptrace_device::LocationKind::LoopBody)
        .map(|location| location.id)
        .collect();
    let [rounds, rest] = loops[..] else { panic!("two loops: {loops:?}") };
    assert_eq!(mapping.insert(rounds, vec![interact; 8]), Some(vec![interact]));
    mapping.insert(rest, vec![interact]);
    let bodies = nbody::plummer(70, 1);
    for counting in [Counting::Never, Counting::All] {
        let traces = both(program, counting, |launcher| {
            let outcome = nbody::run(launcher, &bodies, &NbodyOptions::new(2)).unwrap();
            (outcome.bodies, outcome.accelerations)
        });
        compare_lanes(program, &traces, &mapping);
    }
}

#[test]
fn matmul_takes_the_same_decisions() {
    let matrices = matmul::Matrices::random(72, 1).unwrap();
    check(&matmul::PROGRAM, |launcher| matmul::run(launcher, &matrices).unwrap().product);
}

#[test]
fn triad_takes_the_same_decisions() {
    let arrays = triad::Arrays::new(500).unwrap();
    let options = triad::TriadOptions { grid: Some("2x96".parse().unwrap()), ..Default::default() };
    check(&triad::PROGRAM, |launcher| triad::run(launcher, &arrays, &options).unwrap().a);
}

#[test]
fn dmr_takes_the_same_decisions() {
    let mesh = triangulate(generate::points_in_triangle(100, 1).unwrap());
    let options = DmrOptions { grid: Some("2x64".parse().unwrap()), ..DmrOptions::default() };
    check(&dmr::PROGRAM, |launcher| dmr::run(launcher, &mesh, &options).unwrap().refined);
    let refined = dmr::run(&mut Automatic(&mut Untraced(&mut simulator())), &mesh, &options).unwrap();
    dmr::check(&mesh, &options, &refined.refined).unwrap();
}

/// Lanes depend on each other if their nodes are neighbours. Here each lane has its own star of four nodes,
/// or isolated nodes.
#[test]
fn mis_takes_the_same_decisions() {
    let rays = (0..30).flat_map(|lane| (1..4).map(move |ray| (lane, lane + 32 * ray)));
    let stars = graph(32 * 4 - 1, rays);
    let options = MisOptions { grid: Some("1x32".parse().unwrap()), ..MisOptions::default() };
    check(&mis::PROGRAM, |launcher| mis::run(launcher, &stars, &options).unwrap().in_set);
}

/// The order of the list of edges depends on the order of lanes. Here all edges are equivalent: each is a
/// separate tree.
#[test]
fn mst_takes_the_same_decisions() {
    let edges = graph(64, (0..32).map(|lane| (lane, lane + 32)));
    let options = MstOptions { grid: Some("1x32".parse().unwrap()) };
    check(&mst::PROGRAM, |launcher| mst::run(launcher, &edges, &options).unwrap().weight);
}

#[test]
fn mis_and_mst_have_the_same_results_on_graphs_of_all_kinds() {
    let graphs = [
        generate::amazon0312_like(600, 3).unwrap(),
        generate::usa_road_ny_like(625, 3).unwrap(),
        generate::internet_like(500, 3).unwrap(),
    ];
    for graph in &graphs {
        let options = MisOptions { grid: Some("4x64".parse().unwrap()), ..MisOptions::default() };
        let [_, trace] = both(&mis::PROGRAM, Counting::Never, |launcher| {
            mis::run(launcher, graph, &options).unwrap().in_set
        });
        assert!(trace.launches().count() >= 2);
        let options = MstOptions { grid: Some("4x64".parse().unwrap()) };
        both(&mst::PROGRAM, Counting::Never, |launcher| mst::run(launcher, graph, &options).unwrap().arcs);
    }
}

#[test]
fn every_trace_point_placed_by_hand_has_an_automatic_counterpart() {
    let programs = [
        &fractal::PROGRAM,
        &nbody::PROGRAM,
        &mis::PROGRAM,
        &mst::PROGRAM,
        &dmr::PROGRAM,
        &matmul::PROGRAM,
        &stress::PROGRAM,
        &triad::PROGRAM,
    ];
    for program in programs {
        let mapped: Vec<u16> = mapping::mapping_of(program).into_values().flatten().collect();
        let placed = program.locations().filter(|point| !JOINS.contains(&point.name)).count();
        assert_eq!((mapped.len(), mapped.iter().collect::<BTreeSet<_>>().len()), (placed, placed));
        let automatic = program.automatic().unwrap();
        let ids: Vec<u16> = automatic.locations().map(|location| location.id).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{}: ids are unique", program.name);
    }
}
