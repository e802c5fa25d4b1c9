//! One case on one device: results, counts, losslessness, losses, and lanes against the reference.

use warptrace_decoder::{Problem, TraceFile, TwinReport, VerifyReport};
use warptrace_host::LaunchReport;

use super::lanes;
use super::report::Report;
use crate::codecs::{CODECS, Codec, MAIN};
use crate::record::{Bench, Recorded};
use crate::subject::{Case, RunResult, Subject};
use crate::table::count;

/// The chunks that a pool too small has, of those that would be needed.
const SMALL_POOL: u64 = 4;

pub(super) fn check(bench: &mut Bench, case: &Case, report: &mut Report) -> anyhow::Result<()> {
    let subject = &*case.make()?;
    let (untraced, _) = bench.untraced(subject)?;
    report.add(case, "untraced: result", untraced.result.check());
    let expected =
        Expected { result: untraced.result.bytes().into_owned(), events: untraced.result.expected_events() };

    let mut chunks = 0;
    for codec in CODECS {
        let recorded = bench.traced_whole(&case.name(), subject, codec, false, "trace.wtrc")?;
        report.add(case, codec.name, expected.check_recorded(&recorded));
        if codec.name == MAIN {
            chunks = recorded.report.chunks;
        }
    }
    for codec in CODECS.iter().filter(|codec| codec.dual) {
        let recorded = bench.traced_whole(&case.name(), subject, codec, true, "dual.wtrc")?;
        report.add(case, &format!("{} beside raw", codec.name), expected.check_dual(&recorded));
        if let Some(reference) = subject.lanes() {
            let trace = TraceFile::open(&recorded.path)?;
            report.add(
                case,
                &format!("{}: lanes as on the CPU", codec.name),
                lanes::compare_with_reference(&trace, reference),
            );
        }
    }
    for codec in CODECS.iter().filter(|codec| codec.name == MAIN) {
        report.add(case, "pool too small", check_small_pool(bench, subject, codec, chunks, &expected));
    }
    Ok(())
}

/// What every run must give.
struct Expected {
    result: Vec<u8>,
    events: Option<u64>,
}

impl Expected {
    fn check_result(&self, result: &dyn RunResult) -> Result<String, String> {
        if *result.bytes() == *self.result {
            Ok(format!("result as untraced ({} bytes)", count(self.result.len() as u64)))
        } else {
            Err("the result is not the untraced one".to_owned())
        }
    }

    fn check_count(&self, attempted: u64) -> Result<String, String> {
        match self.events {
            Some(expected) if expected == attempted => {
                Ok(format!("{} events, as the formula says", count(attempted)))
            }
            Some(expected) => {
                Err(format!("{} events, the formula says {}", count(attempted), count(expected)))
            }
            None => Ok(format!("{} events", count(attempted))),
        }
    }

    fn check_recorded(&self, recorded: &Recorded<'_>) -> Result<String, String> {
        let result = self.check_result(&*recorded.run.result)?;
        let LaunchReport { attempted, recorded: kept, .. } = recorded.report;
        let events = self.check_count(attempted)?;
        if attempted != kept {
            return Err(format!("{} of {} events recorded", count(kept), count(attempted)));
        }
        let verified = verify(recorded)?;
        if !verified.is_ok() {
            return Err(format!(
                "verify: {} problems, first: {}",
                verified.problem_count(),
                verified.problems[0]
            ));
        }
        if verified.events != attempted {
            return Err(format!("{} events decoded of {}", count(verified.events), count(attempted)));
        }
        Ok(format!("{result}; {events}; verify: clean, {} warps", count(verified.warps)))
    }

    fn check_dual(&self, recorded: &Recorded<'_>) -> Result<String, String> {
        self.check_recorded(recorded)?;
        let twin = verify(recorded)?.twin.ok_or("the trace has no second track")?;
        let TwinReport { equal_warps, prefix_warps, different_warps, unreadable_warps, events, .. } = twin;
        if prefix_warps + different_warps + unreadable_warps != 0 || events != recorded.report.recorded {
            return Err(format!(
                "{events} pairs of events compared; warps: {equal_warps} equal, {prefix_warps} in part, \
                 {different_warps} different, {unreadable_warps} unreadable"
            ));
        }
        Ok(format!(
            "decoded = raw: {} events of {} warps compared one by one",
            count(events),
            count(equal_warps)
        ))
    }
}

fn verify(recorded: &Recorded<'_>) -> Result<VerifyReport, String> {
    TraceFile::open(&recorded.path).map(|trace| trace.verify()).map_err(|error| error.to_string())
}

/// Records into a quarter of the chunks needed: the program must not notice, and nothing may be lost uncounted.
fn check_small_pool(
    bench: &mut Bench,
    subject: &dyn Subject,
    codec: &Codec,
    chunks: u64,
    expected: &Expected,
) -> Result<String, String> {
    let chunk_bytes = u64::from(warptrace_format::chunk::DEFAULT_CHUNK_BYTES);
    // The pool is for one launch; `chunks` are those of all.
    let launches = bench.untraced(subject).map_err(|error| format!("{error:#}"))?.0.launches;
    let pool = (chunks / SMALL_POOL / u64::from(launches.max(1))).max(1) * chunk_bytes;
    let recorded =
        bench.traced(subject, codec, false, pool, "small.wtrc").map_err(|error| format!("{error:#}"))?;
    expected.check_result(&*recorded.run.result)?;
    let LaunchReport { attempted, recorded: kept, lost, .. } = recorded.report;
    expected.check_count(attempted)?;
    if kept + lost != attempted || lost == 0 {
        return Err(format!("{attempted} events attempted, {kept} recorded, {lost} lost"));
    }
    let verified = verify(&recorded)?;
    let reported: u64 = (verified.problems.iter())
        .map(|problem| if let Problem::Lost { events, .. } = problem { *events } else { 0 })
        .sum();
    let others = verified.problems.iter().find(|problem| !matches!(problem, Problem::Lost { .. }));
    if let Some(problem) = others {
        return Err(format!("verify: {problem}"));
    }
    // Where there are more launches than a report lists problems, its own count must do.
    let listed = verified.problems_left_out == 0;
    if verified.is_ok()
        || (listed && reported != lost)
        || verified.lost_events != lost
        || verified.events != kept
    {
        return Err(format!(
            "{lost} events lost, verify reports {} and {} decoded",
            verified.lost_events, verified.events
        ));
    }
    Ok(format!(
        "result as untraced; {} attempted = {} recorded + {} lost, and verify says so",
        count(attempted),
        count(kept),
        count(lost)
    ))
}
