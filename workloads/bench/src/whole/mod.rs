//! `whole`: how long whole programs take, each run in a process of its own.
//!
//! What ran before in the same process decides how long a program takes: which memory the allocator keeps,
//! which of the driver's tables are filled, what is in caches. A user's program finds none of that.

pub(crate) mod arguments;
mod child;
mod children;
mod policies;
mod report;
mod way;

use std::time::{Duration, Instant};

use warptrace_host::MemorySize;

use self::child::Sample;
pub(crate) use self::child::run as run_child;
use self::children::Children;
pub(crate) use self::policies::run as compare_policies;
use self::way::Way;
use crate::arguments::{Inputs, Whole};
use crate::machine::{self, Machine};
use crate::programs::{self, Selection};
use crate::subject::Case;
use crate::{codecs, progress};

/// Device memory of a session that is not told how much to take, at most.
const USUAL_MEMORY: u64 = 1 << 30;

/// A program on an input, in one way.
struct WayRuns {
    way: Way,
    /// Device memory with which nothing is lost; `None`: a session's own.
    memory: Option<MemorySize>,
    samples: Vec<Sample>,
    /// Why there are no samples.
    left_out: Option<String>,
}

/// A program on an input, in all ways.
struct CaseRuns {
    case: Case,
    measured: Vec<WayRuns>,
}

/// The ways in which inputs of a kind are run if the command line names none. Raw traces of programs that run
/// for long fit into no memory.
fn usual_ways(inputs: Inputs) -> &'static [&'static str] {
    match inputs {
        Inputs::Short => &["predict", codecs::RAW],
        Inputs::Long | Inputs::Policies => &["predict"],
    }
}

/// Measures all programs, in rounds in which each is run once in each way, and writes `whole.md` and
/// `whole.json`. Answers whether all runs of a program had one result.
pub(crate) fn run(arguments: &Whole) -> anyhow::Result<bool> {
    let started = Instant::now();
    // It also keeps the driver ready: a card without any user takes long to wake.
    let device = machine::open(arguments.target.device)?;
    let machine = Machine::of(&*device);
    let most = children::most_memory(&arguments.target, &*device);
    let selection = Selection::of(&arguments.target);
    let names = &arguments.target.codecs;
    let chosen: Vec<&str> = if names.is_empty() {
        usual_ways(arguments.kind).to_vec()
    } else {
        names.iter().map(String::as_str).collect()
    };
    let names = std::iter::once(codecs::UNTRACED).chain(chosen);
    let ways = names.map(Way::named).collect::<anyhow::Result<Vec<_>>>()?;
    // A session's own memory, unless that is more than what it may have.
    let first = (most < USUAL_MEMORY).then_some(MemorySize(most));
    let mut cases: Vec<CaseRuns> = Vec::new();
    for case in programs::in_processes(arguments.kind, &selection)? {
        let new =
            |way: &Way| WayRuns { way: way.clone(), memory: first, samples: Vec::new(), left_out: None };
        cases.push(CaseRuns { case, measured: ways.iter().map(new).collect() });
    }
    let children = Children::new(arguments.kind, &arguments.target, arguments.warm)?;
    for case_runs in &mut cases {
        for measured in &mut case_runs.measured {
            find_memory(&children, &case_runs.case, measured, most)?;
        }
    }

    let limit = arguments.time_limit.map(Duration::from_secs);
    let bar = progress::steps(u64::from(arguments.rounds));
    let mut longest = Duration::ZERO;
    for round in 0..arguments.rounds {
        if round > 0 && limit.is_some_and(|limit| started.elapsed() + longest > limit) {
            println!("{round} rounds, the time limit is reached");
            break;
        }
        let begun = Instant::now();
        one_round(&children, &mut cases, round as usize)?;
        longest = longest.max(begun.elapsed());
        report::write(arguments, &machine, &cases)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    print!("{}", report::table(&cases));
    drop(device);
    Ok(report::one_result_each(&cases))
}

/// Runs each program once in each way. Which way is first changes from round to round, so that none of them
/// is always behind the same other.
fn one_round(children: &Children, cases: &mut [CaseRuns], round: usize) -> anyhow::Result<()> {
    for CaseRuns { case, measured } in cases {
        let count = measured.len();
        for number in 0..count {
            let measured = &mut measured[(number + round) % count];
            if measured.left_out.is_none() {
                measured.samples.push(children.run(case, &measured.way, measured.memory)?);
            }
        }
    }
    Ok(())
}

/// Runs a program once, and again with more memory until nothing is lost. These runs also fill what stays
/// from one process to the next: the driver's cache of compiled code, and the system's of files.
fn find_memory(children: &Children, case: &Case, measured: &mut WayRuns, most: u64) -> anyhow::Result<()> {
    loop {
        let sample = children.run(case, &measured.way, measured.memory)?;
        let more = match sample.needed {
            Some(needed) => needed,
            None if sample.lost == 0 => return Ok(()),
            None => {
                let kept = sample.attempted.saturating_sub(sample.lost).max(1);
                let needed = sample.memory as f64 * sample.attempted as f64 / kept as f64 * 1.5;
                (needed as u64).max(sample.memory * 2)
            }
        };
        let before = measured.memory.map_or(sample.memory, |MemorySize(bytes)| bytes);
        if before >= most {
            let why = format!("{} events of {} do not fit", sample.lost, sample.attempted);
            let refused = sample.needed.map(|needed| format!("it needs {}", MemorySize(needed)));
            measured.left_out = Some(refused.unwrap_or(why));
            return Ok(());
        }
        measured.memory = Some(MemorySize(more.next_multiple_of(1 << 20).min(most)));
    }
}
