//! `points`: automatic trace points beside those placed by hand.
//!
//! Each program has both, made from one source. Untraced and recorded runs of both take turns on one device.
//! Results must be equal, byte for byte.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::arguments::Points;
use crate::bench::median;
use crate::codecs::{CODECS, Codec};
use crate::machine::Machine;
use crate::programs::{self, Selection};
use crate::runs::Bench;
use crate::subject::{Automatic, Case, Subject};
use crate::table::{Table, count, digits, seconds};
use crate::{memory, progress};

/// How both are recorded.
const RECORDINGS: [&str; 2] = ["predict", "predict, counted loops"];

/// What was measured of a program with one kind of trace points.
#[derive(Debug, Default)]
struct Kind {
    /// Kernels of untraced runs, in seconds.
    untraced: Vec<f64>,
    /// For each recording its events, and kernels of its runs, in seconds.
    recorded: [(u64, Vec<f64>); RECORDINGS.len()],
    /// What the first untraced run computed.
    result: Vec<u8>,
    /// Results that differ from that, and what did.
    wrong: Vec<String>,
}

impl Kind {
    /// Runs a program untraced and in each recording once.
    fn turn(&mut self, bench: &mut Bench, name: &str, subject: &dyn Subject) -> anyhow::Result<()> {
        let (run, times) = bench.untraced(subject)?;
        self.untraced.push(times.kernel.as_secs_f64());
        if self.result.is_empty() {
            run.result.check().map_err(|error| anyhow::anyhow!("the result is wrong: {error}"))?;
            self.result = run.result.bytes().into_owned();
        }
        for (kind, (events, kernels)) in RECORDINGS.iter().zip(&mut self.recorded) {
            let recorded = bench.traced_whole(name, subject, codec(kind), false, "points.wtrc")?;
            *events = recorded.report.recorded;
            kernels.push(recorded.times.kernel.as_secs_f64());
            if *recorded.run.result.bytes() != *self.result {
                self.wrong.push(format!("{name}, {kind}: the result is another one than untraced"));
            }
        }
        Ok(())
    }

    /// Forgets times: those of the turn in which kernels were loaded.
    fn forget_times(&mut self) {
        self.untraced.clear();
        self.recorded.iter_mut().for_each(|(_, kernels)| kernels.clear());
    }
}

fn codec(name: &str) -> &'static Codec {
    CODECS.iter().find(|codec| codec.name == name).expect("the names are those of the list")
}

/// Measures the chosen programs, and writes `points.md`; answers whether all results are equal.
pub(crate) fn run(arguments: &Points) -> anyhow::Result<bool> {
    let target = &arguments.target;
    anyhow::ensure!(target.codecs.is_empty(), "both are recorded with the same codecs: leave --codec out");
    let cases = programs::measured(&Selection::of(target))?;
    fs::create_dir_all(&arguments.out)
        .with_context(|| format!("cannot create {}", arguments.out.display()))?;
    let mut bench = Bench::open(target)?;
    let machine = Machine::of(&*bench.device);
    println!("device     {} (driver {})", machine.name, machine.driver);
    memory::give_back_at_once();
    let deadline = arguments.time_limit.map(|limit| Instant::now() + Duration::from_secs(limit));

    let mut table = Table::new(
        3,
        [
            "program",
            "input",
            "recording",
            "events, by hand",
            "events, automatic",
            "untraced, by hand",
            "untraced, automatic",
            "recorded, by hand",
            "recorded, automatic",
            "over untraced, by hand",
            "over untraced, automatic",
        ],
    );
    let mut problems = Vec::new();
    let bar = progress::steps(cases.len() as u64);
    for case in &cases {
        bar.set_message(case.name());
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            problems.push(format!("{}: left out, the time limit is reached", case.name()));
            continue;
        }
        match measure(&mut bench, case, arguments.runs) {
            Ok(kinds) => {
                problems.extend(row(&mut table, case, &kinds));
                write(arguments, &machine, &table, &problems)?;
            }
            Err(error) => problems.push(format!("{}: {error:#}", case.name())),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    write(arguments, &machine, &table, &problems)?;
    println!("table      {}", arguments.out.join("points.md").display());
    problems.iter().for_each(|problem| eprintln!("error: {problem}"));
    Ok(problems.is_empty())
}

/// Runs a program with both kinds of trace points in turns: by hand, automatic.
fn measure(bench: &mut Bench, case: &Case, runs: u32) -> anyhow::Result<[Kind; 2]> {
    let subject = case.make()?;
    let automatic = Automatic(&*subject);
    let mut kinds = [Kind::default(), Kind::default()];
    for turn in 0..=runs {
        let [by_hand, other] = &mut kinds;
        by_hand.turn(bench, &case.name(), &*subject)?;
        other.turn(bench, &format!("{}, automatic", case.name()), &automatic)?;
        if turn == 0 {
            kinds.iter_mut().for_each(Kind::forget_times);
        }
    }
    Ok(kinds)
}

/// Adds the rows of a program; answers what is wrong.
fn row(table: &mut Table, case: &Case, [by_hand, automatic]: &[Kind; 2]) -> Vec<String> {
    let untraced = [by_hand, automatic].map(|kind| median(kind.untraced.clone()).unwrap_or(f64::NAN));
    for (number, name) in RECORDINGS.iter().enumerate() {
        let recorded =
            [by_hand, automatic].map(|kind| median(kind.recorded[number].1.clone()).unwrap_or(f64::NAN));
        let events = [by_hand, automatic].map(|kind| count(kind.recorded[number].0));
        let over = [0, 1].map(|kind| digits(recorded[kind] / untraced[0]));
        let words = [case.program.to_owned(), case.input.clone(), (*name).to_owned()];
        table.row(
            words
                .into_iter()
                .chain(events)
                .chain(untraced.map(seconds))
                .chain(recorded.map(seconds))
                .chain(over),
        );
    }
    let mut problems: Vec<String> = by_hand.wrong.iter().chain(&automatic.wrong).cloned().collect();
    if by_hand.result != automatic.result {
        problems.push(format!("{}: results with both kinds of trace points differ", case.name()));
    }
    problems
}

fn write(arguments: &Points, machine: &Machine, table: &Table, problems: &[String]) -> anyhow::Result<()> {
    let path = arguments.out.join("points.md");
    let mut text = format!(
        "# Automatic trace points beside those placed by hand\n\n{}; driver {}; commit {}{}. Made by `warptrace-bench points`.\n\n\
         Medians of {} runs of each kind, in turns, after one that is not counted; kernels alone. Both kinds are made from one source: *by hand* has the trace points that a \
         person placed, *automatic* those that `#[warptrace::kernels]` puts at every decision. *Over untraced*: over the untraced kernel with trace points by hand. \
         Results are equal, byte for byte, untraced and recorded, with either kind{}.\n\n{}",
        machine.name,
        machine.driver,
        arguments.commit,
        if machine.kind == "cuda" { "" } else { "; a simulator, so not performance" },
        arguments.runs,
        if problems.is_empty() { "" } else { ", but for what is said below" },
        table.markdown()
    );
    if !problems.is_empty() {
        text.push_str("\n## Problems\n\n");
        problems.iter().for_each(|problem| text.push_str(&format!("- {problem}\n")));
    }
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
