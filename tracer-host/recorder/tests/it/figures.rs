//! Programs whose results follow from formulas.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::traces::recorded;
use warptrace_analysis::words::{self, Names};
use warptrace_analysis::{Analysis, Distribution, LocationFigures, Selection, WarpFigures, analyse, weights};
use warptrace_decoder::TraceFile;
use warptrace_host::Times;
use warptrace_workloads::fractal::{self, FractalOptions, Paths};
use warptrace_workloads::nbody::{self, EventCounts, NbodyOptions};

fn named<'a>(analysis: &'a Analysis, name: &str) -> &'a LocationFigures {
    analysis.locations.iter().find(|location| location.point.name == name).unwrap()
}

fn weight(trace: &TraceFile, of: &LocationFigures) -> u64 {
    weights(trace).map_or(1, |weights| weights[usize::from(of.point.location)].into())
}

fn lanes_between(analysis: &Analysis, from: Option<&str>, to: Option<&str>) -> u64 {
    let id = |name: &str| named(analysis, name).point.location;
    let (from, to) = (from.map(id), to.map(id));
    analysis.edges.iter().find(|edge| (edge.from, edge.to) == (from, to)).map_or(0, |edge| edge.lanes)
}

fn distribution(numbers: impl IntoIterator<Item = u64>) -> Distribution {
    let mut all = Distribution::default();
    numbers.into_iter().for_each(|number| all.add(number, 1));
    all
}

#[test]
fn fractals_figures_follow_from_its_picture() {
    // 10,000 pixels in 40 blocks: the last warp with a pixel has lanes outside the picture.
    let options = FractalOptions::new(100, 300);
    let trace = recorded(Times::Off, &fractal::PROGRAM.traced(), |session| {
        fractal::run(session, &options).unwrap();
    });
    let analysis = analyse(&trace, &Selection::default()).unwrap();
    let paths = Paths::new(&options);
    let steps: Vec<u64> = paths.image().map(u64::from).collect();
    assert!(analysis.losses.is_whole());
    assert_eq!(analysis.counts.visits, paths.expected_events());

    let iterate = named(&analysis, "ITERATE");
    let total: u64 = steps.iter().sum();
    assert_eq!((iterate.counts.visits, iterate.counts.lanes), (paths.expected_rounds(), total));
    let weight = weight(&trace, iterate);
    assert_eq!(iterate.counts.idle, (32 * iterate.counts.visits - total) * weight);
    assert_eq!(iterate.trips, distribution(steps.iter().copied()));
    assert_eq!(analysis.loops().map(|head| head.point.name.as_str()).collect::<Vec<_>>(), ["ITERATE"]);
    let slowest = steps.chunks(32).map(|warp| warp.iter().copied().max().unwrap());
    assert_eq!(iterate.warp_visits, distribution(slowest));

    // For each iteration of a warp: active lanes, and whether they diverge after it.
    let escaped = named(&analysis, "ESCAPED").point.location;
    let (mut active, mut splits, mut escapes) = (vec![0; 33], 0, 0);
    for warp in 0..steps.len().div_ceil(32) {
        let lanes: Vec<Vec<u16>> = (warp * 32..steps.len().min(warp * 32 + 32))
            .map(|thread| paths.lane_locations(thread as u64).collect())
            .collect();
        escapes += lanes.iter().filter(|lane| lane.last() == Some(&escaped)).count() as u64;
        for turn in 1..lanes.iter().map(Vec::len).max().unwrap() - 1 {
            // A lane visits ENTER, its iterations and an exit.
            let next: Vec<u16> =
                lanes.iter().filter(|lane| turn + 1 < lane.len()).map(|lane| lane[turn + 1]).collect();
            active[next.len()] += 1;
            splits += u64::from(next.iter().any(|location| *location != next[0]));
        }
    }
    assert_eq!(iterate.active, active);
    assert_eq!(iterate.splits, splits);
    let pixels = steps.len() as u64;
    assert_eq!(lanes_between(&analysis, Some("ITERATE"), Some("ITERATE")), total - pixels);
    assert_eq!(lanes_between(&analysis, Some("ENTER"), Some("ITERATE")), pixels);
    assert_eq!(lanes_between(&analysis, Some("ENTER"), Some("OUTSIDE")), 240);
    assert_eq!(lanes_between(&analysis, Some("ITERATE"), Some("ESCAPED")), escapes);
    assert_eq!(lanes_between(&analysis, Some("ESCAPED"), None), escapes);
    assert_eq!(lanes_between(&analysis, None, Some("ENTER")), 10_240);
}

#[test]
fn nbodys_figures_follow_from_its_sizes() {
    let (bodies, steps) = (101_u32, 3);
    let options = NbodyOptions { block: 64, sources: Some(90), ..NbodyOptions::new(steps) };
    let trace = recorded(Times::Off, &nbody::PROGRAM.traced(), |session| {
        nbody::run(session, &nbody::plummer(bodies as usize, 7), &options).unwrap();
    });
    let analysis = analyse(&trace, &Selection::default()).unwrap();
    let counts = EventCounts::new(bodies, &options);
    assert_eq!(analysis.counts.visits, counts.total());
    assert_eq!(analysis.launches, 2 * u64::from(steps));
    let interact = named(&analysis, "INTERACT");
    // Four warps with bodies: three full ones, and one with five bodies.
    assert_eq!(interact.counts.visits, 3 * 4 * 90);
    assert_eq!(interact.counts.lanes, 3 * 101 * 90);
    assert_eq!(interact.counts.idle, 3 * 90 * 27 * weight(&trace, interact));
    assert_eq!((interact.active[32], interact.active[5], interact.splits), (3 * 3 * 90, 3 * 90, 0));
    assert_eq!(interact.trips, distribution(std::iter::repeat_n(90, 3 * 101)));
    assert_eq!(interact.warps, 12);
    for warp in analysis.warps.iter() {
        let expected = match warp.launch % 2 {
            0 => counts.force_warp(warp.warp.into()),
            _ => counts.integrate_warp(warp.warp.into()),
        };
        assert_eq!(warp.counts.visits, expected, "{warp:?}");
    }
    // Full warps and the last one take different paths; the first force leaves by another exit.
    let groups: Vec<u64> = analysis.paths.iter().map(|group| group.warps).collect();
    assert_eq!(groups, [9, 6, 3, 3, 2, 1]);

    let force = Selection { kernel: Some("nbody_force".to_owned()), ..Selection::default() };
    let force = analyse(&trace, &force).unwrap();
    let integrate = Selection { kernel: Some("nbody_integrate".to_owned()), ..Selection::default() };
    let integrate = analyse(&trace, &integrate).unwrap();
    assert_eq!(force.counts.visits + integrate.counts.visits, analysis.counts.visits);
    assert_eq!((force.kernels.len(), analysis.kernels.len()), (1, 2));
    assert_eq!(force.kernels[0], analysis.kernels[0]);
}

#[test]
fn the_warp_with_most_iterations_takes_longest_and_its_loop_is_named() {
    let options = FractalOptions::new(100, 300);
    let trace = recorded(Times::Runs, &fractal::PROGRAM.traced(), |session| {
        fractal::run(session, &options).unwrap();
    });
    let analysis = analyse(&trace, &Selection::default()).unwrap();
    let steps: Vec<u32> = Paths::new(&options).image().collect();
    let mut slowest: Vec<u32> = steps.chunks(32).map(|warp| warp.iter().copied().max().unwrap()).collect();
    slowest.resize(40 * 8, 0);
    let cycles = |warp: &WarpFigures| warp.time.unwrap().cycles;
    let most = analysis.warps.iter().max_by_key(cycles).unwrap();
    assert_eq!(slowest[most.warp as usize], *slowest.iter().max().unwrap());
    let said = words::time(&trace, &analysis, &Names::new(&trace)).unwrap();
    assert!(said.contains("% of all warp time is at ITERATE (fractal.rs:"), "{said}");
}
