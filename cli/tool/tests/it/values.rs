//! Output about values that kernels name.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::data::native::WarpRecorder;
use warptrace_format::file::{
    DeviceInfo, LaunchInfo, Metadata, SectionKind, SiteInfo, ValueType, encode_preamble, encode_section,
    encode_sites,
};
use warptrace_host::HostMessage;
use warptrace_host::writer::{ChunkRef, DataChunk, TraceWriter, WriterOptions};

use crate::support::{Folder, account, json, printed, run, steady_groups, text};
use crate::work::limited;

const TURNS: u64 = 64;
const WARPS: u32 = 4;

/// Returns the value `residual` of a lane in a turn; it is sometimes NaN or infinite.
fn residual(warp: u32, turn: u64, lane: u64) -> f32 {
    match (warp, turn, lane) {
        (2, 9, 7) | (2, 3, 11) | (3, 0, 0) => f32::NAN,
        (0, 50, 31) => f32::NEG_INFINITY,
        _ => ((turn * 37 + lane * 11) % 64) as f32 - 16.0,
    }
}

/// Returns a trace of four warps that name four values, one of them with an odd name.
pub(crate) fn valued(folder: &Folder, name: &str, room: usize) -> PathBuf {
    valued_by(folder, name, room, residual)
}

/// Like [`valued`], with another residual of each warp, turn and lane.
fn valued_by(folder: &Folder, name: &str, room: usize, residual: fn(u32, u64, u64) -> f32) -> PathBuf {
    let metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw])
        .with_kernel("solve", "solve.cu")
        .with_location(1, "row", "an iteration begins");
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    let site = |number, of, name: &str, line| SiteInfo::of_value(number, of, name).at(1, "solve.cu", line);
    writer
        .write_message(&HostMessage::Sites(vec![
            site(1, ValueType::F32, "residual", 12),
            site(2, ValueType::I64, "left", 13),
            site(3, ValueType::I32, "small\u{1b}[31m", 14),
            site(4, ValueType::U64, "same", 15),
        ]))
        .unwrap();
    writer.begin_launch(&LaunchInfo::new(0, 0, [2, 1, 1], [64, 1, 1], 0).unwrap()).unwrap();
    let mut accounts = Vec::new();
    let event = [1, 0, 255, 255, 255, 255].repeat(TURNS as usize);
    for warp in 0..WARPS {
        let mut recorder = WarpRecorder::new(room);
        for turn in 0..TURNS {
            let mut name = |site, value: &dyn Fn(u64) -> u64| {
                let lanes: Vec<(u32, u64)> = (0..32).map(|lane| (lane, value(u64::from(lane)))).collect();
                recorder.access(site, (turn * 40) as u32 + u32::from(site), &lanes);
            };
            name(1, &|lane| residual(warp, turn, lane).to_bits().into());
            name(2, &|lane| (lane.cast_signed() - 3 * turn.cast_signed()).cast_unsigned());
            name(3, &|lane| u64::from((lane as i32 % 3 - 1).cast_unsigned()));
            name(4, &|_| u64::MAX);
        }
        recorder.leave(9000, u32::MAX);
        let (attempted, lost) = (recorder.attempted, recorder.lost);
        let stream: Vec<u8> = recorder.finish().concat().into_iter().flat_map(u32::to_le_bytes).collect();
        writer.write_data(0, &[DataChunk { warp, sequence: 0, entries: &stream }]).unwrap();
        accounts.push(WarpAccount { attempted, recorded: attempted - lost, lost, chunks: 1, finished: 1 });
        let chunk = ChunkRef { track: 0, warp, sequence: 0, events: TURNS as u32, payload: &event };
        writer.write_chunks(0, &[chunk]).unwrap();
    }
    writer.end_launch(0, 0, &[account(TURNS); WARPS as usize]).unwrap();
    writer.end_data(0, &accounts).unwrap();
    let path = folder.at(name);
    fs::write(&path, writer.finish().unwrap().0).unwrap();
    path
}

fn page(path: &Path) -> String {
    printed(&["values", text(path)])
}

#[test]
fn the_first_nan_comes_first() {
    let folder = Folder::new();
    let path = valued(&folder, "valued.wtrc", usize::MAX);
    let output = page(&path);
    let finding = "`residual` at solve.cu:12 is NaN first in launch 0, block 1,0,0, warp 0, lane 7, as the lane's value 10; \
                   3 of 8,192 are NaN, 1 infinite";
    assert_eq!(output.lines().next(), Some(finding), "{output}");
    assert!(output.contains("small\\u{1b}[31m") && !output.contains('\u{1b}'), "{output}");
    let found = json(&["values", text(&path)]);
    assert_eq!(found["finding"], finding);
    let of = |name: &str| {
        let values = found["values"].as_array().unwrap();
        values.iter().find(|value| value["name"] == name).unwrap_or_else(|| panic!("{name}: {found}"))
    };
    let all: Vec<f64> = (0..WARPS)
        .flat_map(|warp| {
            (0..TURNS).flat_map(move |turn| (0..32).map(move |lane| residual(warp, turn, lane).into()))
        })
        .collect();
    let finite: Vec<f64> = all.iter().copied().filter(|value| value.is_finite()).collect();
    let residual = of("residual");
    assert_eq!((&residual["min"], &residual["max"]), (&Value::from("-16"), &Value::from("47")));
    assert_eq!(
        (&residual["nan"], &residual["infinite"], &residual["values"]),
        (&3.into(), &1.into(), &8192.into())
    );
    let mean = finite.iter().sum::<f64>() / finite.len() as f64;
    assert!((residual["mean"].as_f64().unwrap() - mean).abs() < 1e-9, "{mean}: {residual}");
    assert_eq!(residual["zeros"], finite.iter().filter(|value| **value == 0.0).count());
    assert_eq!(residual["distinct"], 64 + 2);
    assert_eq!(
        (&residual["first_infinite"]["warp"], &residual["first_infinite"]["number"]),
        (&0.into(), &50.into())
    );
    let counted: u64 = residual["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, finite.len() as u64);
    let left = of("left");
    assert_eq!(
        (&left["min"], &left["max"], &left["type"]),
        (&(-189).to_string().into(), &"31".into(), &"i64".into())
    );
    assert_eq!((left["mean"].as_f64(), &left["first_nan"]), (Some(15.5 - 94.5), &Value::Null));
    let zeros = (0..TURNS).filter(|turn| 3 * turn < 32).count() * WARPS as usize;
    assert_eq!((&left["zeros"], &left["distinct"]), (&zeros.into(), &221.into()));
    let small = of("small\\u{1b}[31m");
    let buckets: Vec<(&str, &str, u64)> = small["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| (of["from"].as_str().unwrap(), of["to"].as_str().unwrap(), of["count"].as_u64().unwrap()))
        .collect();
    let times = TURNS * u64::from(WARPS);
    assert_eq!(buckets, [("-1", "-1", 11 * times), ("0", "0", 11 * times), ("1", "1", 10 * times)]);
    let same = of("same");
    assert_eq!((&same["uniform"], &same["vectors"]), (&times.into(), &times.into()));
    assert_eq!((&same["min"], &same["distinct"]), (&u64::MAX.to_string().into(), &1.into()));
}

#[test]
fn losses_and_absence_come_first() {
    let folder = Folder::new();
    let output = page(&valued(&folder, "lossy.wtrc", 300));
    let lines: Vec<&str> = output.lines().take(3).collect();
    assert!(lines[0].starts_with("INCOMPLETE") || lines[1].starts_with("the whole file"), "{output}");
    assert!(
        lines.iter().any(|line| line.starts_with("addresses and values: ") && line.contains(" lost")),
        "{output}"
    );
    let path = folder.recorded("without.wtrc", &[]);
    assert!(page(&path).contains("no values: none were recorded"));
}

#[test]
fn rows_are_sorted_and_chosen() {
    let folder = Folder::new();
    let path = valued(&folder, "valued.wtrc", usize::MAX);
    let (_, output, _) = run(&["values", text(&path), "--sort", "distinct", "--limit", "1", "--json"]);
    let found: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((found["values"].as_array().unwrap().len(), &found["values"][0]["name"]), (1, &"left".into()));
    let found = json(&["values", text(&path), "--block", "0"]);
    let residual =
        found["values"].as_array().unwrap().iter().find(|value| value["name"] == "residual").unwrap();
    assert_eq!((&residual["nan"], &residual["infinite"]), (&0.into(), &1.into()));
    assert!(
        found["finding"]
            .as_str()
            .unwrap()
            .contains("is -inf first in launch 0, block 0,0,0, warp 0, lane 31")
    );
}

/// Each of 32 lanes holds 1,023 floats in sequence, whose bits increase by one.
fn stepping(path: &Path, groups: u32) {
    let metadata =
        Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]).with_kernel("k", "");
    let mut bytes = encode_preamble().to_vec();
    bytes.extend(encode_section(SectionKind::Metadata, &metadata.encode().unwrap()));
    let site = SiteInfo::of_value(1, ValueType::F32, "rising").at(0, "k.cu", 3);
    bytes.extend(encode_sites(&[site]).unwrap());
    bytes.extend(LaunchInfo::new(0, 0, [2, 1, 1], [32, 1, 1], 0).unwrap().encode_section());
    for warp in 0..2 {
        let run = |number: u32| (31 << 10, u64::from(number) << 15, 1);
        bytes.extend(steady_groups(0, warp, (0..groups).map(run)));
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn floats_that_a_few_bytes_stand_for_have_a_limit() {
    let folder = Folder::new();
    let path = folder.at("stepping.wtrc");
    stepping(&path, 2);
    let found = json(&["values", text(&path)]);
    let rising = &found["values"][0];
    assert_eq!((&rising["values"], &rising["min"]), (&(2 * 2 * 32 * 1023).into(), &"0".into()), "{found}");
    stepping(&path, 16_000);
    assert!(path.metadata().unwrap().len() < 8 << 10, "of 1,047,552,000 floats");
    let (code, output, errors) = limited(2048, 120, &["values", text(&path)]);
    assert_eq!((code, output.as_str()), (Some(1), ""), "{errors}");
    assert!(errors.contains("`--unlimited` decodes it all the same"), "{errors}");
}

#[test]
fn diff_says_which_values_changed() {
    let folder = Folder::new();
    let before = valued(&folder, "before.wtrc", usize::MAX);
    let after =
        valued_by(&folder, "after.wtrc", usize::MAX, |warp, turn, lane| match residual(warp, turn, lane) {
            odd if odd.is_nan() => 99.5,
            same => same,
        });
    let diff = |more: &[&str]| printed(&[&["diff", text(&before), text(&after)], more].concat());
    let output = diff(&[]);
    let (_, rows) = output.split_once("\nvalues\n\n").unwrap();
    let row: Vec<&str> = rows.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..8], ["solve.cu:12", "residual", "8,192", "=", "0", "-3", "1", "="], "{output}");
    assert_eq!(row[8..12], ["-16", "-16", "99.5", "47"], "{output}");
    // The others did not change, and are only in JSON.
    assert_eq!(rows.lines().take_while(|line| !line.is_empty()).count(), 2, "{output}");
    let json: Value = serde_json::from_str(&diff(&["--json"])).unwrap();
    let values = json["values"]["values"].as_array().unwrap();
    assert_eq!((values.len(), &values[0]["name"]), (4, &"residual".into()));
    assert_eq!([0, 1].map(|at| values[0]["figures"][at]["nan"].as_u64()), [Some(3), Some(0)]);
    let (_, same, _) = run(&["diff", text(&before), text(&before)]);
    assert!(same.contains("no value has other figures"), "{same}");
}
