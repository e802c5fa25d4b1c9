//! `warptrace warps`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::{Value, json};
use warptrace_analysis::{WarpEnd, WarpFigures, share};
use warptrace_decoder::TraceFile;

use super::words::{percent, ratio};
use super::{Answer, Column, ROWS, analysed_one, first, print_rows, table, words};
use crate::arguments::{Rows, WarpColumn};
use crate::output::{count, say};

/// Kernels whose work is said.
const KERNELS: usize = 3;

pub(crate) fn run(command: &Rows<WarpColumn>) -> anyhow::Result<ExitCode> {
    // Of a location the work of each warp there.
    let answer = analysed_one(&command.page, command.location.as_deref(), true)?;
    let trace = answer.trace()?;
    let mut warps: Vec<&WarpFigures> = answer.analysis.warps.iter().collect();
    match command.sort.unwrap_or(WarpColumn::Odd) {
        WarpColumn::Odd => warps.sort_by_key(|warp| {
            let late = warp.time.map(|time| time.cycles.abs_diff(time.median_cycles));
            let ran = warp.ran.and_then(|ran| Some(ran.nanoseconds?.abs_diff(ran.median_nanoseconds)));
            Reverse((ran, late, warp.distance()))
        }),
        WarpColumn::Ran => warps.sort_by_key(|warp| Reverse(warp.ran.and_then(|ran| ran.nanoseconds))),
        WarpColumn::Cycles => warps.sort_by_key(|warp| Reverse(warp.time.map(|time| time.cycles))),
        WarpColumn::Idle => warps.sort_by_key(|warp| Reverse(warp.counts.idle)),
        WarpColumn::Events => warps.sort_by_key(|warp| Reverse(warp.counts.visits)),
        WarpColumn::Lanes => warps.sort_by_key(|warp| Reverse(warp.counts.lanes)),
        WarpColumn::Number => {}
    }
    if command.page.json {
        let (warps, _) = first(warps, command.limit, usize::MAX);
        let rows = warps.into_iter().map(|warp| json_row(trace, warp));
        answer.json_rows(
            json!({ "warp_events": answer.analysis.warp_events, "roles": answer.analysis.roles }),
            "warps",
            rows,
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    for line in words::schedule(trace, &answer.analysis) {
        say!("{line}")?;
    }
    for line in words::roles(&answer.analysis, &answer.names) {
        say!("{line}")?;
    }
    for line in words::work(&answer.analysis, KERNELS) {
        say!("{line}")?;
    }
    let (warps, more) = first(warps, command.limit, ROWS);
    print_rows(&warp_table(&answer, trace, &warps), more)?;
    Ok(ExitCode::SUCCESS)
}

fn json_row(trace: &TraceFile, warp: &WarpFigures) -> Value {
    let mut row = json!(warp);
    let id = trace.launch(warp.launch).and_then(|info| info.stream_id(warp.warp));
    if let (Some(row), Some(id)) = (row.as_object_mut(), id) {
        row.insert("block".into(), json!(id.block));
        row.insert("warp_in_block".into(), json!(id.warp_in_block));
        if let Some(label) = trace.label(warp.launch) {
            row.insert("label".into(), json!(label));
        }
    }
    row
}

fn warp_table(answer: &Answer, trace: &TraceFile, warps: &[&WarpFigures]) -> String {
    use Column::{Left, Right};
    let mut columns = vec![
        Right("launch"),
        Right("block"),
        Right("warp"),
        Right("events"),
        Right("x median"),
        Right("lanes"),
        Right("idle slots"),
        Right("idle"),
        Left("path"),
        Left("last event"),
    ];
    let has_roles = !answer.analysis.roles.is_empty();
    if has_roles {
        columns.insert(3, Right("role"));
    }
    let figures = 3 + usize::from(has_roles);
    if answer.analysis.time.is_some() {
        columns.splice(figures..figures, [Right("cycles"), Right("x median")]);
    }
    if answer.analysis.schedule.is_some() {
        columns.splice(figures..figures, [Right("SM"), Right("ran"), Right("x median")]);
    }
    let row = |warp: &&WarpFigures| {
        let WarpFigures { launch, warp, counts, time, ran, median, path, last, end, role } = *warp;
        let info = trace.launch(*launch);
        let id = info.and_then(|info| info.stream_id(*warp));
        let block = info.zip(id).map_or_else(String::new, |(info, id)| words::block(info, id.block));
        let end = match end {
            WarpEnd::Lossy => " (lossy)",
            WarpEnd::Unfinished => " (unfinished)",
            _ => "",
        };
        let mut row = vec![
            launch.to_string(),
            block,
            id.map_or(*warp, |id| id.warp_in_block).to_string(),
            count(counts.visits),
            ratio(share(counts.visits, *median)),
            ratio(counts.mean_lanes()),
            count(counts.idle),
            percent(counts.idle, counts.slots),
            format!("{:08x}", path >> 29),
            answer.names.name(*last) + end,
        ];
        if has_roles {
            row.insert(3, role.map_or_else(String::new, |role| role.to_string()));
        }
        let time = time.map(|time| [count(time.cycles), ratio(share(time.cycles, time.median_cycles))]);
        row.splice(figures..figures, time.into_iter().flatten());
        if answer.analysis.schedule.is_some() {
            let length = ran.and_then(|ran| Some((ran.nanoseconds?, ran.median_nanoseconds)));
            let sm = ran.map_or_else(String::new, |ran| ran.sm.to_string());
            let times = length.map(|(own, median)| [words::nanoseconds(own), ratio(share(own, median))]);
            row.splice(figures..figures, [sm].into_iter().chain(times.unwrap_or_default()));
        }
        row
    };
    table(&columns, warps.iter().map(row))
}
