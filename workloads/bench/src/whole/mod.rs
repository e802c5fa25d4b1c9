//! `whole`: how long whole programs take, and under each policy how much of their trace is kept, each run in
//! a process of its own.
//!
//! What ran before in the same process decides how long a program takes: which memory the allocator keeps,
//! which of the driver's tables are filled, what is in caches. A user's program finds none of that.

pub(crate) mod arguments;
mod child;
mod children;
mod report;
mod variant;

use std::time::{Duration, Instant};

use warptrace_host::MemorySize;

use self::child::Sample;
use self::children::Children;
use self::variant::Variant;
use crate::arguments::{Inputs, Whole};
use crate::machine::{self, Machine};
use crate::programs::{self, Selection};
use crate::subject::Case;
use crate::{codecs, progress};

/// Device memory of a session that is not told how much to take, at most.
const USUAL_MEMORY: u64 = 1 << 30;

/// A program on an input, in one variant.
struct VariantRuns {
    variant: Variant,
    /// Device memory with which nothing is lost; `None`: a session's own.
    memory: Option<MemorySize>,
    samples: Vec<Sample>,
    /// Why there are no samples.
    left_out: Option<String>,
}

/// A program on an input, in all variants.
struct CaseRuns {
    case: Case,
    measured: Vec<VariantRuns>,
}

/// The variants in which programs are run; on a GPU also untraced kernels with the registers of traced ones.
/// If the command line names no codec, inputs that run for long are not recorded raw: such traces fit into no
/// memory.
fn variants(arguments: &Whole, is_gpu: bool) -> anyhow::Result<Vec<Variant>> {
    let mut codecs: Vec<&str> = arguments.target.codecs.iter().map(String::as_str).collect();
    if codecs.is_empty() {
        codecs.push("predict");
        codecs.extend((arguments.kind != Inputs::Long).then_some(codecs::RAW));
    }
    if arguments.kind == Inputs::Policies {
        return Variant::with_policies(&codecs);
    }
    let limited = is_gpu.then_some(codecs::UNTRACED_LIMITED);
    std::iter::once(codecs::UNTRACED).chain(limited).chain(codecs).map(Variant::named).collect()
}

/// Measures all programs, in rounds in which each is run once in each variant, and writes `whole.md` and
/// `whole.json`. Returns whether all runs of a program had one result.
pub(crate) fn run(arguments: &Whole) -> anyhow::Result<bool> {
    if let Some(subject) = &arguments.subject {
        return child::run(arguments, subject).map(|()| true);
    }
    let started = Instant::now();
    // It also keeps the driver ready: a card without any user takes long to wake.
    let device = machine::open(arguments.target.device)?;
    let machine = Machine::new(&*device);
    let variants = variants(arguments, machine::is_gpu(&*device))?;
    let policies = arguments.kind == Inputs::Policies;
    let fixed = arguments.memory.or(policies.then_some(MemorySize(USUAL_MEMORY)));
    let most =
        fixed.map_or_else(|| machine::most_memory(arguments.target.max_memory, &*device), |size| size.0);
    // A session's own memory, unless that is more than what it may have.
    let first = fixed.or((most < USUAL_MEMORY).then_some(MemorySize(most)));
    let mut cases: Vec<CaseRuns> = Vec::new();
    for case in programs::in_processes(arguments.kind, &Selection::new(&arguments.target))? {
        let new = |variant: &Variant| VariantRuns {
            variant: variant.clone(),
            memory: first,
            samples: Vec::new(),
            left_out: None,
        };
        cases.push(CaseRuns { case, measured: variants.iter().map(new).collect() });
    }
    let children = Children::new(arguments)?;
    for case_runs in &mut cases {
        for measured in &mut case_runs.measured {
            find_memory(&children, &case_runs.case, measured, most, fixed.is_some())?;
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
    Ok(report::differing(&cases).is_empty())
}

/// Runs each program once in each variant. Which variant is first changes from round to round, so that none
/// of them is always behind the same other.
fn one_round(children: &Children, cases: &mut [CaseRuns], round: usize) -> anyhow::Result<()> {
    for CaseRuns { case, measured } in cases {
        let count = measured.len();
        for number in 0..count {
            let measured = &mut measured[(number + round) % count];
            if measured.left_out.is_none() {
                measured.samples.push(children.run(case, &measured.variant, measured.memory)?);
            }
        }
    }
    Ok(())
}

/// Runs a program once, and again with more memory until nothing is lost, or `may_lose` and all memory is
/// used. These runs also fill what stays from one process to the next: the driver's cache of compiled code,
/// and the system's of files.
fn find_memory(
    children: &Children,
    case: &Case,
    measured: &mut VariantRuns,
    most: u64,
    may_lose: bool,
) -> anyhow::Result<()> {
    loop {
        let sample = children.run(case, &measured.variant, measured.memory)?;
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
            let lost = || format!("{} events of {} do not fit", sample.lost, sample.attempted);
            let refused = sample.needed.map(|needed| format!("it needs {}", MemorySize(needed)));
            measured.left_out = refused.or_else(|| (!may_lose).then(lost));
            return Ok(());
        }
        measured.memory = Some(MemorySize(more.next_multiple_of(1 << 20).min(most)));
    }
}
