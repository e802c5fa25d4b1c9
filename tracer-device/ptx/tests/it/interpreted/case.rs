//! Runs the test kernel untraced and traced, and checks the results.

use std::borrow::Cow;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use warptrace_abi::log::{Entry, MAX_KEY_COUNT};
use warptrace_format::Counting;
use warptrace_format::LANES;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::span::WarpSpan;
use warptrace_ptx::interpret::{Launch, Memory, Observed, Program, Schedule, run, run_with_host};
use warptrace_ptx::splice::{LogKind, Options, Placement, Recording, Spliced, TRACED_SUFFIX, splice};

use warptrace_abi::log::FirstSegments;

use super::logs::{ACCOUNTS, CLAIMS, Layout, Track, chosen_bytes};
use super::model::{Model, ModelRun, events, lanes, of_lane, recorded_after, sequence, sorted, steps};
use super::program::{self, LENGTH, Lane, Mix, begins, ends};
use super::spans::{check_spans, read_spans};

pub(crate) const MULTIPROCESSORS: u32 = 3;
const LISTS: u64 = 0x10_0000;
const RESULTS: u64 = 0x1000_0000;
/// The function `between` calls the function with markers and has none itself. It may end the thread.
const CALL: &str = "\tst.global.b32 [%rd2], %r20;
	{
	.param .b32 param0;
	st.param.b32 [param0], %r20;
	.param .b64 param1;
	st.param.b64 [param1], %rd1;
	.param .b32 retval0;
	call.uni (retval0), between, (param0, param1);
	ld.param.b32 %r20, [retval0];
	}";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Splicing {
    pub(crate) placement: Placement,
    pub(crate) recording: Recording,
    /// PTX 8.0, whose votes name their lanes. Otherwise 6.3.
    pub(crate) sync: bool,
    pub(crate) marks: bool,
    pub(crate) calls: bool,
    pub(crate) many: u16,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) first: FirstSegments,
    /// Segments of log memory in addition to the first segments.
    pub(crate) segments: u32,
    /// Entries already reserved before the launch.
    pub(crate) claimed: u64,
    pub(crate) clock: u64,
}

impl Shape {
    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    pub(crate) fn blocks(&self) -> u32 {
        self.grid.iter().product()
    }

    pub(crate) fn block_warps(&self) -> u32 {
        self.threads().div_ceil(LANES)
    }

    pub(crate) fn warps(&self) -> u32 {
        self.blocks() * self.block_warps()
    }

    pub(crate) fn layout(&self, tracks: u32) -> Layout {
        Layout::new([self.warps(), tracks], self.threads(), self.first, self.segments, self.claimed)
    }
}

pub(crate) fn text(splicing: Splicing) -> String {
    let (version, target) = if splicing.sync { ("8.0", "sm_90") } else { ("6.3", "sm_70") };
    include_str!("kernel.ptx")
        .replace("VERSION", version)
        .replace("TARGET", target)
        .replace("CALL", if splicing.calls { CALL } else { "" })
        .replace("MANY", &splicing.many.to_string())
}

pub(crate) struct Traced {
    splicing: Splicing,
    /// Recording of the copy. Rings are as long as first segments.
    pub(crate) recording: Recording,
    spliced: Spliced,
    program: Program,
    /// The warps that record; `None` if all do and the kernel does not choose.
    chosen: Option<ChosenWarps>,
}

pub(crate) struct Outcome {
    pub(crate) observed: Observed,
    pub(crate) tracks: Vec<Vec<Track>>,
    pub(crate) spans: Vec<WarpSpan>,
    /// Entries that the launch reserved or tried to reserve.
    pub(crate) claimed: u64,
}

impl Traced {
    pub(crate) fn new(splicing: Splicing) -> Self {
        Self::spliced(splicing, splicing.recording, None)
    }

    pub(crate) fn ring(splicing: Splicing, chosen: Option<ChosenWarps>) -> Self {
        Self::spliced(splicing, Recording { logs: LogKind::Ring, ..splicing.recording }, chosen)
    }

    pub(crate) fn streamed(splicing: Splicing) -> Self {
        Self::spliced(splicing, Recording { logs: LogKind::Streamed, ..splicing.recording }, None)
    }

    pub(crate) fn choosing(splicing: Splicing, streamed: bool, chosen: ChosenWarps) -> Self {
        let logs = if streamed { LogKind::Streamed } else { LogKind::Kept };
        Self::spliced(splicing, Recording { logs, ..splicing.recording }, Some(chosen))
    }

    pub(crate) fn spliced(splicing: Splicing, recording: Recording, chosen: Option<ChosenWarps>) -> Self {
        let recording =
            Recording { placement: Some(splicing.placement), chooses: chosen.is_some(), ..recording };
        // Covers both ways to reserve segments.
        let architecture = if splicing.sync { 90 } else { 80 };
        let options = Options {
            recording: Some(recording),
            architecture,
            marks: u32::from(splicing.marks),
            ..Options::default()
        };
        let spliced = splice(&text(splicing), &options).expect("the kernel can be spliced");
        let program = Program::parse(&spliced.text).expect("what comes of it is PTX");
        assert_eq!(program.unknown(), [], "{splicing:?}");
        Self { splicing, recording, spliced, program, chosen }
    }

    pub(crate) fn mix(&self, length: usize, alike: bool, loops: bool) -> Mix {
        Mix { calls: self.splicing.calls, many: self.splicing.many, length, alike, loops }
    }

    pub(crate) fn tracks(&self) -> u32 {
        1 + u32::from(self.splicing.recording.dual)
    }

    pub(crate) fn check(&self, seed: u64, mix: Mix, shape: Shape) -> Outcome {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let threads = program::lanes(&mut random, mix, shape.threads() * shape.blocks());
        self.check_threads(seed, &threads, shape)
    }

    pub(crate) fn check_threads(&self, seed: u64, threads: &[Lane], shape: Shape) -> Outcome {
        let untraced = self.untraced(threads, shape, &mut Schedule::random(seed ^ 1));
        let outcome = self.traced(threads, shape, &mut Schedule::random(seed));
        self.check_outcome(threads, shape, &outcome);
        if self.splicing.marks {
            let lanes = |observed: &Observed| -> Vec<(u64, u64)> {
                observed
                    .performance_events
                    .iter()
                    .map(|(location, events)| (*location, events.lanes))
                    .collect()
            };
            assert_eq!(
                lanes(&untraced),
                lanes(&outcome.observed),
                "lanes that come to marks, untraced and traced"
            );
        }
        outcome
    }

    pub(crate) fn untraced(&self, threads: &[Lane], shape: Shape, schedule: &mut Schedule) -> Observed {
        let mut memory = inputs(threads);
        let launch = launch("walk", shape, 0, parameters());
        let observed = run(&self.program, &launch, &mut memory, schedule).expect("the kernel runs");
        check_results(&memory, threads);
        observed
    }

    pub(crate) fn traced(&self, threads: &[Lane], shape: Shape, schedule: &mut Schedule) -> Outcome {
        let layout = self.layout(shape);
        let mut memory = inputs(threads);
        layout.declare(&mut memory, self.span_bytes(shape));
        let observed = self.run(layout.parameter(), threads, shape, schedule, &mut memory, &mut |_| {});
        let [claims, accounts] = [CLAIMS, ACCOUNTS].map(|address| memory.region(address).expect("a region"));
        let spans = read_spans(&accounts[layout.account_bytes()..]);
        let (tracks, claimed) = (layout.read(&memory, time(shape.clock)), layout.claimed_since(claims));
        Outcome { observed, tracks, spans, claimed }
    }

    pub(crate) fn run(
        &self,
        parameter: Vec<u8>,
        threads: &[Lane],
        shape: Shape,
        schedule: &mut Schedule,
        memory: &mut Memory,
        host: &mut dyn FnMut(&mut Memory),
    ) -> Observed {
        let kernel = &self.spliced.kernels[0];
        let mut parameters = parameters();
        parameters.push(parameter);
        assert_eq!(kernel.traced_name, format!("walk{TRACED_SUFFIX}"));
        let state = kernel.shared_bytes * shape.block_warps();
        let launch = launch(&kernel.traced_name, shape, state, parameters);
        let observed = match run_with_host(&self.program, &launch, memory, schedule, host) {
            Ok(observed) => observed,
            Err(error) => panic!("{error}\n{:?} {shape:?}", self.splicing),
        };
        check_results(memory, threads);
        observed
    }

    pub(crate) fn span_bytes(&self, shape: Shape) -> usize {
        let warps = if self.recording.spans { self.recorded_warps(shape) as usize } else { 0 };
        warps * size_of::<WarpSpan>()
    }

    pub(crate) fn recorded(&self, shape: Shape) -> ChosenWarps {
        self.chosen.unwrap_or(ChosenWarps::all(shape.blocks(), shape.block_warps()))
    }

    pub(crate) fn recorded_warps(&self, shape: Shape) -> u32 {
        self.chosen.map_or(shape.warps(), |chosen| chosen.count())
    }

    pub(crate) fn chosen_bytes(&self) -> Vec<u8> {
        chosen_bytes(self.chosen.unwrap_or_default())
    }

    fn layout(&self, shape: Shape) -> Layout {
        let (warps, threads) = match self.chosen {
            None => (shape.warps(), shape.threads()),
            Some(chosen) => (chosen.count(), chosen.block_threads(shape.threads())),
        };
        let streams = [warps, self.tracks()];
        let mut layout = if self.recording.logs == LogKind::Ring {
            Layout::ring(streams, threads, shape.first.entries)
        } else {
            Layout::new(streams, threads, shape.first, shape.segments, shape.claimed)
        };
        layout.launch.chosen = self.chosen.unwrap_or_default();
        layout
    }

    /// For each warp: its index among the recording warps, if it records, the expected record, its threads.
    pub(crate) fn warps<'a>(
        &'a self,
        threads: &'a [Lane],
        shape: Shape,
        observed: &'a Observed,
    ) -> impl Iterator<Item = (Option<u32>, Model, Cow<'a, [Lane]>)> {
        (0..shape.warps()).map(move |warp| {
            let markers = observed.markers.iter().filter(|event| event.warp == warp).copied();
            let mut steps = steps(markers, self.splicing.recording.counting == Counting::All);
            if let Some(after) = self.recording.after {
                steps = recorded_after(steps, after);
            }
            let model = Model::new(&steps);
            let (block, in_block) = (warp / shape.block_warps(), warp % shape.block_warps());
            let first = (block * shape.threads() + in_block * LANES) as usize;
            let lane_count = (shape.threads() - in_block * LANES).min(LANES) as usize;
            let index = match self.chosen {
                None => Some(warp),
                Some(chosen) => chosen.index(block, in_block),
            };
            let threads = &threads[first..][..lane_count];
            let threads = match self.recording.after {
                None => Cow::Borrowed(threads),
                Some(_) => Cow::Owned(threads_after(threads, &model.trace)),
            };
            (index, model, threads)
        })
    }

    pub(crate) fn check_outcome(&self, threads: &[Lane], shape: Shape, outcome: &Outcome) {
        let clock = time(shape.clock);
        if self.recording.spans {
            check_spans(self, shape, &outcome.spans, &outcome.tracks[0]);
        }
        let mut all = [Vec::new(), Vec::new()];
        for (index, model, threads) in self.warps(threads, shape, &outcome.observed) {
            for (track, expected) in outcome.tracks.iter().zip([&model.trace, &model.twin]) {
                let Some(index) = index else { continue };
                check_track(&track[index as usize], expected, &threads, clock, self.exact());
            }
            all[0].extend(model.trace);
            all[1].extend(model.marks);
        }
        if self.splicing.marks {
            self.check_marks(outcome, &all);
        }
    }

    /// Returns true if entries must match the model exactly: no long ticks join.
    pub(crate) fn exact(&self) -> bool {
        2 * u32::from(self.splicing.many) < MAX_KEY_COUNT / 8
    }

    fn check_marks(&self, outcome: &Outcome, all: &[Vec<ModelRun>; 2]) {
        for (location, marks) in &outcome.observed.performance_events {
            let at = |runs: &[ModelRun]| -> (u64, u64) {
                let runs = runs.iter().filter(|run| u64::from(run.location) == *location);
                runs.fold((0, 0), |(groups, lanes), run| {
                    (groups + run.count, lanes + run.count * u64::from(run.mask.count_ones()))
                })
            };
            assert_eq!((marks.groups, marks.lanes), at(&all[1]), "marks at location {location}");
            assert_eq!(marks.lanes, at(&all[0]).1, "lanes at location {location}");
        }
        let marked = outcome.observed.performance_events.len();
        let mut locations: Vec<u16> = all[1].iter().map(|run| run.location).collect();
        locations.sort_unstable();
        locations.dedup();
        assert_eq!(marked, locations.len(), "locations that have marks");
    }
}

/// Checks a warp's track: number of events, each lane's locations, masks and counts.
pub(crate) fn check_track(track: &Track, expected: &[ModelRun], threads: &[Lane], clock: u32, exact: bool) {
    let kept: Vec<ModelRun> = track.entries.iter().map(ModelRun::from).collect();
    assert_eq!(events(&kept) + track.lost, events(expected), "kept and lost are what was attempted");
    let recorded = track.recorded(clock);
    let runs: Vec<ModelRun> = recorded.iter().map(ModelRun::from).collect();
    for (lane, thread) in (0..).zip(threads) {
        let mine: Vec<&Entry> = recorded.iter().filter(|entry| entry.mask >> lane & 1 != 0).collect();
        let increase = mine.windows(2).all(|pair| {
            let [first, second] = [pair[0], pair[1]].map(|entry| entry.time.wrapping_sub(clock));
            // A long run takes several entries with the same time.
            let is_one = (pair[0].mask, pair[0].location) == (pair[1].mask, pair[1].location);
            first < second || first == second && is_one && pair[0].count == MAX_KEY_COUNT
        });
        assert!(increase, "lane {lane}: times do not tell an order: {mine:?}");
        let (found, model) = (of_lane(&runs, lane), of_lane(expected, lane));
        if track.lost == 0 {
            assert_eq!(sequence(&runs, lane), thread.sequence, "lane {lane}: its locations");
            assert_eq!(found, model, "lane {lane}: its masks and counts");
        } else if track.complete_from.is_some() {
            let sequence = sequence(&runs, lane);
            assert!(ends(&thread.sequence, &sequence), "lane {lane}: {sequence:?} of {:?}", thread.sequence);
            assert!(is_end(&model, &found), "lane {lane}: {found:?} of {model:?}");
        } else {
            let sequence = sequence(&runs, lane);
            assert!(
                begins(&thread.sequence, &sequence),
                "lane {lane}: {sequence:?} of {:?}",
                thread.sequence
            );
            assert!(is_beginning(&model, &found), "lane {lane}: {found:?} of {model:?}");
        }
    }
    let mut absent =
        recorded.iter().filter(|entry| lanes(entry.mask).any(|lane| lane as usize >= threads.len()));
    assert_eq!(absent.next(), None, "lanes that do not exist");
    if exact && track.lost == 0 {
        let [found, expected] = [&runs, expected].map(|runs| sorted(&without_joined(runs)));
        assert_eq!(found, expected, "entries");
    }
}

/// Returns threads with only their recorded locations, which must be an end of the original ones.
fn threads_after(threads: &[Lane], recorded: &[ModelRun]) -> Vec<Lane> {
    let end = |(lane, thread): (u32, &Lane)| {
        let sequence = sequence(recorded, lane);
        assert!(ends(&thread.sequence, &sequence), "lane {lane}: {sequence:?} of {:?}", thread.sequence);
        Lane { sequence, ..thread.clone() }
    };
    (0..).zip(threads).map(end).collect()
}

/// Removes runs whose number depends on joining markers: location 2 and the loops' unrolled ticks.
fn without_joined(runs: &[ModelRun]) -> Vec<ModelRun> {
    runs.iter().filter(|run| ![2, 20].contains(&run.location)).copied().collect()
}

fn is_beginning(whole: &[ModelRun], beginning: &[ModelRun]) -> bool {
    let Some((last, before)) = beginning.split_last() else { return true };
    whole.get(..before.len()) == Some(before)
        && whole.get(before.len()).is_some_and(|run| {
            (run.mask, run.location) == (last.mask, last.location) && last.count <= run.count
        })
}

fn is_end(whole: &[ModelRun], end: &[ModelRun]) -> bool {
    let reversed = |runs: &[ModelRun]| runs.iter().rev().copied().collect::<Vec<_>>();
    is_beginning(&reversed(whole), &reversed(end))
}

pub(crate) fn time(clock: u64) -> u32 {
    (clock >> 4) as u32
}

pub(crate) fn inputs(threads: &[Lane]) -> Memory {
    let mut memory = Memory::new();
    let lists = threads.iter().flat_map(|lane| &lane.words).flat_map(|word| word.to_le_bytes()).collect();
    memory.declare(LISTS, lists);
    memory.declare(RESULTS, vec![0; 4 * threads.len()]);
    memory
}

fn check_results(memory: &Memory, threads: &[Lane]) {
    let results = memory.region(RESULTS).expect("a region");
    for (thread, (lane, result)) in threads.iter().zip(results.chunks_exact(4)).enumerate() {
        assert_eq!(result, lane.result.to_le_bytes(), "result of thread {thread}");
    }
}

fn parameters() -> Vec<Vec<u8>> {
    vec![LISTS.to_le_bytes().into(), RESULTS.to_le_bytes().into(), (LENGTH as u32).to_le_bytes().into()]
}

/// The kernel uses 4 bytes of dynamic shared memory for each thread; `state` bytes are the tracer's.
fn launch(kernel: &str, shape: Shape, state: u32, parameters: Vec<Vec<u8>>) -> Launch<'_> {
    let own = (4 * shape.threads()).next_multiple_of(16);
    Launch {
        dynamic_shared: own + state,
        clock: shape.clock,
        multiprocessors: MULTIPROCESSORS,
        ..super::launch(kernel, shape.grid, shape.block, parameters)
    }
}
