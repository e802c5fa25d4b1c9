//! Runs the tool, and provides small traces.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::data::tile::MAX_TILE_ENTRIES;
use warptrace_format::data::{DataEntry, ENTRY_BYTES, Owner};
use warptrace_format::file::data::{Tile, encode_data};
use warptrace_format::file::{DeviceInfo, LaunchInfo, Metadata};
use warptrace_host::writer::{ChunkRef, Compression, DataChunk, TraceWriter, WriterOptions};

/// The picture of the small trace: 32 x 32 pixels in 4 blocks of 8 warps.
pub(crate) const SMALL: [&str; 4] = ["--width", "32", "--depth", "20"];

/// Memory for a small trace, enough also on a small machine.
const LITTLE: [&str; 2] = ["--memory", "64MiB"];

pub(crate) const WARPS: usize = 32;

/// Returns the tool, without variables of this environment that could change its behaviour.
pub(crate) fn tool() -> Command {
    let mut command = Command::cargo_bin("warptrace").expect("cargo builds the tool for its tests");
    command.env_remove("WARPTRACE_PTX_DIR").timeout(std::time::Duration::from_secs(300));
    command
}

pub(crate) fn run(arguments: &[&str]) -> (i32, String, String) {
    answer(tool().args(arguments).output().unwrap())
}

#[track_caller]
pub(crate) fn printed(arguments: &[&str]) -> String {
    let (code, output, errors) = run(arguments);
    assert_eq!((code, errors.as_str()), (0, ""), "{arguments:?}");
    output
}

#[track_caller]
pub(crate) fn refused(arguments: &[&str], part: &str) {
    let (code, output, errors) = run(arguments);
    assert_eq!((code, output.as_str()), (1, ""), "{arguments:?}: {errors}");
    assert!(errors.contains(part), "{arguments:?}: {errors}");
}

#[track_caller]
pub(crate) fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(&[arguments, &["--json"]].concat())).unwrap()
}

/// Returns the events of the chosen warps, as `decode` prints them in JSON.
#[track_caller]
pub(crate) fn event_lines(path: &Path, chosen: &[&str]) -> Vec<Value> {
    let (code, output, errors) = run(&[&["decode", text(path), "--format", "jsonl"], chosen].concat());
    assert_eq!(code, 0, "{errors}");
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn answer(output: Output) -> (i32, String, String) {
    let code = output.status.code().expect("the tool ends by itself");
    (code, String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Records the built-in kernel with a small picture.
    pub(crate) fn demo(&self, name: &str, more: &[&str]) -> (PathBuf, (i32, String, String)) {
        let path = self.at(name);
        let arguments = [&["demo", "--device", "sim", "-o", text(&path)], &SMALL[..], &LITTLE, more].concat();
        let answer = run(&arguments);
        (path, answer)
    }

    /// Copies the committed trace of a program with these arguments into the folder.
    pub(crate) fn traced(&self, program: &str, name: &str, arguments: &[&str]) -> PathBuf {
        let path = self.at(name);
        let kept = fixture(&[&[program], arguments].concat()).expect("the trace is kept");
        std::fs::copy(&kept, &path).unwrap_or_else(|error| panic!("{}: {error}", kept.display()));
        path
    }

    pub(crate) fn recorded(&self, name: &str, more: &[&str]) -> PathBuf {
        self.traced("fractal", name, &[&SMALL[..], more].concat())
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

pub(crate) fn metadata(kernel: &str) -> Metadata {
    Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]).with_kernel(kernel, "")
}

pub(crate) fn writer(path: &Path, metadata: &Metadata) -> TraceWriter<File> {
    TraceWriter::create(File::create(path).unwrap(), metadata, WriterOptions::default()).unwrap()
}

/// Returns the counts of a warp that recorded all of its events, in at most one chunk.
pub(crate) fn account(events: u64) -> WarpAccount {
    let chunks = u32::from(events > 0);
    WarpAccount { attempted: events, recorded: events, lost: 0, chunks, finished: 1 }
}

/// Writes a whole launch. `warps` has the events of each warp, six bytes per event.
pub(crate) fn write_launch(
    writer: &mut TraceWriter<impl Write + Send>,
    number: u32,
    [blocks, threads]: [u32; 2],
    warps: &[&[u8]],
) {
    writer.begin_launch(&LaunchInfo::new(number, 0, [blocks, 1, 1], [threads, 1, 1], 0).unwrap()).unwrap();
    let events = |payload: &[u8]| (payload.len() / 6) as u32;
    let chunk = |(warp, payload)| ChunkRef { track: 0, warp, sequence: 0, events: events(payload), payload };
    let with_events = (0..).zip(warps.iter().copied()).filter(|(_, payload)| !payload.is_empty());
    writer.write_chunks(number, &with_events.map(chunk).collect::<Vec<_>>()).unwrap();
    let accounts: Vec<_> = warps.iter().map(|payload| account(events(payload).into())).collect();
    writer.end_launch(number, 0, &accounts).unwrap();
}

pub(crate) fn recorded(more: &[&str]) -> (Folder, PathBuf) {
    let folder = Folder::new();
    let path = folder.recorded("a.wtrc", more);
    (folder, path)
}

/// Returns the traces in `fixtures/list.txt`, with arguments of `warptrace-bench record`; none for `-`.
pub(crate) fn fixtures() -> Vec<(String, Option<PathBuf>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let list = std::fs::read_to_string(folder.join("list.txt")).unwrap();
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let [name, _, words] = line.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
            (words.to_owned(), (name != "-").then(|| folder.join(format!("{name}.wtrc"))))
        })
        .collect()
}

/// Returns `None` if the recording is not kept. Panics if the list does not have it.
pub(crate) fn fixture(words: &[&str]) -> Option<PathBuf> {
    let words = words.join(" ");
    let found = fixtures().into_iter().find(|(known, _)| *known == words);
    let (_, path) = found.unwrap_or_else(|| {
        panic!(
            "no trace of `{words}`: add a line to cli/tool/tests/fixtures/list.txt, and run \
             `WARPTRACE_OVERWRITE_GOLDEN=1 cargo test -p warptrace-bench --test it fixtures`"
        )
    });
    path
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

/// Skips this, with a message, if Python lacks a module. Panics if the outputs differ.
pub(crate) fn compare_with_reference(paths: &[PathBuf]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(mut python) = python_with("zstandard") else { return };
    let output = python
        .arg(root.join("../../decoder/reference/compare.py"))
        .arg(assert_cmd::cargo::cargo_bin("warptrace"))
        .args(paths)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(&format!("{} files compared, 0 differences", paths.len())), "{said}");
}

/// Runs a script of `tests/readers` and returns its output; `None` if its imports are missing.
pub(crate) fn read_with(script: &str, imports: &str, arguments: &[&str]) -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = python_with(imports)?;
    let output = python.arg(root.join("tests/readers").join(script)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn python_with(imports: &str) -> Option<std::process::Command> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = || {
        let mut python = std::process::Command::new("python3");
        python.env("PYTHONPATH", root.join("../../.toolchain/readers")).env("PYTHONDONTWRITEBYTECODE", "1");
        python
    };
    let is_there = python().args(["-c", &format!("import {imports}")]).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 cannot import {imports}; `cargo xtask setup --tests` installs it");
        return None;
    }
    Some(python())
}

/// A section with groups of 32 lanes at site 1, each with 1,023 accesses of every lane: spread, base and step.
pub(crate) fn steady_groups(
    launch: u32,
    warp: u32,
    groups: impl Iterator<Item = (i32, u64, i32)>,
) -> Vec<u8> {
    let entries = (0..).zip(groups).flat_map(|(time, (spread, base, step))| {
        let header = DataEntry::Header { mask: u32::MAX, site: 1, time, spread: Some(spread) };
        [header, DataEntry::Values { site: 1, of: Owner::Group(32), count: 1023, base, step }]
    });
    let bytes: Vec<u8> =
        entries.flat_map(|entry| entry.to_words().into_iter().flat_map(u32::to_le_bytes)).collect();
    let chunks = (0..).zip(bytes.chunks(ENTRY_BYTES * MAX_TILE_ENTRIES as usize));
    let tiles = chunks.map(|(sequence, entries)| Tile::encode(&[DataChunk { warp, sequence, entries }]));
    encode_data(launch, &tiles.collect::<Vec<_>>(), Compression::default()).unwrap().0
}
