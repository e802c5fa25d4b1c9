//! Commands that this tool was built without.
#![cfg(not(all(feature = "tui", feature = "query")))]

use crate::support::run;

#[test]
fn a_command_that_was_left_out_says_how_to_build_it() {
    let features = [("tui", cfg!(feature = "tui")), ("query", cfg!(feature = "query"))];
    for (feature, _) in features.into_iter().filter(|(_, is_built)| !is_built) {
        for arguments in [&[feature][..], &[feature, "--help"], &[feature, "select 1", "a.wtrc", "-o", "b"]] {
            let (code, output, errors) = run(arguments);
            assert_eq!((code, output.as_str()), (1, ""), "{arguments:?}");
            let expected = format!(
                "error: this tool was built without `{feature}`: build it with `cargo build --release -p warptrace-cli \
                 --features {feature}`\n"
            );
            assert_eq!(errors, expected, "{arguments:?}");
        }
        assert!(!run(&["--help"]).1.contains(&format!("\n  {feature} ")), "only what there is, is listed");
    }
}
