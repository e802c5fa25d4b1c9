//! Traces whose warps have roles: what the views say of them.

use std::fs::File;
use std::path::PathBuf;

use serde_json::{Value, json};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{DeviceInfo, LaunchInfo, LocationInfo, Metadata};
use warptrace_host::writer::{ChunkRef, TraceWriter, WriterOptions};

use crate::support::{Folder, run, text};

/// Two blocks of three warps, of which the first goes round location 2 three times and the others round location 3
/// twenty times, but one.
pub(crate) fn specialised(folder: &Folder) -> PathBuf {
    let path = folder.at("specialised.wtrc");
    let device = DeviceInfo::simulator("simulator");
    let mut metadata = Metadata::new("test", device, vec![CodecSpec::Raw]).with_kernel("matmul", "");
    metadata.locations =
        [(1, "entry"), (2, "bring"), (3, "compute")].map(|(id, name)| LocationInfo::new(id, name, "")).into();
    let file = File::create(&path).unwrap();
    let mut writer = TraceWriter::create(file, &metadata, WriterOptions::default()).unwrap();
    writer.begin_launch(&LaunchInfo::new(0, 0, [2, 1, 1], [96, 1, 1], 0).unwrap()).unwrap();
    let (mut payloads, mut accounts) = (Vec::new(), Vec::new());
    for warp in 0..6 {
        let (location, times) = match warp {
            0 | 3 => (2, 3),
            5 => (3, 23),
            _ => (3, 20),
        };
        let events: Vec<u8> = std::iter::once(1).chain(std::iter::repeat_n(location, times)).collect();
        let payload: Vec<u8> =
            events.iter().flat_map(|&location| [location, 0, 255, 255, 255, 255]).collect();
        let recorded = events.len() as u64;
        accounts.push(WarpAccount { attempted: recorded, recorded, lost: 0, chunks: 1, finished: 1 });
        payloads.push((warp, recorded as u32, payload));
    }
    let chunks: Vec<ChunkRef<'_>> = payloads
        .iter()
        .map(|(warp, events, payload)| ChunkRef {
            track: 0,
            warp: *warp,
            sequence: 0,
            events: *events,
            payload,
        })
        .collect();
    writer.write_chunks(0, &chunks).unwrap();
    writer.end_launch(0, 0, &accounts).unwrap();
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
        let (code, output, errors) = run(&[command, text(&path)]);
        assert_eq!((code, errors.as_str()), (0, ""));
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
    // The oddest first; the producers are as one another.
    assert_eq!(of("warp")[0], 5);
    let medians: Vec<Value> = of("role").iter().map(|role| json!(if *role == 1 { 4 } else { 21 })).collect();
    assert_eq!(of("median"), medians);
    assert_eq!(
        (&top["odd"]["warp"], &top["odd"]["role"], &top["odd"]["median"]),
        (&json!(5), &json!(2), &json!(21))
    );
    let paths = run(&["paths", text(&path)]).1;
    assert!(
        paths.contains("role 1: all 2 warps took the same path; role 2: 2 paths: 3 of 4 warps"),
        "{paths}"
    );
}
