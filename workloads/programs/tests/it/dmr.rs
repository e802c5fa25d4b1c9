//! Delaunay mesh refinement: reference and kernels against the checker, on generated and on real meshes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use crate::programs::{
    LaneCounts, RECORDINGS, assert_ids_are_unique, record, record_as, simulator, triangulate,
};
use warptrace_format::codec::CodecSpec;
use warptrace_host::{SimDevice, SimOptions, Untraced};
use warptrace_workloads::dmr::{self, DmrError, DmrOptions, DmrOutcome, Refined, RoundReport};
use warptrace_workloads::inputs::geometry::AngleBound;
use warptrace_workloads::inputs::{Limits, Mesh, generate, load_mesh};
use warptrace_workloads::{Grid, WorkloadError};

const REAL: [&str; 5] = ["spiral", "dots", "ladder", "633", "ttimeu10000"];

/// Returns a real mesh; prints a message and returns `None` if the file does not exist.
fn real(name: &str) -> Option<Mesh> {
    let inputs = std::env::var_os("WARPTRACE_INPUTS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/inputs")),
        PathBuf::from,
    );
    let path = inputs.join("meshes").join(format!("{name}.2.node.gz"));
    if !path.exists() {
        eprintln!("skipped: {} is not there (set WARPTRACE_INPUTS)", path.display());
        return None;
    }
    Some(load_mesh(&path, &Limits::default()).unwrap().0)
}

fn generated() -> Vec<(String, Mesh)> {
    let mut meshes = Vec::new();
    for seed in 0..3 {
        let triangle = generate::points_in_triangle(300, seed).unwrap();
        meshes.push((format!("triangle {seed}"), triangulate(triangle)));
        let square = generate::points_in_square(200, 40, seed).unwrap();
        meshes.push((format!("square {seed}"), triangulate(square)));
    }
    meshes
}

/// Makes every `stride`-th inner edge a segment. Many end inside the domain or meet at sharp angles.
fn with_constraints(mesh: &Mesh, stride: usize) -> Mesh {
    let mut segments = mesh.segments().to_vec();
    let present: BTreeSet<[u32; 2]> = segments.iter().map(|&[a, b]| [a.min(b), a.max(b)]).collect();
    let edges = mesh.triangles().iter().flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
    let inner = edges.filter(|&[a, b]| a < b && !present.contains(&[a, b]));
    segments.extend(inner.step_by(stride));
    Mesh::new(mesh.points().to_vec(), mesh.triangles().to_vec(), segments).unwrap()
}

/// A triangle around a fourth point. The input prescribes an angle of `degrees` at its first corner.
fn wedge(degrees: f64) -> Mesh {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let points = vec![[0.0, 0.0], [10.0, 0.0], [7.0 * cos, 7.0 * sin], [6.0, 2.0 * sin]];
    Mesh::with_boundary(points, vec![[0, 1, 3], [1, 2, 3], [2, 0, 3]], Vec::new()).unwrap().0
}

fn simulate(input: &Mesh, options: &DmrOptions) -> Result<DmrOutcome, DmrError> {
    dmr::run(&mut Untraced(&mut SimDevice::new(SimOptions::default())), input, options)
}

fn grid(text: &str) -> Option<Grid> {
    Some(text.parse().unwrap())
}

fn assert_refined(name: &str, input: &Mesh, refined: &Refined, options: &DmrOptions) {
    match dmr::check(input, options, refined) {
        Ok(finding) => eprintln!("{name}: {finding}"),
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Like [`assert_refined`], and checks that only sharp angles prescribed by the input are left.
fn assert_all_refined(name: &str, input: &Mesh, refined: &Refined) {
    assert_refined(name, input, refined, &DmrOptions::default());
    assert_eq!((refined.kept_short, refined.kept_unsure), (0, 0), "{name}");
}

#[test]
fn the_reference_refines_generated_and_real_meshes() {
    let real = REAL.iter().filter_map(|&name| Some((name.to_owned(), real(name)?)));
    for (name, mesh) in generated().into_iter().chain(real) {
        assert_all_refined(&name, &mesh, &dmr::reference(&mesh, &DmrOptions::default()).unwrap());
    }
}

fn check_kernels(meshes: impl IntoIterator<Item = (String, Mesh)>) {
    for (name, mesh) in meshes {
        let started = Instant::now();
        let outcome = simulate(&mesh, &DmrOptions::default()).unwrap();
        eprintln!("{name}: {} rounds in {:?}", outcome.rounds.len(), started.elapsed());
        assert_all_refined(&name, &mesh, &outcome.refined);
        let inserted: u32 = outcome.rounds.iter().map(|round| round.winners).sum();
        assert_eq!(outcome.refined.points.len(), mesh.points().len() + inserted as usize, "{name}");
        assert_eq!(outcome.launches, 2 + 7 * outcome.rounds.len() as u32, "{name}");
        let again = simulate(&outcome.refined.clone().into_mesh().unwrap(), &DmrOptions::default()).unwrap();
        assert!(again.rounds.is_empty(), "{name}");
        assert_eq!(again.refined.triangles, outcome.refined.triangles, "{name}");
    }
}

#[test]
fn the_kernels_refine_generated_meshes() {
    check_kernels(generated());
}

mod full {
    use super::*;

    #[test]
    fn the_kernels_refine_real_meshes() {
        check_kernels(REAL.iter().filter_map(|&name| Some((name.to_owned(), real(name)?))));
    }
}

#[test]
fn many_items_win_in_a_round() {
    let mesh = triangulate(generate::points_in_square(2000, 40, 5).unwrap());
    let outcome = simulate(&mesh, &DmrOptions { grid: grid("16x128"), ..DmrOptions::default() }).unwrap();
    let first = outcome.rounds[0];
    eprintln!("{first:?}");
    assert!(first.items > 1000 && first.winners > first.items / 10, "{first:?}");
    assert!(first.second_claim > first.winners / 20, "{first:?}");
}

#[test]
fn sharp_corners_and_constraints_end() {
    let random = triangulate(generate::points_in_square(60, 20, 9).unwrap());
    let mut inputs: Vec<(String, Mesh)> =
        [40.0, 25.0, 10.0, 3.0, 0.5].map(|degrees| (format!("wedge of {degrees}"), wedge(degrees))).into();
    inputs.extend([1, 2, 3, 7, 20].map(|n| (format!("1 of {n} edges kept"), with_constraints(&random, n))));
    for (name, mesh) in inputs {
        for angle_degrees in [20.0, 30.0] {
            let options = DmrOptions { angle_degrees, max_rounds: 5_000, ..DmrOptions::default() };
            let name = format!("{name}, bound {angle_degrees}");
            assert_refined(
                &format!("{name}, reference"),
                &mesh,
                &dmr::reference(&mesh, &options).unwrap(),
                &options,
            );
            let outcome = simulate(&mesh, &options).unwrap();
            assert_refined(
                &format!("{name}, {} rounds", outcome.rounds.len()),
                &mesh,
                &outcome.refined,
                &options,
            );
        }
    }
}

#[test]
fn the_result_depends_on_the_number_of_threads_alone() {
    let mesh = triangulate(generate::points_in_triangle(400, 3).unwrap());
    let run = |threads, seed, grid_text, room| {
        let mut device = SimDevice::new(SimOptions { threads: Some(threads), seed, ..SimOptions::default() });
        let options = DmrOptions { grid: grid(grid_text), room, ..DmrOptions::default() };
        dmr::run(&mut Untraced(&mut device), &mesh, &options).unwrap()
    };
    let expected = run(1, 0, "8x64", 6.0);
    assert_all_refined("8x64", &mesh, &expected.refined);
    for (threads, seed, grid_text, room) in [(2, 7, "8x64", 6.0), (2, 0, "2x256", 6.0), (1, 0, "8x64", 1.0)] {
        let other = run(threads, seed, grid_text, room);
        assert_eq!(other.refined, expected.refined, "{grid_text} on {threads} threads, room {room}");
        assert_eq!(other.rounds, expected.rounds, "{grid_text} on {threads} threads, room {room}");
        assert_eq!(other.reallocations > expected.reallocations, room == 1.0);
    }
}

#[test]
fn one_warp_and_little_room_are_enough() {
    let mesh = triangulate(generate::points_in_square(100, 20, 1).unwrap());
    let options = DmrOptions { grid: grid("1x32"), room: 1.0, cavity_bound: 2, ..DmrOptions::default() };
    let outcome = simulate(&mesh, &options).unwrap();
    let too_large: u32 = outcome.rounds.iter().map(|round| round.too_large).sum();
    eprintln!(
        "{} rounds, {too_large} items too large, {} reallocations",
        outcome.rounds.len(),
        outcome.reallocations
    );
    assert!(too_large > 0 && outcome.reallocations > 3);
    assert_all_refined("1x32", &mesh, &outcome.refined);
}

#[test]
fn tracing_changes_nothing() {
    let mesh = triangulate(generate::points_in_square(60, 10, 2).unwrap());
    let options = DmrOptions { grid: grid("4x64"), ..DmrOptions::default() };
    let untraced = simulate(&mesh, &options).unwrap();
    for recording in &RECORDINGS {
        let (traced, file) = record_as(&mut simulator(1), &dmr::PROGRAM, recording, |launcher| {
            dmr::run(launcher, &mesh, &options).unwrap()
        });
        assert_eq!(traced.refined, untraced.refined, "{recording:?}");
        assert_eq!(traced.rounds, untraced.rounds, "{recording:?}");
        assert_lane_counts(&mesh, &traced, 64, &LaneCounts::new(&file));
    }
}

#[test]
fn every_lane_passes_the_same_locations_whatever_the_order() {
    let mesh = triangulate(generate::points_in_triangle(60, 4).unwrap());
    let options = DmrOptions { grid: grid("8x32"), ..DmrOptions::default() };
    let digests = |threads, seed| {
        let mut device = SimDevice::new(SimOptions { threads: Some(threads), seed, ..SimOptions::default() });
        let (outcome, file) = record(&mut device, &dmr::PROGRAM, CodecSpec::Raw, false, |launcher| {
            dmr::run(launcher, &mesh, &options).unwrap()
        });
        let mut all = Vec::new();
        for launch in file.launches() {
            for stream in file.streams(launch.number(), 0).unwrap() {
                all.push(file.lane_digests(launch.number(), stream.unwrap().warp, 0).unwrap());
            }
        }
        assert!(all.len() as u32 >= outcome.launches);
        all
    };
    let expected = digests(1, 0);
    assert!(expected.len() > 100);
    assert!(digests(2, 5) == expected);
}

/// Checks the number of lanes at each location against the reports of the rounds and the meshes.
fn assert_lane_counts(input: &Mesh, outcome: &DmrOutcome, block: u32, lanes: &LaneCounts) {
    use warptrace_kernels::dmr::{claim, commit, emit, init, mark};
    let total =
        |of: fn(&RoundReport) -> u32| outcome.rounds.iter().map(|round| u64::from(of(round))).sum::<u64>();
    let (items, winners, dropped) = (total(|r| r.items), total(|r| r.winners), total(|r| r.dropped));
    let threads: u64 =
        outcome.rounds.iter().map(|round| u64::from(round.items.next_multiple_of(block))).sum();
    let at = |location| lanes.at(location);

    let bad = AngleBound::THIRTY_DEGREES;
    let bad_before =
        (0..input.triangles().len()).filter(|&slot| bad.is_bad(input.corners(slot))).count() as u64;
    assert_eq!(at(init::at::FIND_TRIANGLE), input.triangles().len() as u64);
    assert_eq!(at(init::at::FIND_BAD), bad_before);
    assert_eq!(at(init::at::ENQUEUE_BAD), bad_before);

    for enter in [mark::at::ENTER, claim::at::CHECK, claim::at::RECLAIM, claim::at::VERIFY, commit::at::ENTER]
    {
        assert_eq!(at(enter), threads);
    }
    assert_eq!(at(mark::at::OUTSIDE), threads - items);
    assert_eq!(at(mark::at::DROP), dropped);
    assert_eq!(at(mark::at::REFINE), items - dropped);
    assert_eq!(at(mark::at::TRY_CENTRE), items - dropped);
    assert_eq!(at(mark::at::RETRY), at(mark::at::ENCROACHED));
    assert_eq!(at(mark::at::TRY_SPLIT), at(mark::at::RETRY) - at(mark::at::TOO_SHORT));
    assert_eq!(at(mark::at::TRY_SPLIT), at(mark::at::SPLIT_INSIDE) + at(mark::at::SPLIT_BOUNDARY));
    assert_eq!(at(mark::at::EDGE), at(mark::at::SEGMENT) + at(mark::at::INNER));
    assert_eq!(at(mark::at::INNER), at(mark::at::CROSS) + at(mark::at::FRONTIER));
    assert_eq!(at(mark::at::FULL), total(|r| r.too_large));
    assert_eq!(at(mark::at::CLAIMED) + at(mark::at::NO_CAVITY), items - dropped);

    assert_eq!(at(claim::at::CHECK_ITEM), at(mark::at::CLAIMED));
    assert_eq!(at(claim::at::RECLAIM_ITEM), at(claim::at::CHECK_LOST));
    assert_eq!(at(claim::at::VERIFY_FIRST), at(claim::at::CHECK_HELD));
    assert_eq!(at(claim::at::VERIFY_HELD), total(|r| r.second_claim));
    assert_eq!(at(claim::at::CHECK_HELD) + at(claim::at::VERIFY_HELD), winners);

    assert_eq!(at(commit::at::DONE), winners);
    assert_eq!(at(commit::at::SPLIT), total(|r| r.splits));
    assert_eq!(at(commit::at::FAN), at(commit::at::FAN_REUSE) + at(commit::at::FAN_NEW));
    let new_triangles = (outcome.refined.triangles.len() - input.triangles().len()) as u64;
    assert_eq!(at(commit::at::FAN_NEW), new_triangles);

    assert_eq!(at(emit::at::EMIT_FRESH), at(commit::at::FAN_BAD));
    assert_eq!(at(emit::at::EMIT_AGAIN), at(emit::at::COUNT_AGAIN));
    // Every entry of the worklist leaves it again.
    assert_eq!(at(emit::at::COUNT_GONE), bad_before + at(commit::at::FAN_BAD));
}

#[test]
fn trace_points_stand_at_one_place_each() {
    assert_ids_are_unique(&dmr::PROGRAM);
}

#[test]
fn impossible_options_are_refused_by_name() {
    let base = DmrOptions::default;
    for (wrong, option) in [
        (DmrOptions { angle_degrees: 0.0, ..base() }, "angle"),
        (DmrOptions { angle_degrees: 45.0, ..base() }, "angle"),
        (DmrOptions { angle_degrees: f64::NAN, ..base() }, "angle"),
        (DmrOptions { cavity_bound: 1, ..base() }, "cavity bound"),
        (DmrOptions { floor: Some(-1.0), ..base() }, "floor"),
        (DmrOptions { floor: Some(f64::INFINITY), ..base() }, "floor"),
        (DmrOptions { room: 0.5, ..base() }, "room"),
        (DmrOptions { room: f64::NAN, ..base() }, "room"),
    ] {
        for error in [simulate(&wedge(40.0), &wrong).err(), dmr::reference(&wedge(40.0), &wrong).err()] {
            match error {
                Some(DmrError::Workload(error)) => {
                    assert!(
                        matches!(*error, WorkloadError::Option { option: named, .. } if named == option),
                        "{error}"
                    );
                }
                other => panic!("{wrong:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn the_limit_on_rounds_ends_a_run() {
    let mesh = &generated()[0].1;
    let error = simulate(mesh, &DmrOptions { max_rounds: 3, ..DmrOptions::default() }).unwrap_err();
    assert!(matches!(error, DmrError::Rounds { rounds: 3, waiting: 1.. }), "{error}");
}

#[test]
fn a_high_floor_keeps_everything() {
    let mesh = &generated()[0].1;
    let options = DmrOptions { floor: Some(1e9), ..DmrOptions::default() };
    let outcome = simulate(mesh, &options).unwrap();
    assert_eq!(outcome.refined.triangles, mesh.triangles());
    assert!(outcome.rounds.is_empty() && outcome.refined.kept_short > 100);
}
