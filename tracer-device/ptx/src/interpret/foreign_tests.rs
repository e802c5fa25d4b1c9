//! Tests of opcodes in kernels of other compilers.

use super::tests::{launch, value};
use super::{Fault, InterpretError, Schedule};

fn word(body: &str) -> u64 {
    value(&format!("{body}\n\tcvt.u64.u32 %rd2, %r3;"))
}

fn single(number: f32) -> u64 {
    number.to_bits().into()
}

#[test]
fn numbers_with_a_fraction_are_rounded_to_the_nearest() {
    for (body, expected) in [
        ("add.rn.f32 %r3, 0f3F800000, 0f33800000;", single(1.0)),
        ("add.f32 %r3, 0f3F800000, 0f34000000;", single(1.0 + f32::EPSILON)),
        ("sub.f32 %r3, 0f3F800000, 0f40000000;", single(-1.0)),
        ("mul.f32 %r3, 0f40400000, 0f3F000000;", single(1.5)),
        ("fma.rn.f32 %r3, 0f3F800001, 0f3F800001, 0fBF800002;", single(2.0_f32.powi(-46))),
        ("div.rn.f32 %r3, 0f3F800000, 0f40400000;", single(1.0 / 3.0)),
        ("sqrt.rn.f32 %r3, 0f40000000;", single(2.0_f32.sqrt())),
        ("max.f32 %r3, 0f7FC00000, 0f40000000;", single(2.0)),
        ("max.NaN.f32 %r3, 0f7FC00000, 0f40000000;", 0x7fff_ffff),
        ("mul.ftz.f32 %r3, 0f00000001, 0f3F800000;", 0),
        ("add.sat.f32 %r3, 0f3F800000, 0f40000000;", single(1.0)),
        ("cvt.rn.f32.s32 %r3, -3;", single(-3.0)),
        ("cvt.rz.f32.u32 %r3, 0xFFFFFFFF;", 0x4f7f_ffff),
        ("cvt.rzi.s32.f32 %r3, 0fC0200000;", (-2_i32 as u32).into()),
        ("cvt.rni.s32.f32 %r3, 0f40200000;", 2),
        ("cvt.rmi.f32.f32 %r3, 0fC0200000;", single(-3.0)),
        ("cvt.rzi.u32.f32 %r3, 0fC0200000;", 0),
        ("cvt.rzi.s32.f32 %r3, 0f7FC00000;", 0),
        ("mov.b64 %rd3, 0d3FF8000000000000; cvt.rn.f32.f64 %r3, %rd3;", single(1.5)),
        ("cvt.rn.f16.f32 %h1, 0f3F801000; cvt.f32.f16 %r3, %h1;", single(1.0)),
        ("cvt.rn.f16x2.f32 %r3, 0f3F800000, 0f40000000;", 0x3c00_4000),
        ("add.f16x2 %r3, 0x3C004000, 0x3C003C00;", 0x4000_4200),
        ("setp.ltu.f32 %p2, 0f7FC00000, 0f0; selp.b32 %r3, 1, 2, %p2;", 1),
        ("setp.lt.f32 %p2, 0f7FC00000, 0f00000000; selp.f32 %r3, 0f3F800000, 0f40000000, %p2;", single(2.0)),
        ("setp.gt.and.f32 %p2, 0f3F800000, 0f00000000, !%p1; selp.b32 %r3, 1, 2, %p2;", 1),
    ] {
        let body = body.replace("0f0;", "0f00000000;");
        assert_eq!(word(&format!("\tsetp.ne.u32 %p1, %t, 0;\n\t{body}")), expected, "{body}");
    }
}

#[test]
fn bits_are_chosen_moved_and_counted() {
    for (body, expected) in [
        ("bfe.u32 %r3, 0x12345678, 8, 8;", 0x56),
        ("bfe.s32 %r3, 0x12348678, 8, 8;", 0xffff_ff86),
        ("bfi.b32 %r3, 0xff, 0, 4, 4;", 0xf0),
        ("prmt.b32 %r3, 0x44332211, 0x88776655, 0x7410;", 0x8855_2211),
        ("prmt.b32 %r3, 0x000000f1, 0, 0x8888;", 0xffff_ffff),
        ("lop3.b32 %r3, 0xff00, 0xf0f0, 0xcccc, 0x96;", 0xff00 ^ 0xf0f0 ^ 0xcccc),
        ("clz.b32 %r3, 0x00010000;", 15),
        ("brev.b32 %r3, 1;", 0x8000_0000),
        ("abs.s32 %r3, -5;", 5),
        ("mad.hi.u32 %r3, 0x80000000, 6, 7;", 10),
        ("dp4a.s32.s32 %r3, 0x01ff0203, 0x02020202, 5;", 15),
        ("add.cc.u32 %r1, 0xffffffff, 1; addc.u32 %r3, 3, 4;", 8),
        ("sub.cc.u32 %r1, 0, 1; subc.u32 %r3, 3, 1;", 1),
        ("mov.u32 %r3, 70000; cvt.u16.u32 %h1, %r3; cvt.s32.s16 %r3, %h1;", 4464),
        ("ld.shared.s8 %r3, [s]; add.s32 %r3, %r3, 0;", 0xffff_ff80),
        ("mov.u32 %r3, %lanemask_le;", 1),
    ] {
        let body = format!("\tst.shared.b8 [s], 0x80;\n\t{body}");
        assert_eq!(word(&body), expected, "{body}");
    }
}

#[test]
fn atomics_do_to_shared_memory_what_they_say() {
    for (op, held, expected) in [
        ("max.s32 %r1, [s], 5", -3_i32 as u32, 5),
        ("min.u32 %r1, [s], 5", -3_i32 as u32, 5),
        ("and.b32 %r1, [s], 6", 3, 2),
        ("exch.b32 %r1, [s], 9", 3, 9),
        ("cas.b32 %r1, [s], 3, 8", 3, 8),
        ("cas.b32 %r1, [s], 4, 8", 3, 3),
        ("inc.u32 %r1, [s], 3", 3, 0),
        ("dec.u32 %r1, [s], 3", 0, 3),
        ("add.f32 %r1, [s], 0f3F800000", 0x3f80_0000, 0x4000_0000),
        ("relaxed.cta.add.u32 %r1, [s], 2", 3, 5),
    ] {
        let op = if op.starts_with("relaxed") {
            op.replace("cta.", "cta.shared.")
        } else {
            format!("shared.{op}")
        };
        let body = format!("\tst.shared.u32 [s], {held};\n\tatom.{op};\n\tld.shared.u32 %r3, [s];");
        assert_eq!(word(&body), expected, "{op}");
    }
}

/// Diverged lanes reconverge at instructions that name lanes, under any schedule.
#[test]
fn lanes_wait_for_those_that_they_name() {
    let body = "\tsetp.lt.u32 %p1, %t, 11;
	mov.u32 %r1, %t;
	@%p1 bra $low;
	add.u32 %r1, %r1, 100;
$low:
	shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
	shfl.sync.up.b32 %r4|%p2, %r1, 1, 0, -1;
	redux.sync.add.s32 %r5, %t, -1;
	bar.warp.sync -1;
	selp.u32 %r6, 1, 0, %p2;
	mad.lo.u32 %r2, %r6, 1000, %r2;
	add.u32 %r2, %r2, %r5;
	cvt.u64.u32 %rd2, %r2;
	st.global.u64 [%rd1], %rd2;";
    for seed in 0..40 {
        let (words, _) = launch(body, 32, &mut Schedule::random(seed)).expect("the kernel runs");
        let partner = |lane: u64| if lane ^ 1 < 11 { lane ^ 1 } else { (lane ^ 1) + 100 };
        let expected: Vec<u64> =
            (0..32).map(|lane| partner(lane) + if lane > 0 { 1000 } else { 0 } + 496).collect();
        assert_eq!(words, expected, "{seed}");
    }
}

#[test]
fn lanes_that_never_come_are_a_deadlock() {
    let body = "\tsetp.lt.u32 %p1, %t, 11;\n\t@%p1 bra $low;\n\tbar.sync 0;\n$low:\n\tbar.warp.sync -1;";
    let found = launch(body, 32, &mut Schedule::switches(&[], false)).map(|_| ());
    assert_eq!(found, Err(InterpretError::Deadlock));
    let body = "\tsetp.lt.u32 %p1, %t, 11;\n\t@%p1 exit;\n\tbar.warp.sync -1;";
    for seed in 0..20 {
        assert!(launch(body, 32, &mut Schedule::random(seed)).is_ok(), "{seed}");
    }
}

#[test]
fn barriers_have_numbers_and_lengths() {
    // Warp 0 passes barrier 1 with warp 1 only; warp 2 ends.
    let body = "\tsetp.ge.u32 %p1, %t, 64;\n\t@%p1 exit;\n\tbar.sync 1, 64;\n\tbar.sync 0;";
    for seed in 0..20 {
        assert!(launch(body, 96, &mut Schedule::random(seed)).is_ok(), "{seed}");
    }
}

#[test]
fn tables_and_addresses_of_functions_lead_on() {
    let body = "T: .branchtargets $a, $b, $a;
	brx.idx %t, T;
$a:
	mov.u32 %r3, 1;
	bra $c;
$b:
	mov.u32 %r3, 2;
$c:
	{ .param .b32 a; .param .b32 r; .reg .b64 %f; st.param.b32 [a], %r3; mov.u64 %f, f;
	P: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (r), %f, (a), P; ld.param.b32 %r3, [r]; }
	cvt.u64.u32 %rd2, %r3;
	st.global.u64 [%rd1], %rd2;";
    let (words, _) = launch(body, 3, &mut Schedule::random(3)).expect("the kernel runs");
    assert_eq!(words, [3, 6, 3]);
    match launch(body, 4, &mut Schedule::switches(&[], true)) {
        Err(InterpretError::Instruction { fault, .. }) => {
            assert_eq!(fault, Fault::Table { lane: 3, index: 3 });
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn variables_of_the_module_hold_their_values() {
    let body =
        "\tld.const.u32 %r1, [table+4];\n\tmov.u64 %rd3, total;\n\tatom.global.add.u32 %r2, [%rd3], %r1;
	ld.global.u32 %r3, [total];\n\tcvt.u64.u32 %rd2, %r3;\n\tst.global.u64 [%rd1], %rd2;";
    let text = super::tests::kernel("6.3", body).replace(
        ".func (.param .b32 f_result)",
        ".const .align 4 .u32 table[3] = {1, 0x20, 3};\n.global .u32 total = 10;\n.func (.param .b32 f_result)",
    );
    let (words, _) = super::tests::launch_text(&text, 1, &mut Schedule::random(0)).expect("the kernel runs");
    assert_eq!(words, [42]);
}

#[test]
fn a_name_in_several_scopes_has_room_for_the_longest() {
    let call =
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 2; call (r), f, (a); ld.param.b32 %r3, [r]; }";
    let longer = "{ .param .b64 a; st.param.b64 [a], 7; ld.param.b64 %rd3, [a]; }";
    assert_eq!(word(&format!("\t{longer}\n\t{call}")), 6);
}
