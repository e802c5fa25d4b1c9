//! `warptrace paths`.

use std::cmp::Reverse;
use std::process::ExitCode;

use serde_json::json;
use warptrace_analysis::{OrderItems, PathGroup};
use warptrace_decoder::TraceFile;

use super::words::{percent, ratio, warp};
use super::{Answer, ROWS, TextTable, analysed_one, first, print_rows, words};
use crate::arguments::{PathColumn, Rows};
use crate::output::{count, say};

pub(crate) fn run(command: &Rows<PathColumn>) -> anyhow::Result<ExitCode> {
    // Of a location the paths of the warps that came there.
    let answer = analysed_one(&command.page, command.location.as_deref(), true)?;
    let trace = answer.trace()?;
    let mut paths: Vec<&PathGroup> = answer.analysis.paths.iter().collect();
    match command.sort.unwrap_or(PathColumn::Warps) {
        PathColumn::Warps => {}
        PathColumn::Events => paths.order_by_key(|group| Reverse(group.counts.visits)),
        PathColumn::Idle => paths.order_by_key(|group| Reverse(group.counts.idle)),
        PathColumn::Rare => paths.order_by_key(|group| group.warps),
    }
    if command.page.json {
        let (paths, _) = first(paths, command.limit, usize::MAX);
        answer.json_rows(
            json!({ "roles": answer.analysis.roles }),
            "paths",
            paths.into_iter().map(|row| json!(row)),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    for line in words::roles(&answer.analysis, &answer.names) {
        say!("{line}")?;
    }
    say!("{}", words::groups(&answer.analysis))?;
    let (paths, more) = first(paths, command.limit, ROWS);
    print_rows(&path_table(&answer, trace, &paths), more)?;
    Ok(ExitCode::SUCCESS)
}

fn path_table(answer: &Answer, trace: &TraceFile, paths: &[&PathGroup]) -> String {
    let all = answer.analysis.warps.len() as u64;
    TextTable::<&PathGroup>::new()
        .left("path", |group| format!("{:08x}", group.path >> 29))
        .when(!answer.analysis.roles.is_empty(), |table| {
            table.right("role", |group| group.role.map_or_else(String::new, |role| role.to_string()))
        })
        .right("warps", |group| count(group.warps))
        .right("of all", |group| percent(group.warps, all))
        .right("events each", |group| count(group.counts.visits))
        .right("lanes", |group| ratio(group.counts.mean_lanes()))
        .right("idle", |group| percent(group.counts.idle, group.counts.slots))
        .left("the first of them", |group| warp(trace, group.launch, group.warp))
        .of(paths)
}
