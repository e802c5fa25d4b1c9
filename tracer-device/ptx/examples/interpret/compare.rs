//! Runs a kernel untraced and traced, and compares the results.

use std::collections::BTreeMap;

use warptrace_abi::log::FirstSegments;
use warptrace_format::{Counting, LANES};
use warptrace_ptx::Module;
use warptrace_ptx::interpret::{InterpretError, Launch, Observed, Program, Schedule, run};
use warptrace_ptx::points::{Marked, PointOptions, Points, mark};
use warptrace_ptx::splice::{LogKind, Options, Placement, Recording, Spliced, splice};

use crate::inputs::{Inputs, MIXES};
use crate::logs::Layout;
use crate::model::{Model, ModelRun, events, of_lane, sequence, steps};

const SCHEDULES: u64 = 20;
/// Blocks of a launch, and maximum number of threads of a block.
const BLOCKS: u32 = 2;
const THREADS: u32 = 40;
/// Dynamic shared memory in bytes of modules that use it.
const DYNAMIC: u32 = 1 << 13;
/// Instructions allowed in a traced launch for each instruction allowed in an untraced one.
const TRACED: u64 = 60;

pub(crate) enum Outcome {
    /// It does not run to its end untraced.
    NotRun(InterpretError),
    NotSpliced(String),
    Same {
        events: u64,
        /// Whether untraced runs have different results.
        dependent: bool,
    },
    Wrong(String),
}

/// A module with one kernel.
struct Case<'a> {
    kernel: &'a str,
    block: [u32; 3],
    dynamic: u32,
    inputs: Inputs,
    steps: u64,
}

/// State after a launch.
struct Left {
    observed: Observed,
    buffers: Vec<Vec<u8>>,
}

impl Case<'_> {
    fn launch(&self, program: &Program, seed: u64) -> Result<Left, InterpretError> {
        self.launch_with(program, self.kernel, seed, self.dynamic, None).map(|(left, _)| left)
    }

    /// Runs a kernel. With a layout, the kernel is traced; its recorded runs are returned for each warp.
    fn launch_with(
        &self,
        program: &Program,
        kernel: &str,
        seed: u64,
        dynamic_shared: u32,
        layout: Option<&Layout>,
    ) -> Result<(Left, Vec<Vec<ModelRun>>), InterpretError> {
        let mut memory = self.inputs.memory.clone();
        let mut parameters = self.inputs.parameters.clone();
        if let Some(layout) = layout {
            layout.declare(&mut memory, 0);
            parameters.push(layout.parameter());
        }
        let max_steps = if layout.is_some() { self.steps * TRACED } else { self.steps };
        let (grid, block) = ([BLOCKS, 1, 1], self.block);
        let launch = Launch {
            kernel,
            grid,
            block,
            dynamic_shared,
            parameters,
            clock: 0,
            multiprocessors: 1,
            max_steps,
        };
        let observed = run(program, &launch, &mut memory, &mut Schedule::random(seed))?;
        let region = |address: u64| memory.region(address).unwrap_or_default().to_vec();
        let buffers = self.inputs.buffers.iter().copied().chain(program.variables()).map(region).collect();
        let runs = layout.map_or_else(Vec::new, |layout| {
            let tracks = layout.read(&memory, 0);
            tracks[0].iter().map(|track| track.entries.iter().map(ModelRun::from).collect()).collect()
        });
        Ok((Left { observed, buffers }, runs))
    }
}

/// Returns the block size, from the kernel's directives if it has any.
fn block(module: &Module<'_>, kernel: &str) -> [u32; 3] {
    let directive = |name: &str| {
        let found = module.function(kernel)?.directive(name)?;
        let text = found.span.text(module.text).trim_start_matches(name);
        let numbers: Vec<u32> = text.split(',').filter_map(|number| number.trim().parse().ok()).collect();
        numbers.first().map(|x| [*x, *numbers.get(1).unwrap_or(&1), *numbers.get(2).unwrap_or(&1)])
    };
    match (directive(".reqntid"), directive(".maxntid")) {
        (Some(block), _) => block,
        (None, Some([x, ..])) => [x.min(THREADS), 1, 1],
        (None, None) => [THREADS, 1, 1],
    }
}

/// Runs a kernel of a module untraced and traced under several schedules.
pub(crate) fn compare(text: &str, kernel: &str, steps: u64) -> Outcome {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(error) => return Outcome::NotRun(error.into()),
    };
    let plain = match Program::parse(text) {
        Ok(program) => program,
        Err(error) => return Outcome::NotRun(error),
    };
    let Some(function) = module.function(kernel) else { return Outcome::NotSpliced("it is gone".to_owned()) };
    let sizes = plain.kernels().find(|(name, _)| *name == kernel).map(|(_, sizes)| sizes).unwrap_or_default();
    let dynamic = if module.dynamic_shared().next().is_some() { DYNAMIC } else { 0 };
    let mut first = None;
    for mix in MIXES {
        let inputs = Inputs::new(function, &sizes, mix);
        let case = Case { kernel, block: block(&module, kernel), dynamic, inputs, steps };
        match case.launch(&plain, 0) {
            Ok(_) => return under_schedules(&case, text, &plain),
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    first.map_or_else(|| Outcome::NotSpliced("no inputs".to_owned()), Outcome::NotRun)
}

/// Recordings to test, used in turn.
const RECORDINGS: [Recording; 4] = [
    Recording::DEFAULT,
    Recording { placement: Some(Placement::Local), ..Recording::DEFAULT },
    Recording { counting: Counting::Never, placement: Some(Placement::Shared), ..Recording::DEFAULT },
    Recording { counting: Counting::Never, dual: true, logs: LogKind::Kept, ..Recording::DEFAULT },
];

fn under_schedules(case: &Case<'_>, text: &str, plain: &Program) -> Outcome {
    let runs = (0..SCHEDULES).map(|seed| case.launch(plain, seed));
    let untraced = match runs.collect::<Result<Vec<Left>, _>>() {
        Ok(untraced) => untraced,
        Err(error) => return Outcome::NotRun(error),
    };
    let counts = |left: &Left| -> Vec<(usize, u64)> {
        left.observed.lines.iter().map(|(line, executed)| (*line, executed.lanes)).collect()
    };
    let is_same = |left: &Left| left.buffers == untraced[0].buffers && counts(left) == counts(&untraced[0]);
    let dependent = !untraced.iter().all(is_same);
    let marked = match mark(text, &PointOptions { points: Points::Blocks, ..PointOptions::default() }) {
        Ok(marked) => marked,
        Err(error) => return Outcome::NotSpliced(error.to_string()),
    };
    let mut total = 0;
    for seed in 0..SCHEDULES {
        let recording = RECORDINGS[seed as usize % RECORDINGS.len()];
        let spliced = match spliced(&marked, recording) {
            Ok(spliced) => spliced,
            Err(error) => return Outcome::NotSpliced(error),
        };
        match traced(case, &spliced, seed, recording) {
            Err(problem) => return Outcome::Wrong(format!("schedule {seed}: {problem}")),
            Ok((left, runs)) => {
                total += runs.iter().map(|runs| events(runs)).sum::<u64>();
                if dependent {
                    continue;
                }
                if left.buffers != untraced[0].buffers {
                    return Outcome::Wrong(format!("schedule {seed}: memory differs"));
                }
                if let Some(problem) = differing_block(&marked, text, &untraced[0].observed, &runs) {
                    return Outcome::Wrong(format!("schedule {seed}: {problem}"));
                }
            }
        }
    }
    Outcome::Same { events: total, dependent }
}

/// Splices marked text. Kernels that call functions have their records in shared memory.
fn spliced(marked: &Marked, recording: Recording) -> Result<Spliced, String> {
    let with = |recording| {
        splice(&marked.text, &Options { recording: Some(recording), architecture: 90, ..Options::default() })
    };
    with(recording)
        .or_else(|_| with(Recording { placement: None, ..recording }))
        .map_err(|error| error.to_string())
}

/// Runs the traced copy and compares its logs with the markers that its lanes passed.
fn traced(
    case: &Case<'_>,
    spliced: &Spliced,
    seed: u64,
    recording: Recording,
) -> Result<(Left, Vec<Vec<ModelRun>>), String> {
    let kernel =
        spliced.kernels.iter().find(|kernel| kernel.name == case.kernel).ok_or("it has no traced copy")?;
    let program = Program::parse(&spliced.text).map_err(|error| error.to_string())?;
    let threads: u32 = case.block.iter().product();
    let block_warps = threads.div_ceil(LANES);
    let tracks = 1 + u32::from(recording.dual);
    let layout =
        Layout::new([BLOCKS * block_warps, tracks], threads, FirstSegments::of_streams(64), 1 << 11, 0);
    let dynamic = case.dynamic.next_multiple_of(16) + kernel.shared_bytes * block_warps;
    let (left, warps) = case
        .launch_with(&program, &kernel.traced_name, seed, dynamic, Some(&layout))
        .map_err(|error| format!("traced: {error}"))?;
    for (warp, runs) in (0..).zip(&warps) {
        let markers = left.observed.markers.iter().filter(|event| event.warp == warp).copied();
        let expected = Model::new(&steps(markers, recording.counting == Counting::All)).trace;
        for lane in 0..LANES {
            if sequence(runs, lane) != sequence(&expected, lane) {
                return Err(format!("events of warp {warp}, lane {lane}, are not those that it passed"));
            }
            if kernel.counted.is_empty() && of_lane(runs, lane) != of_lane(&expected, lane) {
                return Err(format!("masks of warp {warp}, lane {lane}, are not those that it had"));
            }
        }
    }
    Ok((left, warps))
}

/// Returns a message for a block whose number of events differs from the executions of its first instruction.
fn differing_block(
    marked: &Marked,
    text: &str,
    untraced: &Observed,
    warps: &[Vec<ModelRun>],
) -> Option<String> {
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    for run in warps.iter().flatten() {
        *counts.entry(run.location).or_default() += run.count * u64::from(run.mask.count_ones());
    }
    for implied in &marked.implied {
        let first = counts.get(&implied.after).copied().unwrap_or_default();
        counts.extend(implied.points.iter().map(|point| (*point, first)));
    }
    let lines: Vec<&str> = text.lines().collect();
    let differing = marked.points.iter().find(|point| {
        let line = lines.get(point.ptx_line - 1).copied().unwrap_or_default();
        // Instructions that share a line are not counted separately.
        let is_alone = line.matches(';').count() == 1;
        let executed = untraced.lines.get(&point.ptx_line).map_or(0, |executed| executed.lanes);
        is_alone && counts.get(&point.id).copied().unwrap_or_default() != executed
    });
    differing
        .map(|point| format!("events of block {} of {} are not its executions", point.block, point.function))
}
