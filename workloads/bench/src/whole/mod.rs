//! `whole`: measures times of whole programs, and how much of their trace each policy keeps. Each run is a
//! separate process, like a user's program: earlier runs in the same process would leave memory in the
//! allocator, filled tables in the driver, and warm caches.

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

/// Maximum device memory of a session without an explicit limit, in bytes.
const USUAL_MEMORY: u64 = 1 << 30;

struct VariantRuns {
    variant: Variant,
    /// Device memory with which nothing is lost; `None`: the session's default.
    memory: Option<MemorySize>,
    samples: Vec<Sample>,
    /// Reason why there are no samples.
    left_out: Option<String>,
}

struct CaseRuns {
    case: Case,
    measured: Vec<VariantRuns>,
}

/// Returns the variants of the measurement. On a GPU they include untraced kernels with the registers of
/// traced ones. Long inputs are recorded raw only if the command line names codecs: they exceed every memory.
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

/// Measures all programs, in rounds that run each program once in each variant. Writes `whole.md` and
/// `whole.json`. Returns true if all runs of each program had the same result.
pub(crate) fn run(arguments: &Whole) -> anyhow::Result<bool> {
    if let Some(subject) = &arguments.subject {
        return child::run(arguments, subject).map(|()| true);
    }
    let started = Instant::now();
    // Also keeps the driver loaded: a GPU without users takes long to initialise.
    let device = machine::open(arguments.target.device)?;
    let machine = Machine::new(&*device);
    let variants = variants(arguments, machine::is_gpu(&*device))?;
    let policies = arguments.kind == Inputs::Policies;
    let fixed = arguments.memory.or(policies.then_some(MemorySize(USUAL_MEMORY)));
    let most =
        fixed.map_or_else(|| machine::most_memory(arguments.target.max_memory, &*device), |size| size.0);
    // The session's default, unless it exceeds the limit.
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

/// Runs each program once in each variant. Rounds start with different variants, so that none always follows
/// the same other one.
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

/// Runs a program, with more memory each time, until nothing is lost or all memory is used. Then leaves the
/// variant out if its recording is refused, or if it loses events and `may_lose` is false. The runs also
/// warm the driver's cache of compiled code and the system's file cache.
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
