//! Coverage, read by lcov_cobertura and by lcov's own genhtml.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{export, json, lossy, mis, read_with};
use crate::support::{Folder, run, text};

#[test]
fn hits_are_visits_and_branches_are_the_ways_that_lanes_took() {
    let folder = Folder::new();
    let trace = mis(&folder);
    let out = folder.at("mis.info");
    let said = export(&trace, "lcov", &out, &[]);
    let Some(found) = read_with("read_lcov.py", "lcov_cobertura", &[text(&out)]) else { return };
    let [lines, edges] = ["lines", "edges"].map(|view| json(&[view, text(&trace)]));
    let mut expected: BTreeMap<(String, String), (u64, usize)> = BTreeMap::new();
    for line in lines["lines"].as_array().unwrap() {
        let ids = line["locations"].as_array().unwrap();
        let of_id = |id: &&Value| {
            let edges = edges["edges"].as_array().unwrap().iter();
            edges.filter(|edge| edge["from"]["location"] == **id || edge["from"] == **id).count()
        };
        let ways = ids.iter().map(|id| of_id(&id)).filter(|ways| *ways > 1).sum();
        let place = (line["file"].as_str().unwrap().to_owned(), line["line"].to_string());
        expected.insert(place, (line["visits"].as_u64().unwrap(), ways));
    }
    let (mut hit, mut all) = (0, 0);
    for (file, lines) in found.as_object().unwrap() {
        for (line, figures) in lines.as_object().unwrap() {
            let visits: u64 = figures[0].as_str().unwrap().parse().unwrap();
            let ways = figures[1].as_str().map_or(0, |share| {
                let (taken, of) = share.split_once('(').unwrap().1.split_once('/').unwrap();
                assert_eq!(Some(taken), of.strip_suffix(')'), "ways that were seen were taken");
                taken.parse().unwrap()
            });
            all += 1;
            hit += u64::from(visits > 0);
            let expected = expected.get(&(file.clone(), line.clone())).copied().unwrap_or_default();
            assert_eq!((visits, ways), expected, "{file}:{line}");
        }
    }
    assert_eq!(hit, expected.len() as u64);
    assert!(expected.values().any(|(_, ways)| *ways > 1));
    assert!(said.contains(&format!("{hit} of {all} lines, ")), "{said}");
}

#[test]
fn genhtml_makes_pages_of_it() {
    if Command::new("genhtml").arg("--version").output().is_err() {
        eprintln!("skipped: genhtml is not installed (Debian's package lcov)");
        return;
    }
    let folder = Folder::new();
    let trace = lossy(&folder, &[]);
    let out = folder.at("stress.info");
    let (code, _, errors) = run(&["export", text(&trace), "--to", "lcov", "-o", text(&out)]);
    assert!(code == 0 && errors.starts_with("warning: INCOMPLETE trace: "), "{errors}");
    let pages = folder.at("pages");
    let output = Command::new("genhtml")
        // Files are named from the workspace's root.
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(["--branch-coverage", "--show-details", "--output-directory", text(&pages), text(&out)])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name| std::fs::read_to_string(find(&pages, name).unwrap()).unwrap();
    assert!(
        read("index-detail.html").contains("warptrace_INCOMPLETE"),
        "the name says that events are missing"
    );
    let page = read("stress.rs.gcov.html");
    let visits = json(&["lines", text(&trace), "--sort", "visits"])["lines"][0]["visits"].as_u64().unwrap();
    assert!(page.contains(&visits.to_string()), "{visits}");
}

/// A file with this name in a folder or below.
fn find(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find_map(|path| if path.is_dir() { find(&path, name) } else { path.ends_with(name).then_some(path) })
}
