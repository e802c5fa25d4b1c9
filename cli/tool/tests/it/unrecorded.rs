//! Launches that were not traced.

use std::path::PathBuf;

use serde_json::json;
use warptrace_format::file::{Unrecorded, UnrecordedLaunches};
use warptrace_host::HostMessage;

use crate::support::{
    Folder, compare_with_reference, json, metadata, printed, run, text, write_launch, writer,
};

const SAID: &str =
    "NOT ALL LAUNCHES: 3 of 5 launches were not traced (parent: it has no PTX); info lists them";

/// Writes two launches. 3 launches of two kernels were not traced, and 22 kernels were not selected.
pub(crate) fn partial(folder: &Folder) -> PathBuf {
    let path = folder.at("partial.wtrc");
    let mut writer = writer(&path, &metadata("matmul").with_location(1, "entry", ""));
    (0..2).for_each(|number| write_launch(&mut writer, number, [1, 32], &[&[1, 0, 255, 255, 255, 255]]));
    let of = |kernel: &str, reason: &str, launches| UnrecordedLaunches {
        kernel: kernel.to_owned(),
        reason: reason.to_owned(),
        launches,
    };
    let chosen = |kernel: String| of(&kernel, UnrecordedLaunches::NOT_ASKED_FOR, 1);
    let mut launches = vec![of("child", "it is a child", 1), of("parent", "it has no PTX", 2)];
    launches.extend((0..22).map(|number| chosen(format!("other{number}"))));
    let notes = vec!["graphs were taken apart".to_owned()];
    writer.write_message(&HostMessage::Unrecorded(Unrecorded { launches, notes })).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn the_first_line_of_every_view_says_which_launches_were_not_traced() {
    let folder = Folder::new();
    let path = partial(&folder);
    let path = text(&path);
    for view in ["top", "causes", "lines", "loops", "warps", "edges", "paths", "stats"] {
        let said = printed(&[view, path]);
        assert!(said.starts_with(&format!("{SAID}\nfigures are of what is there: ")), "{view}: {said}");
    }
    for view in ["info", "verify"] {
        let said = printed(&[view, path]);
        let first = said.lines().next().unwrap();
        assert!(first.ends_with(&format!("complete by its accounts; {SAID}")), "{view}: {said}");
    }
    #[cfg(feature = "query")]
    assert!(printed(&["query", "select 1", path]).lines().next().unwrap().contains(SAID));
    let (_, _, errors) = run(&["decode", path]);
    assert!(errors.starts_with("warning: complete by its accounts; NOT ALL LAUNCHES"), "{errors}");
    let page = folder.at("page.html");
    run(&["report", path, "-o", text(&page)]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.find(SAID).unwrap() < page.find("<h1>").unwrap());

    let other = folder.at("other.wtrc");
    let mut whole = writer(&other, &metadata("matmul").with_location(1, "entry", ""));
    write_launch(&mut whole, 0, [1, 32], &[&[1, 0, 255, 255, 255, 255]]);
    whole.finish().unwrap();
    let both = [path, text(&other)];
    let said = printed(&["top", both[0], both[1]]);
    assert!(said.starts_with("2 traces; NOT ALL LAUNCHES: in 1 of them: partial.wtrc: 3 of 5"), "{said}");
    assert!(printed(&["diff", both[0], both[1]]).starts_with(&format!("first: {SAID}\n")));
    assert!(printed(&["verify", both[0], both[1]]).contains(&format!("2 events of 2 warps; {SAID}\n")));
}

#[test]
fn info_and_json_have_all_of_them() {
    let folder = Folder::new();
    let path = partial(&folder);
    let path = text(&path);
    let info = printed(&["info", path]);
    let at = info.find("launches     27 seen: 2 traced, 25 not\n").unwrap();
    let lines: Vec<&str> = info[at..].lines().collect();
    assert_eq!(lines[1], "             2 of parent: it has no PTX");
    assert_eq!(lines[2], "             1 of child: it is a child");
    assert_eq!(
        lines[20..23],
        [
            "             1 of other5: it was not asked for",
            "             4 more kernels",
            "note         graphs were taken apart"
        ]
    );
    for view in ["info", "top", "stats", "verify"] {
        let found = json(&[view, path]);
        let not_traced = &found["not_traced"];
        assert_eq!(
            (&not_traced["launches"], &found["notes"]),
            (&25.into(), &json!(["graphs were taken apart"]))
        );
        let first = json!({ "kernel": "parent", "reason": "it has no PTX", "launches": 2 });
        assert_eq!(
            (not_traced["kernels"].as_array().unwrap().len(), &not_traced["kernels"][0]),
            (24, &first)
        );
        assert!(found["state"].as_str().unwrap().ends_with(SAID), "{view}");
    }
}

#[test]
fn the_second_reader_knows_them_too() {
    let folder = Folder::new();
    compare_with_reference(&[partial(&folder)]);
}
