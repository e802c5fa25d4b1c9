//! Verification of spans: impossible values are reported.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::sections::Sections;
use warptrace_decoder::{Problem, SpanFault, TraceFile};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{LaunchInfo, TIMES};
use warptrace_format::span::WarpSpan;

const WARPS: u32 = 4;
const WRONG: u32 = 2;

fn account(finished: u32) -> WarpAccount {
    WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished }
}

fn span(warp: u64) -> WarpSpan {
    let (clock, timer) = (5_000 + warp, 1_000_000 + 32 * warp);
    WarpSpan {
        begin_clock: clock,
        begin_timer: timer,
        end_clock: clock + 900,
        end_timer: timer + 512,
        begin_sm: 3,
        end_sm: 3,
    }
}

fn trace(change: impl FnOnce(&mut WarpAccount, &mut WarpSpan)) -> TraceFile {
    let metadata = crate::support::metadata(vec![CodecSpec::Raw]).with_property(TIMES, "blocks");
    let mut file = Sections::new(&metadata);
    let launch = LaunchInfo::new(0, 0, [WARPS, 1, 1], [32, 1, 1], 0).unwrap();
    file.put(&launch.encode_section());
    let mut accounts = vec![account(1); WARPS as usize];
    let mut spans: Vec<WarpSpan> = (0..WARPS.into()).map(span).collect();
    change(&mut accounts[WRONG as usize], &mut spans[WRONG as usize]);
    file.put_accounts(&launch, 0, &accounts, &spans);
    TraceFile::from_bytes(file.finish()).unwrap()
}

fn faults(trace: &TraceFile) -> Vec<SpanFault> {
    let fault = |problem: &Problem| match problem {
        Problem::WrongSpan { launch: 0, fault, warps: 1, first_warps } if *first_warps == [WRONG] => {
            Some(*fault)
        }
        _ => None,
    };
    trace.verify().problems.iter().filter_map(fault).collect()
}

#[test]
fn what_can_be_is_no_problem() {
    let whole = trace(|_, _| {});
    assert!(whole.verify().is_ok() && whole.state().is_whole);
    let began = trace(|account, span| {
        account.finished = 0;
        (span.end_clock, span.end_timer, span.end_sm) = (0, 0, 0);
    });
    assert_eq!(faults(&began), []);
    assert_eq!(began.state().lacks_times.as_deref(), Some("begin or end of 1 warp missing"));
    // Clocks of two multiprocessors are unrelated.
    let moved = trace(|_, span| (span.end_sm, span.end_clock) = (9, 7));
    assert!(moved.verify().is_ok());
    let wraps = trace(|_, span| (span.begin_clock, span.end_clock) = (u64::MAX - 3, 90));
    assert!(wraps.verify().is_ok());
}

#[test]
fn what_cannot_be_is_reported() {
    type Change = fn(&mut WarpAccount, &mut WarpSpan);
    let cases: [(SpanFault, Change); 4] = [
        (SpanFault::EndsBefore, |_, span| span.end_clock = span.begin_clock - 1),
        (SpanFault::EndsBefore, |_, span| span.end_timer = span.begin_timer - 32),
        (SpanFault::NoBegin, |_, span| span.begin_timer = 0),
        (SpanFault::Unfinished, |account, _| account.finished = 0),
    ];
    for (fault, change) in cases {
        let trace = trace(change);
        assert_eq!(faults(&trace), [fault]);
        let report = trace.verify().to_string();
        assert!(report.contains("where and when warp 2 ran cannot be"), "{report}");
    }
}

/// Fuzzing inputs: complete traces with all times, and traces with one known problem each.
#[test]
fn seeds_with_times_are_what_they_are_called() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/times");
    for (name, words) in [
        ("dual-all-v2", ""),
        ("predict-all-v2", ""),
        ("raw-window-all-v2", ""),
        ("doubled-spans-v2", "SPAN at offset 6891 belongs to no section before it: it counts for nothing"),
        ("ends-before-v2", "where and when warp 0 ran cannot be: they end before they begin"),
        ("unfinished-all-v2", "the recording was not finished"),
        ("host-twice-v1", "launch 0 is told of a second time"),
    ] {
        let trace = TraceFile::open(format!("{folder}/{name}.wtrc")).unwrap();
        let report = trace.verify();
        let problems: Vec<String> = report.problems.iter().map(Problem::to_string).collect();
        let is_whole = words.is_empty();
        assert_eq!(problems.len(), usize::from(!is_whole), "{name}: {problems:?}");
        assert!(is_whole || problems[0].contains(words), "{name}: {problems:?}");
        assert_eq!(trace.host_launches().len(), usize::from(name != "ends-before-v2"), "{name}");
    }
}
