//! Checks that the traces for tests of other packages equal today's recordings.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::golden;
use crate::window_streamed::unordered;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cli/tool/tests/fixtures");

/// A line of `list.txt`.
struct Fixture {
    name: String,
    code: i32,
    words: Vec<String>,
}

fn fixtures() -> Vec<Fixture> {
    let list = std::fs::read_to_string(Path::new(FIXTURES).join("list.txt")).unwrap();
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let fixture = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let (name, code) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        let mut words: Vec<String> = words.collect();
        for (option, value) in [("--device", "sim"), ("--memory", "64MiB"), ("-o", &format!("{name}.wtrc"))] {
            if !words.iter().any(|word| word == option) {
                words.extend([option, value].map(str::to_owned));
            }
        }
        Fixture { name, code, words }
    };
    lines.map(fixture).collect()
}

impl Fixture {
    /// Returns the trace in its committed form, and the output; on failure the error output and exit status.
    fn record(&self, folder: &Path) -> Result<(Vec<u8>, String), String> {
        let output = Command::new(assert_cmd::cargo::cargo_bin("warptrace-bench"))
            .current_dir(folder)
            .arg("record")
            .args(&self.words)
            .output()
            .unwrap();
        let [printed, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        if output.status.code() != Some(self.code) || errors.is_empty() != (self.code == 0) {
            return Err(format!("{}: {}: {errors}", self.name, output.status));
        }
        let file = self.words.iter().position(|word| word == "-o").unwrap() + 1;
        let trace = std::fs::read(folder.join(&self.words[file])).unwrap();
        Ok((golden::without_host(&trace), printed))
    }

    /// With the policy `stream`, only sets of events must be equal: their order depends on timing.
    fn is_kept(&self, trace: &[u8]) -> bool {
        if std::fs::read(self.path()).unwrap() == trace {
            return true;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), trace).unwrap();
        self.words.iter().any(|word| word == "stream") && unordered(&self.path()) == unordered(file.path())
    }

    fn path(&self) -> PathBuf {
        Path::new(FIXTURES).join(format!("{}.wtrc", self.name))
    }
}

mod full {
    use super::*;

    /// Records all fixtures again. With `WARPTRACE_OVERWRITE_GOLDEN=1`, writes them instead of comparing.
    #[test]
    fn committed_traces_are_what_is_recorded() {
        if !golden::overwrites() && !golden::can_be_compared() {
            return;
        }
        let mut wrong = Vec::new();
        for fixture in fixtures() {
            let folder = tempfile::tempdir().unwrap();
            let (trace, printed) = match fixture.record(folder.path()) {
                Ok(recorded) if fixture.name != "-" => recorded,
                Ok(_) => continue,
                Err(error) => {
                    wrong.push(error);
                    continue;
                }
            };
            let (path, text) = (fixture.path(), fixture.path().with_extension("txt"));
            if golden::overwrites() {
                std::fs::write(&path, &trace).unwrap();
                if text.exists() {
                    std::fs::write(&text, &printed).unwrap();
                }
            } else if !fixture.is_kept(&trace) {
                wrong.push(format!("{}: another trace", fixture.name));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
