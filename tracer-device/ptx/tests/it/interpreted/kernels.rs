//! Small kernels for cases that the large kernel lacks.

use warptrace_format::Counting;
use warptrace_ptx::interpret::{Launch, Memory, Observed, Schedule, run};
use warptrace_ptx::splice::{Marker, Options, Placement, Recording, SpliceError, splice};

use super::case::{Splicing, text};
use super::foreign::program;
use super::launch;
use super::logs::{Layout, Track};
use super::model::ModelRun;
use warptrace_abi::log::FirstSegments;

pub(crate) fn module(kernel: &str) -> String {
    format!(".version 8.0\n.target sm_90\n.address_size 64\n{kernel}")
}

/// Launches the traced `k` in blocks of two warps, with `more` bytes of memory after the warps' counts.
pub(crate) fn run_spliced(
    text: &str,
    options: &Options<'_>,
    layout: &Layout,
    more: usize,
    launch: Launch<'_>,
) -> (Observed, Memory) {
    let spliced = splice(text, options).expect("it can be spliced");
    let mut memory = Memory::new();
    layout.declare(&mut memory, more);
    let dynamic_shared = 2 * spliced.kernels[0].shared_bytes;
    let launch = Launch { dynamic_shared, parameters: vec![layout.parameter()], ..launch };
    let schedule = &mut Schedule::random(5);
    let observed = run(&program(&spliced.text), &launch, &mut memory, schedule).expect("it runs");
    (observed, memory)
}

fn options(placement: Placement) -> Options<'static> {
    let placement = Some(placement);
    let recording = Some(Recording { counting: Counting::All, placement, ..Recording::DEFAULT });
    Options { recording, architecture: 90, ..Options::default() }
}

fn trace(kernel: &str, placement: Placement) -> Vec<Track> {
    let layout = Layout::new([2, 1], 40, FirstSegments::of_streams(8), 4, 0);
    let launch = launch("k$traced", [1; 3], [8, 5, 1], Vec::new());
    let (_, memory) = run_spliced(&module(kernel), &options(placement), &layout, 0, launch);
    layout.read(&memory, 0).remove(0)
}

fn runs(track: &Track) -> Vec<ModelRun> {
    track.entries.iter().map(ModelRun::from).collect()
}

#[test]
fn kernels_need_no_parameters_and_no_markers() {
    for placement in [Placement::Registers, Placement::Shared, Placement::Local] {
        for head in [".visible .entry k()", ".entry k", ".visible .entry k() .maxntid 64, 1, 1"] {
            for end in ["ret", "exit"] {
                let tracks = trace(&format!("{head}\n{{\n{end};\n}}"), placement);
                assert!(tracks.iter().all(|track| track.entries.is_empty()));
                let tracks = trace(&format!("{head}\n{{\n// warptrace.loc 9\n{end};\n}}"), placement);
                let run = |mask| vec![ModelRun { mask, location: 9, count: 1 }];
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
    program(&spliced.text);
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
    let launch = launch("k", [1; 3], [40, 1, 1], Vec::new());
    let program = program(&spliced.text);
    let observed = run(&program, &launch, &mut Memory::new(), &mut Schedule::random(0)).expect("it runs");
    let counts: Vec<_> =
        observed.performance_events.iter().map(|(at, seen)| (*at, seen.groups, seen.lanes)).collect();
    assert_eq!(counts, [(8, 4, 80), (9, 2, 40)]);
    assert_eq!(observed.markers[0].marker, Marker::Event(9));
}
