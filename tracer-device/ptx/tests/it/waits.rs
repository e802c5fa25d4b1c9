//! Points at waits: instructions and loops.

use warptrace_ptx::points::{Marked, PointKind, PointOptions, PointWait, Points, mark};

fn marked(body: &str, options: PointOptions<'_>) -> Marked {
    let registers = ".reg .pred %p<9>;\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<9>;";
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n\t{registers}\n{body}\n}}\n"
    );
    mark(&text, &options).expect("the text can be marked")
}

fn waits(body: &str) -> Marked {
    marked(body, PointOptions { points: Points::Waits, ..PointOptions::default() })
}

/// Returns the kinds and names of the points after the entry.
fn names(marked: &Marked) -> Vec<(PointKind, &str)> {
    marked.points.iter().skip(1).map(|point| (point.kind, point.name.as_deref().unwrap_or(""))).collect()
}

fn body(marked: &Marked) -> Vec<&str> {
    let (_, body) = marked.text.split_once("%rd<9>;\n").expect("the declarations are there");
    body.lines().map(str::trim).filter(|line| !matches!(*line, "" | "}" | "// warptrace.loc 1")).collect()
}

#[test]
fn an_instruction_that_waits_has_a_point_on_either_side() {
    let marked = waits("\tmov.u32 %r1, 0;\n\tbar.sync 0, 128;\n\tcp.async.wait_group 1;\n\tret;");
    let expected = [
        "mov.u32 %r1, 0;",
        "// warptrace.loc 2",
        "bar.sync 0, 128;",
        "// warptrace.loc 3",
        "// warptrace.loc 4",
        "cp.async.wait_group 1;",
        "// warptrace.loc 5",
        "ret;",
    ];
    assert_eq!(body(&marked), expected);
    assert_eq!(
        names(&marked),
        [
            (PointKind::Barrier, "bar.sync 0, 128"),
            (PointKind::Waited, "bar.sync 0, 128"),
            (PointKind::Wait, "cp.async.wait_group 1"),
            (PointKind::Waited, "cp.async.wait_group 1"),
        ]
    );
}

#[test]
fn what_waits_and_what_does_not() {
    let barriers = ["barrier.sync.aligned 1", "bar.red.popc.u32 %r1, 0, %p1", "barrier.cta.sync 0"];
    let others = [
        "barrier.cluster.wait",
        "mbarrier.try_wait.parity.shared.b64 %p1, [%rd1], %r1",
        "cp.async.wait_all",
        "cp.async.bulk.wait_group.read 0",
        "wgmma.wait_group.sync.aligned 0",
        "tcgen05.wait::ld.sync.aligned",
        "griddepcontrol.wait",
        "nanosleep.u32 100",
    ];
    let none = [
        "bar.arrive 1, 64",
        "bar.warp.sync 0xffffffff",
        "mbarrier.test_wait.shared.b64 %p1, [%rd1], %rd2",
        "cp.async.commit_group",
        "ld.acquire.gpu.b32 %r1, [%rd1]",
        "griddepcontrol.launch_dependents",
    ];
    let kinds = |instruction: &str| {
        let marked = waits(&format!("\t{instruction};\n\tret;"));
        marked.points.iter().skip(1).map(|point| point.kind).collect::<Vec<_>>()
    };
    barriers.iter().for_each(|it| assert_eq!(kinds(it), [PointKind::Barrier, PointKind::Waited], "{it}"));
    others.iter().for_each(|it| assert_eq!(kinds(it), [PointKind::Wait, PointKind::Waited], "{it}"));
    none.iter().for_each(|it| assert_eq!(kinds(it), [], "{it}"));
}

/// Returns a loop that continues while `turn` leaves `%p1` true.
fn turning(turn: &str) -> String {
    format!("\tmov.u32 %r2, 0;\nL:\n\t{turn}\n\t@%p1 bra L;\n\tmov.u32 %r3, 1;\n\tret;")
}

#[test]
fn a_loop_that_only_polls_is_one_wait() {
    let polls = [
        "mbarrier.try_wait.parity.shared.b64 %p2, [%rd1], %r1; not.pred %p1, %p2;",
        "ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;",
        "ld.acquire.gpu.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; nanosleep.u32 64;",
        "atom.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0;",
    ];
    for poll in polls {
        let marked = waits(&turning(poll));
        let lines = body(&marked);
        let at = |wanted: &str| lines.iter().position(|line| *line == wanted).expect("the line is there");
        let order = [
            "mov.u32 %r2, 0;",
            "// warptrace.loc 2",
            "L:",
            "@%p1 bra L;",
            "// warptrace.loc 3",
            "mov.u32 %r3, 1;",
        ];
        assert!(order.map(at).is_sorted(), "{lines:?}");
        assert_eq!(marked.points.len(), 3, "{poll}");
        assert_eq!(names(&marked)[0].0, PointKind::Wait);
    }
}

#[test]
fn a_loop_that_does_more_than_poll_is_none() {
    let others = [
        // It stores.
        "ld.volatile.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1; setp.eq.u32 %p1, %r1, 0;",
        // It follows a list.
        "ld.acquire.gpu.u64 %rd1, [%rd1]; setp.ne.u64 %p1, %rd1, 0;",
        // It retries with the value found.
        "atom.cas.b32 %r1, [%rd1], %r2, %r3; setp.ne.u32 %p1, %r1, %r2; mov.u32 %r2, %r1;",
        // The loaded value decides nothing.
        "ld.volatile.global.u32 %r1, [%rd1]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9;",
        // It loads a value that no other thread may change.
        "ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;",
    ];
    others.iter().for_each(|it| assert_eq!(waits(&turning(it)).points.len(), 1, "{it}"));
}

#[test]
fn a_wait_ends_before_the_block_behind_it_begins() {
    let blocks = PointOptions { waits: true, ..PointOptions::default() };
    let marked = marked(&turning("ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;"), blocks);
    let kinds: Vec<PointKind> = marked.points.iter().map(|point| point.kind).collect();
    use PointKind::{Block, Entry, LoopBody, Wait, Waited};
    assert_eq!(kinds, [Entry, LoopBody, Block, Wait, Waited]);
    let lines = body(&marked);
    let markers: Vec<&str> = lines.into_iter().filter(|line| line.starts_with("//")).collect();
    assert_eq!(
        markers,
        ["// warptrace.loc 4", "// warptrace.loc 2", "// warptrace.loc 5", "// warptrace.loc 3"]
    );
    assert!(marked.points.iter().all(|point| !point.counted) && marked.implied.is_empty());
}

/// Returns each wait: its barrier, phase, lines of the copies, and whether they are certain.
fn known(body: &str) -> Vec<(String, String, Vec<usize>, bool)> {
    let marked = waits(body);
    let waits = marked.points.iter().filter_map(|point| point.wait.as_deref());
    let lines = |wait: &PointWait| wait.copies.iter().map(|copy| copy.ptx_line - 8).collect();
    waits.map(|wait| (wait.barrier.clone(), wait.phase.clone(), lines(wait), wait.is_certain)).collect()
}

fn barrier(body: &str) -> (String, String) {
    let [(barrier, phase, ..)] = &*known(body) else { panic!("one wait: {body}") };
    (barrier.clone(), phase.clone())
}

#[test]
fn the_barrier_and_its_phase_are_said_as_far_as_the_text_tells() {
    let wait = |place: &str, phase: &str| {
        format!("\tmbarrier.try_wait.parity.shared.b64 %p1, [{place}], {phase};\n\tret;")
    };
    let cases = [
        ("\tbar.sync 3, 128;\n\tret;".to_owned(), "bar 3", ""),
        ("\tmov.u32 %r1, 2;\n\tbarrier.sync %r1;\n\tret;".to_owned(), "bar 2", ""),
        ("\tld.shared.u32 %r1, [x];\n\tbar.sync %r1, 64;\n\tret;".to_owned(), "bar ?", ""),
        ("\tbar.red.popc.u32 %r1, 4, %p1;\n\tret;".to_owned(), "bar 4", ""),
        ("\tbarrier.cluster.wait;\n\tret;".to_owned(), "cluster", ""),
        ("\tnanosleep.u32 100;\n\tret;".to_owned(), "", ""),
        (wait("full+8", "1"), "mbarrier full+8", "1"),
        (
            format!(
                "\tmov.u32 %r1, smem;\n\tadd.s32 %r2, %r1, 4096;\n\tmov.b32 %r4, 0;\n{}",
                wait("%r2+16", "%r4")
            ),
            "mbarrier smem+4112",
            "0",
        ),
        (
            format!(
                "\tmov.u32 %r1, smem;\n\tshl.b32 %r3, %r4, 3;\n\tadd.s32 %r2, %r1, %r3;\n{}",
                wait("%r2", "%r5")
            ),
            "mbarrier smem+?",
            "?",
        ),
        (wait("%rd1", "%r5"), "mbarrier ?", "?"),
        (format!("\tmov.u32 %r1, a;\n\tmov.u32 %r1, b;\n{}", wait("%r1", "1")), "mbarrier ?", "1"),
        ("\tmbarrier.try_wait.shared.b64 %p1, [full], %rd2;\n\tret;".to_owned(), "mbarrier full", "?"),
    ];
    for (body, name, phase) in cases {
        assert_eq!(barrier(&body), (name.to_owned(), phase.to_owned()), "{body}");
    }
    let polling = turning("mbarrier.try_wait.parity.shared.b64 %p2, [full], %r1; not.pred %p1, %p2;");
    assert_eq!(barrier(&polling), ("mbarrier full".to_owned(), "?".to_owned()));
}

const COPY: &str = "cp.async.cg.shared.global [a], [%rd1], 16;";
const COMMIT: &str = "cp.async.commit_group;";

/// Returns the lines of the copies of each wait, and whether they are certain.
fn copies(lines: &[&str]) -> Vec<(Vec<usize>, bool)> {
    let all = known(&lines.join("\n"));
    all.into_iter().map(|(_, _, copies, is_certain)| (copies, is_certain)).collect()
}

#[test]
fn a_wait_for_groups_is_for_the_copies_that_were_committed_in_them() {
    let wait = "cp.async.wait_group 1;";
    // Two groups: the first wait is for the older one, the second for the rest with the uncommitted copies.
    let straight = [COPY, COMMIT, COPY, COPY, COMMIT, wait, COPY, "cp.async.wait_all;", "ret;"];
    assert_eq!(copies(&straight), [(vec![0], true), (vec![2, 3, 6], true)]);
    // The second wait is not for the copies of the first.
    let again = [COPY, COMMIT, "cp.async.wait_group 0;", COPY, COMMIT, "cp.async.wait_group 0;", "ret;"];
    assert_eq!(copies(&again), [(vec![0], true), (vec![3], true)]);
    assert_eq!(copies(&[COPY, wait, "ret;"]), [(vec![], false)]);
    // A pipeline: the first iterations wait for copies before the loop, later ones for copies in the loop.
    let turn = [COPY, COMMIT, COPY, COMMIT, "L:", wait, COPY, COMMIT, "@%p1 bra L;", "ret;"];
    assert_eq!(copies(&turn), [(vec![0, 2, 6], false)]);
    // One path issues fewer copies.
    let ways = ["@%p1 bra S;", COPY, "S:", COPY, COMMIT, "cp.async.wait_group 0;", "ret;"];
    assert_eq!(copies(&ways), [(vec![1, 3], false)]);
    assert_eq!(copies(&[COPY, COMMIT, "cp.async.wait_group N;", "ret;"]), [(vec![0], false)]);
}

#[test]
fn a_bulk_copy_is_waited_for_at_its_mbarrier() {
    let bulk = |barrier: &str| {
        format!(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [a], [%rd1], 64, [{barrier}];"
        )
    };
    let tensor = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [a], [%rd1, {%r1, %r2}], [full+8];";
    let wait = |barrier: &str| format!("mbarrier.try_wait.parity.shared.b64 %p1, [{barrier}], 0;");
    let lines =
        [bulk("full"), tensor.to_owned(), wait("full"), wait("full+8"), wait("other"), "ret;".to_owned()];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(copies(&lines), [(vec![0], true), (vec![1], true), (vec![], false)]);
    // An address that is known only at run time may be any of them.
    let lines = [bulk("full"), bulk("%r7"), wait("full"), wait("%r8"), "ret;".to_owned()];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(copies(&lines), [(vec![0, 1], false), (vec![0, 1], false)]);
    // Copies out of shared memory have separate groups.
    let out = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [a], 64;";
    let lines =
        [COPY, COMMIT, out, "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;", "ret;"];
    assert_eq!(copies(&lines), [(vec![2], true)]);
}
