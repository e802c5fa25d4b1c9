//! Interprets PTX of nvcc: original, with markers at every block, and traced.
//!
//! The interpreter's execution counts of each instruction must equal the events of its block.

use std::collections::BTreeMap;

use warptrace_format::Counting;
use warptrace_format::LANES;
use warptrace_ptx::Module;
use warptrace_ptx::interpret::{Executions, Launch, Memory, Observed, Program, Schedule, run};
use warptrace_ptx::points::{Marked, PointOptions, Points, mark};
use warptrace_ptx::splice::{Options, Recording, Spliced, splice};

use super::Extent;
use super::case::{Shape, time};
use super::model::{Model, ModelRun, events, of_lane, sequence, sorted, steps};
use warptrace_abi::log::FirstSegments;

pub(crate) const TEXTS: [(&str, &str); 3] = [
    ("flow", include_str!("../../data/foreign/flow.ptx")),
    ("flow-debug", include_str!("../../data/foreign/flow-debug.ptx")),
    ("flow-100", include_str!("../../data/foreign/flow-100.ptx")),
];
pub(crate) const KERNELS: [&str; 8] =
    ["escape", "longest", "primes", "rolled", "machine", "caller", "block_sum", "assembly"];
const INPUT: u64 = 0x10_0000;
pub(crate) const OUTPUT: u64 = 0x20_0000;
/// Fewer than the threads, so that some leave early.
const LENGTH: u32 = 90;

/// Two blocks. `block_sum` needs a power of two.
pub(crate) fn shape(kernel: &str) -> Shape {
    let threads = if kernel == "block_sum" { 64 } else { 50 };
    Shape {
        grid: [2, 1, 1],
        block: [threads, 1, 1],
        first: FirstSegments::of_streams(64),
        segments: 1 << 13,
        claimed: 0,
        clock: 0,
    }
}

pub(crate) fn memory(seed: u64) -> Memory {
    let mut memory = Memory::new();
    let number = |index: u32| index.wrapping_mul(2_654_435_761).rotate_left(seed as u32 % 32) ^ index;
    memory.declare(INPUT, (0..LENGTH).flat_map(|index| number(index).to_le_bytes()).collect());
    memory.declare(OUTPUT, vec![0; 4 * LENGTH as usize]);
    memory
}

pub(crate) fn launch(kernel: &str, shape: Shape, dynamic_shared: u32, more: Option<Vec<u8>>) -> Launch<'_> {
    let parameters = [INPUT.to_le_bytes().to_vec(), OUTPUT.to_le_bytes().into(), LENGTH.to_le_bytes().into()];
    let parameters = parameters.into_iter().chain(more).collect();
    let launch = super::launch(kernel, shape.grid, shape.block, parameters);
    Launch { dynamic_shared, clock: shape.clock, ..launch }
}

pub(crate) fn program(text: &str) -> Program {
    let program = Program::parse(text).expect("it is PTX");
    assert_eq!(program.unknown(), []);
    program
}

fn run_kernel(program: &Program, kernel: &str, seed: u64) -> (Observed, Vec<u8>) {
    let mut memory = memory(seed);
    let launch = launch(kernel, shape(kernel), 0, None);
    let observed = run(program, &launch, &mut memory, &mut Schedule::random(seed)).expect("the kernel runs");
    (observed, memory.region(OUTPUT).expect("a region").to_vec())
}

fn marked(text: &str, points: Points) -> Marked {
    mark(text, &PointOptions { points, ..PointOptions::default() }).expect("it is PTX")
}

fn lines(original: &str, marked: &str) -> BTreeMap<usize, usize> {
    let lines = |text: &str| -> Vec<usize> {
        let module = Module::parse(text).expect("it is PTX");
        let bodies = module.definitions().filter_map(|function| function.body.as_ref());
        bodies
            .flat_map(|body| body.instructions().map(|(index, _)| body.statements[index].span.start))
            .map(|offset| module.position(offset).line)
            .collect()
    };
    lines(original).into_iter().zip(lines(marked)).collect()
}

fn counts(observed: &Observed) -> BTreeMap<u16, Executions> {
    let mut counts: BTreeMap<u16, Executions> = BTreeMap::new();
    for event in steps(observed.markers.iter().copied(), false) {
        let super::model::Step::Event(run) = event else { continue };
        let count = counts.entry(run.location).or_default();
        count.groups += run.count;
        count.lanes += run.count * u64::from(run.mask.count_ones());
    }
    counts
}

#[test]
fn events_of_each_point_are_the_executions_of_its_block() {
    let (mut joined, mut implied) = (0, 0);
    for (name, text) in TEXTS {
        let marked = marked(text, Points::Blocks);
        let line_of = lines(text, &marked.text);
        let programs = [text, marked.text.as_str()].map(program);
        for kernel in KERNELS {
            for seed in 0..6 {
                let context = format!("{name}, {kernel}, {seed}");
                let (plain, results) = run_kernel(&programs[0], kernel, seed);
                let (observed, marked_results) = run_kernel(&programs[1], kernel, seed);
                assert_eq!(results, marked_results, "{context}");
                assert_eq!(plain.markers, []);
                let mut counts = counts(&observed);
                for implied in &marked.implied {
                    let first = counts.get(&implied.after).copied().unwrap_or_default();
                    counts.extend(implied.points.iter().map(|point| (*point, first)));
                }
                for point in &marked.points {
                    let found = counts.get(&point.id).copied().unwrap_or_default();
                    let line = line_of[&point.ptx_line];
                    let executed = observed.lines.get(&line).copied().unwrap_or_default();
                    let context = format!("{context}, {point:?}");
                    assert_eq!(found.lanes, executed.lanes, "{context}");
                    // The number of lanes is the same without markers, under any schedule.
                    let before = plain.lines.get(&point.ptx_line).copied().unwrap_or_default();
                    assert_eq!(before.lanes, executed.lanes, "{context}");
                    let is_implied = marked.implied.iter().any(|implied| implied.points.contains(&point.id));
                    if is_implied && observed.joins > 0 {
                        // The interpreter lets groups join at any label, also where no paths join.
                        assert!(executed.groups <= found.groups, "{context}");
                    } else {
                        assert_eq!(found.groups, executed.groups, "{context}");
                    }
                    implied += u64::from(is_implied && found.groups > 0);
                }
                joined += observed.joins;
            }
        }
    }
    assert!(joined > 1_000 && implied > 100, "{joined} {implied}");
}

struct Traced {
    points: Points,
    recording: Recording,
    marked: Program,
    spliced: Spliced,
    traced: Program,
}

impl Traced {
    fn new(text: &str, points: Points, recording: Recording) -> Self {
        let marked = marked(text, points).text;
        let options = Options { recording: Some(recording), architecture: 90, ..Options::default() };
        let spliced = splice(&marked, &options).expect("marked text can be spliced");
        let traced = program(&spliced.text);
        Self { points, recording, marked: program(&marked), spliced, traced }
    }

    fn run(&self, kernel: &str, seed: u64) -> (Observed, Vec<Vec<ModelRun>>, Vec<u8>) {
        let shape = shape(kernel);
        let traced = self.spliced.kernels.iter().find(|traced| traced.name == kernel).expect("it was marked");
        let layout = shape.layout(1 + u32::from(self.recording.dual));
        let mut memory = memory(seed);
        layout.declare(&mut memory, 0);
        let shared = traced.shared_bytes * shape.block_warps();
        let launch = launch(&traced.traced_name, shape, shared, Some(layout.parameter()));
        let observed = run(&self.traced, &launch, &mut memory, &mut Schedule::random(seed));
        let observed = observed.unwrap_or_else(|error| panic!("{kernel}, {seed}: {error}"));
        let recorded = layout.read(&memory, time(shape.clock));
        assert!(recorded.iter().flatten().all(|track| track.lost == 0));
        let runs =
            recorded[0].iter().map(|track| track.entries.iter().map(ModelRun::from).collect()).collect();
        (observed, runs, memory.region(OUTPUT).expect("a region").to_vec())
    }

    /// Returns the number of events. Each lane must pass the same markers as untraced.
    fn check(&self, kernel: &str, seed: u64) -> u64 {
        let (plain, results) = run_kernel(&self.marked, kernel, seed);
        let (observed, warps, traced_results) = self.run(kernel, seed);
        let context = format!("{kernel}, {}, {:?}, {seed}", self.points, self.recording);
        assert_eq!(results, traced_results, "{context}");
        let mut total = 0;
        for (warp, runs) in (0..).zip(&warps) {
            let of_warp = |observed: &Observed, counted: bool| -> Vec<ModelRun> {
                let markers = observed.markers.iter().filter(|event| event.warp == warp).copied();
                Model::new(&steps(markers, counted)).trace
            };
            // A lane's own sequence does not depend on the counting of loops.
            let (expected, untraced) =
                (of_warp(&observed, self.recording.counting == Counting::All), of_warp(&plain, false));
            for lane in 0..LANES {
                assert_eq!(of_lane(runs, lane), of_lane(&expected, lane), "{context}, {warp}, lane {lane}");
                assert_eq!(sequence(runs, lane), sequence(&untraced, lane), "{context}, {warp}, lane {lane}");
            }
            assert_eq!(sorted(runs), sorted(&expected), "{context}, warp {warp}");
            total += events(runs);
        }
        total
    }
}

fn counting(all: bool) -> Counting {
    if all { Counting::All } else { Counting::Never }
}

in_both_tiers! {
    traced_kernels_record_what_their_lanes_do: check_traced;
}

fn check_traced(extent: Extent) {
    let mut total = 0;
    for (number, (_, text)) in (0..).zip(TEXTS) {
        // A part of the cases tests each text with one kind of points.
        let is_chosen = |seed: u64| extent == Extent::Full || seed == 2 * number;
        for (seed, points) in (0..).zip(Points::ALL).filter(|(seed, _)| is_chosen(*seed)) {
            let recording =
                Recording { counting: counting(seed % 2 == 0), dual: seed % 3 == 0, ..Recording::DEFAULT };
            let traced = Traced::new(text, points, recording);
            total += KERNELS.iter().map(|kernel| traced.check(kernel, seed)).sum::<u64>();
            let traced = Traced::new(
                text,
                points,
                Recording { counting: counting(seed % 2 != 0), ..Recording::DEFAULT },
            );
            total += KERNELS.iter().map(|kernel| traced.check(kernel, seed + 10)).sum::<u64>();
        }
    }
    assert!(total > extent.least(100_000), "{total}");
}
