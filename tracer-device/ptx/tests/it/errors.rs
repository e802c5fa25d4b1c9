//! Invalid PTX is rejected with the position, the text found and the text expected.

use warptrace_ptx::{Module, ParseError};

const HEADER: &str = ".version 7.8\n.target sm_80\n";

fn message(text: &str) -> String {
    Module::parse(text).expect_err("it is no PTX").to_string()
}

fn check(header: &str, cases: &[(&str, [usize; 2], &str)]) {
    for (text, [line, column], says) in cases {
        let expected = format!("PTX line {line}, column {column}: {says}");
        assert_eq!(message(&format!("{header}{text}")), expected, "{text}");
    }
}

#[test]
fn a_module_begins_with_its_version_and_target() {
    let version = "expected `.version`: PTX begins with it";
    check(
        "",
        &[
            ("", [1, 1], &format!("found the end of the text, {version}")),
            ("\n  .target sm_80", [2, 3], &format!("found `.target`, {version}")),
            (".version 7.8\n", [2, 1], "found the end of the text, expected `.target`"),
            (".version 7", [1, 10], "found `7`, expected a version, such as `7.8`"),
            ("ELF", [1, 1], "found `ELF`, expected a directive, such as `.visible` or `.global`"),
        ],
    );
}

#[test]
fn what_is_not_closed_is_named() {
    let body = "found the end of the text, expected `}`, the end of the function's body";
    let parameters = "found the end of the text, expected `,` and a parameter, or `)`";
    let statement = "found `}`, expected the statement's end, `;`";
    check(
        HEADER,
        &[
            (".entry k() {\n\tret;\n", [5, 1], body),
            (".entry k(.param .u32 n", [3, 23], parameters),
            (".entry k() {\n\tmov.u32 %r1, 0\n}", [5, 1], statement),
            (".entry k() { st.global.u32 [%rd1), %r1; }", [3, 33], "found `)`, expected `]`"),
            (".file 1 \"kernel.cu\n", [3, 9], "the string has no closing `\"` on its line"),
            (".entry k() { ret; /* to the end }", [3, 19], "the comment has no closing `*/`"),
        ],
    );
}

#[test]
fn what_is_wrong_is_named() {
    let linkage = "found `ret`, expected a function or variable behind its linkage";
    let label = "found `5`, expected a label, an instruction or a directive";
    check(
        HEADER,
        &[
            (".visible ret;", [3, 10], linkage),
            (".entry k() { .loc 1 99999999999 1\n }", [3, 21], "found `99999999999`, expected a line"),
            (".entry k() { 5: ret; }", [3, 14], label),
            (".entry k() { @ret; }", [3, 18], "found `;`, expected an instruction"),
        ],
    );
    let long = message(&format!("{HEADER}{}", "β".repeat(500)));
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
