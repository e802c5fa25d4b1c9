//! Text in a file that would act on a terminal.

use std::path::Path;

use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{DeviceInfo, EarlyEnd, LaunchInfo, Metadata};

use crate::support::{Folder, metadata, run, text, write_launch, writer};

/// Clears the screen, sets the clipboard, changes colors by one character, deletes, changes the direction of
/// text, is invisible, and begins lines.
const NASTY: &str = "a\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}31m\u{7f}\u{202e}\u{2066}\u{200f}\u{200b}\u{feff}\u{2060}\u{e0041}\u{2028}\r\nb\0";

/// Writes a trace of one warp with this text at all places.
pub(crate) fn trace_of(path: &Path, words: &str, file: &str) {
    let mut device = DeviceInfo::simulator(words);
    device.driver_version = Some(words.to_owned());
    let mut metadata = Metadata::new(words, device, vec![CodecSpec::Raw])
        .with_kernel(words, file)
        .with_property(words, words)
        .with_location(1, words, words);
    metadata.policy = words.to_owned().into();
    metadata.locations[0].file = file.to_owned();
    metadata.locations[0].line = 1;
    metadata.locations[0].function = words.to_owned();
    let mut writer = writer(path, &metadata);
    for launch in 0..2 {
        write_launch(&mut writer, launch, [1, 32], &[&[1, 0, 1, 0, 0, 0x80]]);
    }
    if words == NASTY {
        writer.end_early(1, &EarlyEnd::failed(words)).unwrap();
    }
    writer.finish().unwrap();
}

fn acts(letter: char) -> bool {
    letter != '\n' && letter.is_control()
        || "\u{61c}\u{200b}\u{200e}\u{200f}\u{2028}\u{2029}\u{2060}\u{feff}\u{e0041}".contains(letter)
        || ('\u{202a}'..='\u{202e}').contains(&letter)
        || ('\u{2066}'..='\u{2069}').contains(&letter)
}

#[test]
fn nothing_of_a_file_acts_on_the_terminal() {
    let folder = Folder::new();
    let (path, other) = (folder.at("a.wtrc"), folder.at("b.wtrc"));
    trace_of(&path, NASTY, NASTY);
    trace_of(&other, NASTY, NASTY);
    let (file, other) = (text(&path), text(&other));
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for view in ["info", "verify", "top", "lines", "loops", "warps", "paths", "edges", "stats"] {
        commands.extend([vec![view, file], vec![view, file, "--json"]]);
    }
    for format in ["text", "csv", "jsonl"] {
        commands.push(vec!["decode", file, "--format", format]);
    }
    for format in ["firefox", "lcov"] {
        commands.push(vec!["export", file, "--to", format, "-o", "-"]);
    }
    commands.extend([
        vec!["diff", file, other],
        vec!["diff", file, other, "--json"],
        vec!["report", file, "-o", "-"],
        vec!["lines", file, "--kernel", "none"],
        vec!["lines", file, "--location", "none"],
    ]);
    for command in commands {
        let (_, output, errors) = run(&command);
        let all = format!("{output}{errors}");
        assert!(!all.is_empty() && !all.contains("panicked"), "{command:?}: {all}");
        if let Some(letter) = all.chars().find(|&letter| acts(letter)) {
            let at = all.find(letter).unwrap_or(0);
            let around: String =
                all.chars().skip(all[..at].chars().count().saturating_sub(40)).take(60).collect();
            panic!("{command:?} prints {letter:?}: {around:?}");
        }
        // A line break in a name does not begin a line.
        let is_page = command[0] == "report";
        assert!(is_page || !all.lines().any(|line| line.starts_with('b')), "{command:?}: {all}");
    }
    let (_, output, _) = run(&["info", file]);
    assert!(output.contains("\\u{1b}[2J") && output.contains("\\u{9b}31m\\u{7f}\\u{202e}"), "{output}");
}

#[cfg(unix)]
#[test]
fn no_name_and_no_argument_acts_on_the_terminal() {
    let folder = Folder::new();
    let nasty = "a\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}31m\u{7f}\u{202e}\u{2066}\u{200f}\u{200b}\u{feff}\u{2060}\u{e0041}\u{2028}\r\nb";
    let path = folder.at(nasty);
    trace_of(&path, "plain", "k.rs");
    let absent = folder.at("c").join(nasty);
    let plain = folder.at("plain.wtrc");
    trace_of(&plain, "plain", "k.rs");
    let (file, absent, plain) = (text(&path), text(&absent), text(&plain));
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for view in ["info", "verify", "decode", "top", "warps", "report"] {
        commands.extend([vec![view, file], vec![view, absent]]);
    }
    commands.extend([
        vec!["diff", file, file],
        vec!["diff", file, plain, "--json"],
        vec!["report", plain, "--against", file, "-o", "-"],
        vec!["report", plain, "--source", absent],
        vec!["report", plain, "--kernel", nasty],
        vec!["decode", plain, "-o", absent],
        vec!["decode", plain, "-o", file],
        vec!["decode", plain, "--launch", nasty],
        vec!["decode", nasty, "--launch", "9"],
        vec!["export", plain, "--to", "lcov", "-o", file],
        vec!["export", plain, "--to", nasty, "-o", file],
        vec!["lines", plain, "--location", nasty],
        vec!["new", absent],
        vec!["man", "-o", file],
        vec!["run", "-o", absent, "--", nasty],
        vec!["run", "-o", plain, "--shim", absent, "--", "true"],
        vec!["run", "-o", plain, "--property", nasty, "--", nasty],
        vec!["demo", "--device", "sim", "--width", "8", "--depth", "2", "-o", file],
        vec!["demo", "--device", nasty, "-o", file],
        vec!["demo", "--after", nasty, "-o", file],
        vec![nasty],
        vec!["--unknown", nasty],
    ]);
    for command in commands {
        let (_, output, errors) = run(&command);
        let all = format!("{output}{errors}");
        assert!(!all.contains("panicked"), "{command:?}: {all}");
        assert!(!all.contains(acts), "{command:?}: {all:?}");
    }
    let (_, output, _) = run(&["info", file]);
    assert!(output.contains("a\\u{1b}[2J\\u{1b}]52;c;eA==\\u{7}\\u{9b}31m"), "{output}");
}

#[test]
fn a_message_is_escaped_once() {
    let folder = Folder::new();
    let path = folder.at("a.wtrc");
    let mut writer = writer(&path, &metadata("k"));
    writer.begin_launch(&LaunchInfo::new(0, 0, [1, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    writer.end_early(0, &EarlyEnd::failed("in C:\\x\tat \u{1b}[2J\nlast")).unwrap();
    writer.finish().unwrap();
    for view in ["info", "verify", "decode", "top"] {
        let (_, output, errors) = run(&[view, text(&path)]);
        let all = format!("{output}{errors}");
        assert!(view == "top" || all.contains("in C:\\x\\tat \\u{1b}[2J; last"), "{view}: {all}");
        assert!(!all.contains('\t') && !all.contains("\\\\"), "{view}: {all}");
    }
}
