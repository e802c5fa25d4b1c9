//! `warptrace verify`.

use std::process::ExitCode;

use serde::Serialize;
use warptrace_decoder::{Completeness, TraceFile, VerifyReport};

use crate::losses::Streamed;
use crate::opened::open;
use crate::output::{self, say};
use crate::{arguments, exit};

pub(crate) fn run(command: &arguments::Verify) -> anyhow::Result<ExitCode> {
    let path = &command.file;
    let trace = open(path)?.trace;
    let bar = output::progress_bar("verifying", "events", 0);
    let report = trace.verify_with_progress(&mut |checked, all| {
        bar.set_length(all);
        bar.set_position(checked);
    });
    bar.finish_and_clear();
    let printed = if command.json { json(&trace, &report) } else { say!("{report}").map_err(Into::into) };
    exit::verdict(if report.is_ok() { 0 } else { exit::FINDINGS }, printed)
}

/// A report as JSON.
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
    /// The comparison of a dual recording's tracks.
    tracks: Option<Tracks>,
    problems: Vec<String>,
    problems_left_out: u64,
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

fn json(trace: &TraceFile, report: &VerifyReport) -> anyhow::Result<()> {
    let tracks = report.twin.map(|twin| Tracks {
        equal_warps: twin.equal_warps,
        prefix_warps: twin.prefix_warps,
        different_warps: twin.different_warps,
        unreadable_warps: twin.unreadable_warps,
        events: twin.events,
    });
    let report = Report {
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
        losses: Streamed::of(trace)?,
    };
    Ok(output::print_json(&report)?)
}
