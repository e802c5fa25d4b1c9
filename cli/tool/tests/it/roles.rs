//! Views of traces whose warps have roles.

use std::path::PathBuf;

use serde_json::{Value, json};
use warptrace_format::file::LocationInfo;

use crate::support::{Folder, metadata, printed, run, text, write_launch, writer};

/// Writes two blocks of three warps. The first warp of a block visits location 2 three times, the others
/// visit location 3 twenty times, except for one warp.
pub(crate) fn specialised(folder: &Folder) -> PathBuf {
    let path = folder.at("specialised.wtrc");
    let mut metadata = metadata("matmul");
    metadata.locations =
        [(1, "entry"), (2, "bring"), (3, "compute")].map(|(id, name)| LocationInfo::new(id, name, "")).into();
    let mut writer = writer(&path, &metadata);
    let warp_events = |warp: u32| -> Vec<u8> {
        let (location, times) = match warp {
            0 | 3 => (2, 3),
            5 => (3, 23),
            _ => (3, 20),
        };
        let events: Vec<u8> = std::iter::once(1).chain(std::iter::repeat_n(location, times)).collect();
        events.iter().flat_map(|&location| [location, 0, 255, 255, 255, 255]).collect()
    };
    let warps: Vec<Vec<u8>> = (0..6).map(warp_events).collect();
    write_launch(&mut writer, 0, [2, 96], &warps.iter().map(Vec::as_slice).collect::<Vec<_>>());
    writer.finish().unwrap();
    path
}

#[test]
fn views_say_roles_and_compare_warps_with_those_of_their_own() {
    let folder = Folder::new();
    let path = specialised(&folder);
    let said = "matmul: 2 roles from entry: role 1, 1 warp of each block (0), runs bring; \
                role 2, 2 warps of each block (1 to 2), run compute";
    for command in ["warps", "paths", "top"] {
        let output = printed(&[command, text(&path)]);
        assert!(
            output.split_whitespace().collect::<Vec<_>>().join(" ").contains(said),
            "{command}: {output}"
        );
    }
    let read =
        |command: &str| -> Value { serde_json::from_str(&run(&[command, text(&path), "--json"]).1).unwrap() };
    let roles = json!([{
        "kernel": "matmul", "launches": 1, "launch": 0, "branch": 1, "roles": [
            { "warps": [0], "side": 2, "head": 2 },
            { "warps": [1, 2], "side": 3, "head": 3 },
        ],
    }]);
    let (warps, top) = (read("warps"), read("top"));
    assert_eq!((&warps["roles"], &read("paths")["roles"], &top["roles"]), (&roles, &roles, &roles));
    let of = |name: &str| {
        warps["warps"].as_array().unwrap().iter().map(|warp| warp[name].clone()).collect::<Vec<_>>()
    };
    // The oddest warp comes first. The producers are equal.
    assert_eq!(of("warp")[0], 5);
    let medians: Vec<Value> = of("role").iter().map(|role| json!(if *role == 1 { 4 } else { 21 })).collect();
    assert_eq!(of("median"), medians);
    assert_eq!(
        (&top["outlier"]["warp"], &top["outlier"]["role"], &top["outlier"]["median"]),
        (&json!(5), &json!(2), &json!(21))
    );
    let paths = run(&["paths", text(&path)]).1;
    assert!(
        paths.contains("role 1: all 2 warps took the same path; role 2: 2 paths: 3 of 4 warps"),
        "{paths}"
    );
}
