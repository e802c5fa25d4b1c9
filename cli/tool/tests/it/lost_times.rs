//! Traces with lost, duplicate or exchanged sections of times: every command reports this, and the reference
//! reader agrees.

use std::path::{Path, PathBuf};

use serde_json::Value;
use warptrace_format::file::{PREAMBLE_BYTES, SectionHeader};

use crate::support::{Folder, compare_with_reference, printed, run, text};

fn timed(folder: &Folder) -> PathBuf {
    let arguments = ["--graph", "road:300", "--times", "all"];
    folder.traced("mis", "whole.wtrc", &arguments)
}

/// Returns the sections of the file. The first one is the preamble.
fn sections(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let (mut found, mut at) = (vec![bytes[..PREAMBLE_BYTES].to_vec()], PREAMBLE_BYTES);
    while at < bytes.len() {
        let end = at + SectionHeader::parse(&bytes[at..], 0).unwrap().total_bytes() as usize;
        found.push(bytes[at..end].to_vec());
        at = end;
    }
    found
}

fn tagged(sections: &[Vec<u8>], tag: &[u8]) -> Vec<usize> {
    (1..sections.len()).filter(|at| sections[*at].starts_with(tag)).collect()
}

/// Writes a file with changed sections of `whole.wtrc`. Omits the index, which would be wrong.
fn changed(folder: &Folder, name: &str, change: impl FnOnce(&mut Vec<Vec<u8>>)) -> PathBuf {
    let mut all = sections(&folder.at("whole.wtrc"));
    all.retain(|section| !section.starts_with(b"INDX") && !section.starts_with(b"TAIL"));
    change(&mut all);
    let path = folder.at(name);
    std::fs::write(&path, all.concat()).unwrap();
    path
}

fn problems(path: &Path) -> String {
    let (code, output, _) = run(&["verify", text(path)]);
    assert_eq!(code, 3, "{output}");
    output
}

#[test]
fn sections_that_belong_elsewhere_are_reported() {
    let folder = Folder::new();
    timed(&folder);
    let mut paths = Vec::new();
    for (tag, before) in [("TIME", "FRAM"), ("SPAN", "ACCT")] {
        let name = |what: &str| format!("{tag}-{what}.wtrc");
        let unchanged = changed(&folder, &name("unchanged"), |_| ());
        assert!(problems(&unchanged).contains("problems: 1\n"), "the index alone is missing");

        let exchanged = changed(&folder, &name("exchanged"), |all| {
            let at = tagged(all, tag.as_bytes());
            all.swap(at[0], at[1]);
        });
        let found = problems(&exchanged);
        let told = format!("the checksum of the {before} section before it, to which it belongs");
        assert_eq!(found.matches(&told).count(), 2, "{found}");

        let doubled = changed(&folder, &name("doubled"), |all| {
            let at = tagged(all, tag.as_bytes())[0];
            all.insert(at, all[at].clone());
        });
        let found = problems(&doubled);
        assert!(found.contains(&format!("{tag} at offset ")), "{found}");
        assert!(found.contains("belongs to no section before it: it counts for nothing"), "{found}");
        paths.extend([unchanged, exchanged, doubled]);
    }
    compare_with_reference(&paths);
}

fn said(arguments: &[&str]) -> String {
    let (code, output, errors) = run(arguments);
    assert!(matches!(code, 0 | 3), "{arguments:?}: {errors}");
    let lines = errors.lines().chain(output.lines().take(2));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_command_says_which_times_are_missing() {
    let folder = Folder::new();
    let whole = timed(&folder);
    let state = |path: &Path| -> Value {
        serde_json::from_str::<Value>(&run(&["info", text(path), "--json"]).1).unwrap()["state"].clone()
    };
    assert_eq!(state(&whole), "complete by its accounts");
    let kinds = [("TIME", "times of "), ("SPAN", "begin or end of ")];
    for ((tag, words), is_damaged) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let lost = changed(&folder, &format!("{tag}-{is_damaged}.wtrc"), |all| {
            let at = tagged(all, tag.as_bytes())[1];
            if is_damaged {
                *all[at].last_mut().unwrap() ^= 1;
            } else {
                all.remove(at);
            }
        });
        let sentence = state(&lost).as_str().unwrap().to_owned();
        let at = sentence.find(words).unwrap_or_else(|| panic!("{sentence}"));
        let missing = sentence[at..].split("; ").next().unwrap();
        assert!(missing.ends_with(" missing"), "{sentence}");
        let lost = text(&lost);
        let out = folder.at("out");
        for format in ["perfetto", "firefox", "lcov"] {
            let said = said(&["export", lost, "--to", format, "-o", text(&out)]);
            assert!(said.contains(missing), "{format}: {said}");
            assert!(said.contains("warning: the export lacks times: "), "{format}: {said}");
        }
        #[cfg(feature = "parquet")]
        assert!(said(&["export", lost, "--to", "parquet", "-o", text(&out)]).contains(missing));
        for command in [&["top", lost, "--json"][..], &["stats", lost, "--json"]] {
            let view: Value = serde_json::from_str(&run(command).1).unwrap();
            assert_eq!(view["state"], Value::from(sentence.as_str()), "{command:?}");
        }
        for command in [&["decode", lost][..], &["info", lost], &["top", lost], &["verify", lost]] {
            assert!(said(command).contains(missing), "{command:?}: {}", said(command));
        }
        let output = printed(&["diff", text(&whole), lost]);
        let last = output.lines().find(|line| line.starts_with("nothing changed")).unwrap();
        assert!(last.contains(&format!("; of the second trace {missing}")), "{last}");
        let (_, output, _) = run(&["diff", text(&whole), lost, "--json"]);
        let json: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(json["states"][1], Value::from(sentence.as_str()));
        let (_, output, _) = run(&["verify", lost, "--json"]);
        assert!(output.contains(missing), "{output}");
    }
}

#[test]
fn accounts_of_accesses_that_stand_twice_are_reported() {
    let folder = Folder::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../decoder/decode/tests/golden/accesses-v2.wtrc");
    std::fs::copy(golden, folder.at("whole.wtrc")).unwrap();
    let twice = changed(&folder, "twice.wtrc", |all| {
        let at = tagged(all, b"DACC")[0];
        all.insert(at, all[at].clone());
    });
    let found = problems(&twice);
    assert!(found.contains("accounts for warps 0 to 2 a second time"), "{found}");
    compare_with_reference(&[twice]);
}
