//! Regression tests: code that splicing must leave unchanged.

use warptrace_ptx::points::{PointOptions, mark};
use warptrace_ptx::splice::{
    LogKind, Options, Placement, Recording, SpliceError, Spliced, TracedKernel, splice,
};

fn spliced(text: &str, options: &Options<'_>) -> Result<Spliced, SpliceError> {
    let text = format!(".version 8.0\n.target sm_90a\n.address_size 64\n{text}");
    splice(&text, &Options { recording: Some(Recording::default()), ..*options })
}

fn copy(text: &str, name: &str) -> String {
    let spliced = spliced(text, &Options::default()).expect("it can be spliced").text;
    let start = spliced.rfind(&format!("{name}$traced")).expect("the copy is there");
    spliced[start..].to_owned()
}

/// The assembler ignores `setmaxnreg` in a kernel without a limit. If the copy had a limit that the kernel
/// lacks, it would execute instructions that the kernel does not.
#[test]
fn kernels_that_move_registers_get_no_limit() {
    let kernel = |more: &str| {
        format!(
            ".visible .entry k(){{ .reg .pred %p; .reg .b32 %r; mov.u32 %r, %tid.x; setp.eq.u32 %p, %r, 0;
            // warptrace.loc 1
            @%p bra P; {more} ret; P: ret; }}"
        )
    };
    let options = Options { registers: &[("k", 168)], ..Options::default() };
    let made = |more: &str| spliced(&kernel(more), &options).expect("it can be spliced");
    let (moves, plain) = (made("setmaxnreg.inc.sync.aligned.u32 240;"), made(""));
    let placement = |spliced: &Spliced| spliced.kernels[0].placement;
    assert_eq!((placement(&moves), placement(&plain)), (Placement::Local, Placement::Registers));
    assert!(plain.text.contains(".maxnreg 168") && !moves.text.contains(".maxnreg"));
}

/// Limits and delays make untraced kernels comparable with traced ones.
#[test]
fn an_untraced_kernel_has_a_limit_and_a_delay_where_they_are_asked_for() {
    let kernel = |before: &str| {
        let head = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()";
        format!("{head}{before}{{ // warptrace.loc 7\n ret; }} .visible .entry other() {{ ret; }}")
    };
    let options = Options { registers: &[("k", 168)], marks: 3, ..Options::default() };
    let made = |before: &str| splice(&kernel(before), &options).expect("it can be spliced").text;
    let text = made("");
    assert_eq!((text.matches(".maxnreg 168").count(), text.matches(".maxnreg").count()), (1, 1), "{text}");
    assert!(text.find(".maxnreg") < text.find("warptrace.loc"), "{text}");
    assert_eq!(text.matches("pmevent.mask 7;\n\tpmevent.mask 0;\n\tpmevent.mask 0;").count(), 1, "{text}");
    assert!(!made(".maxntid 64").contains(".maxnreg"), "a kernel's own limit counts");
}

const FUNCTION: &str = ".func f() { .reg .b32 %r; // warptrace.loc 4
	mov.u32 %r, 1; ret; }\n";

#[test]
fn an_address_that_the_kernel_does_not_call_stays_that_of_the_function() {
    let kernel = |call: &str| {
        format!(
            ".global .u64 table[1] = {{f}};\n{FUNCTION}.visible .entry k() {{ .reg .b64 %rd<3>; mov.u64 %rd1, f;
            ld.global.u64 %rd2, [table]; call f, (); {call} ret; }}\nP: .callprototype _ ();"
        )
    };
    let stored = copy(&kernel("").replace("\nP: .callprototype _ ();", ""), "k");
    assert!(stored.contains("mov.u64 %rd1, f;") && stored.contains("call f$traced, ()"), "{stored}");
    let called = kernel("P: .callprototype _ (); call %rd1, (), P;").replace("\nP: .callprototype _ ();", "");
    let called = copy(&called, "k");
    assert!(called.contains("mov.u64 %rd1, f$traced;"), "{called}");
}

#[test]
fn a_call_by_a_second_name_records_too() {
    let text = format!("{FUNCTION}.func g();\n.alias g, f;\n.visible .entry k() {{ call g, (); ret; }}");
    assert!(copy(&text, "k").contains("call f$traced, ();"));
    let text =
        text.replace(".visible .entry k() { call g", ".func h() { call g, (); ret; }\n.entry k() { call h");
    let spliced = spliced(&text, &Options::default()).expect("it can be spliced").text;
    assert!(spliced.contains("call f$traced, ();") && spliced.contains("call h$traced, ();"), "{spliced}");
}

#[test]
fn a_function_that_is_called_by_a_second_name_has_points() {
    let text =
        ".version 8.0\n.target sm_90\n.address_size 64\n.func f() { .reg .b32 %r; mov.u32 %r, 1; ret; }
        .func g();\n.alias g, f;\n.visible .entry k() { call g, (); ret; }";
    let options = PointOptions { kernels: Some(&["k"]), ..PointOptions::default() };
    let marked = mark(text, &options).expect("it can be marked");
    assert_eq!(
        marked.points.iter().filter(|point| &*point.function == "f").count(),
        1,
        "{:?}",
        marked.points
    );
}

#[test]
fn a_register_of_a_functions_name_is_no_function() {
    let text = format!(
        "{FUNCTION}.visible .entry k() {{ .reg .b64 %rd<2>; {{ .reg .b32 f; mov.u32 f, 3; }}
        P: .callprototype _ (); mov.u64 %rd1, 0; call %rd1, (), P; ret; }}"
    );
    assert!(copy(&text, "k").contains("mov.u32 f, 3;"));
}

#[test]
fn a_comment_may_hold_the_tracers_names() {
    let kernel = |comment: &str| format!(".visible .entry k() {{ .reg .b32 %r; {comment}\nret; }}");
    for comment in ["// what %wt_k is", "/* $warptrace_1, k$traced */", "// warptrace_launch"] {
        assert!(spliced(&kernel(comment), &Options::default()).is_ok(), "{comment}");
    }
    let taken = spliced(&kernel("mov.u32 %wt_k, 1;"), &Options::default());
    assert!(matches!(taken, Err(SpliceError::Reserved { name: "%wt_" })));
}

#[test]
fn a_kernel_whose_parameters_leave_no_room_is_left_out_alone() {
    let text = |bytes: usize| {
        format!(".visible .entry big(.param .b8 big_0[{bytes}]) {{ ret; }}\n.visible .entry k() {{ ret; }}")
    };
    let names = |kernels: &[TracedKernel]| -> Vec<String> {
        kernels.iter().map(|kernel| kernel.name.clone()).collect()
    };
    let fits = spliced(&text(4_352 - 64), &Options::default()).expect("it can be spliced");
    assert_eq!((names(&fits.kernels), fits.left_out), (vec!["big".to_owned(), "k".to_owned()], Vec::new()));
    let full = spliced(&text(4_352 - 63), &Options::default()).expect("the other can be spliced");
    assert_eq!(names(&full.kernels), ["k"]);
    assert_eq!(full.left_out[0].0, "big");
    assert!(full.left_out[0].1.contains("4289 bytes"), "{:?}", full.left_out);
    let named = Options { kernels: Some(&["big"]), ..Options::default() };
    assert!(matches!(spliced(&text(4_300), &named), Err(SpliceError::LeftOut { .. })));
}

#[test]
fn texts_for_architectures_without_active_masks_are_for_the_first_with_them() {
    let target = |target: &str| {
        let text = format!(
            ".version 3.1\n.target {target}, debug\n.address_size 64\n.visible .entry k() {{ ret; }}"
        );
        let made = splice(&text, &Options { recording: Some(Recording::default()), ..Options::default() });
        let made = made.expect("it can be spliced").text;
        made.lines().take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(target("sm_20"), ".version 6.2 .target sm_30, debug");
    assert_eq!(target("sm_35"), ".version 6.2 .target sm_35, debug");
}

#[test]
fn streamed_logs_need_an_architecture_on_which_lanes_can_wait() {
    let made = |target: &str, logs| {
        let text =
            format!(".version 6.3\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}");
        let recording = Some(Recording { logs, ..Recording::DEFAULT });
        splice(&text, &Options { recording, ..Options::default() }).map(|spliced| spliced.kernels.len())
    };
    for target in ["sm_20", "sm_32", "sm_60, debug", "sm_62"] {
        let error = made(target, LogKind::Streamed).unwrap_err().to_string();
        let target = target.trim_end_matches(", debug");
        assert_eq!(
            error,
            format!(
                "the policy `stream` needs PTX for sm_70 or later, and this PTX is for {target}: compile it for sm_70, \
                 or choose another policy"
            )
        );
    }
    for target in ["sm_70", "sm_90", "sm_90a", "sm_100f"] {
        assert_eq!(made(target, LogKind::Streamed), Ok(1), "{target}");
    }
    for logs in [LogKind::Kept, LogKind::Ring] {
        assert_eq!(made("sm_60", logs), Ok(1), "{logs:?}");
    }
}
