//! `warptrace decode`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{
    Folder, WARPS, metadata, printed, recorded, refused, run, text, tool, write_launch, writer,
};

fn lines(arguments: &[&str]) -> Vec<String> {
    let output = printed(arguments);
    output.lines().map(str::to_owned).collect()
}

#[test]
fn text_has_a_heading_for_each_warp_and_a_line_for_each_event() {
    let (_folder, path) = recorded(&[]);
    let lines = lines(&["decode", text(&path)]);
    let headings: Vec<&String> = lines.iter().filter(|line| line.starts_with("launch ")).collect();
    assert_eq!(headings.len(), WARPS);
    assert_eq!(lines[1], "launch 0 fractal block 0,0,0 warp 0");
    let first: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(first, ["0", &"1".repeat(32), "32", "lanes", "ENTER"]);
}

#[test]
fn text_says_which_digit_of_a_mask_is_which_lane() {
    let folder = Folder::new();
    let lines = lines(&["decode", text(&folder.recorded("a.wtrc", &[]))]);
    let column = |line: &str, part: &str| line.find(part).unwrap_or_else(|| panic!("no {part} in {line}"));
    let full = "1".repeat(32);
    let mask = column(&lines[2], &full);
    assert_eq!(column(&lines[0], "lane 31"), mask, "the leftmost digit is lane 31");
    assert_eq!(column(&lines[0], "lane 0") + "lane 0".len(), mask + 32, "the rightmost digit is lane 0");
    assert_eq!(column(&lines[0], "location"), column(&lines[2], "ENTER"));
}

#[test]
fn the_three_formats_agree() {
    let (_folder, path) = recorded(&[]);
    let csv = lines(&["decode", text(&path), "--format", "csv"]);
    assert_eq!(csv[0], "launch,kernel,block_x,block_y,block_z,warp,event,location,name,mask,lost,why");
    let json = lines(&["decode", text(&path), "--format", "jsonl"]);
    let plain = lines(&["decode", text(&path), "--format", "text"]);
    let plain: Vec<&String> = plain[1..].iter().filter(|line| !line.starts_with("launch ")).collect();
    assert_eq!((csv.len() - 1, json.len()), (plain.len(), plain.len()));
    for ((csv, json), plain) in csv[1..].iter().zip(&json).zip(plain) {
        let json: Value = serde_json::from_str(json).unwrap();
        let number = |field: &str| json[field].as_u64().unwrap();
        let block = json["block"].as_array().unwrap();
        let mask = number("mask");
        let expected = format!(
            "{},{},{},{},{},{},{},{},{},0x{mask:08x},0,",
            number("launch"),
            json["kernel"].as_str().unwrap(),
            block[0],
            block[1],
            block[2],
            number("warp"),
            number("event"),
            number("location"),
            json["name"].as_str().unwrap(),
        );
        assert_eq!(*csv, expected);
        let words: Vec<&str> = plain.split_whitespace().collect();
        assert_eq!(words[0], number("event").to_string());
        assert_eq!(words[1], format!("{mask:032b}"));
        assert_eq!(words[4], json["name"]);
    }
}

/// Writes a trace of one warp with names that need quotes, and with an event at a location without a name.
fn with_odd_names(path: &Path) {
    let metadata = metadata("k,\"x\"").with_location(1, "a,b", "").with_location(65_535, "two\nlines", "");
    let mut writer = writer(path, &metadata);
    let events = [[1, 0, 1, 0, 0, 0x80], [0xff, 0xff, 2, 0, 0, 0], [9, 0, 4, 0, 0, 0]].concat();
    write_launch(&mut writer, 0, [1, 32], &[&events]);
    writer.finish().unwrap();
}

#[test]
fn names_with_commas_quotes_and_line_ends_keep_their_column() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    with_odd_names(&path);
    let output = printed(&["decode", text(&path), "--format", "csv"]);
    let mut reader = csv::Reader::from_reader(output.as_bytes());
    let mut columns = |name: &str| {
        let number = reader.headers().unwrap().iter().position(|header| header == name).unwrap();
        csv::Reader::from_reader(output.as_bytes())
            .records()
            .map(|record| record.unwrap()[number].to_owned())
            .collect::<Vec<_>>()
    };
    let [kernels, names, locations, masks] = ["kernel", "name", "location", "mask"].map(&mut columns);
    assert_eq!(kernels, ["k,\"x\""; 3]);
    assert_eq!(names, ["a,b", "two\\nlines", "?"]);
    assert_eq!(locations, ["1", "65535", "9"]);
    assert_eq!(masks, ["0x80000001", "0x00000002", "0x00000004"]);
    let plain = lines(&["decode", text(&path)]);
    assert_eq!((plain.len(), plain[3].ends_with("two\\nlines")), (5, true), "{plain:?}");
}

#[test]
fn filters_keep_exactly_what_they_name() {
    let (_folder, path) = recorded(&[]);
    let decode = |more: &[&str]| lines(&[&["decode", text(&path), "--format", "csv"], more].concat());
    let all = decode(&[]);
    let kept = |block: Option<&str>, warp: Option<&str>| -> Vec<String> {
        let fits = |line: &&String| {
            let fields: Vec<&str> = line.split(',').collect();
            block.is_none_or(|block| fields[2] == block) && warp.is_none_or(|warp| fields[5] == warp)
        };
        all[..1].iter().chain(all[1..].iter().filter(fits)).cloned().collect()
    };
    assert_eq!(decode(&["--warp", "3"]), kept(None, Some("3")));
    assert_eq!(decode(&["--block", "2"]), kept(Some("2"), None));
    assert_eq!(decode(&["--block", "2,0,0", "--warp", "7"]), kept(Some("2"), Some("7")));
    assert_eq!(decode(&["--launch", "0"]), all);
    assert!(decode(&["--block", "2", "--warp", "7"]).len() > 2);
}

#[test]
fn a_filter_that_nothing_fits_is_an_error() {
    let (_folder, path) = recorded(&[]);
    for (more, part) in [
        (["--warp", "8"], "have warps 0 to 7, not 8"),
        (["--block", "4"], "has no block 4: its blocks are 0 to 3"),
        (["--block", "0,1"], "has no block 0,1: its blocks are 0,0 to 3,0"),
        (["--launch", "1"], "there is no launch 1"),
        (["--track", "1"], "there is no track 1"),
    ] {
        refused(&[&["decode", text(&path)], &more[..]].concat(), part);
    }
}

#[test]
fn a_dual_trace_holds_the_same_events_twice() {
    let (_folder, path) = recorded(&["--dual"]);
    let track = |number: &str| lines(&["decode", text(&path), "--format", "csv", "--track", number]);
    let (trace, twin) = (track("0"), track("1"));
    assert!(trace.len() > WARPS);
    assert_eq!((trace.len(), &trace[0]), (twin.len(), &twin[0]));
    for lane in 0..32 {
        assert!(of_lane(&trace, lane) == of_lane(&twin, lane), "lane {lane}");
    }
}

/// Returns the lines of a lane's events, without numbers: events without common lanes have any order.
fn of_lane(csv: &[String], lane: u32) -> Vec<String> {
    let mut kept = Vec::new();
    for line in &csv[1..] {
        let mut fields: Vec<&str> = line.split(',').collect();
        let mask = u32::from_str_radix(fields[9].trim_start_matches("0x"), 16).unwrap();
        if mask >> lane & 1 == 1 {
            fields.remove(6);
            kept.push(fields.join(","));
        }
    }
    kept
}

#[test]
fn a_file_gets_the_same_bytes_as_standard_output() {
    let (folder, path) = recorded(&[]);
    for format in ["text", "jsonl", "csv"] {
        let target = folder.at(format);
        let (code, output, errors) = run(&["decode", text(&path), "--format", format, "-o", text(&target)]);
        assert_eq!((code, output.as_str(), errors.as_str()), (0, "", ""));
        let printed = run(&["decode", text(&path), "--format", format]).1;
        assert!(std::fs::read_to_string(target).unwrap() == printed, "{format}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = Folder::new();
    let path = folder.traced("fractal", "a.wtrc", &["--width", "128", "--depth", "20"]);
    let printed = run(&["decode", text(&path), "--format", "jsonl"]).1;
    assert!(printed.len() > 1 << 17, "more than a pipe holds, so that the tool meets the closed end");
    let mut child = std::process::Command::new(tool().get_program())
        .args(["decode", text(&path), "--format", "jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"launch\":0"), "{line}");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn a_closed_end_is_no_panic_in_any_command() {
    let (_folder, path) = recorded(&[]);
    for arguments in [
        &["info", text(&path)][..],
        &["info", text(&path), "--json"],
        &["verify", text(&path)],
        &["devices"],
        &["top", text(&path)],
        &["edges", text(&path), "--json"],
        &["diff", text(&path), text(&path)],
    ] {
        let (end, closed) = std::io::pipe().unwrap();
        drop(end);
        let child = std::process::Command::new(tool().get_program())
            .args(arguments)
            .stdout(closed)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}
