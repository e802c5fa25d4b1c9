//! Tests of the instructions per event at each location.

use warptrace_format::Counting;
use warptrace_ptx::splice::{CodeAt, code_at};

/// Returns the instructions of locations 1, 2, ... in a kernel with this body.
fn instructions(body: &str) -> Vec<u32> {
    let registers = ".reg .pred %p<9>; .reg .b32 %r<9>;";
    let text = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() {{ {registers}\n{body}\n}}\n\
         .visible .entry other() {{\n// warptrace.loc 9\nret;\n}}\n"
    );
    let found = code_at(&text, &["k"], Counting::Never).expect("the text can be read");
    assert!(!found.contains_key(&9), "another kernel's");
    (1..).map_while(|location| Some(found.get(&location)?.instructions)).collect()
}

fn work(many: usize) -> String {
    "add.u32 %r1, %r1, 1;\n".repeat(many)
}

#[test]
fn sides_have_their_own_and_what_is_behind_them_is_the_branchs() {
    let (two, three, seven) = (work(2), work(3), work(7));
    // Two instructions and the branch before; seven and `ret` after the join belong to the same point.
    let body = format!(
        "{three}// warptrace.loc 1\n{two}@%p1 bra ELSE;\n// warptrace.loc 2\n{three}bra JOIN;\nELSE:\n// warptrace.loc 3\n\
         JOIN:\n{seven}ret;"
    );
    assert_eq!(instructions(&body), [2 + 1 + 7 + 1, 3 + 1, 0]);
    // A side without a point belongs to the branch's point, too.
    let body = format!(
        "// warptrace.loc 1\n@%p1 bra JOIN;\n{three}JOIN:\n{two}// warptrace.loc 2\n@%p2 exit;\nret;"
    );
    assert_eq!(instructions(&body), [1 + 3 + 2, 2]);
}

#[test]
fn a_loops_test_belongs_to_its_iterations_wherever_it_stands() {
    let (two, five) = (work(2), work(5));
    let head = format!(
        "// warptrace.loc 1\n{two}HEAD:\n{five}@%p1 bra OUT;\n// warptrace.loc 2\n{two}bra HEAD;\n\
         OUT:\n// warptrace.loc 3\nret;"
    );
    assert_eq!(instructions(&head), [2, 2 + 1 + 5 + 1, 1]);
    let foot = format!(
        "// warptrace.loc 1\n{two}HEAD:\n// warptrace.loc 2\n{two}{five}@%p1 bra HEAD;\n// warptrace.loc 3\nret;"
    );
    assert_eq!(instructions(&foot), [2, 2 + 5 + 1, 1]);
    // In nested loops the inner loop's test belongs to the inner loop.
    let nested = format!(
        "// warptrace.loc 1\nOUTER:\n{two}@%p1 bra OUT;\n// warptrace.loc 2\nINNER:\n{five}@%p2 bra OUTER;\n\
         // warptrace.loc 3\nbra INNER;\nOUT:\nret;"
    );
    assert_eq!(instructions(&nested), [1, 2 + 1, 5 + 1 + 1]);
}

#[test]
fn iterations_at_one_point_share_its_instructions_and_copies_have_a_mean() {
    let body = format!(
        "HEAD:\n// warptrace.loop.tick 1 4\n{}@%p1 bra HEAD;\n// warptrace.loop.leave 1\n// warptrace.loc 2\n{}\
         // warptrace.loc 2\nret;",
        work(16),
        work(2)
    );
    // 17 over 4 events; 2 and 1 over 2.
    assert_eq!(instructions(&body), [4, 2]);
}

#[test]
fn what_cannot_be_read_is_an_error_and_what_is_counted_is_said() {
    assert!(code_at(".visible .entry k() {", &["k"], Counting::Never).is_err());
    let text = |body: &str| {
        format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() {{ .reg .b32 %r<2>; .reg .pred %p<2>;\n{body}}}"
        )
    };
    assert!(code_at(&text("ret;"), &["j"], Counting::Never).is_err());
    assert!(code_at(&text("ret;"), &["k"], Counting::Never).expect("no points").is_empty());
    // All lanes have the same number of iterations.
    let counted = text(
        "mov.u32 %r1, 0;\n// warptrace.loop.enter 1\nL:\n// warptrace.loop.tick 1 1\nadd.u32 %r1, %r1, 1;\n\
         setp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\n// warptrace.loop.leave 1\nret;",
    );
    for (counting, is_counted) in [(Counting::Never, false), (Counting::Proven, true), (Counting::All, true)]
    {
        // `ret` follows the loop, and no other point precedes it.
        let code = code_at(&counted, &["k"], counting).expect("the text can be read");
        assert_eq!(code[&1], CodeAt { instructions: 4, is_counted });
    }
}
