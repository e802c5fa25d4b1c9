//! Output of every command on terminals of 80 and 40 columns.

use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

const COMMANDS: [&[&str]; 17] = [
    &["top"],
    &["causes"],
    &["lines", "--limit", "3"],
    &["lines", "--limit", "3", "--location", "mis.rs:112"],
    &["loops", "--limit", "3"],
    &["warps", "--limit", "3"],
    &["edges", "--limit", "3"],
    &["paths", "--limit", "3"],
    &["stats", "--kernel", "mis_*"],
    &["waits"],
    &["values"],
    &["accesses"],
    &["buffers"],
    &["info"],
    &["verify"],
    &["decode", "--launch", "1", "--block", "0", "--warp", "0"],
    &["diff", "--limit", "3"],
];

#[test]
fn every_command_fits_narrow_terminals() {
    let [before, after] = ["before", "after"].map(|name| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/answers-{name}.wtrc"))
    });
    for columns in ["80", "40"] {
        let mut all = String::new();
        for command in COMMANDS {
            let mut tool = Command::new(cargo_bin("warptrace"));
            tool.arg(command[0]).arg(&before);
            if command[0] == "diff" {
                tool.arg(&after);
            }
            let output = tool.args(&command[1..]).env("COLUMNS", columns).output().unwrap();
            let printed =
                String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
            let printed = printed.replace(before.to_str().unwrap(), "before.wtrc");
            let printed = printed.replace(after.to_str().unwrap(), "after.wtrc");
            all += &format!("$ warptrace {}\n{printed}\n", command.join(" "));
        }
        insta::assert_snapshot!(format!("columns_{columns}"), all);
    }
}
