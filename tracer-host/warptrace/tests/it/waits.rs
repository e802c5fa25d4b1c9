//! User kernels that wait: the recording on the simulator, and the PTX.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../known/waits.rs"]
mod kernels;

use std::collections::BTreeMap;
use std::path::Path;

use kernels::waiting;
use warptrace::device::{KernelModule, LocationKind};
use warptrace::{Codec, Device, LaunchConfig, Times};
use warptrace_analysis::words::barrier;
use warptrace_analysis::{Selection, WaitFigures, analyse};
use warptrace_decoder::TraceFile;
use warptrace_format::Counting;
use warptrace_ptx::interpret::{Launch, Memory, Program, Schedule, run};
use warptrace_ptx::points::with_waits;
use warptrace_ptx::splice::{Marker, Options, code_at, splice};

/// The kernels with their stored PTX.
static MODULE: KernelModule = KernelModule { ptx: include_str!("../known/waits.ptx"), ..waiting::MODULE };

const TURNS: u32 = 4;
const THREADS: u32 = 128;

fn record(path: &Path, times: Times, codec: Codec, spins: bool) -> TraceFile {
    let device = Device::simulator();
    let data: Vec<u32> = (0..THREADS).collect();
    let (data, out) = (device.upload(&data).unwrap(), device.zeros::<u32>(THREADS as usize).unwrap());
    let flags = device.zeros::<u32>(2).unwrap();
    let options = device.trace(path).memory(64 << 20).times(times).codec(codec);
    let mut trace = options.start(&MODULE).unwrap();
    let config = LaunchConfig::for_elements_in_blocks(THREADS as usize, 64);
    match spins {
        true => trace.launch(&waiting::spinning(&flags, &out), &config).unwrap(),
        false => trace.launch(&waiting::late(&data, TURNS, &out), &config).unwrap(),
    };
    trace.finish().unwrap();
    let trace = TraceFile::open(path).unwrap();
    assert!(trace.verify().is_ok(), "{}", trace.verify());
    trace
}

/// Returns the line number of the kernels' nth line with this text.
fn line_of(text: &str, nth: usize) -> u32 {
    let lines = include_str!("../known/waits.rs").lines().enumerate().filter(|(_, line)| line.trim() == text);
    lines.map(|(number, _)| number as u32 + 1).nth(nth).unwrap()
}

/// The locations of each thread, in order, including repeats.
type Ways = BTreeMap<u32, Vec<u16>>;

fn ways(trace: &TraceFile) -> Ways {
    let mut ways = Ways::new();
    for warp in 0..4 {
        for event in trace.decode_warp(0, warp, 0).unwrap() {
            let event = event.unwrap();
            for lane in (0..32).filter(|lane| event.mask >> lane & 1 != 0) {
                ways.entry(warp * 32 + lane).or_default().push(event.location);
            }
        }
    }
    ways
}

/// Returns the locations of the compiled kernel, which the interpreter runs in an order that the seed
/// selects.
fn interpreted(text: &str, seed: u64) -> Ways {
    let (data, out) = (0x10_0000_u64, 0x20_0000_u64);
    let mut memory = Memory::new();
    memory.declare(data, (0..THREADS).flat_map(u32::to_le_bytes).collect());
    memory.declare(out, vec![0; 4 * THREADS as usize]);
    let length = u64::from(THREADS);
    let array = |at: u64| [at, length].map(u64::to_le_bytes).concat();
    let launch = Launch {
        kernel: "late",
        grid: [2, 1, 1],
        block: [64, 1, 1],
        dynamic_shared: 0,
        parameters: vec![array(data), TURNS.to_le_bytes().into(), array(out)],
        clock: 0,
        multiprocessors: 1,
        max_steps: 10_000_000,
    };
    let program = Program::parse(text).unwrap();
    assert_eq!(program.unknown(), []);
    let observed = run(&program, &launch, &mut memory, &mut Schedule::random(seed)).unwrap();
    let mut ways = Ways::new();
    for seen in observed.markers {
        let Some((location, count)) = Marker::events(seen.marker) else { continue };
        for lane in (0..32).filter(|lane| seen.mask >> lane & 1 != 0) {
            let way = ways.entry(seen.warp * 32 + lane).or_default();
            way.extend(std::iter::repeat_n(location, count as usize));
        }
    }
    ways
}

#[test]
fn waits_are_recorded_with_times_of_runs_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.wtrc");
    for times in [Times::Off, Times::Blocks] {
        let trace = record(&path, times, Codec::default(), false);
        assert_eq!(trace.metadata().locations.len(), MODULE.locations.len(), "{times:?}");
    }
    let trace = record(&path, Times::Runs, Codec::default(), false);
    let rows: Vec<(LocationKind, &str, u32)> = trace.metadata().locations[MODULE.locations.len()..]
        .iter()
        .map(|location| (location.kind, &*location.name, location.line))
        .collect();
    let (meet, end) =
        (line_of("unsafe { simt::sync_threads() };", 0), line_of("unsafe { simt::sync_threads() };", 1));
    let spin = line_of("simt::spin_hint();", 0);
    assert_eq!(
        rows,
        [
            (LocationKind::Barrier, "meet: simt::sync_threads()", meet),
            (LocationKind::Waited, "meet: behind simt::sync_threads()", meet),
            (LocationKind::Barrier, "late: simt::sync_threads()", end),
            (LocationKind::Waited, "late: behind simt::sync_threads()", end),
            (LocationKind::Wait, "spinning: simt::spin_hint()", spin),
            (LocationKind::Waited, "spinning: behind simt::spin_hint()", spin),
        ]
    );
}

#[test]
fn the_simulator_waits_for_the_last_warp() {
    let folder = tempfile::tempdir().unwrap();
    let trace = record(&folder.path().join("late.wtrc"), Times::All, Codec::default(), false);
    let analysis = analyse(&trace, &Selection::default()).unwrap();
    let [meet, end] = &*analysis.waits else { panic!("{:?}", analysis.waits) };
    assert_eq!(meet.point.line, line_of("unsafe { simt::sync_threads() };", 0));
    let known = meet.info.as_deref().and_then(barrier);
    assert_eq!(known.as_deref(), Some("barrier 0"));
    // Four warps arrive four times.
    assert_eq!((meet.waits, meet.open_lanes, end.waits), (16, 0, 4));
    let arrivals = meet.arrivals.unwrap();
    assert_eq!((arrivals.compared, arrivals.not_compared, arrivals.last_warp), (8, 0, 1));
    // Warp 1 is late in two of the four turns of each block, by forty turns and more.
    assert!(arrivals.last >= 4, "{arrivals:?}");
    let WaitFigures { wait_cycles, .. } = meet;
    assert!(wait_cycles.max() > 40 && wait_cycles.max() < 60, "{wait_cycles:?}");
    assert!(arrivals.alone_cycles >= 4 * 40, "{arrivals:?}");
}

#[test]
fn each_spin_is_a_wait() {
    let folder = tempfile::tempdir().unwrap();
    let trace = record(&folder.path().join("spinning.wtrc"), Times::Runs, Codec::default(), true);
    let analysis = analyse(&trace, &Selection::default()).unwrap();
    let [spins] = &*analysis.waits else { panic!("{:?}", analysis.waits) };
    assert!(spins.waits > 0 && spins.open_lanes == 0 && spins.arrivals.is_none(), "{spins:?}");
    assert_eq!(spins.point.line, line_of("simt::spin_hint();", 0));
}

#[test]
fn lanes_of_the_compiled_kernel_come_to_the_same_waits() {
    let folder = tempfile::tempdir().unwrap();
    let trace = record(&folder.path().join("late.wtrc"), Times::Runs, Codec::default(), false);
    let simulated = ways(&trace);
    let text = with_waits(MODULE.ptx);
    for seed in 0..4 {
        let interpreted = interpreted(&text, seed);
        assert_eq!(interpreted.len(), THREADS as usize);
        assert!(interpreted == simulated, "{:?}\n{:?}", interpreted[&33], simulated[&33]);
    }
    // A loop in which lanes wait is not counted, and its points have separate weights.
    let code = code_at(&text, MODULE.kernels, Counting::Proven).unwrap();
    assert!(MODULE.waits.iter().all(|wait| code.contains_key(&wait.id)));
}

#[test]
fn without_waits_the_text_is_that_of_a_kernel_without_points_at_them() {
    let lines = |text: &str| text.lines().filter(|line| line.contains("warptrace.wait")).count();
    assert_eq!(lines(MODULE.ptx), 6);
    let spliced = splice(MODULE.ptx, &Options::default()).unwrap().text;
    assert_eq!(lines(&spliced), 0);
    // The result is the optimised text without the comments of the waits.
    let is_comment = |line: &&str| line.trim().starts_with("//");
    let code = |text: &str| text.lines().filter(|line| !is_comment(line)).collect::<Vec<_>>().join("\n");
    assert_eq!(code(&spliced), code(MODULE.ptx));
}

#[test]
fn a_codec_without_room_for_their_ids_leaves_them_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("high.wtrc");
    static HIGH: std::sync::LazyLock<Vec<warptrace::device::SourceLocation>> =
        std::sync::LazyLock::new(|| {
            MODULE
                .waits
                .iter()
                .map(|wait| warptrace::device::SourceLocation { id: wait.id + 240, ..*wait })
                .collect()
        });
    let module = KernelModule { waits: &HIGH, ..MODULE };
    let device = Device::simulator();
    let trace = device.trace(&path).memory(64 << 20).times(Times::Runs).codec(Codec::Ecl);
    trace.start(&module).unwrap().finish().unwrap();
    let trace = TraceFile::open(&path).unwrap();
    assert_eq!(trace.metadata().property("waits_left_out"), Some("6"));
    assert_eq!(trace.metadata().locations.len(), MODULE.locations.len());
}
