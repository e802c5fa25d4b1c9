//! `fidelity --against`: compares the simulator's events at each location with a GPU's.
//!
//! Reads the tables that `fidelity` wrote on the GPU, and runs the same programs on the same inputs. The
//! GPU's numbers come from hardware counters in untraced kernels.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use warptrace_decoder::TraceFile;
use warptrace_format::codec::CodecSpec;
use warptrace_host::{DEVICE_PREDICT, MemorySize, RecordingSpec, Session, SimDevice, SimOptions};

use super::MAX_LAUNCHES;
use super::counts::{Counts, Passed, Point, union};
use super::decoded;
use super::known::reason;
use crate::arguments::Fidelity;
use crate::files;
use crate::programs;
use crate::progress;
use crate::subject::Case;
use crate::table::{MarkdownTable, count, digits};

/// Recording whose rows provide the card's counts. The untraced counts are the same in all rows.
const RECORDING: &str = "predict";
/// Largest difference of events, relative to the card's, at which a location counts as near.
const NEAR: f64 = 0.05;
/// Memory of a recording in bytes. Pages that are not written do not use memory.
const MEMORY: u64 = 8 << 30;

#[derive(Debug, Deserialize)]
struct Line {
    program: String,
    input: String,
    recording: String,
    track: usize,
    kernel: String,
    location: u16,
    name: String,
    events_untraced: u64,
    lanes_untraced: u64,
}

/// Counts of a GPU, by program and input.
#[derive(Debug, Default)]
struct Card {
    counts: BTreeMap<(String, String), Counts>,
    names: BTreeMap<(String, u16), String>,
}

impl Card {
    /// Adds the lines of a table from `fidelity`. Skips programs and inputs that an earlier table contains.
    fn read(&mut self, path: &Path) -> anyhow::Result<()> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut found: BTreeMap<(String, String), Counts> = BTreeMap::new();
        for line in csv::Reader::from_reader(text.as_bytes()).deserialize() {
            let line: Line = line.with_context(|| {
                format!("{} is no table of locations that `fidelity` wrote", path.display())
            })?;
            if line.recording != RECORDING || line.track != 0 {
                continue;
            }
            let passed = Passed { events: line.events_untraced, lanes: line.lanes_untraced };
            self.names.insert((line.program.clone(), line.location), line.name);
            found.entry((line.program, line.input)).or_default().add(&line.kernel, line.location, passed);
        }
        for (key, counts) in found {
            self.counts.entry(key).or_insert(counts);
        }
        Ok(())
    }
}

struct Compared {
    program: &'static str,
    input: String,
    asynchronous: bool,
    card: Counts,
    simulator: Counts,
}

impl Compared {
    /// Returns each location with its counts on both devices, and their difference relative to the card's.
    fn rows(&self) -> impl Iterator<Item = (Point, Passed, Passed, f64)> {
        union([&self.card, &self.simulator]).into_iter().map(|point| {
            let (card, simulator) = (self.card.at(&point), self.simulator.at(&point));
            let difference = (simulator.events as f64 - card.events as f64) / card.events as f64;
            (point, card, simulator, difference)
        })
    }
}

/// Compares all programs in the tables and writes `simulator-masks.md`. Returns true if each location is near
/// or its difference is known.
pub(super) fn run(arguments: &Fidelity) -> anyhow::Result<bool> {
    let mut card = Card::default();
    for path in &arguments.against {
        card.read(path)?;
    }
    let cases = programs::fidelity(&arguments.programs)?;
    let (mut compared, mut missing) = (Vec::new(), Vec::new());
    let bar = progress::steps(cases.len() as u64);
    for case in &cases {
        bar.set_message(case.name());
        match card.counts.get(&(case.program.to_owned(), case.input.clone())) {
            Some(counts) => {
                let simulator = simulate(case, arguments)?;
                let case = Compared {
                    program: case.program,
                    input: case.input.clone(),
                    asynchronous: case.asynchronous,
                    card: counts.clone(),
                    simulator,
                };
                println!("{}", sentence(&case));
                compared.push(case);
            }
            None => missing.push(case.name()),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    anyhow::ensure!(!compared.is_empty(), "the tables have none of the programs: {}", missing.join(", "));
    let path = arguments.out.join("simulator-masks.md");
    files::write(&path, markdown(&compared, &missing, &card, arguments))?;
    println!("table      {}", path.display());
    let is_named = |case: &Compared| {
        let name = |point: &Point| card.names.get(&(case.program.to_owned(), point.location));
        case.rows().all(|(point, _, _, difference)| {
            difference.abs() <= NEAR || reason(case.program, name(&point)).is_some()
        })
    };
    Ok(compared.iter().all(is_named))
}

/// Returns the counts of a run on the simulator, with a grid as large as on the card.
fn simulate(case: &Case, arguments: &Fidelity) -> anyhow::Result<Counts> {
    let subject = case.make()?;
    let options = SimOptions {
        multiprocessors: Some(arguments.multiprocessors),
        seed: arguments.seed,
        ..SimOptions::default()
    };
    let mut device = SimDevice::new(options);
    let options = RecordingSpec {
        memory: Some(MemorySize(MEMORY)),
        ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT))
    };
    let mut session = Session::start(&mut device, &subject.program().traced(), &options, Vec::new())?;
    let run = subject.run(&mut session)?;
    run.result.check().map_err(|error| anyhow::anyhow!("{}: the result is wrong: {error}", case.name()))?;
    let (bytes, _, report) = session.finish()?;
    anyhow::ensure!(report.lost == 0, "{}: {} events were lost", case.name(), report.lost);
    decoded::counts(&TraceFile::from_bytes(bytes)?, 0, MAX_LAUNCHES)
}

/// Formats a difference as `+1.2%`, or as `only here` if the card has no events.
fn percent(difference: f64) -> String {
    if difference.is_finite() { format!("{:+.1}%", difference * 100.0) } else { "only here".to_owned() }
}

fn sentence(case: &Compared) -> String {
    let total = case.rows().count();
    let far = case.rows().filter(|(.., difference)| difference.abs() > NEAR).count();
    format!(
        "{} {}: {} of {total} locations are within {:.0}% of the card's; {} events, the card {}",
        case.program,
        case.input,
        total - far,
        NEAR * 100.0,
        count(case.simulator.total().events),
        count(case.card.total().events)
    )
}

fn markdown(compared: &[Compared], missing: &[String], card: &Card, arguments: &Fidelity) -> String {
    let headings = [
        "program",
        "input",
        "locations",
        "within 5%",
        "events, card",
        "events, simulator",
        "difference",
        "lanes",
    ];
    let mut overview = MarkdownTable::new(2, headings);
    let mut far = MarkdownTable::new(
        3,
        ["program", "location", "why", "events, card", "events, simulator", "difference"],
    );
    let mut pages = String::new();
    for case in compared {
        let name = |point: &Point| {
            let name = card.names.get(&(case.program.to_owned(), point.location));
            format!("{} {}", point.location, name.map_or("", String::as_str))
        };
        let (mut near, mut all) = (0, 0);
        let mut table = MarkdownTable::new(
            2,
            ["kernel", "location", "card", "simulator", "difference", "lanes an event, card", "simulator"],
        );
        for (point, on_card, simulated, difference) in case.rows() {
            all += 1;
            let (events, ours) = (count(on_card.events), count(simulated.events));
            if difference.abs() <= NEAR {
                near += 1;
            } else {
                let known = card.names.get(&(case.program.to_owned(), point.location));
                let why = reason(case.program, known).unwrap_or("**not known**");
                far.row([case.program, &name(&point), why, &events, &ours, &percent(difference)]);
            }
            let lanes = [on_card, simulated].map(Passed::lanes_an_event).map(digits);
            let [of_card, of_simulator] = lanes;
            table.row([
                point.kernel.clone(),
                name(&point),
                events,
                ours,
                percent(difference),
                of_card,
                of_simulator,
            ]);
        }
        let (of_card, of_simulator) = (case.card.total(), case.simulator.total());
        let difference = (of_simulator.events as f64 - of_card.events as f64) / of_card.events as f64;
        let lanes = match case.card.lane_differences(&case.simulator).len() {
            0 => "equal".to_owned(),
            _ if case.asynchronous => "asynchronous".to_owned(),
            number => format!("differ at {number}"),
        };
        overview.row([
            case.program.to_owned(),
            case.input.clone(),
            all.to_string(),
            near.to_string(),
            count(of_card.events),
            count(of_simulator.events),
            percent(difference),
            lanes,
        ]);
        let _ = write!(pages, "\n### {} {}\n\n{}", case.program, case.input, table.markdown());
    }
    let mut text = format!(
        "# Masks of the simulator\n\nCommit {}. Made by `warptrace-bench fidelity --against` from tables that `fidelity` wrote on a GPU.\n\n\
         Events are warp executions of trace points. The card's are those that hardware counters saw in the untraced kernels; the simulator's are those of a trace, \
         made on the same input with the grid that a card of {} multiprocessors is given. *Lanes*: whether as many lanes came to each location.\n\n{}",
        arguments.commit,
        arguments.multiprocessors,
        overview.markdown()
    );
    if !missing.is_empty() {
        let _ = write!(text, "\nThe tables have no counts of {}.\n", missing.join(", "));
    }
    text.push_str(
        "\n## Locations that differ by more than 5%\n\nWhy is concluded from counts and source, not read in machine code.\n\n",
    );
    text.push_str(&if far.is_empty() { "None.\n".to_owned() } else { far.markdown() });
    text.push_str("\n## All locations\n");
    text.push_str(&pages);
    text
}
