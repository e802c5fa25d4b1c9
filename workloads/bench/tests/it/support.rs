//! Helpers: recording in this process, and reading traces with the tool.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use warptrace_decoder::TraceFile;

/// A small picture: 32 x 32 pixels in 4 blocks of 8 warps.
pub(crate) const SMALL: [&str; 4] = ["--width", "32", "--depth", "20"];

pub(crate) type Printed = (u8, String, String);

pub(crate) fn bench(words: &[&str]) -> Printed {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let words = ["warptrace-bench"].iter().chain(words).map(OsString::from);
    let code = warptrace_bench::run(words, &mut out, &mut errors);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(errors).unwrap())
}

pub(crate) fn run(words: &[&str]) -> Printed {
    warptrace_cli::in_process(words)
}

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn record(&self, program: &str, name: &str, more: &[&str]) -> (PathBuf, Printed) {
        let path = self.at(name);
        let mut words = vec!["record", program, "--device", "sim", "-o", text(&path)];
        words.extend(more);
        if !more.contains(&"--memory") {
            words.extend(["--memory", "64MiB"]);
        }
        let printed = bench(&words);
        (path, printed)
    }

    pub(crate) fn recorded(&self, name: &str, more: &[&str]) -> PathBuf {
        let (path, (code, _, errors)) = self.record("fractal", name, &[&SMALL[..], more].concat());
        assert_eq!((code, errors.as_str()), (0, ""), "recording {name}");
        path
    }
}

pub(crate) fn verified(path: &Path) -> TraceFile {
    let trace = TraceFile::open(path).unwrap();
    let report = trace.verify();
    assert!(report.is_ok(), "{report}");
    trace
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
