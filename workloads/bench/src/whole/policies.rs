//! `policies`: what each policy keeps of a trace in one amount of device memory, and what it takes.

use std::time::{Duration, Instant};

use serde::Serialize;
use warptrace_host::MemorySize;

use super::children::Children;
use super::report::{Row, differing, rows, write_files};
use super::{CaseRuns, Sample, Way, WayRuns};
use crate::arguments::{Inputs, Policies};
use crate::machine::{self, Machine};
use crate::programs::{self, Selection};
use crate::table::{Table, count, digits, seconds};
use crate::{codecs, date};

/// Codecs that are compared if none is named.
const USUAL: [&str; 2] = [codecs::RAW, "predict"];

/// All that was measured, for `policies.json`.
#[derive(Serialize)]
struct Document<'a> {
    date: String,
    commit: &'a str,
    machine: &'a str,
    driver: &'a str,
    device: &'a str,
    memory: u64,
    rows: Vec<Row<'a>>,
}

/// Runs each program in all ways, in one process of its own, and writes `policies.md` and `policies.json`.
/// Answers whether all runs of a program had one result.
pub(crate) fn run(arguments: &Policies) -> anyhow::Result<bool> {
    let started = Instant::now();
    let device = machine::open(arguments.target.device)?;
    let machine = Machine::of(&*device);
    let names: Vec<&str> = arguments.target.codecs.iter().map(String::as_str).collect();
    let ways = Way::with_policies(if names.is_empty() { &USUAL } else { &names })?;
    let children = Children::new(Inputs::Policies, &arguments.target, true)?;
    let cases = programs::in_processes(Inputs::Policies, &Selection::of(&arguments.target))?;
    let limit = arguments.time_limit.map(Duration::from_secs);
    let (count, mut done) = (cases.len(), Vec::new());
    for (number, case) in cases.into_iter().enumerate() {
        let share = u32::try_from(count - number).unwrap_or(1);
        let limit = limit.map(|limit| limit.saturating_sub(started.elapsed()) / share);
        let all: Vec<Way> = (0..arguments.rounds).flat_map(|_| ways.iter().cloned()).collect();
        let samples = children.run_all(&case, &all, Some(arguments.memory), limit)?;
        done.push(CaseRuns { case, measured: ways.iter().map(|way| sorted(way, &samples)).collect() });
        write(arguments, &machine, &done)?;
    }
    print!("{}", table(&done));
    drop(device);
    Ok(differing(&done).is_empty())
}

/// The runs of a way among those of a process.
fn sorted(way: &Way, samples: &[Sample]) -> WayRuns {
    let of_way = || samples.iter().filter(|sample| sample.way == way.name);
    let needed = of_way().find_map(|sample| sample.needed);
    let left_out = needed.map(|needed| format!("refused: it needs {}", MemorySize(needed)));
    let samples = of_way().filter(|sample| sample.needed.is_none()).cloned().collect();
    WayRuns { way: way.clone(), memory: None, samples, left_out }
}

/// The medians as Markdown.
fn table(cases: &[CaseRuns]) -> String {
    let headings = [
        "program",
        "input",
        "way",
        "runs",
        "kernels",
        "over untraced",
        "kernels + encoding",
        "whole",
        "over untraced",
        "attempted",
        "recorded",
        "lost",
        "file, MiB",
    ];
    let mut table = Table::new(3, headings);
    let dash = || "-".to_owned();
    for CaseRuns { case, measured } in cases {
        let untraced = measured.iter().find(|measured| measured.way.is_untraced());
        for measured in measured {
            let named = [case.program.to_owned(), case.input.clone(), measured.way.name.clone()];
            if measured.samples.is_empty() {
                let why = measured.left_out.as_deref().unwrap_or("not run: the time is used up");
                table.row(named.into_iter().chain([why.to_owned()]));
                continue;
            }
            let median = |of: fn(&Sample) -> f64| measured.median(of).unwrap_or_default();
            let over = |of: fn(&Sample) -> f64| {
                let untraced = untraced.and_then(|untraced| untraced.median(of));
                untraced.map_or_else(dash, |untraced| digits(median(of) / untraced))
            };
            let number = |of: fn(&Sample) -> f64| count(median(of).round() as u64);
            let traced = !measured.way.is_untraced();
            let if_traced = |text: String| if traced { text } else { dash() };
            table.row(named.into_iter().chain([
                measured.samples.len().to_string(),
                seconds(median(|sample| sample.kernel_s)),
                over(|sample| sample.kernel_s),
                seconds(median(|sample| sample.kernel_s + sample.encoding_s)),
                seconds(median(|sample| sample.whole_s)),
                over(|sample| sample.whole_s),
                if_traced(number(|sample| sample.attempted as f64)),
                if_traced(format!("{:.1}%", 100.0 * median(Sample::kept))),
                if_traced(number(|sample| sample.lost as f64)),
                if_traced(digits(median(|sample| sample.file_bytes as f64 / f64::from(1 << 20)))),
            ]));
        }
    }
    table.markdown()
}

fn write(arguments: &Policies, machine: &Machine, cases: &[CaseRuns]) -> anyhow::Result<()> {
    let Policies { out, commit, memory, .. } = arguments;
    let mut text = format!(
        "# Policies compared\n\n{}; driver {}; commit {commit}; {}. Medians. {memory} of device memory for each recording.\n\n\
         Made by `warptrace-bench policies`; every run is in `policies.json`, and what the columns mean in `docs/evaluation/method.md`.{}\n\n{}",
        machine.name,
        machine.driver,
        date::today(),
        if machine.kind == "simulator" { " Of the simulator: these times are not performance." } else { "" },
        table(cases),
    );
    let differing = differing(cases);
    if !differing.is_empty() {
        text += &format!("\n**Results differ from run to run:** {}.\n", differing.join(", "));
    }
    let document = Document {
        date: date::today(),
        commit,
        machine: &machine.name,
        driver: &machine.driver,
        device: machine.kind,
        memory: memory.0,
        rows: rows(cases),
    };
    write_files(out, "policies", &text, &document)
}
