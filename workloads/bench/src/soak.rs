//! Repeats recordings for a long time under each policy, and checks for memory growth and wrong counts.

use std::time::{Duration, Instant};

use anyhow::Context;
use warptrace_decoder::{Problem, TraceFile};
use warptrace_format::codec::CodecSpec;
use warptrace_host::{DEVICE_PREDICT, Device, MemorySize, Policy, RecordingSpec, Session};

use crate::arguments::Soak;
use crate::files;
use crate::machine::{self, Machine};
use crate::memory;
use crate::programs::{self, Selection};
use crate::runs::needed_memory;
use crate::subject::Subject;
use crate::table::MarkdownTable;

/// Runs of a program per session.
const RUNS: u32 = 3;
/// Fraction of the time after which memory must no longer grow.
const WARM_UP: f64 = 0.2;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sessions: u64,
    launches: u64,
    recorded: u64,
    lost: u64,
}

/// Returns the resident memory of the process in bytes; 0 if the system does not report it.
fn resident() -> u64 {
    let pages = || -> Option<u64> {
        std::fs::read_to_string("/proc/self/statm").ok()?.split_whitespace().nth(1)?.parse().ok()
    };
    pages().unwrap_or(0) * 4096
}

/// Records several runs of a program in a session. Checks results, counts and the file.
fn record(
    device: &mut dyn Device,
    subject: &dyn Subject,
    options: &RecordingSpec,
    sum: &mut Sum,
) -> anyhow::Result<()> {
    let mut session = Session::start(device, &subject.program().traced(), options, Vec::new())?;
    let mut expected = Some(0);
    for _ in 0..RUNS {
        let run = subject.run(&mut session)?;
        run.result.check().map_err(|error| anyhow::anyhow!("the result is wrong: {error}"))?;
        expected = expected.zip(run.result.expected_events()).map(|(sum, events)| sum + events);
        sum.launches += u64::from(run.launches);
    }
    let (bytes, _, report) = session.finish()?;
    let counted = report.recorded + report.lost;
    anyhow::ensure!(report.attempted == counted, "{} attempted, {counted} counted", report.attempted);
    // If warps wait for the host, lanes that have left a loop may diverge and add events.
    let waits = options.policy == Policy::Stream;
    if let Some(expected) = expected.filter(|_| !waits) {
        anyhow::ensure!(expected == counted, "{expected} events by the formula, {counted} counted");
    }
    let verified = TraceFile::from_bytes(bytes)?.verify();
    let losses = |problem: &Problem| matches!(problem, Problem::Lost { .. });
    anyhow::ensure!(
        verified.problems.iter().all(losses) && verified.events == report.recorded,
        "{verified:?}"
    );
    sum.sessions += 1;
    sum.recorded += report.recorded;
    sum.lost += report.lost + report.twin_lost;
    Ok(())
}

/// Repeats recordings under each policy, and writes `soak.md`.
pub(crate) fn run(arguments: &Soak) -> anyhow::Result<bool> {
    let mut device = machine::open(arguments.device)?;
    let machine = Machine::new(&*device);
    let selection =
        Selection { quick: !arguments.large, programs: &arguments.programs, ..Selection::default() };
    let subjects = programs::measured(&selection)?
        .iter()
        .map(|case| case.make().map(|subject| (case.name(), subject)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let headings = [
        "policy",
        "minutes",
        "sessions",
        "launches",
        "recorded",
        "lost",
        "memory then",
        "at the end",
        "allocated then",
        "at the end",
    ];
    let mut table = MarkdownTable::new(1, headings);
    files::make_folder(&arguments.out)?;
    for &policy in &arguments.policies {
        let name = policy.name();
        let (started, mut sum, mut warm) = (Instant::now(), Sum::default(), None);
        let limit = Duration::from_secs_f64(60.0 * arguments.minutes);
        while started.elapsed() < limit {
            for (case, subject) in &subjects {
                let MemorySize(bytes) = arguments.memory;
                let mut options = RecordingSpec {
                    policy,
                    dual: sum.sessions % 2 == 1,
                    // One, two and four times the given size, in turns.
                    memory: Some(MemorySize(bytes << (sum.sessions % 3))),
                    ..RecordingSpec::new(CodecSpec::Predict(DEVICE_PREDICT))
                };
                let mut result = record(&mut *device, &**subject, &options, &mut sum);
                if let Some(needed) = result.as_ref().err().and_then(needed_memory) {
                    options.memory = Some(MemorySize(needed));
                    result = record(&mut *device, &**subject, &options, &mut sum);
                }
                result.with_context(|| format!("{case}, policy {name}, session {}", sum.sessions))?;
            }
            if started.elapsed() > limit.mul_f64(WARM_UP) && warm.is_none() {
                warm = Some((resident(), memory::in_use()));
            }
        }
        let Sum { sessions, launches, recorded, lost } = sum;
        let minutes = format!("{:.1}", started.elapsed().as_secs_f64() / 60.0);
        let numbers = [sessions, launches, recorded, lost].map(|number| number.to_string());
        let warm = warm.unwrap_or_else(|| (resident(), memory::in_use()));
        let resident = [warm.0, resident()].map(|bytes| MemorySize(bytes >> 20 << 20).to_string());
        let allocated = [warm.1, memory::in_use()].map(|bytes| {
            bytes.map_or_else(
                || "-".to_owned(),
                |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
            )
        });
        let row = [name.to_owned(), minutes].into_iter().chain(numbers).chain(resident).chain(allocated);
        let row: Vec<String> = row.collect();
        println!("{}", row.join(", "));
        table.row(row);
    }
    let text = format!(
        "# Repeated recordings\n\n{}, commit {}. Sessions of {RUNS} runs of each program in turn, each second one beside raw, with {} of device memory, two and four times as \
         much. Each result, count and file was checked. Memory of the process after a fifth of the time, and at the end: \
         what it has of the system, and what of that is allocated and not freed.\n\n{}",
        machine.name,
        arguments.commit,
        arguments.memory,
        table.markdown()
    );
    files::write(&arguments.out.join("soak.md"), text)?;
    Ok(true)
}
