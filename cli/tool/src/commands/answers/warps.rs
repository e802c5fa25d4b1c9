//! `warptrace warps`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Value, json};
use warptrace_analysis::{OrderItems, WarpEnd, WarpFigures, share};
use warptrace_decoder::TraceFile;

use super::words::{percent, ratio};
use super::{Answer, ROWS, TextTable, analysed, first, print_rows, words};
use crate::arguments::{Page, Rows, WarpColumn};
use crate::files::named_files;
use crate::opened::open;
use crate::output::{count, say};

/// Kernels whose work is said.
const KERNELS: usize = 3;

/// A warp, and the place of its file among several.
type Placed<'a> = (u32, &'a WarpFigures);

/// The traces of the warps that are shown.
enum Traces<'a> {
    One(&'a TraceFile),
    /// By the places of their files.
    Several(BTreeMap<u32, (String, TraceFile)>),
}

impl<'a> Traces<'a> {
    /// Opens the traces that these warps are of.
    fn of(answer: &'a Answer, page: &Page, warps: &[Placed<'_>]) -> anyhow::Result<Self> {
        let Some(set) = answer.set() else { return Ok(Self::One(answer.trace()?)) };
        let files = named_files(&page.files)?;
        let mut traces = BTreeMap::new();
        for (file, _) in warps {
            if !traces.contains_key(file) {
                let at = *file as usize;
                traces.insert(*file, (set.files()[at].label(), open(&files[at])?.trace));
            }
        }
        Ok(Self::Several(traces))
    }

    fn get(&self, file: u32) -> &TraceFile {
        match self {
            Self::One(trace) => trace,
            Self::Several(traces) => &traces[&file].1,
        }
    }

    /// The name of a file, of several.
    fn name(&self, file: u32) -> Option<&str> {
        match self {
            Self::One(_) => None,
            Self::Several(traces) => Some(&traces[&file].0),
        }
    }
}

pub(crate) fn run(command: &Rows<WarpColumn>) -> anyhow::Result<ExitCode> {
    // Of a location the work of each warp there.
    let answer = analysed(&command.page, command.location.as_deref(), true)?;
    let mut warps: Vec<Placed<'_>> = match answer.set() {
        None => answer.analysis.warps.iter().map(|warp| (0, warp)).collect(),
        Some(set) => set.warps().iter().map(|(file, warp)| (*file, warp)).collect(),
    };
    match command.sort.unwrap_or(WarpColumn::Odd) {
        WarpColumn::Odd => warps.order_by_key(|(_, warp)| {
            let late = warp.time.map(|time| time.cycles.abs_diff(time.median_cycles));
            let ran = warp.ran.and_then(|ran| Some(ran.nanoseconds?.abs_diff(ran.median_nanoseconds)));
            Reverse((ran, late, warp.distance()))
        }),
        WarpColumn::Ran => warps.order_by_key(|(_, warp)| Reverse(warp.ran.and_then(|ran| ran.nanoseconds))),
        WarpColumn::Cycles => warps.order_by_key(|(_, warp)| Reverse(warp.time.map(|time| time.cycles))),
        WarpColumn::Idle => warps.order_by_key(|(_, warp)| Reverse(warp.counts.idle)),
        WarpColumn::Events => warps.order_by_key(|(_, warp)| Reverse(warp.counts.visits)),
        WarpColumn::Lanes => warps.order_by_key(|(_, warp)| Reverse(warp.counts.lanes)),
        WarpColumn::Number => {}
    }
    let default = if command.page.json { usize::MAX } else { ROWS };
    let (warps, more) = first(warps, command.limit, default);
    let traces = Traces::of(&answer, &command.page, &warps)?;
    if command.page.json {
        let rows = warps.into_iter().map(|(file, warp)| {
            let mut row = json_row(traces.get(file), warp);
            if let (Some(row), Some(_)) = (row.as_object_mut(), answer.set()) {
                row.insert("file".into(), file.into());
            }
            row
        });
        answer.json_rows(
            json!({ "warp_events": answer.analysis.warp_events, "roles": answer.analysis.roles }),
            "warps",
            rows,
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    answer.headline()?;
    if let Ok(trace) = answer.trace() {
        words::schedule(trace, &answer.analysis).into_iter().try_for_each(|line| say!("{line}"))?;
    }
    for line in words::roles(&answer.analysis, &answer.names) {
        say!("{line}")?;
    }
    for line in words::work(&answer.analysis, KERNELS) {
        say!("{line}")?;
    }
    print_rows(&warp_table(&answer, &traces, &warps), more)?;
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

fn warp_table(answer: &Answer, traces: &Traces<'_>, warps: &[Placed<'_>]) -> String {
    let trace_of = |(file, warp): &Placed<'_>| {
        let info = traces.get(*file).launch(warp.launch)?;
        Some((info, info.stream_id(warp.warp)?))
    };
    // Of several files some may have no times.
    let unknown = || "-".to_owned();
    TextTable::<Placed<'_>>::new()
        .when(answer.set().is_some(), |table| {
            table.left("trace", |(file, _)| traces.name(*file).unwrap_or_default().to_owned())
        })
        .right("launch", |(_, warp)| warp.launch.to_string())
        .right("block", move |warp| {
            trace_of(warp).map_or_else(String::new, |(info, id)| words::block(info, id.block))
        })
        .right("warp", move |warp| trace_of(warp).map_or(warp.1.warp, |(_, id)| id.warp_in_block).to_string())
        .when(!answer.analysis.roles.is_empty(), |table| {
            table.right("role", |(_, warp)| warp.role.map_or_else(String::new, |role| role.to_string()))
        })
        .when(warps.iter().any(|(_, warp)| warp.ran.is_some()), |table| {
            let length = |warp: &WarpFigures| {
                let ran = warp.ran?;
                Some((ran.nanoseconds?, ran.median_nanoseconds))
            };
            table
                .right("SM", |(_, warp)| warp.ran.map_or_else(String::new, |ran| ran.sm.to_string()))
                .right("ran", move |(_, warp)| {
                    length(warp).map_or_else(String::new, |(own, _)| words::nanoseconds(own))
                })
                .right("x median", move |(_, warp)| {
                    length(warp).map_or_else(String::new, |(own, median)| ratio(share(own, median)))
                })
        })
        .when(answer.analysis.time.is_some(), |table| {
            table
                .right("cycles", move |(_, warp)| warp.time.map_or_else(unknown, |time| count(time.cycles)))
                .right("x median", move |(_, warp)| {
                    warp.time.map_or_else(unknown, |time| ratio(share(time.cycles, time.median_cycles)))
                })
        })
        .right("events", |(_, warp)| count(warp.counts.visits))
        .right("x median", |(_, warp)| ratio(share(warp.counts.visits, warp.median)))
        .right("lanes", |(_, warp)| ratio(warp.counts.mean_lanes()))
        .right("idle slots", |(_, warp)| count(warp.counts.idle))
        .right("idle", |(_, warp)| percent(warp.counts.idle, warp.counts.slots))
        .left("path", |(_, warp)| format!("{:08x}", warp.path >> 29))
        .left("last event", |(_, warp)| {
            let end = match warp.end {
                WarpEnd::Lossy => " (lossy)",
                WarpEnd::Unfinished => " (unfinished)",
                _ => "",
            };
            answer.names.name(warp.last) + end
        })
        .of(warps)
}
