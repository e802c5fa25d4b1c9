//! Checks one case on one device: results, counts, lossless decoding, losses, and lanes.

use std::ops::ControlFlow;

use warptrace_decoder::{Problem, TraceFile, TwinReport, VerifyReport, WarpFilter};
use warptrace_format::Event;
use warptrace_host::{LaunchReport, MemorySize};

use super::lanes;
use super::report::Report;
use crate::codecs::Codec;
use crate::runs::{Bench, Recorded, needed_memory};
use crate::subject::{Case, RunResult, Subject};
use crate::table::count;

/// Less device memory than any launch needs, in bytes.
const NO_MEMORY: u64 = 1 << 20;
/// Maximum number of attempts to find the memory that all launches of a program need.
const MOST_ATTEMPTS: u32 = 64;

pub(super) fn check(
    bench: &mut Bench,
    case: &Case,
    codecs: &[&'static Codec],
    report: &mut Report,
) -> anyhow::Result<()> {
    if report.leaves_out(case, "all") {
        return Ok(());
    }
    let subject = &*case.make()?;
    let (untraced, _) = bench.untraced(subject)?;
    report.add(case, "untraced: result", untraced.result.check());
    let expected = Expected {
        result: untraced.result.bytes().into_owned(),
        events: untraced.result.expected_events(),
        lanes: untraced.result.expected_lanes(),
        rounds: untraced.result.expected_rounds(),
    };

    for codec in codecs {
        if report.leaves_out(case, codec.name) {
            return Ok(());
        }
        let recorded = bench.traced_whole(&case.name(), subject, codec, false, "trace.wtrc")?;
        report.add(case, codec.name, expected.check_recorded(&recorded));
    }
    for codec in codecs.iter().filter(|codec| codec.dual) {
        let title = format!("{} beside raw", codec.name);
        if report.leaves_out(case, &title) {
            return Ok(());
        }
        let recorded = bench.traced_whole(&case.name(), subject, codec, true, "dual.wtrc")?;
        report.add(case, &title, expected.check_dual(&recorded));
        if let Some(reference) = subject.lanes() {
            let trace = TraceFile::open(&recorded.path)?;
            report.add(
                case,
                &format!("{}: lanes as on the CPU", codec.name),
                lanes::compare_with_reference(&trace, reference),
            );
        }
    }
    for codec in codecs.iter().filter(|codec| codec.dual) {
        let title = format!("{}: little memory", codec.name);
        if report.leaves_out(case, &title) {
            return Ok(());
        }
        report.add(case, &title, check_little_memory(bench, subject, codec, &expected));
    }
    Ok(())
}

struct Expected {
    result: Vec<u8>,
    events: Option<u64>,
    lanes: Option<u64>,
    rounds: Option<(u16, u64)>,
}

/// Maximum share of additional events from early exits of a loop: a warp that reserves log memory while it is
/// diverged lets waiting lanes go ahead (see `docs/contributors/recording.md`).
const MOST_EARLY_EXITS: f64 = 0.003;

impl Expected {
    fn check_result(&self, result: &dyn RunResult) -> Result<String, String> {
        if *result.bytes() == *self.result {
            Ok(format!("result as untraced ({} bytes)", count(self.result.len() as u64)))
        } else {
            Err("the result is not the untraced one".to_owned())
        }
    }

    /// Checks the number of events for a trace that may have losses. Allows early exits from the loop.
    fn check_attempted(&self, attempted: u64) -> Result<(), String> {
        match self.events {
            Some(expected) if attempted < expected || early(attempted, expected) > MOST_EARLY_EXITS => {
                Err(format!("{} events attempted, the formula says {}", count(attempted), count(expected)))
            }
            _ => Ok(()),
        }
    }

    fn check_count(&self, recorded: &Recorded<'_>) -> Result<String, String> {
        let attempted = recorded.report.attempted;
        let Some(expected) = self.events else { return Ok(format!("{} events", count(attempted))) };
        if attempted == expected {
            return Ok(format!("{} events, as the formula says", count(attempted)));
        }
        let wrong = format!("{} events, the formula says {}", count(attempted), count(expected));
        let extra = attempted.saturating_sub(expected);
        let Some((location, rounds)) = self.rounds else { return Err(wrong) };
        if extra == 0 || early(attempted, expected) > MOST_EARLY_EXITS {
            return Err(wrong);
        }
        let found = sum_over_events(recorded, |event| u64::from(event.location == location))?;
        if found != rounds {
            return Err(format!("{wrong}; {} rounds of the loop, not {}", count(found), count(rounds)));
        }
        Ok(format!(
            "{} events: {} rounds of the loop, as the formula says, and {} early exits from it",
            count(attempted),
            count(rounds),
            count(extra)
        ))
    }

    /// Checks the sum of active lanes over all masks. Returns the end of a sentence.
    fn check_lanes(&self, recorded: &Recorded<'_>) -> Result<String, String> {
        let Some(expected) = self.lanes else { return Ok(String::new()) };
        let found = sum_over_events(recorded, |event| u64::from(event.mask.count_ones()))?;
        if found != expected {
            return Err(format!("{} lanes in all masks, not {}", count(found), count(expected)));
        }
        Ok(format!("; {} lanes in all masks, as on the CPU", count(found)))
    }

    fn check_recorded(&self, recorded: &Recorded<'_>) -> Result<String, String> {
        let result = self.check_result(&*recorded.run.result)?;
        let LaunchReport { attempted, recorded: kept, .. } = recorded.report;
        let events = self.check_count(recorded)?;
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
        let lanes = self.check_lanes(recorded)?;
        Ok(format!("{result}; {events}{lanes}; verify: clean, {} warps", count(verified.warps)))
    }

    fn check_dual(&self, recorded: &Recorded<'_>) -> Result<String, String> {
        let twin = verify(recorded)?.twin.ok_or("the trace has no second track")?;
        let TwinReport { equal_warps, prefix_warps, different_warps, unreadable_warps, events, .. } = twin;
        if prefix_warps + different_warps + unreadable_warps != 0 || events != recorded.report.recorded {
            return Err(format!(
                "{events} events found in both tracks; warps: {equal_warps} equal, {prefix_warps} in part, \
                 {different_warps} different, {unreadable_warps} unreadable"
            ));
        }
        let equal = format!(
            "decoded = raw: {} events of {} warps, each lane's in the same order",
            count(events),
            count(equal_warps)
        );
        // Equal tracks do not imply that the events are right, so this checks both.
        match self.check_recorded(recorded) {
            Ok(_) => Ok(equal),
            Err(error) => Err(format!("{error}; {equal}")),
        }
    }
}

fn early(attempted: u64, expected: u64) -> f64 {
    attempted.saturating_sub(expected) as f64 / expected.max(1) as f64
}

fn sum_over_events(recorded: &Recorded<'_>, number: impl Fn(&Event) -> u64) -> Result<u64, String> {
    let trace = TraceFile::open(&recorded.path).map_err(|error| error.to_string())?;
    let mut sum = 0;
    for info in trace.launches() {
        let _ = trace
            .decode_all(info.number(), 0, &WarpFilter::all(), &mut |block| {
                sum += block.events.iter().map(&number).sum::<u64>();
                ControlFlow::Continue(())
            })
            .map_err(|error| error.to_string())?;
    }
    Ok(sum)
}

fn verify(recorded: &Recorded<'_>) -> Result<VerifyReport, String> {
    TraceFile::open(&recorded.path).map(|trace| trace.verify()).map_err(|error| error.to_string())
}

/// Records with as little memory as the launches need. Results must not change; every loss must be counted.
fn check_little_memory(
    bench: &mut Bench,
    subject: &dyn Subject,
    codec: &Codec,
    expected: &Expected,
) -> Result<String, String> {
    let mut memory = NO_MEMORY;
    let mut attempts = 0;
    let recorded = loop {
        attempts += 1;
        match bench.traced(subject, codec, false, memory, "little.wtrc") {
            Ok(recorded) => break recorded,
            Err(error) => match needed_memory(&error) {
                Some(needed) if attempts < MOST_ATTEMPTS => memory = needed,
                _ => return Err(format!("{error:#}")),
            },
        }
    };
    expected.check_result(&*recorded.run.result)?;
    let LaunchReport { attempted, recorded: kept, lost, .. } = recorded.report;
    expected.check_attempted(attempted)?;
    if kept + lost != attempted {
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
    // A report lists a limited number of problems. If some are left out, only its total can be checked.
    let listed = verified.problems_left_out == 0;
    if verified.is_ok() != (lost == 0)
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
        "result as untraced; with {} {} attempted = {} recorded + {} lost, and verify says so",
        MemorySize(memory),
        count(attempted),
        count(kept),
        count(lost)
    ))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::time::{Duration, Instant};

    use warptrace_decoder::lanes::LaneDigest;
    use warptrace_host::{DeviceChoice, Launcher};
    use warptrace_kernels::fractal::at;
    use warptrace_workloads::ProgramInfo;
    use warptrace_workloads::fractal::{self, FractalOptions};

    use super::*;
    use crate::arguments::Target;
    use crate::codecs;
    use crate::subject::{LaneReference, SubjectRun};

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fault {
        None,
        Wrong,
        ChangesWhenTraced,
        EventMissing,
        /// Lanes leave the loop separately once, which is allowed.
        EarlyExit,
        /// Lanes leave the loop separately too often.
        EarlyExits,
        RoundTooMany,
        /// The kernel records one event too many, and the expected number of rounds is unknown.
        EventTooMany,
        LaneAstray,
        /// A mask has one lane too many.
        LaneTooMany,
    }

    struct Faulty {
        options: FractalOptions,
        fault: Fault,
        runs: AtomicU8,
    }

    struct FaultyResult {
        image: Vec<u32>,
        options: FractalOptions,
        fault: Fault,
        run: u8,
    }

    impl Subject for Faulty {
        fn program(&self) -> &'static ProgramInfo {
            &fractal::PROGRAM
        }

        fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
            let outcome = fractal::run(launcher, &self.options)?;
            let Self { options, fault, .. } = *self;
            let run = self.runs.fetch_add(1, Ordering::Relaxed);
            let result = FaultyResult { image: outcome.image, options, fault, run };
            Ok(SubjectRun { kernel: outcome.kernel, launches: 1, result: Box::new(result) })
        }

        fn lanes(&self) -> Option<&dyn LaneReference> {
            Some(self)
        }
    }

    impl LaneReference for Faulty {
        fn lane(&self, _: u32, thread: u64) -> LaneDigest {
            let mut digest = LaneDigest::new(fractal::lane_locations(&self.options, thread));
            if self.fault == Fault::LaneAstray && thread == 777 {
                digest.push(1);
            }
            digest
        }
    }

    impl RunResult for FaultyResult {
        fn bytes(&self) -> Cow<'_, [u8]> {
            let mut bytes = bytemuck::cast_slice(&self.image).to_vec();
            if self.fault == Fault::ChangesWhenTraced {
                bytes[5] ^= self.run;
            }
            Cow::Owned(bytes)
        }

        fn check(&self) -> Result<String, String> {
            if self.fault == Fault::Wrong { Err("wrong".to_owned()) } else { Ok("right".to_owned()) }
        }

        fn expected_events(&self) -> Option<u64> {
            // Changes the expected number instead of the kernel's events.
            let events = fractal::expected_events(&self.image, &self.options);
            Some(match self.fault {
                Fault::EventMissing => events + 1,
                Fault::EarlyExit | Fault::RoundTooMany | Fault::EventTooMany => events - 1,
                Fault::EarlyExits => events - events / 50,
                _ => events,
            })
        }

        fn expected_lanes(&self) -> Option<u64> {
            let pixels = u64::from(self.options.width) * u64::from(self.options.width);
            let passed = |thread| fractal::lane_locations(&self.options, thread).len() as u64;
            Some((0..pixels).map(passed).sum::<u64>() - u64::from(self.fault == Fault::LaneTooMany))
        }

        fn expected_rounds(&self) -> Option<(u16, u64)> {
            let slowest = |warp: &[u32]| u64::from(warp.iter().copied().max().unwrap_or(0));
            let rounds = self.image.chunks(32).map(slowest).sum::<u64>();
            match self.fault {
                Fault::EventTooMany => None,
                Fault::RoundTooMany => Some((at::ITERATE, rounds - 1)),
                _ => Some((at::ITERATE, rounds)),
            }
        }
    }

    fn failures(fault: Fault, codecs: &[&'static Codec]) -> Vec<String> {
        failures_before(None, fault, codecs)
    }

    fn failures_before(deadline: Option<Instant>, fault: Fault, codecs: &[&'static Codec]) -> Vec<String> {
        let target = Target {
            device: DeviceChoice::Simulator,
            quick: true,
            programs: Vec::new(),
            codecs: Vec::new(),
            grid: None,
            inputs: None,
            scratch: None,
            max_memory: None,
        };
        let mut bench = Bench::open(&target).unwrap();
        let options = FractalOptions::new(32, 40);
        let case =
            Case::new(&fractal::PROGRAM, "", move || Ok(Faulty { options, fault, runs: AtomicU8::new(0) }));
        let mut report = Report::new(deadline);
        check(&mut bench, &case, codecs, &mut report).unwrap();
        assert_eq!(report.all_passed(), report.failures().is_empty());
        report.failures().to_vec()
    }

    #[test]
    fn what_is_left_out_has_failed() {
        let codecs = codecs::chosen(&["ecl".to_owned()]).unwrap();
        let in_an_hour = Instant::now() + Duration::from_secs(3600);
        assert_eq!(failures_before(Some(Instant::now()), Fault::None, &codecs), ["all"]);
        assert_eq!(failures_before(Some(in_an_hour), Fault::None, &codecs), [""; 0]);
    }

    fn check_faults(codecs: &[&'static Codec]) {
        let failures = |fault| failures(fault, codecs);
        assert_eq!(failures(Fault::None), [""; 0]);
        assert_eq!(failures(Fault::Wrong), ["untraced: result"]);
        let named = |what: &str| {
            let compared = codecs.iter().filter(|codec| codec.dual);
            compared.map(|codec| format!("{}{what}", codec.name)).collect()
        };
        let beside: Vec<String> = named(" beside raw");
        let whole: Vec<String> = codecs.iter().map(|codec| codec.name.to_owned()).chain(beside).collect();
        let small: Vec<String> = named(": little memory");
        let all = [&whole[..], &small].concat();
        assert_eq!(failures(Fault::ChangesWhenTraced), all);
        assert_eq!(failures(Fault::EventMissing), all);
        assert_eq!(failures(Fault::EarlyExit), [""; 0]);
        assert_eq!(failures(Fault::EarlyExits), all);
        // Only checks of complete recordings count rounds, because little memory may lose some.
        assert_eq!(failures(Fault::RoundTooMany), whole);
        assert_eq!(failures(Fault::EventTooMany), whole);
        assert_eq!(failures(Fault::LaneTooMany), whole);
        let lanes: Vec<String> = named(": lanes as on the CPU");
        assert_eq!(failures(Fault::LaneAstray), lanes);
    }

    #[test]
    fn each_fault_fails_the_checks_that_look_for_it() {
        check_faults(&codecs::chosen(&["ecl".to_owned()]).unwrap());
    }

    mod full {
        use super::*;

        #[test]
        fn each_fault_fails_the_checks_of_all_codecs() {
            check_faults(&codecs::chosen(&[]).unwrap());
        }
    }
}
