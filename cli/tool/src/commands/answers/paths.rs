//! `warptrace paths`.

use serde_json::json;
use warptrace_analysis::PathGroup;
use warptrace_decoder::TraceFile;

use super::rows::{Listed, Order};
use super::words::{percent, ratio, warp};
use super::{Answer, TextTable, analysed_one, print_rows, words};
use crate::arguments::Rows;
use crate::output::{count, say};

impl Listed for PathGroup {
    const NAME: &'static str = "paths";
    const ORDERS: &'static [Order<Self>] = &[
        Order::unsorted("warps", "Warps that took the path"),
        Order::most("events", "Events of each of these warps", |group| group.counts.visits),
        Order::most("idle", "Idle slots of each of these warps", |group| group.counts.idle),
        Order::compared("rare", "Warps that took the path, the fewest first", |_, a, b| {
            a.warps.cmp(&b.warps)
        }),
    ];
}

pub(crate) fn run(command: &Rows<PathGroup>) -> anyhow::Result<()> {
    // With a location: paths of the warps that visited it.
    let answer = analysed_one(&command.page, command.location.as_deref(), true)?;
    let trace = answer.trace()?;
    let (paths, more) = command.shown(&answer, &answer.analysis.paths);
    if command.page.json {
        let roles = json!({ "roles": answer.analysis.roles });
        return answer.json_rows(roles, PathGroup::NAME, paths.into_iter().map(|row| json!(row)));
    }
    answer.headline()?;
    for line in words::roles(&answer.analysis, &answer.names) {
        say!("{line}")?;
    }
    say!("{}", words::groups(&answer.analysis))?;
    print_rows(&path_table(&answer, trace, &paths), more)
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
        .text(paths)
}
