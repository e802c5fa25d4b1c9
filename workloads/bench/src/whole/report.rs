//! Reports of `whole`.

use std::fmt::Write;

use serde::Serialize;
use warptrace_host::MemorySize;

use super::{CaseRuns, Sample, VariantRuns};
use crate::arguments::Whole;
use crate::bench::{median, percent, spread};
use crate::machine::Machine;
use crate::table::{MarkdownTable, count, digits, seconds};
use crate::{date, files};

/// Spread of untraced runs above which the report contains a warning.
const MOST_SPREAD: f64 = 0.1;

/// All measurements, for `whole.json`.
#[derive(Serialize)]
struct Document<'a> {
    date: String,
    commit: &'a str,
    machine: &'a str,
    driver: &'a str,
    device: &'a str,
    warm: bool,
    rows: Vec<VariantRow<'a>>,
}

#[derive(Serialize)]
struct VariantRow<'a> {
    program: &'a str,
    input: &'a str,
    variant: &'a str,
    left_out: Option<&'a str>,
    runs: &'a [Sample],
}

impl VariantRuns {
    fn median(&self, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        median(self.samples.iter().map(of).collect())
    }

    fn spread(&self, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        spread(self.samples.iter().map(of).collect())
    }
}

type Column = (&'static str, fn(&Sample) -> f64);

/// Times in the table besides the kernels' and the whole program's.
const OTHERS: [Column; 5] = [
    ("set-up", |sample| sample.setup_s),
    ("end", |sample| sample.end_s),
    ("disk", |sample| sample.disk_s),
    ("device", |sample| sample.device_s),
    ("process", |sample| sample.process_s),
];

pub(super) fn table(cases: &[CaseRuns]) -> String {
    let headings = [
        "program",
        "input",
        "variant",
        "runs",
        "launches",
        "kernels",
        "over untraced",
        "kernels + encoding",
        "whole",
        "spread",
        "over untraced",
    ];
    let headings = headings.into_iter().chain(OTHERS.map(|(name, _)| name)).chain([
        "memory",
        "events",
        "lost",
        "file, MiB",
    ]);
    let mut table = MarkdownTable::new(3, headings);
    let time = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), seconds);
    for CaseRuns { case, measured } in cases {
        let untraced = measured.iter().find(|measured| measured.variant.is_untraced());
        for measured in measured {
            let named = [case.program.to_owned(), case.input.clone(), measured.variant.name.clone()];
            let Some(last) = measured.samples.last() else {
                let why = measured.left_out.as_deref().unwrap_or("not run");
                table.row(named.into_iter().chain([format!("left out: {why}")]));
                continue;
            };
            let over = |of: fn(&Sample) -> f64| {
                let ratio =
                    measured.median(of).zip(untraced?.median(of)).map(|(traced, plain)| traced / plain);
                ratio.map(digits)
            };
            let over = |of| over(of).unwrap_or_else(|| "-".to_owned());
            let kernel: fn(&Sample) -> f64 = |sample| sample.kernel_s;
            let whole: fn(&Sample) -> f64 = |sample| sample.whole_s;
            let numbers = [
                measured.samples.len().to_string(),
                last.launches.to_string(),
                time(measured.median(kernel)),
                over(kernel),
                time(measured.median(|sample| sample.kernel_s + sample.encoding_s)),
                time(measured.median(whole)),
                percent(measured.spread(whole)),
                over(whole),
            ];
            let others = OTHERS.map(|(_, of)| time(measured.median(of)));
            let left = if measured.variant.is_untraced() {
                [(); 4].map(|()| "-".to_owned())
            } else {
                let file = digits(last.file_bytes as f64 / f64::from(1 << 20));
                [MemorySize(last.memory).to_string(), count(last.recorded), count(last.lost), file]
            };
            table.row(named.into_iter().chain(numbers).chain(others).chain(left));
        }
    }
    table.markdown()
}

/// Returns the programs whose untraced runs spread so far that ratios to them are of little use.
fn unsteady(cases: &[CaseRuns]) -> Vec<String> {
    let spread_of = |case_runs: &CaseRuns| -> Option<String> {
        let untraced = case_runs.measured.iter().find(|measured| measured.variant.is_untraced())?;
        let spread = untraced.spread(|sample| sample.whole_s)?;
        (spread > MOST_SPREAD).then(|| format!("{} ({:.0}%)", case_runs.case.name(), 100.0 * spread))
    };
    cases.iter().filter_map(spread_of).collect()
}

/// Returns the programs whose runs had different results.
pub(super) fn differing(cases: &[CaseRuns]) -> Vec<String> {
    let differs = |case_runs: &&CaseRuns| {
        let mut results =
            case_runs.measured.iter().flat_map(|measured| &measured.samples).map(|sample| sample.result);
        let first = results.next();
        results.any(|result| Some(result) != first)
    };
    cases.iter().filter(differs).map(|case_runs| case_runs.case.name()).collect()
}

pub(super) fn write(arguments: &Whole, machine: &Machine, cases: &[CaseRuns]) -> anyhow::Result<()> {
    let Whole { out, commit, warm, .. } = arguments;
    let mut text = format!(
        "# Whole programs, each run in a process of its own\n\n{}; driver {}; commit {commit}; {}. Medians; a spread is the largest less the smallest, over the median.\n\n\
         Made by `warptrace-bench whole`; every run is in `whole.json`, and what the columns mean in `docs/evaluation/method.md`.{}{}\n\n{}",
        machine.name,
        machine.driver,
        date::today(),
        if *warm { " Each process ran the program untraced once before." } else { "" },
        if machine.kind == "simulator" { " Of the simulator: these times are not performance." } else { "" },
        table(cases),
    );
    let unsteady = unsteady(cases);
    if !unsteady.is_empty() {
        let _ = writeln!(text, "\nUntraced runs spread by more than 10%: {}.", unsteady.join(", "));
    }
    let differing = differing(cases);
    if !differing.is_empty() {
        let _ = writeln!(text, "\n**Results differ from run to run:** {}.", differing.join(", "));
    }
    let rows = cases.iter().flat_map(|CaseRuns { case, measured }| {
        measured.iter().map(|measured| VariantRow {
            program: case.program,
            input: &case.input,
            variant: &measured.variant.name,
            left_out: measured.left_out.as_deref(),
            runs: &measured.samples,
        })
    });
    let document = Document {
        date: date::today(),
        commit,
        machine: &machine.name,
        driver: &machine.driver,
        device: machine.kind,
        warm: *warm,
        rows: rows.collect(),
    };
    files::make_folder(out)?;
    for (ending, text) in [("md", text), ("json", serde_json::to_string_pretty(&document)?)] {
        files::write(&out.join(format!("whole.{ending}")), text)?;
    }
    Ok(())
}
