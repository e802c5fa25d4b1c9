//! Each view of each kind of incomplete file: exit code, first line, and a helpful sentence.

use std::path::Path;

use crate::bad_traces::{Lack, bad_traces};
use crate::support::{Folder, run, text};

struct Said {
    code: i32,
    output: String,
    errors: String,
}

impl Said {
    fn new(arguments: &[&str]) -> Self {
        let (code, output, errors) = run(arguments);
        assert!(!errors.contains("panicked"), "{arguments:?}: {errors}");
        Self { code, output, errors }
    }

    /// Checks that nothing was shown and that the error helps. Returns false if no error is expected.
    fn is_refused(&self, lack: Lack, path: &Path, what: &str) -> bool {
        let Some([start, part]) = lack.error(path) else {
            assert_eq!(self.code, 0, "{what} {lack:?}: {}", self.errors);
            return false;
        };
        assert_eq!((self.code, self.output.as_str()), (1, ""), "{what} {lack:?}: {}", self.errors);
        let errors = &self.errors;
        assert!(errors.starts_with(&start) && errors.contains(&part), "{what} {lack:?}: {errors}");
        assert!(errors.contains(text(path)) && errors.lines().count() == 1, "{what} {lack:?}: {errors}");
        true
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[test]
fn views_in_the_terminal() {
    let folder = Folder::new();
    for (lack, path) in bad_traces(&folder) {
        for view in ["top", "lines", "loops", "warps", "paths", "edges", "stats"] {
            let said = Said::new(&[view, text(&path)]);
            if said.is_refused(lack, &path, view) {
                continue;
            }
            let (first, all) = (first_line(&said.output), said.output.as_str());
            assert_eq!(said.errors, "", "{view} {lack:?}");
            match lack.incomplete() {
                Some(part) => {
                    assert!(
                        first.starts_with("INCOMPLETE trace: ") && first.contains(part),
                        "{view} {lack:?}: {all}"
                    );
                }
                None => assert!(!all.contains("INCOMPLETE"), "{view} {lack:?}: {all}"),
            }
            let words = match lack {
                Lack::AnyEvent => "no events: `warptrace info` says what was recorded",
                Lack::Locations => "no table of locations, so they are shown by their ids",
                _ => continue,
            };
            assert!(all.contains(words), "{view} {lack:?}: {all}");
        }
    }
}

#[test]
fn differences() {
    let folder = Folder::new();
    let whole = folder.recorded("whole.wtrc", &[]);
    for (lack, path) in bad_traces(&folder) {
        for files in [[&path, &path], [&whole, &path], [&path, &whole]] {
            let said = Said::new(&["diff", text(files[0]), text(files[1])]);
            let is_other = matches!(lack, Lack::Events | Lack::AnyEvent) && files.contains(&&whole);
            assert_eq!(said.output.contains("are they of the same program?"), is_other, "{lack:?}");
            if lack == Lack::Locations && files.contains(&&whole) {
                // Without a table of locations, common locations are unknown.
                let errors = &said.errors;
                assert_eq!((said.code, said.output.as_str()), (1, ""), "{lack:?}: {errors}");
                assert!(errors.contains("no location of the one is in the other"), "{lack:?}: {errors}");
                continue;
            }
            if said.is_refused(lack, &path, "diff") {
                continue;
            }
            let lines: Vec<&str> = said.output.lines().collect();
            let Some(part) = lack.incomplete() else {
                assert!(lines[0].starts_with("the recordings d"), "{lack:?}: {lines:?}");
                let warps = [" in both traces took another path", "no warp is compared: "];
                assert!(warps.iter().any(|words| said.output.contains(words)), "{lack:?}: {lines:?}");
                continue;
            };
            assert!(lines[0].starts_with("first: "), "{lack:?}: {lines:?}");
            let told = |line: &&&str| line.contains(": INCOMPLETE trace: ") && line.contains(part);
            let expected = files.iter().filter(|file| **file == &path).count();
            assert_eq!(lines.iter().filter(told).count(), expected, "{lack:?}: {lines:?}");
        }
    }
}

#[test]
fn traces_of_different_programs_have_no_differences() {
    let folder = Folder::new();
    let whole = folder.recorded("whole.wtrc", &[]);
    let other = folder.traced("mis", "mis.wtrc", &["--graph", "road:64", "--grid", "4x32"]);
    for more in [&[][..], &["--json"], &["--fail-above", "5"]] {
        let said = Said::new(&[&["diff", text(&whole), text(&other)], more].concat());
        assert_eq!((said.code, said.output.as_str()), (1, ""), "{more:?}");
        let errors = &said.errors;
        assert!(
            errors.contains("they are not of the same program") && errors.lines().count() == 1,
            "{errors}"
        );
    }
}

#[test]
fn pages() {
    let folder = Folder::new();
    let page = folder.at("page.html");
    for (lack, path) in bad_traces(&folder) {
        let said = Said::new(&["report", text(&path), "-o", text(&page)]);
        if said.is_refused(lack, &path, "report") {
            assert!(!page.exists(), "{lack:?}");
            continue;
        }
        let html = std::fs::read_to_string(&page).unwrap();
        std::fs::remove_file(&page).unwrap();
        let (errors, before) = (first_line(&said.errors), html.split("<h1>").next().unwrap());
        match (lack.incomplete(), lack) {
            (Some(part), _) => {
                assert!(
                    errors.starts_with("warning: INCOMPLETE trace: ") && errors.contains(part),
                    "{errors}"
                );
                assert!(before.contains("INCOMPLETE trace: ") && before.contains(part), "{lack:?}");
            }
            (None, Lack::AnyEvent) => {
                assert!(errors.contains("no events to show; `warptrace info`"), "{errors}");
            }
            (None, _) => {
                assert!(errors.contains("no table of locations"), "{errors}");
                assert!(!html.contains("INCOMPLETE"), "{lack:?}");
            }
        }
    }
}

#[test]
fn exports() {
    let folder = Folder::new();
    let out = folder.at("out");
    let formats = ["parquet", "perfetto", "firefox", "lcov"];
    let is_built = |format: &&str| cfg!(feature = "parquet") || *format != "parquet";
    for (lack, path) in bad_traces(&folder) {
        for format in formats.into_iter().filter(is_built) {
            let said = Said::new(&["export", text(&path), "--to", format, "-o", text(&out)]);
            if said.is_refused(lack, &path, format) {
                assert!(!out.exists(), "{format} {lack:?}");
                continue;
            }
            std::fs::remove_file(&out).unwrap();
            let first = first_line(&said.errors);
            if let Some(part) = lack.incomplete() {
                let start = "warning: INCOMPLETE trace: ";
                assert!(first.starts_with(start) && first.contains(part), "{format} {lack:?}: {first}");
                continue;
            }
            let words = match (lack, format) {
                (Lack::AnyEvent, _) => "note: there are no events to export",
                // This format counts lines.
                (_, "lcov") => "locations are left out, because the trace does not know their lines",
                _ => "",
            };
            assert!(
                first.contains(words) && first.is_empty() == words.is_empty(),
                "{format} {lack:?}: {first}"
            );
        }
    }
}
