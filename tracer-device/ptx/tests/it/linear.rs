//! Large texts that a careless parser handles in quadratic time: minutes for a megabyte instead of
//! milliseconds. The limits are on processor time, which other programs do not affect.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use warptrace_ptx::points::{PointOptions, Points, mark};
use warptrace_ptx::splice::{Options, Recording, splice};
use warptrace_ptx::{Cfg, Edits, Module, Span, call_graph};

/// Sizes of texts, and the limit of processor time for each.
#[derive(Clone, Copy)]
struct Size {
    /// Of a repeated piece.
    bytes: usize,
    /// Of a control flow graph.
    lines: usize,
    /// Of nested loops.
    depth: usize,
    limit: Duration,
}

const SMALL: Size = Size { bytes: 1 << 17, lines: 6_000, depth: 4_000, limit: Duration::from_secs(1) };
const LARGE: Size = Size { bytes: 1 << 20, lines: 50_000, depth: 16_000, limit: Duration::from_secs(20) };

/// Runs `work`, which may use several threads.
fn limited<T>(size: Size, name: &str, work: impl FnOnce() -> T) -> T {
    let time = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("it is not negative");
    let start = time();
    let result = work();
    let taken = time() - start;
    assert!(taken < size.limit, "{name} took {taken:?}");
    result
}

fn read(size: Size, name: &str, text: &str) {
    limited(size, name, || parse(text));
}

fn parse(text: &str) {
    if let Ok(module) = Module::parse(text) {
        let _ = call_graph(&module);
        for body in module.functions.iter().filter_map(|function| function.body.as_ref()) {
            let _ = Cfg::new(body);
        }
    }
}

fn trace(size: Size, name: &str, text: &str) {
    for points in Points::ALL {
        let options = PointOptions { points, ..PointOptions::default() };
        let _ = limited(size, &format!("{name}, {points}"), || mark(text, &options));
    }
}

fn check_pieces(size: Size) {
    let pieces = [
        "{",
        "}",
        "{}",
        "(",
        "[",
        "\"",
        "/**/",
        "//\n",
        "#\n",
        "a ",
        "a\n",
        ".a\n",
        ".a ",
        ".a b\nc\n",
        "a:",
        "a /**/\n",
        "a /**/ :",
        "@p ",
        "@p /**/",
        ".loc 1 2 3 /**/\n",
        ".loc 1 2 3 , ",
        ";",
        "a;",
        "ret;",
        "@p ret;",
        "L: bra L;",
        "L: { bra L; }",
        "{ L: bra L;",
        "@p bra L;",
        ".pragma \"a\";",
        ".reg .b32 a<4>;",
        "call f, (a), p;",
        "\\",
        "β",
        "T: .branchtargets T;",
        ".b32 ",
        "a.b",
        "0",
        "a, ",
        "\0",
        "_ : .branchtargets L, L, L; brx.idx a, _;",
    ];
    for piece in pieces {
        let repeated = piece.repeat(size.bytes / piece.len());
        read(size, piece, &format!(".version 7.8\n.target sm_80\n{repeated}"));
        read(size, piece, &format!(".version 7.8\n.target sm_80\n.entry k() {{ {repeated}"));
        let body = format!(".version 7.8\n.target sm_80\n.entry k() {{ L: {repeated} }}");
        read(size, piece, &body);
        trace(size, piece, &body);
        read(size, piece, &format!(".version 7.8\n.target sm_80\n.entry k() {{ a {repeated}; }}"));
        read(size, piece, &format!(".version 7.8\n.target sm_80\n.func f({repeated}"));
        read(size, piece, &format!(".version 7.8\n.target sm_80\n.func f() {repeated}"));
        read(size, piece, &format!(".version 7.8\n.target sm_80\n.b8 a[4] {repeated}"));
    }
}

fn kernel(count: usize, line: impl Fn(usize) -> String) -> String {
    let lines: String = (0..count).map(line).collect();
    format!(".version 7.8\n.target sm_80\n.entry k() {{\n{lines}\nEND: ret; }}")
}

fn check_flow_graphs(size: Size) {
    let read = |name: &str, text: &str| {
        read(size, name, text);
        trace(size, name, text);
    };
    let count = size.lines;
    read("early exits", &kernel(count, |_| "@p bra END;\n".to_owned()));
    read("a ladder down", &kernel(count, |n| format!("L{n}: @p bra L{};\n", (n + 2).min(count - 1))));
    read("a ladder up", &kernel(count, |n| format!("L{n}: @p bra L{};\n", n.saturating_sub(2))));
    read(
        "nested loops",
        &kernel(count, |n| format!("L{n}: @p bra M{};\nM{n}: @q bra L{n};\n", count - 1 - n)),
    );
    let half = count / 2;
    let nest =
        kernel(
            count,
            |n| {
                if n < half { format!("L{n}: x;\n") } else { format!("@p bra L{};\n", count - 1 - n) }
            },
        );
    read("a deep nest", &nest);
    read("jumps", &kernel(count, |n| format!("L{n}: @p bra L{};\n", n * 7919 % count)));
    read(
        "inlined calls",
        &kernel(count, |n| {
            format!(".loc 1 {} 1, function_name F, inlined_at 1 {n} 1\nL{n}: bra L{n};\n", n + 1)
        }),
    );
    read("one line", &kernel(count, |n| format!("L{n}: @p bra L{n}; ")));
    read("blanks", &kernel(count, |n| format!("L{n}:          @p bra L{n};          ")));
    let functions: String =
        (0..count / 10).map(|n| format!(".func f{n}() {{ call f{}; ret; }}\n", n + 1)).collect();
    let functions = format!(".version 7.8\n.target sm_80\n{functions}");
    read("functions", &functions);
    let options = Options { recording: Some(Recording::default()), ..Options::default() };
    let spliced = limited(size, "splicing functions", || {
        let marked = mark(&functions, &PointOptions::default()).expect("it is PTX");
        splice(&marked.text, &options)
    });
    assert!(spliced.is_ok());
    let deep: String = (0..count).map(|n| format!("{{ L{n}: @p bra L0;\n")).collect();
    read("scopes", &format!(".version 7.8\n.target sm_80\n.entry k() {{ {deep} {} }}", "}".repeat(count)));
}

/// Each loop's counter is live through the inner loops.
fn check_deep_nest(size: Size) {
    let depth = size.depth;
    let size = Size { limit: size.limit.min(Duration::from_secs(5)), ..size };
    let begins: String = (0..depth).map(|n| format!("mov.u32 %r{n}, 0;\nL{n}:\n")).collect();
    let end = |n: usize| format!("add.u32 %r{n}, %r{n}, 1;\nsetp.lt.u32 %p1, %r{n}, 3;\n@%p1 bra L{n};\n");
    let ends: String = (0..depth).rev().map(end).collect();
    let text = kernel(1, |_| format!(".reg .pred %p<2>;\n.reg .b32 %r<{depth}>;\n{begins}{ends}"));
    for points in Points::ALL {
        limited(size, &points.to_string(), || {
            let marked = mark(&text, &PointOptions { points, ..PointOptions::default() }).expect("it is PTX");
            let options = Options { recording: Some(Recording::default()), ..Options::default() };
            assert!(splice(&marked.text, &options).is_ok(), "{points}");
        });
    }
}

in_both_tiers! {
    SMALL, LARGE;
    repeated_pieces: check_pieces;
    flow_graphs: check_flow_graphs;
    a_deep_nest_of_loops_with_a_register_each: check_deep_nest;
}

#[test]
fn many_edits() {
    let text = "ret;\n".repeat(400_000);
    let edited = limited(LARGE, "edits", || {
        let mut edits = Edits::new();
        for line in (0..400_000).rev() {
            edits.insert(line * 5, "x");
            edits.replace(Span::new(line * 5, line * 5 + 3), "exit");
        }
        edits.apply(&text).expect("no overlap")
    });
    assert_eq!(edited, "xexit;\n".repeat(400_000));
}
