//! Tests of the interpreter with small kernels.

use super::{Fault, InterpretError, Launch, Memory, Observed, Program, Schedule, run_with_host};
use crate::splice::Marker;

const OUT: u64 = 0x1000;

/// Returns a kernel with this body. `%rd1` is the address of 8 bytes for each thread, `%t` the thread.
pub(super) fn kernel(version: &str, body: &str) -> String {
    format!(
        ".version {version}\n.target sm_70\n.address_size 64\n
.func (.param .b32 f_result) f(.param .b32 f_param)
{{
	.reg .b32 %r<4>;
	ld.param.b32 %r1, [f_param];
	mul.lo.u32 %r2, %r1, 3;
	st.param.b32 [f_result], %r2;
	ret;
}}
.visible .entry k(.param .u64 k_param)
{{
	.reg .pred %p<8>;
	.reg .b16 %h<8>;
	.reg .b32 %t, %r<20>;
	.reg .b64 %rd<20>;
	.shared .align 8 .b8 s[64];
	ld.param.u64 %rd1, [k_param];
	mov.u32 %t, %tid.x;
	mad.wide.u32 %rd1, %t, 8, %rd1;
{body}
	ret;
}}
"
    )
}

pub(super) fn launch(
    body: &str,
    threads: u32,
    schedule: &mut Schedule,
) -> Result<(Vec<u64>, Observed), InterpretError> {
    launch_text(&kernel("6.3", body), threads, schedule)
}

pub(super) fn launch_text(
    text: &str,
    threads: u32,
    schedule: &mut Schedule,
) -> Result<(Vec<u64>, Observed), InterpretError> {
    launch_with_host(text, threads, schedule, &mut |_| {})
}

fn launch_with_host(
    text: &str,
    threads: u32,
    schedule: &mut Schedule,
    host: &mut dyn FnMut(&mut Memory),
) -> Result<(Vec<u64>, Observed), InterpretError> {
    let program = Program::parse(text)?;
    let mut memory = Memory::new();
    memory.declare(OUT, vec![0; 8 * threads as usize]);
    let launch = Launch {
        kernel: "k",
        grid: [1; 3],
        block: [threads, 1, 1],
        dynamic_shared: 0,
        parameters: vec![OUT.to_le_bytes().into()],
        clock: 0,
        multiprocessors: 1,
        max_steps: 10_000,
    };
    let observed = run_with_host(&program, &launch, &mut memory, schedule, host)?;
    let words = memory.region(OUT).expect("the region").chunks_exact(8);
    Ok((words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).collect(), observed))
}

pub(super) fn value(body: &str) -> u64 {
    let body = format!("{body}\n\tst.global.u64 [%rd1], %rd2;");
    launch(&body, 1, &mut Schedule::switches(&[], false)).expect("the kernel runs").0[0]
}

fn fault(body: &str, threads: u32) -> (usize, String, Fault) {
    match launch(body, threads, &mut Schedule::switches(&[], true)) {
        Err(InterpretError::Instruction { line, text, fault, .. }) => (line, text, fault),
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn numbers_are_those_of_ptx() {
    for (body, expected) in [
        ("mov.u64 %rd2, -1;", u64::MAX),
        ("mov.u32 %r1, -7; cvt.s64.s32 %rd2, %r1;", (-7_i64) as u64),
        ("mov.u32 %r1, -7; cvt.u64.u32 %rd2, %r1;", 0xffff_fff9),
        ("mov.u32 %r1, 0x12345; cvt.u16.u32 %h1, %r1; cvt.u64.u16 %rd2, %h1;", 0x2345),
        ("mov.u32 %r1, -8; shr.s32 %r2, %r1, 1; cvt.s64.s32 %rd2, %r2;", (-4_i64) as u64),
        ("mov.u32 %r1, -8; shr.u32 %r2, %r1, 40; cvt.u64.u32 %rd2, %r2;", 0),
        ("mov.u64 %rd3, 5; shl.b64 %rd2, %rd3, 62;", 1 << 62),
        ("mov.u32 %r1, -1; mad.wide.u32 %rd2, %r1, 16, 7;", 0xf_ffff_fff7),
        ("mov.u32 %r1, -1; mul.wide.s32 %rd2, %r1, 16;", (-16_i64) as u64),
        ("mov.u32 %r1, -3; mov.u32 %r2, 2; max.u32 %r3, %r1, %r2; cvt.u64.u32 %rd2, %r3;", 0xffff_fffd),
        ("mov.u32 %r1, -3; mov.u32 %r2, 2; max.s32 %r3, %r1, %r2; cvt.u64.u32 %rd2, %r3;", 2),
        ("mov.u32 %r1, 0; bfind.u32 %r2, %r1; cvt.u64.u32 %rd2, %r2;", 0xffff_ffff),
        ("mov.u32 %r1, 0x500; bfind.u32 %r2, %r1; cvt.u64.u32 %rd2, %r2;", 10),
        ("mov.u32 %r1, 0x500; bfind.shiftamt.u32 %r2, %r1; cvt.u64.u32 %rd2, %r2;", 21),
        ("mov.u32 %r1, 0; bfind.shiftamt.u32 %r2, %r1; cvt.u64.u32 %rd2, %r2;", 0xffff_ffff),
        ("mov.u32 %r1, 1; mov.u32 %r2, 2; mov.b64 %rd2, {%r1, %r2};", 0x2_0000_0001),
        ("mov.u64 %rd3, 0x200000001; mov.b64 {%r1, %r2}, %rd3; cvt.u64.u32 %rd2, %r2;", 2),
        ("setp.lt.s32 %p1, %t, 1; setp.eq.and.u32 %p2, %t, 0, !%p1; selp.b64 %rd2, 1, 2, %p2;", 2),
        ("st.shared.v2.b32 [s+8], {5, 6}; ld.shared.b64 %rd2, [s+8];", 0x6_0000_0005),
        (
            "mov.u32 %r1, s; st.shared.b16 [%r1+2], -2; ld.shared.s16 %r2, [s+2]; cvt.s64.s32 %rd2, %r2;",
            -2_i64 as u64,
        ),
        ("mov.u32 %r1, 7; @!%p1 mov.u32 %r1, 8; cvt.u64.u32 %rd2, %r1;", 8),
        ("st.volatile.global.v2.b32 [%rd1], {5, 6}; ld.volatile.global.b64 %rd2, [%rd1];", 0x6_0000_0005),
        ("mov.u64 %rd3, %globaltimer; mov.u64 %rd4, %globaltimer; sub.u64 %rd2, %rd4, %rd3;", 1),
        (
            "mov.u64 %rd3, %globaltimer; nanosleep.u32 40; mov.u64 %rd4, %globaltimer; sub.u64 %rd2, %rd4, %rd3;",
            42,
        ),
    ] {
        let body = format!("\tsetp.ne.u32 %p1, %t, 0;\n\t{body}");
        assert_eq!(value(&body), expected, "{body}");
    }
}

#[test]
fn a_scope_has_labels_of_its_own() {
    let body = "	mov.u32 %r1, 0;
	bra $inner;
$again:
	bra $end;
$inner:
	{
$again:
	add.u32 %r1, %r1, 1;
	setp.lt.u32 %p1, %r1, 6;
	@%p1 bra $again;
	}
	setp.eq.u32 %p1, %r1, 6;
	@%p1 bra $again;
	mov.u32 %r1, 99;
$end:
	cvt.u64.u32 %rd2, %r1;";
    assert_eq!(value(body), 6);
}

#[test]
fn functions_take_arguments_and_return_results() {
    let body =
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 14; call.uni (r), f, (a); ld.param.b32 %r1, [r]; }
	cvt.u64.u32 %rd2, %r1;";
    assert_eq!(value(body), 42);
}

#[test]
fn groups_split_where_lanes_part_and_join_at_labels() {
    let body = "	setp.lt.u32 %p1, %t, 5;
	mov.u64 %rd2, 1;
	@%p1 bra $five;
	// warptrace.loc 1
	mov.u64 %rd2, 2;
$five:
	// warptrace.loc 2
	activemask.b32 %r1;
	vote.ballot.b32 %r2, %p1;
	mov.b64 %rd2, {%r1, %r2};
	st.global.u64 [%rd1], %rd2;";
    let masks = |schedule: &mut Schedule| {
        let (words, observed) = launch(body, 40, schedule).expect("the kernel runs");
        let second = observed.markers.iter().filter(|event| event.marker == Marker::Event(2));
        let mut masks: Vec<(u32, u32)> = second.map(|event| (event.warp, event.mask)).collect();
        masks.sort_unstable();
        (words, masks)
    };
    let (words, split) = masks(&mut Schedule::switches(&[], false));
    assert_eq!(split, [(0, 0x1f), (0, 0xffff_ffe0), (1, 0xff)]);
    assert_eq!((words[0], words[5], words[32]), (0x1f_0000_001f, 0xffff_ffe0, 0xff));
    // Groups of a warp join at the label if the group that is furthest behind runs first.
    let met = (0..64).filter(|seed| {
        let (words, masks) = masks(&mut Schedule::random(*seed));
        masks == [(0, u32::MAX), (1, 0xff)] && words[0] == 0x1f_ffff_ffff
    });
    assert!((1..64).contains(&met.count()));
    assert_eq!(masks(&mut Schedule::random(9)), masks(&mut Schedule::random(9)));
}

#[test]
fn atomics_add_up_whatever_the_order() {
    let body = "	ld.param.u64 %rd3, [k_param];
	red.global.add.u64 [%rd3], 1;
	atom.global.add.u64 %rd4, [%rd3+8], 3;
	setp.ne.u64 %p1, %rd4, 0;
	@%p1 exit;
	red.global.add.u64 [%rd3+16], 1;";
    for seed in 0..8 {
        let (words, _) = launch(body, 40, &mut Schedule::random(seed)).expect("the kernel runs");
        assert_eq!(words[..3], [40, 120, 1]);
    }
}

#[test]
fn atomics_join_bits_whatever_the_order() {
    let body = "	ld.param.u64 %rd3, [k_param];
	and.b32 %r1, %t, 31;
	shl.b32 %r2, %r1, 1;
	mov.u32 %r3, 1;
	shl.b32 %r3, %r3, %r1;
	red.global.or.b32 [%rd3], %r3;
	mov.u64 %rd4, 3;
	shl.b64 %rd4, %rd4, %r2;
	atom.global.or.b64 %rd5, [%rd3+8], %rd4;
	atom.global.or.b64 %rd5, [%rd3+8], 0;
	setp.ne.u64 %p1, %rd5, -1;
	@%p1 exit;
	red.global.add.u64 [%rd3+16], 1;";
    for seed in 0..8 {
        let (words, _) = launch(body, 40, &mut Schedule::random(seed)).expect("the kernel runs");
        assert_eq!(words[..2], [u64::from(u32::MAX), u64::MAX]);
        // The last lane to execute it gets all bits.
        assert!((1..=40).contains(&words[2]), "{}", words[2]);
    }
}

#[test]
fn a_group_that_sleeps_lets_the_host_and_others_go_on() {
    // Thread 0 waits for the host, thread 32 for thread 0.
    let body = "	ld.param.u64 %rd3, [k_param];
	shr.u32 %r1, %t, 5;
	mad.wide.u32 %rd3, %r1, 8, %rd3;
$wait:
	ld.volatile.global.b64 %rd4, [%rd3+8];
	setp.ne.u64 %p1, %rd4, 0;
	@%p1 bra $go;
	nanosleep.u32 100;
	bra $wait;
$go:
	add.u64 %rd2, %rd4, 1;
	st.volatile.global.b64 [%rd3+16], %rd2;";
    let mut calls = 0;
    let mut host = |memory: &mut Memory| {
        calls += 1;
        if calls == 5 {
            let word = memory.region_mut(OUT).and_then(|region| region.get_mut(8..16));
            word.expect("a word").copy_from_slice(&7_u64.to_le_bytes());
        }
    };
    let text = kernel("6.3", body);
    let (words, _) =
        launch_with_host(&text, 64, &mut Schedule::switches(&[], true), &mut host).expect("the kernel ends");
    assert_eq!(words[1..4], [7, 8, 9]);
}

#[test]
fn what_an_instruction_must_not_do_is_an_error_that_names_it() {
    let lane = 0;
    let global = "global";
    for (body, threads, expected) in [
        ("bar.arrive 1, 64;", 1, Fault::Unknown("this kind of barrier".to_owned())),
        ("add.rz.f32 %r1, %r2, %r3;", 1, Fault::Unknown("modifier `rz`".to_owned())),
        ("add.f32 %r1, %r2, %r3;", 1, Fault::Uninitialised { lane, register: "%r2".to_owned() }),
        (
            "add.u32 %rd2, %t, 1;",
            1,
            Fault::Unknown("`%rd2` has 64 bits, and the instruction takes 32".to_owned()),
        ),
        ("add.u32 %q, %t, 1;", 1, Fault::Unknown("`%q` is no declared register".to_owned())),
        ("add.u32 %r20, %t, 1;", 1, Fault::Unknown("`%r20` is no declared register".to_owned())),
        ("nanosleep.u64 5;", 1, Fault::Unknown("unknown opcode".to_owned())),
        (
            "ld.global.volatile.u64 %rd2, [%rd1];",
            1,
            Fault::Unknown("`volatile` stands before the state space".to_owned()),
        ),
        ("red.global.mul.u32 [%rd1], 1;", 1, Fault::Unknown("this kind of atomic".to_owned())),
        ("bra $nowhere;", 1, Fault::Unknown("there is no label `$nowhere`".to_owned())),
        ("add.u32 %r1, %r2, 1;", 1, Fault::Uninitialised { lane, register: "%r2".to_owned() }),
        ("@%p1 mov.u32 %r1, 1;", 1, Fault::Uninitialised { lane, register: "%p1".to_owned() }),
        ("ld.shared.b32 %r1, [s+4];", 1, Fault::Unwritten { lane, space: "shared", address: 4, bytes: 4 }),
        ("st.shared.b32 [s+64], 1;", 1, Fault::Bounds { lane, space: "shared", address: 64, bytes: 4 }),
        ("st.global.u64 [%rd1+8], 1;", 1, Fault::Bounds { lane, space: global, address: OUT + 8, bytes: 8 }),
        ("st.global.u64 [%rd1+-8], 1;", 1, Fault::Bounds { lane, space: global, address: OUT - 8, bytes: 8 }),
        (
            "st.global.u64 [%rd1+4], 1;",
            1,
            Fault::Misaligned { lane, space: global, address: OUT + 4, bytes: 8 },
        ),
        (
            "st.global.v4.b32 [%rd1+8], {1, 2, 3, 4};",
            4,
            Fault::Misaligned { lane, space: global, address: OUT + 8, bytes: 16 },
        ),
        ("setp.eq.u32 %p1, %t, 0; @%p1 bra.uni $end; $end:", 2, Fault::Diverges { taken: 1, others: 2 }),
        (
            "setp.eq.u32 %p1, %t, 0; vote.sync.any.pred %p2, %p1, 1;",
            2,
            Fault::Members { lane: 1, named: 1, here: 3 },
        ),
        ("shfl.idx.b32 %r1, %t, 2, 31;", 2, Fault::Source { lane, from: 2 }),
        ("trap;", 1, Fault::Trap),
        ("div.u32 %r1, 1, %t;", 1, Fault::Division { lane }),
    ] {
        let (line, text, found) = fault(body, threads);
        assert_eq!(found, expected, "{body}");
        assert_eq!(line, 23, "{text}");
        assert!(body.contains(&text), "{text} of {body}");
    }
}

#[test]
fn votes_name_their_lanes_from_version_six_four_on() {
    let body = "setp.eq.u32 %p1, %t, 0; vote.any.pred %p2, %p1;";
    let schedule = &mut Schedule::random(0);
    assert!(launch_text(&kernel("6.3", body), 2, schedule).is_ok());
    let error = launch_text(&kernel("6.4", body), 2, schedule).expect_err("a plain vote").to_string();
    assert!(error.contains("line 23, `vote.any.pred %p2, %p1;`, warp 0"), "{error}");
}

#[test]
fn loops_without_end_and_launches_that_do_not_fit_are_errors() {
    let schedule = &mut Schedule::random(0);
    let endless = launch("$again: bra $again;", 1, schedule).map(|_| ());
    assert_eq!(endless, Err(InterpretError::Steps { limit: 10_000 }));
    assert!(matches!(launch("", 0, schedule), Err(InterpretError::Launch { .. })));
    assert!(matches!(launch("", 1 << 20, schedule), Err(InterpretError::Launch { .. })));
    let huge = ".local .b8 huge[99999999999];";
    assert!(matches!(launch(huge, 1, schedule), Err(InterpretError::Declaration { .. })));
    let recursive = kernel("6.3", "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 1; call (r), f, (a); }")
        .replace(
            "mul.lo.u32 %r2, %r1, 3;",
            "{ .param .b32 a; st.param.b32 [a], 1; call (f_result), f, (a); }",
        );
    let error = launch_text(&recursive, 1, schedule).expect_err("endless calls").to_string();
    assert!(error.contains("more than 64 nested calls"), "{error}");
}

#[test]
fn performance_events_are_counted_by_groups_and_lanes() {
    let body = "	setp.lt.u32 %p1, %t, 5;
	@%p1 bra $five;
	pmevent.mask 7;
$five:
	pmevent.mask 9;
	pmevent.mask 9;
	mov.u32 %r1, 0;";
    let (_, observed) = launch(body, 32, &mut Schedule::switches(&[], false)).expect("the kernel runs");
    let counts =
        [7, 9].map(|mask| observed.performance_events[&mask]).map(|events| (events.groups, events.lanes));
    assert_eq!(counts, [(1, 27), (4, 64)]);
}

#[test]
fn threads_wait_at_a_barrier_for_those_of_other_warps() {
    // One thread stores to shared memory, and all threads read it after the barrier.
    let body = "\tmov.u32 %r1, s;\n\tsetp.eq.u32 %p1, %t, 40;\n\t@!%p1 bra WAIT;\n\tmov.u32 %r2, 77;
	st.shared.u32 [s], %r2;\nWAIT:\n\tbar.sync 0;\n\tcvt.u64.u32 %rd3, %r1;\n\tcvta.shared.u64 %rd3, %rd3;
	ld.u32 %r3, [%rd3];\n\tcvt.u64.u32 %rd2, %r3;\n\tst.u64 [%rd1], %rd2;";
    for seed in 0..40 {
        let (words, observed) = launch(body, 41, &mut Schedule::random(seed)).expect("the kernel runs");
        assert_eq!(words, [77; 41]);
        assert_eq!(observed.lines.values().map(|executed| executed.lanes).max(), Some(41));
    }
    let (_, _, fault) = fault("\t@%p1 bar.sync 0;", 1);
    assert!(matches!(fault, Fault::Unknown(_)), "{fault}");
}

#[test]
fn funnel_shifts_take_two_values() {
    let shift = |op: &str, by: u32| {
        value(&format!(
            "\tmov.u32 %r1, 0x89abcdef;\n\tmov.u32 %r2, 0x01234567;\n\tshf.{op}.b32 %r3, %r1, %r2, {by};\n\tcvt.u64.u32 %rd2, %r3;"
        ))
    };
    assert_eq!(shift("l.wrap", 8), 0x2345_6789);
    assert_eq!(shift("r.wrap", 8), 0x6789_abcd);
    assert_eq!((shift("l.wrap", 32), shift("r.wrap", 32)), (0x0123_4567, 0x89ab_cdef));
    assert_eq!((shift("l.clamp", 40), shift("r.clamp", 40)), (0x89ab_cdef, 0x0123_4567));
}
