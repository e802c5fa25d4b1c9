//! When the pool is drained, and the results.

use std::time::Duration;
use warptrace_abi::log::LaunchLogs;
use warptrace_format::Counting;

use super::fake::{FakeDevice, Script, event, script};
use super::output::Shared;
use super::{PROGRAM, launch, launch_warps, options};
use crate::Session;
use crate::{Placement, Recording, RecordingSpec, Window};

#[test]
fn short_launches_share_one_drain() {
    let mut device = FakeDevice::new((1..=10).map(|location| script(&[(1, 0, location), (0, 0, location)])));
    let mut session = Session::start(&mut device, &PROGRAM, &options(4096), Shared::default()).unwrap();
    for _ in 0..10 {
        assert_eq!(launch(&mut session, "k").unwrap().kernel, Duration::from_micros(1));
    }
    let (file, summary, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.recorded, report.lost), (20, 20, 0));
    assert_eq!((report.chunks, report.payload_bytes), (20, 120));
    assert_eq!(report.kernel, Duration::from_micros(10));
    assert_eq!(report.encoding, Duration::from_millis(3), "encoding once");
    assert_eq!(summary.events, 20);
    assert_eq!(device.collected, 1);
    assert_eq!(device.launched.last().unwrap(), "encode 10 of 20", "each warp's logs, once");
    assert!(device.memory.is_empty(), "all memory is given back");
    let expected: Vec<_> =
        (0..10u32).flat_map(|number| [0, 1].map(|warp| (number, warp, 0, event(number as u8 + 1)))).collect();
    assert_eq!(file.contents(), (expected, 10));
}

#[test]
fn a_device_that_collects_few_chunks_at_a_time_is_asked_again() {
    let script = (1..=10).map(|location| script(&[(1, 0, location), (0, 0, location)]));
    let mut device = FakeDevice::new(script);
    device.collects = 3;
    let mut session = Session::start(&mut device, &PROGRAM, &options(4096), Shared::default()).unwrap();
    for _ in 0..10 {
        launch(&mut session, "k").unwrap();
    }
    let (file, summary, _) = session.finish().unwrap();
    assert_eq!((summary.events, device.collected), (20, 7));
    assert_eq!(file.contents().0.len(), 20);
}

#[test]
fn launches_that_record_nothing_have_accounts_and_no_chunks() {
    let mut device = FakeDevice::new([script(&[]), script(&[])]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(4096), Shared::default()).unwrap();
    launch(&mut session, "k").unwrap();
    launch(&mut session, "k").unwrap();
    let (file, _, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.chunks, device.collected), (0, 0, 0));
    assert_eq!(file.contents(), (Vec::new(), 2));
}

#[test]
fn a_session_without_launches_encodes_nothing() {
    let mut device = FakeDevice::new([]);
    let session = Session::start(&mut device, &PROGRAM, &options(1024), Shared::default()).unwrap();
    let (file, summary, _) = session.finish().unwrap();
    assert!(device.launched.is_empty() && device.memory.is_empty());
    assert_eq!((file.contents(), summary.events), ((Vec::new(), 0), 0));
}

#[test]
fn the_pool_is_drained_when_most_of_its_logs_are_taken() {
    let mut device = FakeDevice::new(vec![Script { segments: 30, ..script(&[(0, 0, 1), (1, 0, 1)]) }; 25]);
    let mut session = Session::start(&mut device, &PROGRAM, &options(1024), Shared::default()).unwrap();
    for _ in 0..25 {
        launch(&mut session, "k").unwrap();
    }
    assert_eq!(session.finish().unwrap().2.recorded, 50);
    let end = |number: usize| {
        let claimed: u32 = (0..=number).map(|number| 30 * device.logs(number).segment_entries).sum();
        let logs = device.logs(number);
        f64::from(logs.claims_from + claimed) / f64::from(logs.claims_end)
    };
    let each = (1..25).find(|&number| device.logs(number).accounts == device.logs(0).accounts).unwrap();
    assert!(each > 5 && end(each - 1) >= 0.75 && end(each - 2) < 0.75, "after three quarters");
    let encoded: Vec<_> = device.launched.iter().filter(|name| name.starts_with("encode")).collect();
    assert_eq!(encoded[0], &format!("encode {each} of {}", 2 * each));
    let place = |logs: LaunchLogs| (logs.logs, logs.accounts, logs.first_segments, logs.claims_end);
    assert_eq!(place(device.logs(each)), place(device.logs(0)));
}

#[test]
fn chunks_that_are_few_are_used_again_and_again() {
    // Chunks of one launch that need five rounds, and of two others.
    let many = script(&(0..450).map(|number| (number % 2, number / 2, 1)).collect::<Vec<_>>());
    let few = |location| script(&[(1, 0, location), (0, 0, location)]);
    let mut device = FakeDevice::new([few(2), many, few(3)]);
    device.collects = 60;
    let mut session = Session::start(&mut device, &PROGRAM, &options(1024), Shared::default()).unwrap();
    for _ in 0..3 {
        launch(&mut session, "k").unwrap();
    }
    let (file, summary, report) = session.finish().unwrap();
    assert_eq!((report.attempted, report.recorded, report.lost), (454, 454, 0));
    assert_eq!((report.chunks, summary.events), (454, 454));
    assert_eq!(report.encoding, Duration::from_millis(15), "five rounds");
    assert_eq!(device.launched[3..], ["encode 3 of 6"; 5]);
    let (mut found, accounts) = file.contents();
    assert_eq!(accounts, 3);
    found.sort();
    let of = |launch, location, chunks: u32| {
        (0..2)
            .flat_map(move |warp| (0..chunks).map(move |sequence| (launch, warp, sequence, event(location))))
    };
    let expected: Vec<_> = of(0, 2, 1).chain(of(1, 1, 225)).chain(of(2, 3, 1)).collect();
    assert_eq!(found, expected);
}

#[test]
fn flush_counts_and_writes_everything_so_far() {
    let mut device = FakeDevice::new(vec![script(&[(0, 0, 1)]); 2]);
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &options(1024), file.clone()).unwrap();
    launch(&mut session, "k").unwrap();
    assert_eq!(session.recorder.total().recorded, 0);
    session.flush().unwrap();
    assert_eq!(session.recorder.total().recorded, 1);
    assert_eq!(file.contents().0.len(), 1);
    launch(&mut session, "k").unwrap();
    session.flush().unwrap();
    assert_eq!(session.recorder.total().recorded, 2);
    assert_eq!(session.finish().unwrap().2.recorded, 2);
}

#[test]
fn a_session_that_is_dropped_writes_what_it_has() {
    let mut device = FakeDevice::new([script(&[(1, 0, 1)])]);
    let file = Shared::default();
    let mut session = Session::start(&mut device, &PROGRAM, &options(1024), file.clone()).unwrap();
    launch(&mut session, "k").unwrap();
    drop(session);
    assert!(device.memory.is_empty(), "all memory is given back");
    assert_eq!(file.contents(), (vec![(0, 1, 0, event(1))], 1));
}

#[test]
fn the_device_is_told_what_to_record_before_anything_runs() {
    for placement in [None, Some(Placement::Shared)] {
        let options = RecordingSpec { placement, counting: Counting::All, ..options(1024) };
        let recording = Recording { counting: Counting::All, placement, ..Recording::DEFAULT };
        let mut device = FakeDevice::new(vec![script(&[(0, 0, 1)]); 2]);
        let mut session = Session::start(&mut device, &PROGRAM, &options, Shared::default()).unwrap();
        launch(&mut session, "k").unwrap();
        launch(&mut session, "other").unwrap();
        session.finish().unwrap();
        let kernels = vec!["k".to_owned(), "other".to_owned()];
        assert_eq!(device.prepared, [(kernels, Some((recording, options.codec)))]);
        assert_eq!(device.recordings, [recording; 2]);
    }
}

#[test]
fn many_drains_are_written_in_order_and_classes_are_searched_rarely_where_streams_differ() {
    const LAUNCHES: u32 = 40;
    // Long and short drains in turns, which several threads encode.
    let events = |number: u32| if number.is_multiple_of(2) { 300 } else { 1 };
    let runs = |number: u32| -> Vec<_> {
        let location = number as u8 + 1;
        (0..events(number)).flat_map(|sequence| [(1, sequence, location), (0, sequence, location)]).collect()
    };
    let mut device = FakeDevice::new((0..LAUNCHES).map(|number| script(&runs(number))));
    let window = Window { max_events: Some(u64::MAX), ..Window::default() };
    let options = RecordingSpec { window, ..options(16 << 10) };
    let mut session = Session::start(&mut device, &PROGRAM, &options, Shared::default()).unwrap();
    for _ in 0..LAUNCHES {
        launch_warps(&mut session, "k", 64, 64).unwrap();
    }
    let (file, summary, report) = session.finish().unwrap();
    let recorded = 2 * (0..LAUNCHES).map(|number| u64::from(events(number))).sum::<u64>();
    assert_eq!((report.recorded, summary.events), (recorded, recorded));
    assert_eq!(device.searched, 1 + LAUNCHES / 16, "the first drain, and every sixteenth");
    let begun: Vec<u32> = file.contents().0.iter().map(|(launch, ..)| *launch).collect();
    assert!(begun.is_sorted() && begun.last() == Some(&(LAUNCHES - 1)));
}
