//! Branches to a kernel's end get separate ends if the end has marks or epilogues.

use warptrace_ptx::splice::{Options, Recording, splice};

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()";

fn spliced(body: &str) -> (String, String) {
    let text = format!("{HEAD} {{ .reg .pred %p; {body} }}");
    let options =
        Options { recording: Some(Recording::default()), architecture: 90, marks: 1, ..Options::default() };
    let text = splice(&text, &options).expect("it can be spliced").text;
    let at = text.find("k$traced").expect("the copy is there");
    (text[..at].to_owned(), text[at..].to_owned())
}

fn ends(text: &str) -> usize {
    text.matches("ret;").count()
}

#[test]
fn each_branch_to_the_end_has_its_own() {
    let (untraced, traced) = spliced(
        "// warptrace.loc 1
        @%p bra A; // warptrace.loc 2
        @%p bra A; bra B; A: // warptrace.loc 3
        bra B; B: ret;",
    );
    // Two branches to `A`, one from `A` to `B`, another one to `B`, and the original end.
    assert_eq!((ends(&untraced), ends(&traced)), (5, 5), "{traced}");
    for (location, marks) in [(1, 1), (2, 1), (3, 3)] {
        let mark = format!("pmevent.mask {location};");
        let found = [&untraced, &traced].map(|text| text.matches(&mark).count());
        assert_eq!(found, [marks; 2], "{location}: {traced}");
    }
    assert!(!traced.contains("bra A;") && !traced.contains("bra B;"), "{traced}");
}

#[test]
fn what_does_something_on_its_way_is_no_end() {
    let (untraced, traced) = spliced(
        ".reg .b32 %r; // warptrace.loc 1
        @%p bra A; bra B; A: mov.u32 %r, 1; B: ret;",
    );
    assert!(traced.contains("bra A;") && !traced.contains("bra B;"), "{traced}");
    assert_eq!((ends(&untraced), ends(&traced)), (2, 2));
}

#[test]
fn control_does_not_fall_into_an_end() {
    let (untraced, _) = spliced("@%p bra A; bra B; A: ret; B: // warptrace.loc 1\n");
    let marked = untraced.find("pmevent.mask 1;").expect("the marker is marked");
    assert!(untraced[marked..].contains("ret;\n\n$warptrace_exit0:"), "{untraced}");
}

#[test]
fn very_many_branches_share_one() {
    let body = |branches: usize| format!("// warptrace.loc 1\n {} E: ret;", "@%p bra E; ".repeat(branches));
    let all = |branches| ends(&spliced(&body(branches)).1);
    assert_eq!((all(64), all(65)), (65, 1));
}

#[test]
fn chains_and_circles_of_branches_are_followed_once() {
    let chain: String = (0..20_000).map(|at| format!("L{at}: bra L{};\n", at + 1)).collect();
    let (_, traced) = spliced(&format!("// warptrace.loc 1\n @%p bra L0; ret; {chain} L20000: ret;"));
    assert!(traced.contains("@%p bra L0;"), "there are more than are given their own");
    let (_, traced) = spliced("// warptrace.loc 1\n @%p bra C; ret; C: bra D; D: bra C;");
    assert!(traced.contains("@%p bra C;"), "{traced}");
}
