//! Launches that are begun and not waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use warptrace_device::KernelCall;
use warptrace_format::log::{ENTRY_BYTES, LANES, LaunchLogs};

use super::fake::{FakeDevice, Script, event, script};
use super::output::Shared;
use super::{PROGRAM, options};
use crate::LaunchShape;
use crate::session::{Patience, Session, SessionError};
use crate::{Policy, RecordingSpec};

/// As long as a launch waits for others here.
const PATIENCE: Duration = Duration::from_millis(40);

/// A device on which launches overlap, and which of them may end, by bits.
fn device(scripts: Vec<Script>) -> (FakeDevice, Arc<AtomicU64>) {
    let mut device = FakeDevice::of(scripts);
    device.overlap = true;
    let may_end = Arc::clone(&device.may_end);
    may_end.store(0, Ordering::Relaxed);
    (device, may_end)
}

/// Begins launches of one block for each count of warps.
fn begin(session: &mut Session<'_, Shared>, kernel: &'static str, warps: &[u64]) -> Result<(), SessionError> {
    let launches: Vec<_> = warps
        .iter()
        .map(|warps| (KernelCall::new(kernel, Vec::new(), || {}), LaunchShape::linear(32 * warps, 32)))
        .collect();
    // SAFETY: no arguments.
    unsafe { session.begin(&launches, Patience { short: PATIENCE, unknown: PATIENCE / 2 }) }
}

/// The entries that a launch has from its start.
fn fixed(logs: &LaunchLogs) -> [u32; 2] {
    [logs.heads, logs.first_segments + logs.warps * LANES * logs.first_entries]
}

#[test]
fn launches_that_run_at_once_have_logs_of_their_own() {
    let scripts = (0..6).map(|_| Script { segments: 2, ..script(&[(0, 0, 1)]) }).collect();
    let (mut device, may_end) = device(scripts);
    let file = Shared::default();
    let mut session =
        Session::start_overlapping(&mut device, &PROGRAM, &options(16 << 10), file.clone()).unwrap();
    may_end.store(0b10, Ordering::Relaxed);
    begin(&mut session, "k", &[2]).unwrap();
    assert!(session.look().unwrap(), "the first has ended");
    begin(&mut session, "k", &[2]).unwrap();
    begin(&mut session, "k", &[3, 2]).unwrap();
    begin(&mut session, "k", &[1]).unwrap();
    assert!(!session.look().unwrap());
    session.drain_now().unwrap();
    assert_eq!(file.contents().0.len(), 0, "nothing is drained while launches run");
    // The last ends first.
    for mask in [0b1_0010, 0b1_1010, u64::MAX] {
        may_end.store(mask, Ordering::Relaxed);
        assert_eq!(session.look().unwrap(), mask == u64::MAX);
    }
    let total = *session.total();
    assert_eq!((total.launches, total.recorded_launches, total.kernel), (5, 5, Duration::from_micros(4)));
    session.finish().unwrap();
    let of = |launch| (launch, 0, 0, event(1));
    assert_eq!(file.contents(), ((0..5).map(of).collect(), 5));
    assert_eq!(device.launched.last().unwrap(), "encode 5 of 10");
    let logs: Vec<LaunchLogs> = (0..5).map(|number| device.logs(number)).collect();
    for pair in logs.windows(2) {
        assert!(fixed(&pair[0])[1] <= fixed(&pair[1])[0], "{logs:?}");
    }
    // Those that begin while others run have their place behind what can be claimed, and claim with them.
    let [first, second, others @ ..] = &logs[..] else { panic!("{logs:?}") };
    assert!(fixed(first)[1] <= first.claims_from && first.claims_from < second.claims_from);
    for other in others {
        assert_eq!((other.claims_from, other.claims_end), (second.claims_from, second.claims_end));
        assert!(other.heads >= second.claims_end, "{other:?}");
    }
}

#[test]
fn a_launch_waits_for_those_of_which_nobody_knows_what_they_need_but_not_for_long() {
    let (mut device, may_end) = device((0..3).map(|_| script(&[(0, 0, 1)])).collect());
    let file = Shared::default();
    let mut session =
        Session::start_overlapping(&mut device, &PROGRAM, &options(16 << 10), file.clone()).unwrap();
    let started = std::time::Instant::now();
    begin(&mut session, "k", &[2]).unwrap();
    assert!(started.elapsed() < PATIENCE / 2, "the first waits for nobody");
    begin(&mut session, "other", &[2]).unwrap();
    assert!(started.elapsed() >= PATIENCE / 2);
    may_end.store(u64::MAX, Ordering::Relaxed);
    assert!(session.wait(PATIENCE).unwrap());
    session.finish().unwrap();
    assert_eq!(file.contents().0, [(0, 0, 0, event(1)), (1, 0, 0, event(1))]);
}

#[test]
fn without_room_a_launch_is_refused_and_nothing_is_lost() {
    let (mut device, may_end) = device((0..4).map(|_| script(&[(0, 0, 1)])).collect());
    let file = Shared::default();
    let mut session =
        Session::start_overlapping(&mut device, &PROGRAM, &options(2 << 10), file.clone()).unwrap();
    // One of them fits beside another, two do not.
    begin(&mut session, "k", &[40]).unwrap();
    begin(&mut session, "k", &[40]).unwrap();
    let error = begin(&mut session, "k", &[40]).unwrap_err();
    assert!(matches!(error, SessionError::Busy { running: 2, .. }) && error.is_refusal(), "{error}");
    assert!(error.to_string().contains("launches before it (2) had not ended after 40ms"), "{error}");
    // A graph of two cannot be begun at all.
    let error = begin(&mut session, "k", &[40, 40]).unwrap_err();
    assert!(error.is_refusal(), "{error}");
    may_end.store(u64::MAX, Ordering::Relaxed);
    begin(&mut session, "k", &[40]).unwrap();
    let error = begin(&mut session, "k", &[140, 140]).unwrap_err();
    assert!(matches!(error, SessionError::Memory { .. }) && error.is_refusal(), "{error}");
    session.finish().unwrap();
    let of = |launch| (launch, 0, 0, event(1));
    assert_eq!(file.contents().0, [of(0), of(1), of(2)]);
}

#[test]
fn a_launch_too_large_to_have_others_beside_it_is_alone() {
    let (mut device, may_end) =
        device((0..4).map(|_| Script { segments: 1, ..script(&[(0, 0, 1)]) }).collect());
    may_end.store(u64::MAX, Ordering::Relaxed);
    let file = Shared::default();
    let mut session =
        Session::start_overlapping(&mut device, &PROGRAM, &options(2 << 10), file.clone()).unwrap();
    for warps in [2, 220, 2, 2] {
        begin(&mut session, "k", &[warps]).unwrap();
        assert!(session.look().unwrap());
    }
    session.finish().unwrap();
    assert_eq!(file.contents().0.len(), 4);
    let encoded: Vec<&String> = device.launched.iter().filter(|did| did.starts_with("encode")).collect();
    assert_eq!(encoded, ["encode 1 of 2", "encode 1 of 220", "encode 2 of 4"]);
    let large = device.logs(1);
    assert!(
        fixed(&large)[1] > device.logs(0).claims_end && large.claims_from >= fixed(&large)[1],
        "{large:?}"
    );
}

#[test]
fn of_many_launches_all_are_seen_to_end() {
    let (mut device, may_end) = device((0..40).map(|_| script(&[(0, 0, 1)])).collect());
    let file = Shared::default();
    let mut session =
        Session::start_overlapping(&mut device, &PROGRAM, &options(32 << 10), file.clone()).unwrap();
    may_end.store(0b10, Ordering::Relaxed);
    for _ in 0..40 {
        begin(&mut session, "k", &[1]).unwrap();
        session.look().unwrap();
    }
    may_end.store(u64::MAX << 30, Ordering::Relaxed);
    assert!(!session.look().unwrap(), "the first ones run");
    may_end.store(u64::MAX, Ordering::Relaxed);
    assert!(session.look().unwrap());
    session.finish().unwrap();
    assert_eq!(file.contents().0.len(), 40);
}

#[test]
fn nothing_begins_beside_a_launch_that_has_all() {
    let (mut device, may_end) = device((0..2).map(|_| script(&[(0, 0, 1)])).collect());
    let file = Shared::default();
    let mut session =
        Session::start_overlapping(&mut device, &PROGRAM, &options(2 << 10), file.clone()).unwrap();
    begin(&mut session, "k", &[220]).unwrap();
    let error = begin(&mut session, "k", &[2]).unwrap_err();
    assert!(matches!(error, SessionError::Busy { running: 1, .. }), "{error}");
    may_end.store(u64::MAX, Ordering::Relaxed);
    begin(&mut session, "k", &[2]).unwrap();
    session.wait(PATIENCE).unwrap();
    session.finish().unwrap();
    assert_eq!(file.contents().0, [(0, 0, 0, event(1)), (1, 0, 0, event(1))]);
}

#[test]
fn launches_that_were_waited_for_in_vain_are_not_waited_for_again() {
    let (mut device, may_end) = device((0..6).map(|_| script(&[(0, 0, 1)])).collect());
    let mut session =
        Session::start_overlapping(&mut device, &PROGRAM, &options(16 << 10), Shared::default()).unwrap();
    let started = std::time::Instant::now();
    for _ in 0..5 {
        begin(&mut session, "k", &[2]).unwrap();
    }
    let (once, waited) = (PATIENCE / 2, started.elapsed());
    assert!(waited >= once && waited < 4 * once, "{waited:?}");
    may_end.store(0b10, Ordering::Relaxed);
    assert!(!session.look().unwrap());
    // One has ended since: what the others need is known now.
    begin(&mut session, "k", &[2]).unwrap();
    may_end.store(u64::MAX, Ordering::Relaxed);
    session.wait(PATIENCE).unwrap();
    session.finish().unwrap();
}

#[test]
fn rings_overlap_as_far_as_they_fit() {
    let (mut device, may_end) = device((0..2).map(|_| script(&[(0, 0, 1)])).collect());
    let file = Shared::default();
    let options = RecordingSpec { policy: Policy::Ring, ..options(32 << 10) };
    let mut session = Session::start_overlapping(&mut device, &PROGRAM, &options, file.clone()).unwrap();
    begin(&mut session, "k", &[1]).unwrap();
    begin(&mut session, "k", &[1]).unwrap();
    may_end.store(u64::MAX, Ordering::Relaxed);
    session.wait(PATIENCE).unwrap();
    session.finish().unwrap();
    assert_eq!(file.contents().0.len(), 2);
    let (one, other) = (device.logs(0), device.logs(1));
    assert!(fixed(&one)[1] <= fixed(&other)[0], "{one:?} {other:?}");
}

#[test]
fn a_launch_that_fails_ends_the_file() {
    let fails = Script { fails: true, ..Script::default() };
    let (mut device, may_end) = device(vec![script(&[(0, 0, 1)]), fails]);
    may_end.store(u64::MAX, Ordering::Relaxed);
    let file = Shared::default();
    let mut session =
        Session::start_overlapping(&mut device, &PROGRAM, &options(16 << 10), file.clone()).unwrap();
    begin(&mut session, "k", &[2]).unwrap();
    begin(&mut session, "k", &[2]).unwrap();
    let error = session.look().unwrap_err();
    assert!(error.to_string().contains("it failed"), "{error}");
    assert!(matches!(begin(&mut session, "k", &[2]), Err(SessionError::Unusable)));
    drop(session);
    assert_eq!(file.contents().0, [(0, 0, 0, event(1))], "what came before is there");
    assert_eq!(file.launches().len(), 2);
    assert!(device.memory.is_empty());
}

#[test]
fn a_session_that_ends_before_its_launches_says_so_and_leaves_them_their_memory() {
    let (mut device, may_end) = device(vec![script(&[(0, 0, 1)])]);
    let file = Shared::default();
    let mut session =
        Session::start_overlapping(&mut device, &PROGRAM, &options(16 << 10), file.clone()).unwrap();
    begin(&mut session, "k", &[2]).unwrap();
    let error = session.finish().unwrap_err();
    assert!(matches!(error, SessionError::Running { running: 1 }), "{error}");
    assert_eq!(file.launches().len(), 1);
    let logs = device.logs(0);
    let end = logs.logs + u64::from(logs.claims_end) * u64::from(ENTRY_BYTES);
    let (start, memory) = device.memory.range(..=logs.logs).next_back().expect("the launch's memory");
    assert!(start + memory.len() as u64 >= end);
    drop(may_end);
}

#[test]
fn sessions_that_wait_begin_nothing() {
    let (mut device, _) = device(Vec::new());
    let mut session = Session::start(&mut device, &PROGRAM, &options(16 << 10), Shared::default()).unwrap();
    let error = begin(&mut session, "k", &[2]).unwrap_err();
    assert!(matches!(error, SessionError::NoOverlap), "{error}");
}
