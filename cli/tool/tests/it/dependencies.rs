//! Dependencies of the tool.

use std::collections::BTreeSet;
use std::process::Command;

/// Returns the names of all packages of the tool with all features, without those that only tests need.
fn packages() -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--locked", "--package", "warptrace-cli", "--all-features"])
        .args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_tool_has_nothing_of_the_programs_that_measure_it() {
    let packages = packages();
    for there in ["warptrace-host", "warptrace-exports", "clap"] {
        assert!(packages.contains(there), "no {there} in {packages:?}");
    }
    for needless in
        ["warptrace-bench", "warptrace-workloads", "warptrace-kernels", "spade", "liblzma", "png", "robust"]
    {
        assert!(!packages.contains(needless), "the tool is built of {needless}");
    }
}
