//! Selection of launches, blocks, warps and events.

use warptrace_format::chosen::ChosenWarps;

use super::fake::{FakeDevice, Script, event, script};
use super::output::Shared;
use super::{PROGRAM, launch, launch_warps, options};
use crate::Session;
use crate::session::SessionError;
use crate::{LaunchReport, RecordingSpec, Window};

fn with(window: Window) -> RecordingSpec {
    RecordingSpec { window, ..options(1000) }
}

fn record(window: Window, scripts: usize, kernels: &[&'static str]) -> (Vec<String>, Shared, LaunchReport) {
    let mut device = FakeDevice::new(vec![script(&[(1, 0, 1), (0, 0, 1)]); scripts]);
    let mut session = Session::start(&mut device, &PROGRAM, &with(window), Shared::default()).unwrap();
    for kernel in kernels {
        launch(&mut session, kernel).unwrap();
    }
    let (file, _, report) = session.finish().unwrap();
    assert!(device.memory.is_empty(), "all memory is given back");
    (device.launched, file, report)
}

#[test]
fn launches_that_are_not_chosen_run_untraced_and_keep_their_numbers() {
    let window = Window { launches: "1..=2".parse().unwrap(), ..Window::default() };
    let (launched, file, report) = record(window, 2, &["k", "k", "other", "k"]);
    assert_eq!(launched, ["k untraced", "k", "other", "k untraced", "encode 2 of 4"]);
    let chosen: Vec<_> = file.launches().iter().map(|info| (info.number(), info.is_recorded())).collect();
    assert_eq!(chosen, [(0, false), (1, true), (2, true), (3, false)]);
    let (chunks, accounts) = file.contents();
    assert_eq!(chunks.iter().map(|chunk| chunk.0).collect::<Vec<_>>(), [1, 1, 2, 2]);
    assert_eq!((accounts, report.launches, report.recorded_launches, report.recorded), (2, 4, 2, 4));
}

#[test]
fn kernels_that_are_not_named_run_untraced() {
    let window = Window { kernels: vec!["o*".to_owned()], ..Window::default() };
    let (launched, file, _) = record(window, 1, &["k", "other", "k"]);
    assert_eq!(launched, ["k untraced", "other", "k untraced", "encode 1 of 2"]);
    assert_eq!(file.launches().len(), 3);
}

#[test]
fn a_kernel_that_is_not_there_is_refused_before_anything_runs() {
    let window = Window { kernels: vec!["k".to_owned(), "missing".to_owned()], ..Window::default() };
    let (mut device, file) = (FakeDevice::new([]), Shared::default());
    let error = Session::start(&mut device, &PROGRAM, &with(window), file.clone()).unwrap_err();
    assert!(matches!(error, SessionError::NoSuchKernel { .. }));
    assert_eq!(error.to_string(), "no kernel of this program is named `missing`: it has k, other");
    assert!(file.bytes().is_empty() && device.prepared.is_empty());
}

#[test]
fn launches_behind_enough_events_run_untraced() {
    for (most, recorded) in [(0, 0), (1, 1), (2, 1), (3, 2), (100, 4)] {
        let window = Window { max_events: Some(most), ..Window::default() };
        let (_, file, report) = record(window, recorded, &["k"; 4]);
        assert_eq!((report.recorded_launches, report.recorded), (recorded as u64, 2 * recorded as u64));
        assert_eq!(file.launches().iter().filter(|info| info.is_recorded()).count(), recorded);
    }
}

#[test]
fn what_chooses_nothing_makes_a_file_of_launches() {
    let window = Window { blocks: "7..".parse().unwrap(), ..Window::default() };
    let (launched, file, report) = record(window, 0, &["k", "other"]);
    assert_eq!(launched, ["k untraced", "other untraced"]);
    assert_eq!((file.contents(), report.recorded), ((Vec::new(), 0), 0));
    assert_eq!(file.launches().len(), 2);
}

#[test]
fn many_launches_that_are_not_chosen_are_told_as_they_come() {
    let window = Window { launches: "9999999".parse().unwrap(), ..Window::default() };
    let (mut device, file) = (FakeDevice::new([]), Shared::default());
    let mut session = Session::start(&mut device, &PROGRAM, &with(window), file.clone()).unwrap();
    for _ in 0..9_000 {
        launch(&mut session, "k").unwrap();
    }
    session.flush().unwrap();
    assert_eq!(file.launches().len(), 9_000);
    assert_eq!(session.finish().unwrap().2.launches, 9_000);
}

#[test]
fn only_chosen_warps_have_logs_and_accounts() {
    // Warps 1 and 2 of blocks 0, 3, 6 and 9, of ten blocks of four warps. Two of these have a chunk.
    let window =
        Window { blocks: "1/3".parse().unwrap(), warps: "1..3".parse().unwrap(), ..Window::default() };
    let chosen = ChosenWarps { first_block: 0, blocks: 4, block_step: 3, first_warp: 1, block_warps: 2 };
    let mut device = FakeDevice::new([script(&[(3, 0, 1), (6, 0, 2)])]);
    let mut session = Session::start(&mut device, &PROGRAM, &with(window), Shared::default()).unwrap();
    launch_warps(&mut session, "k", 40, 128).unwrap();
    let (file, _, report) = session.finish().unwrap();
    assert_eq!((device.logs(0).warps, device.logs(0).chosen), (8, chosen));
    assert_eq!((device.launched[1].as_str(), report.recorded), ("encode 1 of 8", 2));
    assert!(device.prepared[0].1.is_some_and(|(recording, _)| recording.chooses));
    assert_eq!(file.launches()[0].chosen(), chosen);
    assert_eq!(file.contents(), (vec![(0, 14, 0, event(1)), (0, 37, 0, event(2))], 1));
}

#[test]
fn a_chunk_of_a_warp_that_does_not_record_is_damaged() {
    let window = Window { blocks: "0".parse().unwrap(), ..Window::default() };
    let mut device = FakeDevice::new([script(&[(2, 0, 1)])]);
    let mut session = Session::start(&mut device, &PROGRAM, &with(window), Shared::default()).unwrap();
    launch_warps(&mut session, "k", 4, 64).unwrap();
    let error = session.flush().unwrap_err().to_string();
    assert!(error.contains("launch 0, warp 2, is damaged: 2 warps of the launch record"), "{error}");
}

#[test]
fn launches_have_labels_and_of_ranges_only_those_are_recorded() {
    for (nvtx, recorded) in [(&[][..], [true; 4]), (&["step*"], [true, false, true, false])] {
        let scripts = recorded.iter().filter(|recorded| **recorded).count();
        let mut device = FakeDevice::new(vec![script(&[(1, 0, 1), (0, 0, 1)]); scripts]);
        let window = Window { nvtx: nvtx.iter().map(|&name| name.to_owned()).collect(), ..Window::default() };
        let mut session = Session::start(&mut device, &PROGRAM, &with(window), Shared::default()).unwrap();
        for label in ["step 1", "other", "step 2", ""] {
            session.recorder.label(label);
            launch(&mut session, "k").unwrap();
        }
        let (file, _, _) = session.finish().unwrap();
        let some = |label: &str| Some(label.to_owned());
        assert_eq!(file.labels(), [some("step 1"), some("other"), some("step 2"), None]);
        assert!(file.launches().iter().map(|info| info.is_recorded()).eq(recorded));
    }
}

#[test]
fn a_launch_that_fails_has_its_label() {
    let failing = Script { fails: true, ..script(&[(0, 0, 9)]) };
    let (mut device, file) = (FakeDevice::new([failing]), Shared::default());
    let mut session = Session::start(&mut device, &PROGRAM, &options(1000), file.clone()).unwrap();
    session.recorder.label("last");
    launch(&mut session, "k").unwrap_err();
    assert_eq!(file.labels(), [Some("last".to_owned())]);
}
