//! Commands that this tool was built without.
#![cfg(not(feature = "tui"))]

use crate::support::run;

#[test]
fn a_command_that_was_left_out_says_how_to_build_it() {
    for arguments in [&["tui"][..], &["tui", "--help"], &["tui", "a.wtrc", "-o", "b"]] {
        let (code, output, errors) = run(arguments);
        assert_eq!((code, output.as_str()), (1, ""), "{arguments:?}");
        let expected = "error: this tool was built without `tui`: build it with `cargo build --release -p warptrace-cli \
                        --features tui`\n";
        assert_eq!(errors, expected, "{arguments:?}");
    }
    assert!(!run(&["--help"]).1.contains("\n  tui "), "only what there is, is listed");
}
