//! What is no PTX is refused with the position, what was found and what was expected.

use warptrace_ptx::{Module, ParseError};

const HEADER: &str = ".version 7.8\n.target sm_80\n";

fn message(text: &str) -> String {
    Module::parse(text).expect_err("it is no PTX").to_string()
}

/// The message for what follows a header of two lines.
fn behind_header(text: &str) -> String {
    message(&format!("{HEADER}{text}"))
}

#[test]
fn a_module_begins_with_its_version_and_target() {
    assert_eq!(
        message(""),
        "PTX line 1, column 1: found the end of the text, expected `.version`: PTX begins with it"
    );
    assert_eq!(
        message("\n  .target sm_80"),
        "PTX line 2, column 3: found `.target`, expected `.version`: PTX begins with it"
    );
    assert_eq!(
        message(".version 7.8\n"),
        "PTX line 2, column 1: found the end of the text, expected `.target`"
    );
    assert_eq!(message(".version 7"), "PTX line 1, column 10: found `7`, expected a version, such as `7.8`");
    assert_eq!(
        message("ELF"),
        "PTX line 1, column 1: found `ELF`, expected a directive, such as `.visible` or `.global`"
    );
}

#[test]
fn what_is_not_closed_is_named() {
    assert_eq!(
        behind_header(".entry k() {\n\tret;\n"),
        "PTX line 5, column 1: found the end of the text, expected `}`, the end of the function's body"
    );
    assert_eq!(
        behind_header(".entry k(.param .u32 n"),
        "PTX line 3, column 23: found the end of the text, expected `,` and a parameter, or `)`"
    );
    assert_eq!(
        behind_header(".entry k() {\n\tmov.u32 %r1, 0\n}"),
        "PTX line 5, column 1: found `}`, expected the statement's end, `;`"
    );
    assert_eq!(
        behind_header(".entry k() { st.global.u32 [%rd1), %r1; }"),
        "PTX line 3, column 33: found `)`, expected `]`"
    );
    assert_eq!(
        behind_header(".file 1 \"kernel.cu\n"),
        "PTX line 3, column 9: the string has no closing `\"` on its line"
    );
    assert_eq!(
        behind_header(".entry k() { ret; /* to the end }"),
        "PTX line 3, column 19: the comment has no closing `*/`"
    );
}

#[test]
fn what_is_wrong_is_named() {
    assert_eq!(
        behind_header(".visible ret;"),
        "PTX line 3, column 10: found `ret`, expected a function or variable behind its linkage"
    );
    assert_eq!(
        behind_header(".entry k() { .loc 1 99999999999 1\n }"),
        "PTX line 3, column 21: found `99999999999`, expected a line"
    );
    assert_eq!(
        behind_header(".entry k() { 5: ret; }"),
        "PTX line 3, column 14: found `5`, expected a label, an instruction or a directive"
    );
    assert_eq!(
        behind_header(".entry k() { @ret; }"),
        "PTX line 3, column 18: found `;`, expected an instruction"
    );
    // Long pieces are shortened, characters stay whole.
    let long = behind_header(&"β".repeat(500));
    assert!(long.contains(&format!("found `{}...`", "β".repeat(40))), "{long}");
}

#[test]
fn errors_tell_the_offset() {
    let error = Module::parse("\n .entry").expect_err("no version");
    assert_eq!(error.offset(), 2);
    assert!(matches!(error, ParseError::Unexpected { line: 2, column: 2, .. }));
}

#[test]
fn deep_nesting_needs_no_stack() {
    let depth = 200_000;
    for (open, close) in [("{", "}"), ("ld [", "];"), ("ld (", ");")] {
        let deep = open.repeat(depth);
        let text = format!("{HEADER}.entry k() {{ {deep}");
        assert!(Module::parse(&text).is_err(), "{open} is not closed");
        let _ = Module::parse(&format!("{text} {} }}", close.repeat(depth)));
    }
    let scopes = format!("{HEADER}.entry k() {{ {} bra L; L: {} }}", "{".repeat(depth), "}".repeat(depth));
    let module = Module::parse(&scopes).expect("all scopes are closed");
    let body = module.functions[0].body.as_ref().expect("it has a body");
    let label = body.labels().next().expect("it has a label").0;
    assert_eq!(body.statements[label].depth, 200_000);
    assert!(warptrace_ptx::Cfg::new(body).is_ok());
}
