//! Running the tool, and a small trace to run it on.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// The picture of the small trace: 32 x 32 pixels in 4 blocks of 8 warps.
pub(crate) const SMALL: [&str; 4] = ["--width", "32", "--depth", "20"];

/// Memory for a small trace, also on a small machine.
const LITTLE: [&str; 2] = ["--memory", "64MiB"];

/// Warps of the small trace.
pub(crate) const WARPS: usize = 32;

/// The tool, without anything from this environment that could change what it does.
pub(crate) fn tool() -> Command {
    let mut command = Command::cargo_bin("warptrace").expect("cargo builds the tool for its tests");
    command.env_remove("WARPTRACE_PTX_DIR").timeout(std::time::Duration::from_secs(300));
    command
}

/// Runs the tool; answers exit code, standard output and standard error.
pub(crate) fn run(arguments: &[&str]) -> (i32, String, String) {
    answer(tool().args(arguments).output().unwrap())
}

fn answer(output: Output) -> (i32, String, String) {
    let code = output.status.code().expect("the tool ends by itself");
    (code, String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A folder that goes away with its files.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Path of `name` in the folder.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Records the tool's own kernel, a small picture.
    pub(crate) fn demo(&self, name: &str, more: &[&str]) -> (PathBuf, (i32, String, String)) {
        let path = self.at(name);
        let arguments = [&["demo", "--device", "sim", "-o", text(&path)], &SMALL[..], &LITTLE, more].concat();
        let answer = run(&arguments);
        (path, answer)
    }

    /// Puts the committed trace of a program with these arguments into the folder.
    pub(crate) fn traced(&self, program: &str, name: &str, arguments: &[&str]) -> PathBuf {
        let path = self.at(name);
        let kept = fixture(&[&[program], arguments].concat()).expect("the trace is kept");
        std::fs::copy(&kept, &path).unwrap_or_else(|error| panic!("{}: {error}", kept.display()));
        path
    }

    /// Puts the committed trace of the small picture with more arguments into the folder.
    pub(crate) fn recorded(&self, name: &str, more: &[&str]) -> PathBuf {
        self.traced("fractal", name, &[&SMALL[..], more].concat())
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// All committed traces, by the arguments of `warptrace-bench record`. `fixtures/list.txt` has them; a name of `-`
/// stands for a recording that is not kept.
pub(crate) fn fixtures() -> Vec<(String, Option<PathBuf>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let list = std::fs::read_to_string(folder.join("list.txt")).unwrap();
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let [name, _, words] = line.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
            (words.to_owned(), (name != "-").then(|| folder.join(format!("{name}.wtrc"))))
        })
        .collect()
}

/// The committed trace of a recording.
///
/// # Panics
/// If there is none.
pub(crate) fn fixture(words: &[&str]) -> Option<PathBuf> {
    let words = words.join(" ");
    let found = fixtures().into_iter().find(|(known, _)| *known == words);
    let (_, path) = found.unwrap_or_else(|| {
        panic!(
            "no trace of `{words}`: add a line to cli/tool/tests/fixtures/list.txt, and run \
             `WARPTRACE_OVERWRITE_GOLDEN=1 cargo test -p warptrace-bench --test it fixtures`"
        )
    });
    path
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

/// Compares the reference reader with the tool on files; where Python lacks something, says so.
///
/// # Panics
/// If they differ.
pub(crate) fn compare_with_reference(paths: &[PathBuf]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(mut python) = python_with("zstandard") else { return };
    let output = python
        .arg(root.join("../../decoder/reference/compare.py"))
        .arg(assert_cmd::cargo::cargo_bin("warptrace"))
        .args(paths)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(&format!("{} files compared, 0 differences", paths.len())), "{said}");
}

/// Runs a script of `tests/readers`; `None` where what it imports is not there. Answers what it prints.
pub(crate) fn read_with(script: &str, imports: &str, arguments: &[&str]) -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = python_with(imports)?;
    let output = python.arg(root.join("tests/readers").join(script)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Python with these modules; `None`, with a reason, where they are not there.
fn python_with(imports: &str) -> Option<std::process::Command> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = || {
        let mut python = std::process::Command::new("python3");
        python.env("PYTHONPATH", root.join("../../.toolchain/readers")).env("PYTHONDONTWRITEBYTECODE", "1");
        python
    };
    let is_there = python().args(["-c", &format!("import {imports}")]).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 cannot import {imports}; `cargo xtask setup --tests` installs it");
        return None;
    }
    Some(python())
}
