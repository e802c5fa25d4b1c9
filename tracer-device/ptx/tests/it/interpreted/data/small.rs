//! Small kernels: copies, values, scopes, and data that cannot be recorded.

use warptrace_abi::recording::Spaces;
use warptrace_format::chosen::After;
use warptrace_ptx::interpret::Memory;
use warptrace_ptx::points::{
    LineTable, Marked, PointOptions, Points, SiteKind, SiteSpace, SourcePlace, mark, mark_accesses,
};
use warptrace_ptx::splice::{LogKind, Options, Recording, SpliceError, splice};

use super::super::case::Shape;
use super::{Case, RECORDING, Traced};
use warptrace_abi::log::FirstSegments;

const DATA: u64 = 0x10_0000;

pub(super) fn module(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_data)\n{{
\t.reg .pred %p<4>;\n\t.reg .b16 %rs<4>;\n\t.reg .b32 %r<8>;\n\t.reg .f32 %f<4>;\n\t.reg .b64 %rd<8>;
\tld.param.u64 %rd1, [k_data];\n\tmov.u32 %r1, %tid.x;\n\tmul.wide.u32 %rd2, %r1, 16;\n\tadd.s64 %rd3, %rd1, %rd2;\n{body}\n}}\n"
    )
}

/// Runs a kernel of 40 threads under 20 schedules; returns the number of accesses of the last run.
fn check(traced: &Traced) -> u64 {
    let mut memory = Memory::new();
    memory.declare(DATA, (0..4096_u32).flat_map(|index| (index as u8).to_le_bytes()).collect());
    let shape = Shape {
        grid: [1; 3],
        block: [40, 1, 1],
        first: FirstSegments::of_streams(32),
        segments: 64,
        claimed: 0,
        clock: 9,
    };
    let parameters = vec![DATA.to_le_bytes().to_vec()];
    let case = Case { kernel: "k", shape, parameters, memory, output: DATA, dynamic_shared: 0 };
    let outcomes = (0..20).map(|seed| traced.check(&case, seed));
    outcomes.fold(0, |_, outcome| outcome.accesses + outcome.derived)
}

fn all(body: &str) -> Traced {
    Traced::new(&module(body), Spaces::ALL, None, 90)
}

#[test]
fn both_addresses_of_a_copy_have_a_site() {
    let body = "\t.shared .align 16 .b8 tile[1024];
\tmov.u32 %r2, tile;\n\tshl.b32 %r3, %r1, 4;\n\tadd.u32 %r2, %r2, %r3;\n\tsetp.lt.u32 %p1, %r1, 33;
\t@%p1 cp.async.cg.shared.global [%r2], [%rd3], 16;
\tcp.async.ca.shared.global [tile+1008], [ %rd1 + 64 ], 8;
\tcp.async.wait_all;
\tret;";
    let traced = all(body);
    let sites: Vec<_> = traced
        .marked
        .sites
        .iter()
        .map(|site| (site.kind, site.space, site.bytes, &*site.cache, site.is_predicated))
        .collect();
    assert_eq!(
        sites,
        [
            (SiteKind::CopyTo, SiteSpace::Shared, 16, "cg", true),
            (SiteKind::CopyFrom, SiteSpace::Global, 16, "cg", true),
            (SiteKind::CopyTo, SiteSpace::Shared, 8, "ca", false),
            (SiteKind::CopyFrom, SiteSpace::Global, 8, "ca", false),
        ]
    );
    assert_eq!(check(&traced), 33 + 33 + 40 + 40);
    let global = Spaces { global: true, ..Spaces::NONE };
    assert_eq!(check(&Traced::new(&module(body), global, None, 90)), 33 + 40);
}

#[test]
fn sites_stand_in_scopes_and_see_their_registers() {
    let body = "\t{ .reg .b32 at; mov.u32 at, 4;
\t{ .reg .pred p; setp.ne.u32 p, %r1, 3; .shared .b32 word[8];
\tst.shared.u32 [word], %r1; mov.u32 %r4, word; add.u32 at, at, %r4;
\t@p st.shared.u32 [at], %r1;
\t@!p st.shared.u32 [at+4], %r1; bar.sync 0; } }
\tld.global.u32 %r2, [%rd3];\n\tret;";
    let traced = all(body);
    assert_eq!(traced.marked.unrecorded, []);
    assert_eq!(check(&traced), 40 + 39 + 1 + 40);
}

/// Derived addresses: with predicates, through moves, of 32 bits, and from registers that change.
#[test]
fn what_follows_from_others_is_not_recorded() {
    let body = "\t.shared .align 16 .b8 tile[2048];
\tmov.u32 %r3, tile;\n\tshl.b32 %r2, %r1, 4;\n\tadd.u32 %r2, %r2, %r3;\n\tmov.u32 %r4, 0;
$LOOP:
\tst.shared.v2.u32 [%r2+8], {%r1, %r4};\n\tbar.sync 0;
\tld.shared.u8 %r5, [%r2+9];\n\tadd.u32 %r5, %r2, 512;\n\tadd.s32 %r5, %r5, -500;\n\tld.shared.u32 %r6, [%r5];
\tsetp.lt.u32 %p1, %r1, 33;
\t@%p1 ld.global.u32 %r5, [%rd3];\n\t@!%p1 ld.global.u32 %r6, [%rd3+4];\n\t@%p1 ld.u16 %rs1, [%rd3+8];
\tadd.s64 %rd4, %rd3, 16;\n\tmov.b64 %rd3, %rd4;\n\t@!%p1 st.global.u32 [%rd3+-12], %r6;
\tadd.u32 %r4, %r4, 1;\n\tsetp.lt.u32 %p2, %r4, 3;\n\t@%p2 bra $LOOP;\n\tret;";
    let traced = all(body);
    let derived: Vec<_> = traced
        .marked
        .sites
        .iter()
        .map(|site| site.derived.map(|derived| (derived.root, derived.offset, derived.is_narrow)))
        .collect();
    let found = [(1, 1, true), (1, 4, true), (2, 8, false), (3, 0, false)].map(Some);
    assert_eq!(derived, [[None; 3].as_slice(), &found].concat());
    assert!(traced.marked.text.contains("[%rd3+8] @%p1 = 2\n"), "{}", traced.marked.text);
    assert_eq!(check(&traced), 3 * (3 * 40 + 2 * 33 + 2 * 7));
}

fn marked(body: &str) -> Marked {
    Marked { text: module(body), ..Marked::default() }
}

#[test]
fn values_of_registers_are_recorded() {
    let body = "\tsetp.lt.u32 %p1, %r1, 7;\n\tcvt.u16.u32 %rs1, %r1;\n\tcvt.rn.f32.u32 %f1, %r1;
\t// warptrace.data 4 %p1\n\t// warptrace.data 9 %rs1\n\t// warptrace.data 5 %f1 @!%p1\n\t// warptrace.data 6 %rd3
\t// warptrace.loc 3\n\t@%p1 bra $END;
\tadd.u32 %r1, %r1, 1;\n$END:\n\t// warptrace.data 7 %r1\n\tret;";
    let traced = Traced::from_marked(marked(body), None, 90);
    assert_eq!(check(&traced), 40 + 40 + 33 + 40 + 40);
    // A site at two places has one list of accesses.
    let twice = body.replace("data 9 %rs1", "data 4 %r1");
    assert_eq!(check(&Traced::from_marked(marked(&twice), None, 90)), 80 + 33 + 40 + 40);
}

#[test]
fn what_cannot_be_recorded_together_is_refused() {
    let text = module("\t// warptrace.data 4 %rd1\n\tret;");
    let after = After { location: 2, count: std::num::NonZeroU32::MIN };
    for (recording, says) in [
        (Recording { dual: true, ..RECORDING }, "leave the dual recording out"),
        (
            Recording { after: Some(after), ..RECORDING },
            "leave the visit from which on lanes are recorded out",
        ),
        (Recording { logs: LogKind::Ring, ..RECORDING }, "leave the policy `ring` out"),
        (Recording { logs: LogKind::Streamed, ..RECORDING }, "leave the policy `stream` out"),
    ] {
        let options = Options { recording: Some(recording), ..Options::default() };
        let error = splice(&text, &options).expect_err("it is refused").to_string();
        assert!(error.contains(says), "{error}");
    }
    let refused = |text: &str| {
        let options = Options { recording: Some(RECORDING), ..Options::default() };
        splice(text, &options).expect_err("it is refused")
    };
    let function = text.replace(".visible .entry k(", ".func k(");
    assert!(matches!(refused(&function), SpliceError::DataInFunction { .. }));
    let many = module("\t// warptrace.data 4 %rd1\n\t// warptrace.data 516 %rd1\n\tret;");
    assert!(matches!(refused(&many), SpliceError::Sites { sites: 513, .. }));
    let unknown = text.replace("4 %rd1", "4 %q1");
    assert!(matches!(refused(&unknown), SpliceError::Marker { .. }));
    // A kernel that records no data treats such markers as comments.
    let options = Options { recording: Some(Recording::DEFAULT), ..Options::default() };
    assert!(splice(&text, &options).is_ok());
}

#[test]
fn what_has_no_site_is_named() {
    let function = ".func f(.param .b64 f_at)\n{\n\t.reg .b64 %rd<2>; .reg .b32 %r<2>;
\tld.param.u64 %rd1, [f_at];\n\tld.global.u32 %r1, [%rd1];\n\tst.local.u32 [%rd1], %r1;\n\tret;\n}\n";
    let loads = "\tld.global.u32 %r2, [%rd1];\n\tmul.lo.s64 %rd1, %rd1, 3;\n".repeat(515);
    let text = module(&format!("{loads}\tld.global.u32 %r2, [{{%rd1, 4}}];\n\tret;"))
        .replace(".visible .entry", &format!("{function}.visible .entry"));
    let options =
        PointOptions { accesses: Spaces { global: true, ..Spaces::NONE }, ..PointOptions::default() };
    let marked = mark(&text, &options).expect("it is PTX");
    assert_eq!(marked.sites.len(), 512);
    let named: Vec<(&str, &str)> =
        marked.unrecorded.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
    for (at, name, says) in [
        (0, "f", "it is not inlined: 1 of its accesses"),
        (1, "k", "3 of its accesses are not recorded: of a kernel at most 512 sites are"),
        (2, "k", "1 of its accesses are not recorded: `[{%rd1,4}]` cannot be read"),
    ] {
        assert!(named[at].0 == name && named[at].1.contains(says), "{named:?}");
    }
    let options = PointOptions { accesses: Spaces::ALL, first_site: 32_767, ..options };
    let marked = mark(&module("\tld.global.u32 %r2, [%rd1];\n\tst.global.u32 [%rd2], %r2;\n\tld.global.u32 %r2, [%rd1, 4];\n\tret;"), &options).expect("it is PTX");
    assert_eq!((marked.sites.len(), marked.unrecorded.len()), (1, 2));
}

#[test]
fn sites_have_their_lines_and_the_location_of_their_block() {
    let text = module(
        "\tsetp.ne.u32 %p1, %r1, 3;\n\t@%p1 bra $OVER;\n\tld.global.u32 %r2, [%rd3];\n$OVER:\n\tst.global.v2.u32 [%rd3], {%r1, %r1};\n\tret;",
    );
    let line = |what: &str| text.lines().position(|line| line.contains(what)).expect("it is there") + 1;
    let place = SourcePlace { file: "a.cu".into(), line: 7, column: 3 };
    let lines = LineTable::from([(line("ld.global"), (place.clone(), [].into()))]);
    let options = PointOptions { accesses: Spaces::ALL, lines: Some(&lines), ..PointOptions::default() };
    let marked = mark(&text, &options).expect("it is PTX");
    let found: Vec<_> = marked
        .sites
        .iter()
        .map(|site| {
            (site.id, site.kind, site.bytes, site.elements, site.ptx_line, site.source.clone(), site.location)
        })
        .collect();
    assert_eq!(
        found,
        [
            (1, SiteKind::Load, 4, 1, line("ld.global"), Some(place), 2),
            (2, SiteKind::Store, 8, 2, line("st.global"), None, 3),
        ]
    );
    // If points are sparser than blocks, a site may have no location.
    let few =
        mark(&text, &PointOptions { points: Points::Functions, lines: None, ..options }).expect("it is PTX");
    assert_eq!(few.sites.iter().map(|site| site.location).collect::<Vec<_>>(), [0, 0]);
    let without = mark(&text, &PointOptions { accesses: Spaces::NONE, ..options }).expect("it is PTX");
    let own = mark_accesses(&without.text, &PointOptions { lines: None, ..options })
        .expect("it has no markers of data");
    assert_eq!(own.text, marked.text);
    assert_eq!(own.sites.iter().map(|site| site.location).collect::<Vec<_>>(), [2, 3]);
    assert!(mark_accesses(&own.text, &options).is_err());
    assert_eq!(check(&Traced::from_marked(own, None, 90)), 1 + 40);
}
