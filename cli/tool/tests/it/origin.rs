//! Place, time and job of a recording.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{Began, DeviceInfo, Metadata, Origin};

use crate::support::{Folder, compare_with_reference, printed, run, text, tool, writer};

fn origin() -> Origin {
    Origin {
        job: Some("4711".into()),
        launcher: Some("Slurm".into()),
        rank: Some(3),
        ranks: Some(8),
        local_rank: Some(1),
        host: Some("node\u{1b}[31m".into()),
        process: Some(99),
        device: Some(1),
        device_uuid: Some("GPU-00".into()),
        began: Some(Began { realtime_ns: 1_790_000_000_000_000_005, monotonic_ns: 17, error_ns: 40 }),
        notes: vec!["a note".into()],
    }
}

fn written(folder: &Folder, origin: Option<Origin>) -> PathBuf {
    let path = folder.at("t.wtrc");
    let mut metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]);
    metadata.origin = origin.map(Box::new);
    writer(&path, &metadata).finish().unwrap();
    path
}

#[test]
fn info_says_where_a_file_was_recorded() {
    let folder = Folder::new();
    let path = written(&folder, Some(origin()));
    let printed = printed(&["info", text(&path)]);
    for line in [
        "job          4711",
        "rank         3 of 8, 1 on its host, as Slurm says",
        "recorded at  node\\u{1b}[31m, process 99, device 1, GPU-00",
        "began        1790000000.000000005 s after 1970-01-01 UTC, to within 40 ns of the monotonic clock",
        "note         a note",
    ] {
        assert!(printed.lines().any(|found| found.trim_end() == line), "{line}: {printed}");
    }
    let json = |path: &PathBuf| -> Value {
        crate::support::json(&["info", text(path)])["metadata"]["origin"].take()
    };
    let found = json(&path);
    assert_eq!((&found["rank"], &found["ranks"], &found["local_rank"]), (&3.into(), &8.into(), &1.into()));
    assert_eq!(found["began"]["realtime_ns"], "1790000000000000005");
    assert_eq!((&found["job"], &found["notes"][0]), (&"4711".into(), &"a note".into()));
    compare_with_reference(std::slice::from_ref(&path));
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|tag| tag == b"ORIG").unwrap();
    bytes[at + 24] ^= 1;
    fs::write(&path, bytes).unwrap();
    compare_with_reference(std::slice::from_ref(&path));
    let (code, printed, _) = run(&["verify", text(&path)]);
    assert_eq!(code, 3, "{printed}");
    let path = written(&folder, None);
    assert_eq!(json(&path), Value::Null);
    let (_, printed, _) = run(&["info", text(&path)]);
    assert!(!printed.contains("recorded at"), "{printed}");
}

#[test]
fn a_recording_says_where_it_was_made() {
    let folder = Folder::new();
    let path = folder.at("d.wtrc");
    let mut command = tool();
    command.args(["demo", "--device", "sim", "--width", "32", "-o", text(&path)]);
    command.env("RANK", "3").env("WORLD_SIZE", "8").env("LOCAL_RANK", "three").env("SLURM_JOB_ID", "4711");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = printed(&["info", text(&path)]);
    for part in [
        "job          4711",
        "rank         3 of 8, as torchrun says",
        ", process ",
        "began        ",
        "note         LOCAL_RANK is `three`, which is no number: it was ignored",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert_eq!(run(&["verify", text(&path)]).0, 0);
}
