//! Answers about several traces: sums and differences.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use warptrace_analysis::{
    Figure, FileFigures, FileHead, KernelFigures, OrderItems, Selection, SetAnalysis, SetRow, SetTable,
    Spread,
};

use super::causes::{cause_row, cause_table};
use super::lines::line_table;
use super::words::{self, many, percent, ratio};
use super::{Answer, TextTable, find_locations, print_table, single};
use crate::arguments::Page;
use crate::files::short_names;
use crate::opened::open;
use crate::output::{self, count, say, shown_name};

/// Number of causes, lines and kernels that `top` shows.
const TOP: usize = 6;

/// Analyses several traces. With `is_focus`, keeps the warps with their counts at the location.
pub(super) fn analysed(
    files: &[PathBuf],
    page: &Page,
    text: Option<&str>,
    is_focus: bool,
) -> anyhow::Result<Answer> {
    let mut table = SetTable::default();
    let failed = |path: &Path| format!("cannot analyse {}", shown_name(path));
    for path in files {
        table.add(&FileHead::new("", &open(path)?.trace)).with_context(|| failed(path))?;
    }
    let asked = text.map_or_else(|| Ok(Vec::new()), |text| find_locations(table.locations(), text))?;
    let set = SetAnalysis::new(table);
    let mut set = if is_focus { set.with_warps() } else { set };
    let bar = output::progress_bar("analysing", "traces", files.len() as u64);
    let focus = if is_focus { single(&asked)? } else { None };
    let selection = Selection { focus, ..page.selected.selection() };
    let open = |number: usize| Ok(open(&files[number])?.trace);
    let added = set.add_all(&short_names(files), &selection, open, || bar.inc(1));
    added.map_err(|(number, error): (usize, anyhow::Error)| error.context(failed(&files[number])))?;
    bar.finish_and_clear();
    Answer::of_set(set, text)
}

/// Figures by which lines and kernels are compared. The first one that all files have is used.
pub(super) const LINE_FIGURES: [Figure; 2] = [Figure::WarpCycles, Figure::Visits];
const KERNEL_FIGURES: [Figure; 3] = [Figure::Nanoseconds, Figure::WarpCycles, Figure::Visits];

/// Prints which figure the columns of [`TextTable::spread`] show.
pub(super) fn explain(set: &SetAnalysis, figures: &[Figure]) -> anyhow::Result<()> {
    Ok(say!("least, most, farthest from the median: {} of each trace", set.first_of(figures).words())?)
}

impl<'a, R> TextTable<'a, R> {
    /// Adds the number of files that contain a row, and the spread of the first figure that all files have.
    /// Adds nothing for a single trace.
    pub(super) fn spread(
        self,
        set: Option<&'a SetAnalysis>,
        row: impl Fn(&R) -> SetRow + Copy + 'a,
        figures: &'static [Figure],
    ) -> Self {
        let Some(set) = set else { return self };
        let figure = set.first_of(figures);
        let spread = move |of: &R| set.spreads(&row(of)).remove(&figure);
        let said = move |number: u64| match figure {
            Figure::Nanoseconds => words::nanoseconds(number),
            _ => count(number),
        };
        self.right("traces", move |of| {
            format!("{} of {}", count(set.files_with(&row(of))), count(set.looked_at() as u64))
        })
        .right("least", move |of| spread(of).map_or_else(String::new, |spread| said(spread.least)))
        .right("most", move |of| spread(of).map_or_else(String::new, |spread| said(spread.most)))
        .left("farthest", move |of| spread(of).map_or_else(String::new, |spread| outlier(set, &spread)))
    }
}

/// Formats the file that is farthest from the median, with its ratio to the median.
fn outlier(set: &SetAnalysis, spread: &Spread) -> String {
    if spread.is_even() {
        return "none".to_owned();
    }
    let file =
        set.files().get(spread.outlier_file as usize).map_or_else(|| "?".to_owned(), FileFigures::label);
    let times = match spread.median {
        0 => String::new(),
        median => format!(" x{}", ratio(warptrace_analysis::share(spread.outlier, median))),
    };
    format!("{file}{times}")
}

/// Adds to a JSON row the number of files that contain it, and its spread.
pub(super) fn with_spread(
    mut value: Value,
    set: Option<&SetAnalysis>,
    row: impl FnOnce() -> SetRow,
) -> Value {
    if let (Some(set), Some(object)) = (set, value.as_object_mut()) {
        let row = row();
        object.insert("traces".to_owned(), json!(set.files_with(&row)));
        object.insert("spread".to_owned(), json!(set.spreads(&row)));
    }
    value
}

pub(super) fn top(answer: &Answer, set: &SetAnalysis, is_json: bool) -> anyhow::Result<()> {
    let analysis = &answer.analysis;
    let finding = words::finding(analysis, &answer.names);
    let outlier = words::outlier_file(set);
    let mut lines = words::hottest(analysis);
    lines.truncate(TOP);
    let mut causes = analysis.cause_lines();
    causes.truncate(TOP);
    if is_json {
        let kernels = analysis.kernels.iter();
        let kernels: Vec<Value> = kernels
            .map(|kernel| with_spread(json!(kernel), Some(set), || SetRow::Kernel(kernel.kernel.clone())))
            .collect();
        let lines = lines.iter().map(|line| with_spread(json!(line), Some(set), || SetRow::of_line(line)));
        let lines: Vec<Value> = lines.collect();
        return answer.json(json!({
            "finding": finding,
            "outlier_file_finding": outlier,
            "causes": causes.iter().map(cause_row).collect::<Vec<_>>(),
            "lines": lines,
            "kernels": kernels,
        }));
    }
    answer.with_headline(
        analysis.losses.is_plain() && analysis.counts.visits > 0,
        None,
        [outlier, finding],
    )?;
    if analysis.counts.visits == 0 {
        return Ok(());
    }
    if !causes.is_empty() {
        print_table(&cause_table(answer, &causes, false))?;
    }
    print_table(&line_table(answer, &lines))?;
    explain(set, &LINE_FIGURES)?;
    print_table(&kernel_table(answer, set))?;
    explain(set, &KERNEL_FIGURES)?;
    print_table(&file_table(set))?;
    let more = set.files().len().saturating_sub(FILES);
    if more > 0 {
        say!("and {}; `--json` has all", many(more as u64, "more trace"))?;
    }
    Ok(())
}

fn kernel_table(answer: &Answer, set: &SetAnalysis) -> String {
    let mut kernels: Vec<_> = answer.analysis.kernels.iter().collect();
    kernels.order_by_key(|kernel| std::cmp::Reverse(kernel.counts.visits));
    TextTable::<&KernelFigures>::new()
        .left("kernel", |kernel| words::cut(&kernel.kernel, KERNEL_WIDTH).into_owned())
        .right("launches", |kernel| count(kernel.launches))
        .right("events", |kernel| count(kernel.counts.visits))
        .spread(Some(set), |kernel| SetRow::Kernel(kernel.kernel.clone()), &KERNEL_FIGURES)
        .text(kernels.iter().take(TOP))
}

const KERNEL_WIDTH: usize = 40;
/// Maximum number of files in the table.
const FILES: usize = 20;

fn file_table(set: &SetAnalysis) -> String {
    let files = set.files();
    let unknown = || "-".to_owned();
    TextTable::<FileFigures>::new()
        .left("trace", FileFigures::label)
        .right("launches", |file| count(file.launches))
        .right("events", |file| count(file.totals.counts.visits))
        .when(files.iter().any(|file| file.nanoseconds.is_some()), |table| {
            table.right("time of launches", |file| file.nanoseconds.map_or_else(unknown, words::nanoseconds))
        })
        .when(files.iter().any(|file| file.totals.time.is_some()), |table| {
            let cycles = |file: &FileFigures| file.totals.time.map(|time| count(time.warp_cycles));
            table.right("cycles", move |file| cycles(file).unwrap_or_else(unknown))
        })
        .right("lanes", |file| ratio(file.totals.counts.mean_lanes()))
        .right("idle", |file| percent(file.totals.counts.idle, file.totals.counts.slots))
        .left("state", |file| match (&file.left_out, file.whole) {
            (Some(_), _) => "left out".to_owned(),
            (None, true) => "whole".to_owned(),
            (None, false) => "INCOMPLETE".to_owned(),
        })
        .text(files.iter().take(FILES))
}
