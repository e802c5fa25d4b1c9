//! Small kernels: what the large one does not have.

use warptrace_format::Counting;
use warptrace_ptx::interpret::{Launch, Memory, Program, Schedule, run};
use warptrace_ptx::splice::{Marker, Options, Placement, Recording, SpliceError, splice};

use super::case::{Splicing, text};
use super::logs::{ACCOUNTS, CLAIMS, LOGS, Layout, Track, read};
use super::model::Run;

fn module(kernel: &str) -> String {
    format!(".version 8.0\n.target sm_90\n.address_size 64\n{kernel}")
}

fn options(placement: Placement) -> Options<'static> {
    let placement = Some(placement);
    let recording = Some(Recording { counting: Counting::All, placement, ..Recording::DEFAULT });
    Options { recording, architecture: 90, ..Options::default() }
}

/// Runs the traced copy of the kernel `k`, which has no parameters, with 40 threads.
fn trace(kernel: &str, placement: Placement) -> Vec<Track> {
    let spliced = splice(&module(kernel), &options(placement)).expect("it can be spliced");
    let layout = Layout::new([2, 1], 40, 8, 4, 0);
    let mut memory = Memory::new();
    memory.declare(LOGS, layout.fill());
    memory.declare(CLAIMS, vec![0; 16]);
    memory.declare(ACCOUNTS, vec![0; layout.account_bytes()]);
    let launch = Launch {
        kernel: "k$traced",
        grid: [1; 3],
        block: [8, 5, 1],
        dynamic_shared: 2 * spliced.kernels[0].shared_bytes,
        parameters: vec![layout.parameter()],
        clock: 0,
        multiprocessors: 1,
        max_steps: 100_000,
    };
    let program = Program::parse(&spliced.text).expect("PTX");
    run(&program, &launch, &mut memory, &mut Schedule::random(5)).expect("it runs");
    let [logs, claims, accounts] = [LOGS, CLAIMS, ACCOUNTS].map(|at| memory.region(at).expect("a region"));
    read(&layout, logs, claims, accounts, 0).remove(0)
}

fn runs(track: &Track) -> Vec<Run> {
    track.entries.iter().map(Run::from).collect()
}

#[test]
fn kernels_need_no_parameters_and_no_markers() {
    for placement in [Placement::Registers, Placement::Shared, Placement::Local] {
        for head in [".visible .entry k()", ".entry k", ".visible .entry k() .maxntid 64, 1, 1"] {
            for end in ["ret", "exit"] {
                let tracks = trace(&format!("{head}\n{{\n{end};\n}}"), placement);
                assert!(tracks.iter().all(|track| track.entries.is_empty()));
                let tracks = trace(&format!("{head}\n{{\n// warptrace.loc 9\n{end};\n}}"), placement);
                let run = |mask| vec![Run { mask, location: 9, count: 1 }];
                assert_eq!([runs(&tracks[0]), runs(&tracks[1])], [run(u32::MAX), run(0xff)]);
            }
        }
    }
}

#[test]
fn functions_that_no_kept_kernel_calls_are_whole() {
    let kernel = "
.visible .entry other() { call f, (); ret; }
.func f() { .reg .b32 %r<2>; // warptrace.loc 4
	mov.u32 %r1, 1; ret; }
.visible .entry k()
{
	.reg .b32 %r<2>;
	{
	.reg .b64 %inner;
	mov.u64 %inner, 3;
	// warptrace.loc 9
	}
	ret;
}";
    let kernel = format!(".func f();\n{kernel}");
    let options = Options { kernels: Some(&["k"]), ..options(Placement::Registers) };
    let spliced = splice(&module(&kernel), &options).expect("it can be spliced");
    let program = Program::parse(&spliced.text).expect("PTX");
    assert_eq!(program.unknown(), []);
    assert!(!spliced.text.contains("other"));
}

#[test]
fn records_of_kernels_that_call_stay_in_shared_memory() {
    let splicing = Splicing {
        placement: Placement::Shared,
        recording: Recording::default(),
        sync: true,
        marks: false,
        calls: true,
        many: 3,
    };
    for placement in [Placement::Registers, Placement::Local] {
        let error = splice(&text(splicing), &options(placement)).expect_err("it calls");
        assert!(matches!(error, SpliceError::Placement { .. }), "{error}");
    }
    let recording = Some(Recording::DEFAULT);
    let chosen = splice(&text(splicing), &Options { recording, ..options(Placement::Local) });
    assert_eq!(chosen.expect("it can be spliced").kernels[0].placement, Placement::Shared);
}

#[test]
fn marks_need_no_recording() {
    let kernel = ".visible .entry k()\n{\n// warptrace.loc 9\n// warptrace.loop.tick 8 2\nret;\n}";
    let options = Options { recording: None, marks: 1, ..options(Placement::Local) };
    let spliced = splice(&module(kernel), &options).expect("it can be spliced");
    assert!(spliced.kernels.is_empty());
    let launch = Launch {
        kernel: "k",
        grid: [1; 3],
        block: [40, 1, 1],
        dynamic_shared: 0,
        parameters: Vec::new(),
        clock: 0,
        multiprocessors: 1,
        max_steps: 100,
    };
    let program = Program::parse(&spliced.text).expect("PTX");
    let observed = run(&program, &launch, &mut Memory::new(), &mut Schedule::random(0)).expect("it runs");
    let counts: Vec<_> =
        observed.performance_events.iter().map(|(at, seen)| (*at, seen.groups, seen.lanes)).collect();
    assert_eq!(counts, [(8, 4, 80), (9, 2, 40)]);
    assert_eq!(observed.markers[0].marker, Marker::Event(9));
}
