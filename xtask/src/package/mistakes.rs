//! Tests the messages for mistakes that a build finds. Each case changes a small package and builds it.
//!
//! A case is a text. Lines with `#` describe the mistake. The line with `$` is the command. `-- FILE` begins
//! a file that replaces the correct one; an empty text removes it. The lines after `-- said` must all be
//! printed, the first of them exactly once. Other warnings are not allowed.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use warptrace_build::Compiler;

use super::{Folders, read, user_cargo, user_manifest, write};
use crate::workspace;

/// Name of the package, and its files without a mistake.
const NAME: &str = "mistaken";
const RIGHT: [(&str, &str); 4] = [
    ("build.rs", "fn main() {\n    warptrace_build::compile(\"src/kernels.rs\");\n}\n"),
    (
        "src/kernels.rs",
        "//! A kernel.\n\n#[warptrace::kernels]\npub mod steps {\n    use warptrace::device::{DisjointSlice, thread};\n\n    \
         /// Adds one.\n    #[kernel]\n    pub fn step(out: DisjointSlice<u32>) {\n        \
         let Some((_, out)) = out.own(thread::index()) else { return };\n        *out += 1;\n    }\n}\n",
    ),
    (
        "src/main.rs",
        "//! A program.\n\nmod kernels;\n\nfn main() {\n    println!(\"{}\", kernels::steps::MODULE.kernels.len());\n}\n",
    ),
    ("src/second.rs", ""),
];

/// Builds all cases. Fails at the first case with unexpected output.
pub(super) fn check(folders: &Folders) -> anyhow::Result<()> {
    let texts = workspace::root().join("tracer-host/warptrace/tests/mistakes/build");
    let entries = fs::read_dir(&texts).with_context(|| format!("cannot read {}", texts.display()))?;
    let mut cases: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    cases.sort();
    let package = folders.users.join(NAME);
    let manifest = user_manifest(NAME)
        + "warptrace = \"*\"\n\n[build-dependencies]\nwarptrace-build = \"*\"\n\n[profile.dev]\nopt-level = 1\n\n[workspace]\n";
    write(&package.join("Cargo.toml"), &manifest)?;
    let has_compiler = Compiler::find().is_ok();
    for case in cases {
        let name = case.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !has_compiler && name.starts_with("device-") {
            println!("   mistake {name}: not tried, as there is no device compiler");
            continue;
        }
        run(folders, &package, &read(&case)?).with_context(|| format!("mistake {name}"))?;
    }
    Ok(())
}

fn run(folders: &Folders, package: &Path, case: &str) -> anyhow::Result<()> {
    let (head, rest) = case.split_once("\n-- ").context("the case has no part")?;
    let command = head.lines().find_map(|line| line.strip_prefix("$ ")).context("the case runs nothing")?;
    let parts: Vec<(&str, &str)> =
        rest.split("\n-- ").map(|part| part.split_once('\n').unwrap_or((part, ""))).collect();
    for (file, right) in RIGHT {
        let given = parts.iter().find(|(name, _)| *name == file).map(|(_, text)| *text);
        let (path, text) = (package.join(file), given.unwrap_or(right));
        if text.trim().is_empty() {
            if path.exists() {
                fs::remove_file(&path)?;
            }
        } else {
            write(&path, &format!("{}\n", text.trim_end()))?;
        }
    }
    let (_, expected) = parts.iter().find(|(name, _)| *name == "said").context("the case expects nothing")?;
    let mut cargo = user_cargo(package, &folders.target);
    // Users have not disabled device code.
    cargo.env_remove("WARPTRACE_NO_DEVICE_CODE");
    for word in command.split(' ').filter(|word| *word != "cargo") {
        match word.split_once('=') {
            Some((variable, value)) => cargo.env(variable, value),
            None => cargo.arg(word),
        };
    }
    let output = cargo.args(["--color", "never"]).output().context("cannot run cargo")?;
    compare(&String::from_utf8_lossy(&output.stderr), expected)
}

/// Checks that the output contains all lines of `expected` and no other warning.
fn compare(said: &str, expected: &str) -> anyhow::Result<()> {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    for line in &expected {
        ensure!(said.contains(line), "this was not said:\n{line}\nbut:\n{said}");
    }
    let first = expected.first().context("the case expects nothing")?;
    let times = said.matches(first).count();
    ensure!(times == 1, "this was said {times} times:\n{first}\nin:\n{said}");
    let is_summary = |line: &str| {
        // Also warnings about the patch that replaces a registry.
        line.contains(") generated ") || line.contains("build failed") || line.starts_with("warning: patch ")
    };
    let mut warnings = said.lines().filter(|line| line.starts_with("warning: ") && !is_summary(line));
    let other = warnings.find(|line| !expected.iter().any(|expected| line.contains(expected)));
    ensure!(other.is_none(), "an unexpected warning:\n{said}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_compared() {
        let said = "warning: a\n --> b.rs:3\nwarning: `x` (bin \"x\") generated 1 warning\nerror: c\n";
        assert!(compare(said, "warning: a\n --> b.rs:3\n").is_ok());
        assert!(compare(said, "error: c").is_err(), "the warning was not expected");
        assert!(compare(said, "warning: a\nerror: d").is_err(), "d was not said");
        assert!(compare(&format!("{said}{said}"), "warning: a").is_err(), "twice");
        assert!(compare(said, "").is_err());
    }
}
