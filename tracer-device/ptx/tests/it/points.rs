//! Markers in PTX of other compilers: positions and points.

use warptrace_ptx::points::{Marked, PointError, PointKind, PointOptions, Points, mark};
use warptrace_ptx::splice::{Options, Recording, splice};

const LINES: &str = include_str!("../golden/nvcc-lineinfo.ptx");

fn marked(text: &str, points: Points) -> Marked {
    mark(text, &PointOptions { points, ..PointOptions::default() }).expect("the text can be marked")
}

fn kernel(body: &str) -> String {
    let registers = ".reg .pred %p<9>;\n\t.reg .b32 %r<9>;";
    format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n\t{registers}\n{body}\n}}\n"
    )
}

fn body(marked: &Marked) -> &str {
    let (_, body) = marked.text.split_once("%r<9>;\n").expect("the declarations are there");
    body.trim_end().trim_end_matches('}').trim_end()
}

fn kinds(marked: &Marked) -> Vec<PointKind> {
    marked.points.iter().map(|point| point.kind).collect()
}

#[test]
fn what_was_inlined_names_its_calls() {
    let marked = marked(LINES, Points::Blocks);
    let loop_body = &marked.points[3];
    assert_eq!((loop_body.id, loop_body.kind, loop_body.counted), (4, PointKind::LoopBody, true));
    assert_eq!((loop_body.ptx_line, loop_body.ptx_column, &*loop_body.function), (50, 2, "longest"));
    let place = loop_body.source.as_ref().expect("the compiler says where");
    // The loop ends with `while (n > 1)`, which was inlined once.
    assert_eq!((&*place.file, place.line, place.column), ("lines.cu", 8, 5));
    let calls: Vec<(&str, u32)> =
        loop_body.inlined_at.iter().map(|call| (&*call.function, call.place.line)).collect();
    assert_eq!(calls, [("_Z5stepsi", 17)]);
    // The compiler assigns line 0 to code without a source line.
    assert_eq!(marked.points[2].source, None);
    let kernel = &marked.kernels[0];
    assert_eq!(
        (kernel.name.as_str(), kernel.parameters.len(), kernel.parameters[1].offset),
        ("longest", 2, 8)
    );
}

#[test]
fn a_block_has_the_line_of_the_branch_at_which_lanes_diverge() {
    let text = kernel(
        ".loc 1 3 1\n\tmov.u32 %r1, 1;\n\t.loc 1 4 1\n\t@%p1 ret;\n\t.loc 1 5 1\nL: add.u32 %r1, %r1, 1;\n\t\
         .loc 1 6 1\n\tsetp.ne.s32 %p2|%p3, %r1, 0;\n\t.loc 1 9 1\n\t@%p2 bra L;\n\t.loc 1 7 1\n\tadd.u32 %r2, %r1, 1;\n\t.loc 1 8 1\n\tret;",
    );
    let lines = |points| -> Vec<(PointKind, u32)> {
        let marked = marked(&text, points);
        marked.points.iter().map(|it| (it.kind, it.source.as_ref().map_or(0, |at| at.line))).collect()
    };
    let [entry, body, block] = [PointKind::Entry, PointKind::LoopBody, PointKind::Block];
    assert_eq!(lines(Points::Blocks), [(entry, 4), (body, 6), (block, 7)]);
    assert_eq!(lines(Points::Loops), [(entry, 3), (body, 5)]);
}

#[test]
fn a_marker_stands_behind_what_speaks_of_its_instructions() {
    let text =
        kernel("L: .pragma \"nounroll\";\n\t.loc 1 2 3\n\tadd.u32 %r1, %r1, 1;\n\t@%p1 bra L;\n\tret;");
    assert_eq!(
        body(&marked(&text, Points::Blocks)),
        "\t// warptrace.loc 1\n\t// warptrace.loop.enter 2\nL: .pragma \"nounroll\";\n\t.loc 1 2 3\n\t\
         // warptrace.loop.tick 2 1\n\tadd.u32 %r1, %r1, 1;\n\t@%p1 bra L;\n\t// warptrace.loop.leave 2\n\t\
         // warptrace.loc 3\n\tret;"
    );
}

#[test]
fn blocks_that_follow_without_a_choice_are_implied() {
    let text = kernel(
        "@%p1 bra A;\nbra B;\nB: add.u32 %r1, %r1, 1;\nbra.uni C;\nC: bar.sync 0;\nbra D;\nD: mov.u32 %r1, 2;\nA: ret;",
    );
    let marked = marked(&text, Points::Blocks);
    let implied: Vec<(u16, &[u16])> =
        marked.implied.iter().map(|implied| (implied.after, implied.points.as_slice())).collect();
    // Lanes reconverge at the barrier, and A is a join.
    assert_eq!(implied, [(2, &[3, 4][..])]);
    assert_eq!(marked.text.matches("// warptrace.loc").count(), 4);
}

#[test]
fn loops_come_before_what_they_hold() {
    // The compiler has placed the header after the body.
    let text = kernel(
        "bra HEAD;\nBODY: add.u32 %r1, %r1, 1;\n@%p2 bra NEXT;\nmov.u32 %r1, 3;\nNEXT: mov.u32 %r2, 1;\n\
         HEAD: setp.eq.u32 %p1, %r1, 9;\n@%p1 bra BODY;\nret;",
    );
    let marked = marked(&text, Points::Blocks);
    let points: Vec<(u16, u16, usize)> =
        marked.points.iter().map(|point| (point.id, point.parent, point.block)).collect();
    assert_eq!(points, [(1, 0, 0), (2, 0, 4), (3, 2, 1), (4, 2, 2), (5, 2, 3), (6, 0, 5)]);
    assert_eq!(marked.points[1].kind, PointKind::LoopBody);
}

#[test]
fn what_a_table_leads_to_has_points() {
    let text = kernel(
        "mov.u32 %r1, 1;\nT: .branchtargets A, B, A;\n@%p1 brx.idx %r1, T;\nret;\nA: ret;\nDEAD: mov.u32 %r1, 2;\nB: exit;",
    );
    let blocks: Vec<usize> = marked(&text, Points::Blocks).points.iter().map(|point| point.block).collect();
    assert_eq!(blocks, [0, 1, 2, 4]);
    assert!(marked(&text, Points::Blocks).text.contains("T: .branchtargets A, B, A;\n@%p1 brx.idx"));
    assert_eq!(kinds(&marked(&text, Points::Branches)), [PointKind::Entry]);
}

#[test]
fn both_sides_of_a_branch_have_points() {
    let text = kernel(
        "@%p1 bra ELSE;\nmov.u32 %r1, 1;\nbra END;\nELSE: mov.u32 %r1, 2;\nEND: @%p2 bra LAST;\nmov.u32 %r1, 2;\nLAST: @!%p1 ret;\nexit;",
    );
    let marked = marked(&text, Points::Branches);
    use PointKind::{Branch, Entry, NotTaken, Taken};
    assert_eq!(kinds(&marked), [Entry, Taken, NotTaken, Branch, NotTaken, Branch, NotTaken]);
    assert!(marked.text.contains("@%p1 bra ELSE;\n\t// warptrace.loc 3\n"));
    assert!(marked.text.contains("ELSE:\n\t// warptrace.loc 2\n\t mov.u32 %r1, 2;\n"));
    assert!(marked.text.contains("END: \n\t// warptrace.loc 4\n\t@%p2 bra LAST;\n\t// warptrace.loc 5\n"));
}

#[test]
fn loops_with_edges_that_others_share_are_not_counted() {
    for (text, counted) in [
        // Lanes that skip the loop also reach its end, but no block of the loop branches there.
        ("@%p1 bra E;\nL: @%p2 bra L;\nE: ret;", true),
        ("@%p1 bra E;\nL: @%p1 bra E;\nbra L;\nE: ret;", false),
        ("L: @%p1 bra E;\nbra L;\nE: ret;", true),
        // A branch into the loop.
        ("@%p1 bra L;\nmov.u32 %r1, 1;\nL: @%p2 bra L;\nE: ret;", false),
        ("bra M;\nX: ret;\nM: bra L;\nL: @%p2 bra L;\nbra X;", true),
        // Threads that end in the loop, calls, other loops.
        ("L: @%p1 ret;\n@%p2 bra L;\nret;", false),
        ("L: call f;\n@%p2 bra L;\nret;", false),
        ("L: @%p1 bra L;\nadd.u32 %r1, %r1, 1;\n@%p2 bra L;\nret;", false),
    ] {
        let marked = marked(&kernel(text), Points::Loops);
        assert_eq!(marked.points.iter().any(|point| point.counted), counted, "{text}");
        let one = |marker: &str| assert_eq!(marked.text.contains(marker), counted, "{text}: {marker}");
        one("// warptrace.loop.enter 2");
        one("// warptrace.loop.tick 2 1");
        one("// warptrace.loop.leave 2");
    }
}

#[test]
fn what_cannot_be_read_is_skipped_and_named() {
    let function = ".func f() { .reg .b32 %r1; brx.idx %r1, nowhere; }\n";
    let text = kernel("call f;\nret;").replace(".visible", &format!("{function}.visible"));
    let marked = marked(&text, Points::Blocks);
    assert_eq!(marked.skipped.len(), 1);
    assert_eq!(marked.skipped[0].0, "f");
    assert!(marked.skipped[0].1.contains("`nowhere`"), "{}", marked.skipped[0].1);
    assert_eq!(marked.points.len(), 1);
    let options = Options { recording: Some(Recording::default()), ..Options::default() };
    assert_eq!(splice(&marked.text, &options).map(|spliced| spliced.kernels.len()), Ok(1));
}

#[test]
fn a_body_may_end_with_a_directive_that_ends_with_its_line() {
    let text = ".version 7.8\n.target sm_80\n.entry k() {L:bra L;.loc 1 2 3}";
    let options = Options { recording: Some(Recording::default()), ..Options::default() };
    for points in Points::ALL {
        let spliced = splice(&marked(text, points).text, &options).expect("it can be spliced");
        assert!(warptrace_ptx::Module::parse(&spliced.text).is_ok(), "{}", spliced.text);
    }
}

#[test]
fn ids_end_at_65535() {
    let text = kernel("@%p1 bra A;\nmov.u32 %r1, 1;\nA: ret;");
    let two = text.clone() + &text[text.find(".visible").expect("a kernel")..].replace("k()", "second()");
    let options = |first_id| PointOptions { first_id, ..PointOptions::default() };
    let ids = |first_id| -> Vec<u16> {
        mark(&two, &options(first_id)).expect("it is PTX").points.iter().map(|point| point.id).collect()
    };
    assert_eq!(ids(65530), [65530, 65531, 65532, 65533, 65534, 65535]);
    let marked = mark(&two, &options(65533)).expect("it is PTX");
    assert_eq!(marked.points.last().map(|point| point.id), Some(65535));
    assert_eq!(marked.skipped[0].0, "second");
    assert!(marked.skipped[0].1.contains("its 3 points do not fit"));
    assert_eq!(marked.kernels.len(), 1);
    assert_eq!(mark(&two, &options(0)), Err(PointError::FirstId));
}

#[test]
fn only_the_kernels_asked_for_are_marked_with_what_they_call() {
    let text = kernel("call f;\nret;").replace(
        ".visible",
        ".func g() { ret; }\n.func f() { call g; ret; }\n.func h() { ret; }\n.entry other() { call h; ret; }\n.visible",
    );
    let options = PointOptions { kernels: Some(&["k"]), ..PointOptions::default() };
    let marked = mark(&text, &options).expect("the kernel is there");
    let functions: Vec<&str> = marked.points.iter().map(|point| &*point.function).collect();
    assert_eq!(functions, ["g", "f", "k"]);
    let unknown = PointOptions { kernels: Some(&["k", "x"]), ..PointOptions::default() };
    let error = mark(&text, &unknown).expect_err("there is no x");
    assert_eq!(error.to_string(), "there is no kernel `x` in the PTX; it has: other, k");
}

#[test]
fn marked_text_is_not_marked_again() {
    let text = kernel("ret;");
    let marked = marked(&text, Points::Functions);
    let error = mark(&marked.text, &PointOptions::default()).expect_err("it has markers");
    assert_eq!(error, PointError::AlreadyMarked { line: 7, column: 2 });
}

/// Converts named points to directives, which nvcc keeps in a program's PTX (it removes comments).
fn in_directives(text: &str) -> String {
    let line = |line: &str| match line.trim().strip_prefix("// WARPTRACE ") {
        Some(name) => format!("\t.pragma \"WARPTRACE {}\";\n", name.trim()),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn points_that_the_source_names_are_there_whatever_is_asked_for() {
    let as_comments = include_str!("../data/foreign/named.ptx");
    // As the header writes them.
    let as_directives = in_directives(as_comments);
    assert_eq!(as_directives.matches(".pragma \"WARPTRACE ").count(), 2);
    for (text, points) in
        Points::ALL.iter().flat_map(|points| [(as_comments, *points), (&*as_directives, *points)])
    {
        let marked = marked(text, points);
        let named = |point: &&warptrace_ptx::points::Point| point.kind == PointKind::Named;
        let mut found: Vec<(&str, u32)> = marked
            .points
            .iter()
            .filter(named)
            .map(|point| (point.name.as_deref().unwrap_or(""), point.source.as_ref().map_or(0, |at| at.line)))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [("another value", 15), ("multiple of three", 11)], "{points}");
        // Each has a marker before it, and the loop around them is not counted.
        for point in marked.points.iter().filter(named) {
            let name = point.name.as_deref().unwrap_or("");
            let marker = format!("// warptrace.loc {}\n\t", point.id);
            let (_, behind) = marked.text.split_once(&marker).expect("a marker");
            let named = [format!("// WARPTRACE {name}"), format!(".pragma \"WARPTRACE {name}\";")];
            assert!(named.iter().any(|named| behind.starts_with(named)), "{behind}");
        }
        assert!(marked.points.iter().all(|point| !point.counted) && marked.implied.is_empty());
    }
    let marked = marked(&kernel("\t// WARPTRACE \n\tret;"), Points::Blocks);
    assert_eq!(kinds(&marked), [PointKind::Entry]);
}

#[test]
fn calls_through_pointers_are_told() {
    let callee = ".func f() { ret; }\n";
    let text = |body: &str| kernel(body).replace(".visible .entry", &format!("{callee}.visible .entry"));
    let direct = text("\tcall f;\n\tret;");
    assert_eq!(marked(&direct, Points::Blocks).unrecorded, []);
    let call = "\tcall %rd1, P;\n";
    let one = text(&format!(
        "\t.reg .b64 %rd<2>;\nP: .callprototype _ ();\n\tld.global.u64 %rd1, [%rd1];\n{call}\tret;"
    ));
    let found = marked(&one, Points::Loops);
    let reason = "1 call through pointers: a function whose address is read from memory runs there, but is not recorded";
    assert_eq!(found.unrecorded, [("k".to_owned(), reason.to_owned())]);
    let caller = format!(".func g() {{ .reg .b64 %rd<2>; P: .callprototype _ ();\n{call}{call}ret; }}\n");
    let several = one.replace(callee, &format!("{callee}{caller}"));
    let [(name, reason)] = &marked(&several, Points::Blocks).unrecorded[..] else { panic!("one line") };
    assert_eq!(name, "g");
    assert!(reason.starts_with("2 calls through pointers (and 1 call in 1 other function): "), "{reason}");
}
