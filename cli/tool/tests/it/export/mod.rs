//! `export`: each format is read by a common program and compared with the output of `decode`.

#[cfg(feature = "parquet")]
mod dataset;
mod firefox;
mod host;
mod lcov;
mod load_and_waits;
mod outputs;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto_file;
mod shared_axis;
mod timeline;
mod times;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, event_lines as lines, json, printed, read_with, text};

#[derive(Clone, Debug, PartialEq, Eq)]
struct ExportedRun {
    location: u64,
    mask: u64,
    name: String,
    first_event: u64,
    count: u64,
}

type Warp = (u64, [u64; 3], u64);

fn decoded(path: &Path, chosen: &[&str]) -> BTreeMap<Warp, Vec<ExportedRun>> {
    let mut warps: BTreeMap<Warp, Vec<ExportedRun>> = BTreeMap::new();
    for line in lines(path, chosen) {
        let [launch, warp, event, location, mask] =
            ["launch", "warp", "event", "location", "mask"].map(|field| line[field].as_u64().unwrap());
        if location == 0 {
            continue;
        }
        let name = line["name"].as_str().unwrap().to_owned();
        let runs = warps.entry((launch, block(&line["block"]), warp)).or_default();
        match runs.last_mut() {
            Some(run) if (run.location, run.mask) == (location, mask) => run.count += 1,
            _ => runs.push(ExportedRun { location, mask, name, first_event: event, count: 1 }),
        }
    }
    warps
}

fn block(value: &Value) -> [u64; 3] {
    [0, 1, 2].map(|axis| value[axis].as_u64().unwrap())
}

/// Exports without warnings.
fn export(path: &Path, format: &str, out: &Path, more: &[&str]) -> String {
    printed(&[&["export", text(path), "--to", format, "-o", text(out)], more].concat())
}

/// Several launches of two kernels, with loops and diverged warps.
fn mis(folder: &Folder) -> std::path::PathBuf {
    folder.traced("mis", "mis.wtrc", &["--graph", "road:1024", "--grid", "16x64"])
}

fn lossy(folder: &Folder, more: &[&str]) -> std::path::PathBuf {
    let arguments = [&["--walks", "256", "--rounds", "64", "--memory", "1MiB"], more].concat();
    folder.traced("stress", "lossy.wtrc", &arguments)
}
