//! `warptrace where`: reports where a program hangs that runs under `warptrace run`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::json;
use warptrace_abi::run::RUN_REPORT;
use warptrace_analysis::{Hang, hang};
use warptrace_decoder::TraceFile;

use super::run::hang::{answers, ask};
use crate::arguments::Where;
use crate::opened::said_of;
use crate::output::{print_json, say};

/// Maximum time to wait for an answer. A launch that ends within half a second does not hang.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time to wait for other processes after the first answer.
const OTHERS: Duration = Duration::from_secs(1);

pub(crate) fn run(command: &Where) -> anyhow::Result<()> {
    let folder = folder_of(command.process)?;
    let before: BTreeSet<OsString> = answers(&folder).map(|(name, _)| name).collect();
    ask(&folder).with_context(|| format!("cannot ask process {}", command.process))?;
    let started = Instant::now();
    let (mut found, mut first) = (BTreeMap::new(), None);
    while started.elapsed() < PATIENCE && first.is_none_or(|at: Instant| at.elapsed() < OTHERS) {
        std::thread::sleep(Duration::from_millis(50));
        found.extend(answers(&folder));
        if found.keys().any(|name| !before.contains(name)) {
            first.get_or_insert_with(Instant::now);
        } else if !before.is_empty() && started.elapsed() >= 2 * OTHERS {
            // The trace ended earlier, with the answer.
            break;
        }
    }
    let files: BTreeSet<PathBuf> = found.into_values().collect();
    if files.is_empty() {
        bail!("no launch of process {} has run for long, or none is traced", command.process);
    }
    if command.json {
        let mut hangs: Vec<Hang> = Vec::new();
        for file in &files {
            let trace = TraceFile::open(file).with_context(|| format!("cannot open {}", file.display()))?;
            hangs.extend(trace.launches().filter_map(|info| hang(&trace, info.number())));
        }
        return Ok(print_json(&json!({ "hangs": hangs }))?);
    }
    for line in files.iter().flat_map(|file| said_of(file)) {
        say!("{line}")?;
    }
    Ok(())
}

/// Returns the folder in which a process or one of its descendants reports.
fn folder_of(process: u32) -> anyhow::Result<PathBuf> {
    let mut parents: BTreeMap<u32, u32> = BTreeMap::new();
    for entry in fs::read_dir("/proc").context("cannot list processes")?.flatten() {
        let Some(id): Option<u32> = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // `pid (name) state parent`: the name may contain any character, so it ends at the last parenthesis.
        let text = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = text.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent| (id, parent)));
    }
    if !parents.contains_key(&process) {
        bail!("there is no process {process}");
    }
    let is_below = |id: u32| {
        let mut at = id;
        (0..64).any(|_| {
            let found = at == process;
            at = parents.get(&at).copied().unwrap_or(0);
            found
        })
    };
    let folder = parents.keys().copied().filter(|id| is_below(*id)).find_map(report_folder);
    folder.with_context(|| {
        format!("process {process} does not run under `warptrace run`, or is another user's")
    })
}

/// Returns the report folder that a process's environment names, if it exists.
fn report_folder(process: u32) -> Option<PathBuf> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let value = environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(RUN_REPORT.as_bytes())?.strip_prefix(b"="))?;
    Some(Path::new(OsStr::from_bytes(value)).to_owned()).filter(|folder| folder.is_dir())
}
