//! `warptrace warps`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use warptrace_analysis::{WarpEnd, WarpFigures, share};
use warptrace_decoder::TraceFile;

use super::rows::{Listed, Order};
use super::words::{percent, ratio};
use super::{Answer, TextTable, analysed, print_rows, words};
use crate::arguments::{Page, Rows};
use crate::files::named_files;
use crate::opened::open;
use crate::output::{count, say};

const KERNELS: usize = 3;

/// Index of the file, and a warp.
type Placed = (u32, WarpFigures);

enum Traces<'a> {
    One(&'a TraceFile),
    /// Label and trace, by index of the file.
    Several(BTreeMap<u32, (String, TraceFile)>),
}

impl<'a> Traces<'a> {
    fn new(answer: &'a Answer, page: &Page, warps: &[Placed]) -> anyhow::Result<Self> {
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

    fn name(&self, file: u32) -> Option<&str> {
        match self {
            Self::One(_) => None,
            Self::Several(traces) => Some(&traces[&file].0),
        }
    }
}

impl Listed for WarpFigures {
    const NAME: &'static str = "warps";
    const ORDERS: &'static [Order<Self>] = &[
        Order::compared(
            "outlier",
            "How far it is from the median warp of its launch: by how long it ran, else by cycles, else by events",
            |_, a, b| oddness(b).cmp(&oddness(a)),
        ),
        Order::compared("ran", "How long it ran", |_, a, b| {
            let ran = |warp: &Self| warp.ran.and_then(|ran| ran.nanoseconds);
            ran(b).cmp(&ran(a))
        }),
        Order::compared("cycles", "Cycles from its first run to its last", |_, a, b| {
            let cycles = |warp: &Self| warp.time.map(|time| time.cycles);
            cycles(b).cmp(&cycles(a))
        }),
        Order::most("idle", "Idle slots", |warp| warp.counts.idle),
        Order::most("events", "Events", |warp| warp.counts.visits),
        Order::most("lanes", "Active lanes, summed over the events", |warp| warp.counts.lanes),
        Order::unsorted("number", "Launch and number, the first one first"),
    ];
}

/// Returns the distances of a warp from the median of its launch: in nanoseconds, cycles and events.
fn oddness(warp: &WarpFigures) -> (Option<u64>, Option<u64>, u64) {
    let ran = warp.ran.and_then(|ran| Some(ran.nanoseconds?.abs_diff(ran.median_nanoseconds)));
    (ran, warp.time.map(|time| time.cycles.abs_diff(time.median_cycles)), warp.distance())
}

pub(crate) fn run(command: &Rows<WarpFigures>) -> anyhow::Result<()> {
    // With a location: work of each warp there.
    let answer = analysed(&command.page, command.location.as_deref(), true)?;
    let warps: Vec<Placed> = match answer.set() {
        None => answer.analysis.warps.iter().map(|warp| (0, warp)).collect(),
        Some(set) => set.warps().to_vec(),
    };
    let (warps, more) = command.shown_by(&answer, warps, |(_, warp)| warp);
    let traces = Traces::new(&answer, &command.page, &warps)?;
    if command.page.json {
        let rows = warps.into_iter().map(|(file, warp)| {
            let mut row = json_row(traces.get(file), &warp);
            if answer.set().is_some() {
                row["file"] = file.into();
            }
            row
        });
        let more = json!({ "warp_events": answer.analysis.warp_events, "roles": answer.analysis.roles });
        return answer.json_rows(more, WarpFigures::NAME, rows);
    }
    answer.headline()?;
    let scheduled = answer.trace().map(|trace| words::schedule(trace, &answer.analysis));
    let roles = words::roles(&answer.analysis, &answer.names);
    let work = words::work(&answer.analysis, KERNELS);
    scheduled.unwrap_or_default().into_iter().chain(roles).chain(work).try_for_each(|line| say!("{line}"))?;
    print_rows(&warp_table(&answer, &traces, &warps), more)
}

fn json_row(trace: &TraceFile, warp: &WarpFigures) -> Value {
    let mut row = json!(warp);
    let id = trace.launch(warp.launch).and_then(|info| info.stream_id(warp.warp));
    if let Some(id) = id {
        row["block"] = json!(id.block);
        row["warp_in_block"] = json!(id.warp_in_block);
        if let Some(label) = trace.label(warp.launch) {
            row["label"] = json!(label);
        }
    }
    row
}

fn warp_table(answer: &Answer, traces: &Traces<'_>, warps: &[Placed]) -> String {
    let trace_of = |(file, warp): &Placed| {
        let info = traces.get(*file).launch(warp.launch)?;
        Some((info, info.stream_id(warp.warp)?))
    };
    // Some of several files may have no times.
    let unknown = || "-".to_owned();
    TextTable::<Placed>::new()
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
        .text(warps)
}
