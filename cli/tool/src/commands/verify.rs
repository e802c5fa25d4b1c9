//! `warptrace verify`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;
use warptrace_analysis::NotTraced;
use warptrace_decoder::{Completeness, TraceFile, VerifyReport};

use crate::files::{named_files, short_names};
use crate::losses::Streamed;
use crate::opened::open;
use crate::output::{self, count, say};
use crate::{arguments, exit};

pub(crate) fn run(command: &arguments::Verify) -> anyhow::Result<ExitCode> {
    let files = named_files(&command.files)?;
    let [path] = &files[..] else { return several(&files, command.json) };
    let (trace, report) = verified(path)?;
    let printed = match command.json {
        true => json(&trace, &report).and_then(|value| Ok(output::print_json(&value)?)),
        false => say!("{report}").map_err(Into::into),
    };
    exit::verdict(if report.is_ok() { 0 } else { exit::FINDINGS }, printed)
}

fn verified(path: &Path) -> anyhow::Result<(TraceFile, VerifyReport)> {
    let trace = open(path)?.trace;
    let bar = output::progress_bar("verifying", "events", 0);
    let report = trace.verify_with_progress(&mut |checked, all| {
        bar.set_length(all);
        bar.set_position(checked);
    });
    bar.finish_and_clear();
    Ok((trace, report))
}

/// Verifies several files. Prints a line for each file that is in order, and the reports of the others.
fn several(files: &[PathBuf], is_json: bool) -> anyhow::Result<ExitCode> {
    let (mut sound, mut rows) = (0, Vec::new());
    for (path, name) in files.iter().zip(short_names(files)) {
        let (trace, report) = verified(path)?;
        sound += usize::from(report.is_ok());
        if is_json {
            let mut row = serde_json::to_value(json(&trace, &report)?)?;
            row["file"] = name.into();
            rows.push(row);
        } else if report.is_ok() {
            let more = report.state.not_traced.iter().map(|said| format!("; {said}")).collect::<String>();
            say!("{name}: in order, {} events of {} warps{more}", count(report.events), count(report.warps))?;
        } else {
            say!("{name}:\n{report}\n")?;
        }
    }
    let printed = match is_json {
        true => output::print_json(&json!({ "ok": sound == files.len(), "files": rows })).map_err(Into::into),
        false => say!("{sound} of {} traces are in order", files.len()).map_err(Into::into),
    };
    exit::verdict(if sound == files.len() { 0 } else { exit::FINDINGS }, printed)
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    state: &'a str,
    complete: bool,
    completeness: String,
    file_bytes: u64,
    launches: u64,
    recorded_launches: u64,
    warps: u64,
    chosen_warps: u64,
    frames: u64,
    chunks: u64,
    events: u64,
    warps_with_events: u64,
    accounts: u64,
    lost_events: u64,
    unfinished_warps: u64,
    /// Comparison of the tracks of a dual recording.
    tracks: Option<Tracks>,
    problems: Vec<String>,
    problems_left_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_traced: Option<NotTraced<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
    losses: Streamed<'a>,
}

#[derive(Serialize)]
struct Tracks {
    equal_warps: u64,
    prefix_warps: u64,
    different_warps: u64,
    unreadable_warps: u64,
    events: u64,
}

fn json<'a>(trace: &'a TraceFile, report: &'a VerifyReport) -> anyhow::Result<Report<'a>> {
    let tracks = report.twin.map(|twin| Tracks {
        equal_warps: twin.equal_warps,
        prefix_warps: twin.prefix_warps,
        different_warps: twin.different_warps,
        unreadable_warps: twin.unreadable_warps,
        events: twin.events,
    });
    Ok(Report {
        ok: report.is_ok(),
        state: &report.state.sentence,
        complete: report.completeness == Completeness::Complete,
        completeness: report.completeness.to_string(),
        file_bytes: report.bytes,
        launches: report.launches,
        recorded_launches: report.recorded_launches,
        warps: report.launch_warps,
        chosen_warps: report.chosen_warps,
        frames: report.frames,
        chunks: report.chunks,
        events: report.events,
        warps_with_events: report.warps,
        accounts: report.accounts,
        lost_events: report.lost_events,
        unfinished_warps: report.unfinished_warps,
        tracks,
        problems: report.problems.iter().map(ToString::to_string).collect(),
        problems_left_out: report.problems_left_out,
        not_traced: NotTraced::new(trace),
        notes: &trace.unrecorded().notes,
        losses: Streamed::new(trace)?,
    })
}
