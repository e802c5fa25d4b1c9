//! `warptrace warps`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Value, json};
use warptrace_analysis::{OrderItems, WarpEnd, WarpFigures, share};
use warptrace_decoder::TraceFile;

use super::words::{percent, ratio};
use super::{Answer, Column, ROWS, analysed, first, print_rows, table, words};
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
    let is_timed = answer.analysis.time.is_some();
    if is_timed {
        columns.splice(figures..figures, [Right("cycles"), Right("x median")]);
    }
    let has_spans = warps.iter().any(|(_, warp)| warp.ran.is_some());
    if has_spans {
        columns.splice(figures..figures, [Right("SM"), Right("ran"), Right("x median")]);
    }
    if answer.set().is_some() {
        columns.insert(0, Left("trace"));
    }
    let row = |(file, warp): &Placed<'_>| {
        let WarpFigures { launch, warp, counts, time, ran, median, path, last, end, role } = *warp;
        let info = traces.get(*file).launch(*launch);
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
        // Of several files some may have no times.
        let unknown = || is_timed.then(|| ["-", "-"].map(str::to_owned));
        row.splice(figures..figures, time.or_else(unknown).into_iter().flatten());
        if has_spans {
            let length = ran.and_then(|ran| Some((ran.nanoseconds?, ran.median_nanoseconds)));
            let sm = ran.map_or_else(String::new, |ran| ran.sm.to_string());
            let times = length.map(|(own, median)| [words::nanoseconds(own), ratio(share(own, median))]);
            row.splice(figures..figures, [sm].into_iter().chain(times.unwrap_or_default()));
        }
        row.splice(0..0, traces.name(*file).map(str::to_owned));
        row
    };
    table(&columns, warps.iter().map(row))
}
