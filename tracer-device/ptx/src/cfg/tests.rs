use super::*;
use crate::module::Module;

fn kernel(body: &str) -> String {
    format!(".version 7.8\n.target sm_80\n.entry k()\n{{\n{body}\n}}\n")
}

fn with_cfg(body: &str, check: impl FnOnce(&Body<'_>, Result<Cfg, CfgError>)) {
    let text = kernel(body);
    let module = Module::parse(&text).expect("the kernel is PTX");
    let body = module.functions[0].body.as_ref().expect("it has a body");
    check(body, Cfg::new(body));
}

/// Returns the successors of each block in one line: `0>1,2 1>2 2>`.
fn edges(cfg: &Cfg) -> String {
    let block = |(index, block): (usize, &Block)| {
        let to: Vec<String> = block.successors.iter().map(|edge| edge.to.to_string()).collect();
        format!("{index}>{}", to.join(","))
    };
    cfg.blocks().iter().enumerate().map(block).collect::<Vec<_>>().join(" ")
}

fn edges_of(body: &str) -> String {
    let mut line = String::new();
    with_cfg(body, |_, cfg| line = edges(&cfg.expect("all labels are there")));
    line
}

#[test]
fn straight_code_is_one_block() {
    assert_eq!(edges_of(".reg .b32 %r<2>; mov.u32 %r1, 0; ret;"), "0>");
    assert_eq!(edges_of(""), "0>");
    with_cfg("mov.u32 %r1, 0;", |_, cfg| {
        assert_eq!(cfg.expect("no label").blocks()[0].terminator, Terminator::End);
    });
}

#[test]
fn guarded_branches_have_two_successors() {
    assert_eq!(edges_of("@%p bra L; add.u32 a, b, c; L: ret;"), "0>2,1 1>2 2>");
    // Both edges of a branch to the next block are kept, but the block is a predecessor once.
    with_cfg("@%p bra L; L: ret;", |_, cfg| {
        let cfg = cfg.expect("the label is there");
        assert_eq!(edges(&cfg), "0>1,1 1>");
        assert_eq!(cfg.predecessors(1), [0]);
        assert_eq!(cfg.successors(0)[0].kind, EdgeKind::Taken);
        assert_eq!(cfg.successors(0)[1].kind, EdgeKind::FallThrough);
    });
}

#[test]
fn guarded_ends_fall_through() {
    assert_eq!(edges_of("@%p ret; @!%p exit; @%q trap; ret;"), "0>1 1>2 2>3 3>");
    // After a guarded end at the closing brace, the brace returns.
    with_cfg("@%p ret;", |body, cfg| {
        let cfg = cfg.expect("no label");
        assert_eq!(edges(&cfg), "0>1 1>");
        assert_eq!(cfg.blocks()[1].terminator, Terminator::End);
        assert_eq!(cfg.blocks()[1].entry, body.close);
    });
}

#[test]
fn labels_that_no_branch_names_end_no_block() {
    assert_eq!(edges_of("tmp0: mov.u32 a, b; tmp1: mov.u32 a, b; ret;"), "0>");
}

#[test]
fn nothing_leads_back_to_the_entry() {
    with_cfg("L: add.u32 a, a, 1; @%p bra L; ret;", |body, cfg| {
        let cfg = cfg.expect("the label is there");
        assert_eq!(edges(&cfg), "0>1 1>1,2 2>");
        assert!(cfg.predecessors(0).is_empty());
        assert!(cfg.blocks()[0].statements.is_empty());
        assert_eq!(cfg.blocks()[0].entry, body.open + 1);
        assert_eq!(cfg.blocks()[1].entry, body.statements[0].span.end);
    });
}

#[test]
fn tables_give_one_edge_a_block() {
    let body = "T: .branchtargets A, B, A, C; @%p brx.idx %r1, T; trap; A: B: exit; C: ret;";
    with_cfg(body, |_, cfg| {
        let cfg = cfg.expect("all labels are there");
        assert_eq!(edges(&cfg), "0>2,3,1 1> 2> 3>");
        assert_eq!(cfg.successors(0)[0].kind, EdgeKind::Indexed);
        assert_eq!(cfg.predecessors(2), [0]);
    });
}

#[test]
fn entries_come_before_all_that_a_block_does() {
    let body = ".reg .b32 a; // tile\n .shared .b8 t[4]; // mark\n x; .reg .b32 b; @%p bra L; // mark\n y; L: .loc 1 2\n ret;";
    with_cfg(body, |body, cfg| {
        let cfg = cfg.expect("the label is there");
        let entries: Vec<_> = cfg.blocks().iter().map(|block| block.entry).collect();
        let ends = |index: usize| body.statements[index].span.end;
        assert_eq!(entries, [ends(2), body.statements[7].span.start, ends(9)]);
        assert_eq!(body.declarations_end(), ends(2));
    });
}

#[test]
fn comments_between_labels_are_code() {
    assert_eq!(edges_of("@%p bra B; A: // mark\n B: @%p bra A; ret;"), "0>2,1 1>2 2>1,3 3>");
    assert_eq!(edges_of("@%p bra B; A: .loc 1 2 3\n B: @%p bra A; ret;"), "0>1,1 1>1,2 2>");
}

#[test]
fn unreachable_code_is_a_block() {
    with_cfg("bra.uni L; mov.u32 a, b; L: ret; { exit; } ", |_, cfg| {
        let cfg = cfg.expect("the label is there");
        assert_eq!(edges(&cfg), "0>2 1>2 2> 3>");
        let reachable: Vec<bool> = (0..4).map(|block| cfg.is_reachable(block)).collect();
        assert_eq!(reachable, [true, false, true, false]);
        assert_eq!(cfg.immediate_dominator(1), None);
        assert_eq!(cfg.immediate_dominator(2), Some(0));
        assert!(!cfg.dominates(1, 2) && !cfg.dominates(0, 1) && cfg.dominates(0, 2));
    });
}

#[test]
fn what_follows_an_end_belongs_to_its_block() {
    // The comment and the brace are never executed, so they do not form a block.
    with_cfg("{ @%p bra L; ret; // end\n } .loc 1 2 3\n L: ret; // end", |_, cfg| {
        let cfg = cfg.expect("the label is there");
        assert_eq!(edges(&cfg), "0>2,1 1> 2>");
        let ranges: Vec<_> = cfg.blocks().iter().map(|block| block.statements.clone()).collect();
        assert_eq!(ranges, [0..2, 2..6, 6..9]);
        assert_eq!((cfg.block_of(4), cfg.block_of(8)), (1, 2));
    });
}

#[test]
fn labels_are_looked_up_from_the_inside() {
    let body = "{ bra L; { L: exit; } L: ret; } L: trap;";
    with_cfg(body, |body, cfg| {
        let cfg = cfg.expect("the label is there");
        let to = cfg.successors(0)[0].to;
        assert_eq!(cfg.blocks()[to].terminator, Terminator::Return { guarded: false });
        let label = body.statement_at(cfg.blocks()[to].entry - 1).expect("the entry is behind a label");
        assert_eq!(body.statements[label].depth, 1);
    });
    assert_eq!(edges_of("bra M; { M: exit; }"), "0>1 1>");
}

#[test]
fn branches_to_nowhere_are_errors() {
    with_cfg("bra L;", |body, cfg| {
        let span = body.statements[0].span;
        assert_eq!(cfg, Err(CfgError::UnknownLabel { span, label: "L".into() }));
    });
    // Two inner scopes have the label, so the name is ambiguous.
    with_cfg("bra L; { L: } { L: }", |_, cfg| {
        assert!(matches!(cfg, Err(CfgError::UnknownLabel { .. })));
    });
    with_cfg("L: brx.idx %r1, L;", |body, cfg| {
        let span = body.statements[1].span;
        assert_eq!(cfg, Err(CfgError::UnknownTable { span, table: "L".into() }));
    });
    with_cfg("bra;", |_, cfg| assert!(matches!(cfg, Err(CfgError::UnknownLabel { .. }))));
    with_cfg("brx.idx;", |_, cfg| assert!(matches!(cfg, Err(CfgError::UnknownTable { .. }))));
}

#[test]
fn tables_shared_by_many_branches_are_bounded() {
    let labels = 4000;
    let mut body = String::from("T: .branchtargets ");
    body.push_str(&(0..labels).map(|label| format!("L{label}")).collect::<Vec<_>>().join(","));
    body.push(';');
    for label in 0..labels {
        body.push_str(&format!("L{label}: brx.idx %r1, T;\n"));
    }
    with_cfg(&body, |_, cfg| assert!(matches!(cfg, Err(CfgError::TooManyEdges { .. }))));
}

#[test]
fn loops_nest() {
    let body = "
        OUTER: mov.u32 a, 0;
        INNER: @%p bra NEXT; add.u32 a, a, 1; bra INNER;
        NEXT: @%q bra OUTER;
        SECOND: @%p bra SECOND;
        ret;";
    with_cfg(body, |_, cfg| {
        let cfg = cfg.expect("all labels are there");
        assert_eq!(edges(&cfg), "0>1 1>2 2>4,3 3>2 4>1,5 5>5,6 6>");
        let loops: Vec<_> = cfg
            .loops()
            .iter()
            .map(|entry| (entry.header, entry.latches.clone(), entry.parent, entry.depth, entry.innermost))
            .collect();
        assert_eq!(
            loops,
            [(1, vec![4], None, 1, false), (2, vec![3], Some(0), 2, true), (5, vec![5], None, 1, true)]
        );
        let depths: Vec<u32> = (0..7).map(|block| cfg.loop_depth(block)).collect();
        assert_eq!(depths, [0, 1, 2, 2, 1, 1, 0]);
        assert_eq!(cfg.loop_of(3), Some(1));
        assert!(cfg.loop_contains(0, 3) && !cfg.loop_contains(1, 4));
    });
}

#[test]
fn cycles_with_two_entries_are_no_loops() {
    let body = "@%p bra B; A: add.u32 a, a, 1; B: @%q bra A; ret;";
    with_cfg(body, |_, cfg| assert!(cfg.expect("all labels are there").loops().is_empty()));
}

/// Checks dominance by definition: `block` is unreachable without `dominator`.
fn dominates_slowly(cfg: &Cfg, dominator: usize, block: usize) -> bool {
    let reach = |without: Option<usize>| {
        let mut seen = vec![false; cfg.blocks().len()];
        let mut work = if without == Some(0) { vec![] } else { vec![0] };
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                work.extend(cfg.successors(at).iter().map(|edge| edge.to).filter(|to| Some(*to) != without));
            }
        }
        seen
    };
    let all = reach(None);
    all[dominator] && all[block] && !reach(Some(dominator))[block]
}

proptest::proptest! {
    #[test]
    fn dominators_and_loops_agree_with_their_definitions(
        branches in proptest::collection::vec((0usize..12, 0usize..12, 0u8..4), 1..12)
    ) {
        let count = branches.len();
        let mut body = String::new();
        for (index, (first, second, kind)) in branches.iter().enumerate() {
            let (first, second) = (first % count, second % count);
            body.push_str(&match kind {
                0 => format!("L{index}: bra L{first};\n"),
                1 => format!("L{index}: @p bra L{first};\n"),
                2 => format!("L{index}: @p bra L{first}; bra L{second};\n"),
                _ => format!("L{index}: @p ret;\n"),
            });
        }
        with_cfg(&body, |_, cfg| {
            let cfg = cfg.expect("all labels are there");
            let blocks = cfg.blocks().len();
            for block in 0..blocks {
                for dominator in 0..blocks {
                    assert_eq!(
                        cfg.dominates(dominator, block),
                        dominates_slowly(&cfg, dominator, block),
                        "{dominator} over {block} in {}",
                        edges(&cfg)
                    );
                }
            }
            check_loops(&cfg);
        });
    }
}

/// Compares each loop with its definition: the blocks that reach a latch without passing the header.
fn check_loops(cfg: &Cfg) {
    for (index, entry) in cfg.loops().iter().enumerate() {
        let mut inside = vec![false; cfg.blocks().len()];
        inside[entry.header] = true;
        let mut work = entry.latches.clone();
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut inside[at], true) {
                work.extend(cfg.predecessors(at).iter().filter(|from| cfg.is_reachable(**from)));
            }
        }
        for (block, inside) in inside.iter().enumerate() {
            assert_eq!(
                cfg.loop_contains(index, block),
                *inside,
                "loop {index}, block {block}: {}",
                edges(cfg)
            );
        }
        let around = cfg.loops().iter().filter(|other| other.parent == Some(index)).count();
        assert_eq!(entry.innermost, around == 0);
    }
}
