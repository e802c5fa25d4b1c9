//! Coverage, read by lcov_cobertura and by lcov's own genhtml.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{export, json, lossy, mis, read_with};
use crate::support::{Folder, run, text};

#[test]
fn hits_are_visits_and_branches_are_the_sides_that_have_a_point() {
    let folder = Folder::new();
    let trace = folder.traced("mis", "mis.wtrc", &["--graph", "road:64", "--grid", "1x64", "--automatic"]);
    let out = folder.at("mis.info");
    let said = export(&trace, "lcov", &out, &[]);
    let Some(found) = read_with("read_lcov.py", "lcov_cobertura", &[text(&out)]) else { return };
    let [lines, info, stats] = ["lines", "info", "stats"].map(|view| json(&[view, text(&trace)]));
    let came: BTreeSet<u64> =
        stats["locations"].as_array().unwrap().iter().map(|row| row["location"].as_u64().unwrap()).collect();
    // Sides of branches, by file, parent and end of the branch.
    let mut sides: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for row in info["metadata"]["locations"].as_array().unwrap() {
        if ["Then", "Else", "Arm"].contains(&row["kind"].as_str().unwrap()) {
            let key = ["file", "parent", "rejoin_line", "rejoin_column"].map(|field| row[field].to_string());
            sides.entry(key.join(" ")).or_default().push(row);
        }
    }
    let place = |row: &Value| (row["file"].as_str().unwrap().to_owned(), row["line"].to_string());
    let mut expected: BTreeMap<(String, String), (u64, [u64; 2])> = BTreeMap::new();
    for row in lines["lines"].as_array().unwrap() {
        expected.entry(place(row)).or_default().0 = row["visits"].as_u64().unwrap();
    }
    let hit = expected.len();
    for sides in sides.values().filter(|sides| sides.len() > 1) {
        let taken = sides.iter().filter(|row| came.contains(&row["id"].as_u64().unwrap())).count();
        let [sum, all] = &mut expected.entry(place(sides[0])).or_default().1;
        (*sum, *all) = (*sum + taken as u64, *all + sides.len() as u64);
    }
    let mut number = 0;
    for (file, lines) in found.as_object().unwrap() {
        for (line, figures) in lines.as_object().unwrap() {
            let visits: u64 = figures[0].as_str().unwrap().parse().unwrap();
            let ways = figures[1].as_str().map_or([0, 0], |share| {
                let (_, counts) = share.split_once('(').unwrap();
                let (taken, of) = counts.trim_end_matches(')').split_once('/').unwrap();
                [taken, of].map(|count| count.parse().unwrap())
            });
            number += 1;
            let expected = expected.get(&(file.clone(), line.clone())).copied().unwrap_or_default();
            assert_eq!((visits, ways), expected, "{file}:{line}");
        }
    }
    let [taken, all] =
        expected.values().fold([0, 0], |[taken, all], (_, [some, of])| [taken + some, all + of]);
    assert!(taken < all && taken > 2, "{taken} of {all}: some side is never taken");
    assert!(said.contains(&format!("{hit} of {number} lines, {taken} of {all} branches")), "{said}");
    // If only marked points were recorded, no branch has a point on each side, so the file has no totals.
    let marked = folder.at("marked.info");
    assert!(export(&mis(&folder), "lcov", &marked, &[]).contains(" lines, 0 of 0 branches"));
    let records = std::fs::read_to_string(marked).unwrap();
    assert!(!["BRDA:", "BRF:", "BRH:"].iter().any(|record| records.contains(record)), "{records}");
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
        // Files are named relative to the root of the workspace.
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

fn find(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find_map(|path| if path.is_dir() { find(&path, name) } else { path.ends_with(name).then_some(path) })
}
