//! Runs the kernels of the `.ptx` files in a folder on the interpreter, untraced and traced, and prints the
//! outcomes: `interpret FOLDER [STEPS [FILES]]`.
//!
//! Each kernel gets [generic inputs](inputs). If it does not run to its end untraced, within `STEPS`
//! instructions of all groups together (default 20,000), it is only counted, with the reason. Otherwise it
//! runs under 20 schedules, untraced and traced.
//!
//! Three conditions are checked: memory is the same with and without tracing; the events in each lane's logs
//! correspond to the markers that the lane passed; and the number of events of each basic block equals the
//! number of executions of its first instruction. If untraced runs have different results, only the second
//! condition is checked, and the kernel is listed.

mod compare;
mod inputs;
#[expect(dead_code, reason = "the tests use all of it")]
#[path = "../../tests/it/interpreted/logs.rs"]
mod logs;
#[expect(dead_code, reason = "the tests use all of it")]
#[path = "../../tests/it/interpreted/model.rs"]
mod model;
#[expect(dead_code, reason = "the tests use all of it")]
#[path = "../../tests/it/interpreted/program.rs"]
mod program;

use std::collections::BTreeMap;
use std::error::Error;
use std::panic::catch_unwind;
use std::path::PathBuf;

use warptrace_ptx::interpret::{Fault, InterpretError};
use warptrace_ptx::{Module, only};

use crate::compare::{Outcome, compare};

const USAGE: &str = "usage: interpret FOLDER [STEPS [FILES]]";
/// Maximum number of kernels of one file.
const MAX_KERNELS: usize = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or(USAGE)?);
    let steps = arguments.next().map(|steps| steps.parse()).transpose()?.unwrap_or(20_000);
    let most = arguments.next().map(|files| files.parse()).transpose()?.unwrap_or(usize::MAX);
    let files = std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
    let mut files = files.collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    let mut table = ComparisonTable::default();
    for path in files.iter().take(most) {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path)?;
        let Ok(module) = Module::parse(&text) else {
            table.ended("a file that cannot be read".to_owned(), &file);
            continue;
        };
        let kernels = module.definitions().filter(|function| function.is_entry()).take(MAX_KERNELS);
        for kernel in kernels {
            let name = format!("{file}: {}", kernel.name);
            eprintln!("{name}");
            table.kernels += 1;
            let Ok(alone) = only(&module, &[kernel.name]) else { continue };
            match catch_unwind(|| compare(&alone, kernel.name, steps)) {
                Err(_) => table.wrong.push(format!("{name}: a check failed, see above")),
                Ok(Outcome::NotRun(error)) => table.ended(reason(&error), &name),
                Ok(Outcome::NotSpliced(error)) => table.ended(format!("not spliced: {error}"), &name),
                Ok(Outcome::Wrong(problem)) => table.wrong.push(format!("{name}: {problem}")),
                Ok(Outcome::Same { events, dependent }) => {
                    table.same += 1;
                    table.events += events;
                    if dependent {
                        table.dependent.push(name);
                    }
                }
            }
        }
    }
    table.print();
    Ok(())
}

#[derive(Default)]
struct ComparisonTable {
    kernels: usize,
    same: usize,
    events: u64,
    dependent: Vec<String>,
    wrong: Vec<String>,
    /// Kernels that did not run to their end untraced: number by reason, with an example.
    ended: BTreeMap<String, (usize, String)>,
}

impl ComparisonTable {
    fn ended(&mut self, reason: String, name: &str) {
        self.ended.entry(reason).or_insert_with(|| (0, name.to_owned())).0 += 1;
    }

    fn print(&self) {
        println!("| what | number |\n| --- | --: |\n| kernels | {} |", self.kernels);
        println!("| run untraced and traced, the same | {} |", self.same);
        println!("| of these, the result depends on the schedule | {} |", self.dependent.len());
        println!("| events in their logs | {} |", self.events);
        println!("| run, and not the same | {} |", self.wrong.len());
        println!("| not run to the end | {} |", self.ended.values().map(|(count, _)| count).sum::<usize>());
        println!("\n| not run: why | kernels | such as |\n| --- | --: | --- |");
        let mut ended: Vec<_> = self.ended.iter().collect();
        ended.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        ended.iter().for_each(|(reason, (count, name))| println!("| {reason} | {count} | {name} |"));
        println!("\nThe result depends on the schedule: {}", self.dependent.join("; "));
        self.wrong.iter().for_each(|wrong| println!("- not the same: {wrong}"));
    }
}

/// Returns a short reason why a kernel did not run to its end.
fn reason(error: &InterpretError) -> String {
    match error {
        InterpretError::Instruction { text, fault, .. } => match fault {
            Fault::Unknown(problem) => {
                let mut words = text.split_whitespace();
                let opcode = words.find(|word| !word.starts_with('@')).unwrap_or_default();
                format!(
                    "unknown: `{}`: {}",
                    opcode.trim_end_matches(';'),
                    problem.split('`').next().unwrap_or_default()
                )
            }
            Fault::Uninitialised { .. } => "reads a register that was never written".to_owned(),
            Fault::Unwritten { space, .. } => format!("reads {space} memory that was never written"),
            Fault::Bounds { space, .. } => format!("out of bounds in {space} memory"),
            Fault::Misaligned { .. } => "a misaligned access".to_owned(),
            Fault::Members { .. } => "names lanes that are elsewhere".to_owned(),
            Fault::Source { .. } => "a shuffle from a lane that takes no part".to_owned(),
            Fault::Division { .. } => "a division by zero".to_owned(),
            Fault::Trap => "stops itself: a trap or an assertion".to_owned(),
            other => other.to_string(),
        },
        InterpretError::Steps { .. } => "too long".to_owned(),
        InterpretError::Declaration { problem, .. } => format!("a declaration: {problem}"),
        other => other.to_string(),
    }
}
