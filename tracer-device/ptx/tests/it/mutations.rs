//! Damaged PTX gives a module or an error but never a panic, and modules keep their invariants.

use proptest::prelude::*;
use proptest::sample::Index;
use warptrace_ptx::fuzzing;

const TEXTS: [&str; 7] = [
    include_str!("../golden/constructs.ptx"),
    include_str!("../golden/nvcc-lineinfo.ptx"),
    include_str!("../golden/llc.ptx"),
    include_str!("../golden/rustc.ptx"),
    include_str!("../golden/nvcc.ptx"),
    include_str!("../data/foreign/flow-lineinfo.ptx"),
    include_str!("../data/foreign/shapes.ptx"),
];

const PIECES: [&str; 30] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ":",
    ",",
    "@",
    "!",
    "\"",
    "//",
    "/*",
    "*/",
    "\n",
    "#",
    "\\",
    ".",
    "<4>",
    " = ",
    ".visible ",
    ".entry k()",
    ".loc 1 2 3",
    ".reg .b32 %r<9>;",
    ".pragma \"a\";",
    "bra L;",
    "L:",
    "β",
    "\0",
];

#[derive(Debug, Clone)]
struct Damage {
    at: Index,
    cut: usize,
    put: Option<Index>,
    copy: Option<(Index, usize)>,
}

fn damage() -> impl Strategy<Value = Damage> {
    let cut = prop_oneof![Just(0), 1usize..4, 1usize..200];
    let copy = proptest::option::weighted(0.2, (any::<Index>(), 1usize..300));
    (any::<Index>(), cut, proptest::option::of(any::<Index>()), copy)
        .prop_map(|(at, cut, put, copy)| Damage { at, cut, put, copy })
}

fn apply(text: &str, damage: &Damage) -> String {
    let floor = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let part = |from: usize, len: usize| &text[floor(from)..floor(from + len)];
    let at = damage.at.index(text.len() + 1);
    let put = damage.put.map_or("", |index| PIECES[index.index(PIECES.len())]);
    let copy = damage.copy.as_ref().map_or("", |(from, len)| part(from.index(text.len() + 1), *len));
    [part(0, at), put, copy, &text[floor(at + damage.cut)..]].concat()
}

fn check_damage(cases: u32) {
    let damages = proptest::collection::vec(damage(), 1..5);
    proptest!(ProptestConfig::with_cases(cases), |(text in any::<Index>(), damages in damages)| {
        let text = TEXTS[text.index(TEXTS.len())];
        let damaged = damages.iter().fold(text.to_owned(), |text, damage| apply(&text, damage));
        fuzzing::check(&damaged);
    });
}

fn check_any_text(cases: u32) {
    proptest!(ProptestConfig::with_cases(cases), |(text in "\\PC{0,200}")| {
        fuzzing::check(&text);
        fuzzing::check(&format!(".version 7.8 .target sm_80 .entry k() {{{text}}}"));
    });
}

fn check_pieces(cases: u32) {
    let pieces = proptest::collection::vec(any::<Index>(), 0..30);
    proptest!(ProptestConfig::with_cases(cases), |(pieces in pieces)| {
        let pieces: String = pieces.iter().map(|index| PIECES[index.index(PIECES.len())]).collect();
        fuzzing::check(&format!(".version 7.8\n.target sm_80\n{pieces}"));
        fuzzing::check(&format!(".version 7.8\n.target sm_80\n.entry k() {{{pieces}}}"));
    });
}

in_both_tiers! {
    100, 2_000;
    damaged_ptx_never_panics: check_damage;
    any_text_never_panics: check_any_text;
    pieces_in_a_body_never_panic: check_pieces;
}
