//! `--help` of every command.

use crate::support::{printed, run};

pub(crate) const COMMANDS: [&[&str]; 25] = [
    &[],
    &["demo"],
    &["run"],
    &["info"],
    &["top"],
    &["causes"],
    &["lines"],
    &["loops"],
    &["waits"],
    &["accesses"],
    &["values"],
    &["warps"],
    &["paths"],
    &["edges"],
    &["stats"],
    &["diff"],
    &["timeline"],
    &["report"],
    &["decode"],
    &["export"],
    &["verify"],
    &["devices"],
    &["new"],
    &["completions"],
    &["man"],
];

#[test]
fn help_fits_the_screen_and_goes_to_standard_output() {
    for command in COMMANDS {
        let output = printed(&[command, &["--help"]].concat());
        assert!(output.contains("Usage: warptrace"), "{command:?}: {output}");
        for line in output.lines() {
            assert!(line.chars().count() <= 100, "{command:?} is wider than 100 columns: {line}");
        }
    }
}

#[test]
fn every_option_is_explained() {
    for command in COMMANDS {
        let output = run(&[command, &["--help"]].concat()).1;
        let lines: Vec<&str> = output.lines().collect();
        let mut options = 0;
        for (number, line) in lines.iter().enumerate() {
            let option = line.trim_start();
            // `- raw: ...` is a value of an option.
            if !option.starts_with('-') || option.starts_with("- ") || !line.starts_with("  ") {
                continue;
            }
            options += 1;
            // The explanation is on the line of the option, or below it and further to the right.
            let indent = line.len() - option.len();
            let beside = option.split("  ").skip(1).any(|words| !words.is_empty());
            let below = lines.get(number + 1).is_some_and(|next| {
                let words = next.trim_start();
                !words.is_empty() && next.len() - words.len() > indent
            });
            assert!(beside || below, "{command:?} does not explain `{option}`");
        }
        assert!(options >= 2, "{command:?} has --help and --version");
    }
}

#[test]
fn the_first_page_names_commands_first_steps_and_exit_codes() {
    let output = run(&["--help"]).1;
    for part in [
        "demo",
        "info",
        "top",
        "diff",
        "report",
        "decode",
        "export",
        "verify",
        "devices",
        "First steps",
        "Exit codes",
    ] {
        assert!(output.contains(part), "no `{part}` in\n{output}");
    }
    let codes = output.split("Exit codes: ").nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        codes,
        "0 success; 1 error; 2 bad arguments; \
         3 incomplete or damaged trace (`verify`, or `demo` lost events); \
         4 `diff --fail-above` found a larger change; 130 interrupted by Ctrl-C. `run` exits with the program's code."
    );
    let output = printed(&["--version"]);
    assert_eq!(output, format!("warptrace {}\n", env!("CARGO_PKG_VERSION")));
}
