//! Missing events of a trace: by launch, by warp, and as marks between events.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::ops::ControlFlow;

use crate::support::sections::Sections;
use crate::support::{Recorder, Streams, event};
use warptrace_decoder::{Completeness, LaunchEnd, Loss, LossyWarps, Problem, TraceFile, WarpFilter};
use warptrace_format::account::WarpAccount;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{ChunkRef, EarlyEnd, LaunchInfo, LossReason, SectionKind, encode_section};

/// Eight warps: 1, 4 and 6 have three events each.
fn launch() -> (LaunchInfo, Streams) {
    let streams = [1, 4, 6].map(|warp| (warp, vec![event(1, u32::MAX); 3]));
    (LaunchInfo::new(0, 0, [8, 1, 1], [32, 1, 1], 0).unwrap(), streams.into())
}

/// Warps 1, 2 and 6 lost events; warps 6 and 7 did not finish.
fn account(_: u32, warp: u32, account: &mut WarpAccount) {
    let lost = [0, 10, 200, 0, 0, 0, 3, 0][warp as usize];
    (account.attempted, account.lost) = (account.attempted + lost, lost);
    account.finished = u32::from(warp < 6);
}

fn recorder(policy: &str) -> Recorder {
    let mut recorder = Recorder::new(vec![CodecSpec::Raw]);
    recorder.metadata.policy = policy.to_owned().into();
    recorder
}

/// Events and marks as text: `1:3` is three events of warp 1, `[1:0 -10 memory]` is a mark of warp 1.
#[derive(Default)]
struct Pieces {
    words: Vec<String>,
    warp: Option<u32>,
    events: u64,
}

impl Pieces {
    fn push(
        &mut self,
        warp: u32,
        missing: Option<LossyWarps>,
        first_event: u64,
        events: u64,
    ) -> ControlFlow<()> {
        if let Some(missing) = missing {
            let events = missing.events.map_or("?".to_owned(), |events| format!("-{events}"));
            self.words.push(format!("[{warp}:{first_event} {events} {}]", missing.reason));
            return ControlFlow::Continue(());
        }
        if self.warp.replace(warp) == Some(warp) {
            assert_eq!(self.events, first_event);
            self.words.pop();
        }
        self.events = first_event + events;
        self.words.push(format!("{warp}:{}", self.events));
        ControlFlow::Continue(())
    }
}

fn pieces(trace: &TraceFile, filter: &WarpFilter) -> String {
    let (mut blocks, mut items) = (Pieces::default(), Pieces::default());
    let filter = filter.clone().with_marks();
    let flow = trace.decode_all(0, 0, &filter, &mut |block| {
        blocks.push(block.warp, block.missing, block.first_event, block.events.len() as u64)
    });
    assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
    let flow = trace.items_in_order(0, 0, &filter, &mut |found| {
        items.push(found.warp, found.missing, found.first_event, found.item.events())
    });
    assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
    assert_eq!(blocks.words, items.words);
    blocks.words.join(" ")
}

#[test]
fn marks_stand_where_the_policy_says_that_events_are_missing() {
    let of = |policy: &str| {
        let mut recorder = recorder(policy);
        recorder.account = account;
        let trace = TraceFile::from_bytes(recorder.record(&[launch()])).unwrap();
        assert_eq!(trace.losses(0, 0).unwrap().lost(), 213, "the sum of the accounts");
        pieces(&trace, &WarpFilter::all())
    };
    assert_eq!(of("stop"), "1:3 [1:3 -10 memory] [2:0 -200 memory] 4:3 6:3 [6:3 -3 memory] [6:3 ? died]");
    assert_eq!(
        of("stream"),
        "[1:0 -10 timeout] 1:3 [2:0 -200 timeout] 4:3 [6:0 -3 timeout] 6:3 [6:3 ? died]"
    );
    assert_eq!(
        of("ring"),
        "[1:0 -10 overwritten] 1:3 [2:0 -200 overwritten] 4:3 [6:0 -3 overwritten] 6:3 [6:3 ? died]"
    );
    assert_eq!(of("later"), "[1:0 -10 unknown] 1:3 [2:0 -200 unknown] 4:3 [6:0 -3 unknown] 6:3 [6:3 ? died]");
}

#[test]
fn marks_follow_the_filter_and_can_be_broken_off() {
    let mut recorder = recorder("stop");
    recorder.account = account;
    let trace = TraceFile::from_bytes(recorder.record(&[launch()])).unwrap();
    assert_eq!(pieces(&trace, &WarpFilter::warps(2..5)), "[2:0 -200 memory] 4:3");
    assert_eq!(pieces(&trace, &WarpFilter::warp(2)), "[2:0 -200 memory]");
    assert_eq!(pieces(&trace, &WarpFilter::warps(std::ops::Range { start: 7, end: 3 })), "");
    for stop_at in 0..7 {
        let mut seen = 0;
        let flow = trace.decode_all(0, 0, &WarpFilter::all().with_marks(), &mut |_| {
            seen += 1;
            if seen > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((flow.unwrap(), seen), (ControlFlow::Break(()), stop_at + 1));
        let mut seen = 0;
        let flow = trace.items_in_order(0, 0, &WarpFilter::all().with_marks(), &mut |_| {
            seen += 1;
            if seen > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((flow.unwrap(), seen), (ControlFlow::Break(()), stop_at + 1));
    }
}

#[test]
fn losses_are_summed_by_reason_and_listed_by_warp() {
    let mut recorder = recorder("stop");
    recorder.account = account;
    let trace = TraceFile::from_bytes(recorder.record(&[launch()])).unwrap();
    let losses = trace.losses(0, 0).unwrap();
    assert_eq!((losses.chosen_warps, losses.recorded, losses.is_none()), (8, 9, false));
    let found: Vec<_> = losses
        .losses
        .iter()
        .map(|Loss { reason, warps, events, first_warps, .. }| (*reason, *warps, *events, &first_warps[..]))
        .collect();
    assert_eq!(
        found,
        [(LossReason::Memory, 3, Some(213), &[1, 2, 6][..]), (LossReason::Died, 2, None, &[6, 7]),]
    );
    let listed: Vec<_> = trace
        .lossy_warps(0, 0)
        .unwrap()
        .map(Result::unwrap)
        .map(|LossyWarps { first, last, chosen, events, .. }| (first, last, chosen, events))
        .collect();
    assert_eq!(listed, [(1, 1, 1, Some(10)), (2, 2, 1, Some(200)), (6, 6, 1, Some(3)), (6, 7, 2, None)]);
    let report = trace.verify();
    assert_eq!((report.lost_events, report.unfinished_warps), (213, 2));
    let total = report.lost.unwrap();
    assert_eq!((total.reason, total.events, total.warps), (LossReason::Memory, 213, 3));
}

#[test]
fn warps_that_were_not_chosen_are_told_and_are_no_loss() {
    let chosen = ChosenWarps { first_block: 1, blocks: 2, block_step: 3, first_warp: 0, block_warps: 1 };
    let (info, mut streams) = launch();
    streams.remove(&6);
    let file = recorder("stop").record(&[(info.with_chosen(chosen).unwrap(), streams)]);
    let trace = TraceFile::from_bytes(file).unwrap();
    let losses = trace.losses(0, 0).unwrap();
    assert!(losses.is_none() && trace.verify().is_ok());
    let [Loss { reason: LossReason::NotChosen, warps: 6, events: None, .. }] = losses.losses[..] else {
        panic!("{losses:?}");
    };
    assert_eq!(trace.lossy_warps(0, 0).unwrap().count(), 0);
    assert_eq!(pieces(&trace, &WarpFilter::all()), "1:3 4:3");
}

fn without_accounts(end: Option<EarlyEnd>, finish: bool) -> TraceFile {
    let (info, _) = launch();
    let metadata = recorder("stream").metadata;
    let mut file = Sections::new(&metadata);
    file.put(&info.encode_section());
    let payload = &[1, 0, 1, 0, 0, 0];
    file.put_frame(0, &[ChunkRef { track: 0, warp: 3, sequence: 0, events: 1, payload }]);
    end.iter().for_each(|end| file.put(&end.encode_section(0).unwrap()));
    TraceFile::from_bytes(if finish { file.finish() } else { file.bytes }).unwrap()
}

#[test]
fn warps_without_account_died_with_their_launch_or_it_is_unknown() {
    let failed = EarlyEnd::failed("an illegal\ninstruction");
    for (end, finish) in [(failed.clone(), true), (EarlyEnd::Interrupted, true), (failed, false)] {
        let trace = without_accounts(Some(end.clone()), finish);
        assert_eq!(*trace.completeness() == Completeness::Complete, finish);
        let known = match &end {
            EarlyEnd::Failed { .. } => EarlyEnd::failed("an illegal; instruction"),
            other => other.clone(),
        };
        assert_eq!(trace.early_end(0), Some(&known));
        assert_eq!(pieces(&trace, &WarpFilter::all()), "3:1 [3:1 ? died]");
        let report = trace.verify();
        assert_eq!(report.unfinished_warps, 8);
        let page = report.to_string();
        assert!(!page.contains("no accounting"), "{page}");
        let words = match end {
            EarlyEnd::Interrupted => "launch 0 of kernel `first` was interrupted\n",
            _ => "launch 0 of kernel `first` failed: an illegal; instruction\n",
        };
        assert!(page.contains(words), "{page}");
        assert!(page.contains("8 of 8 warps did not finish (warps 0, 1, 2, 3, 4, 5, 6, 7)"), "{page}");
    }
    let trace = without_accounts(None, false);
    assert_eq!(trace.launch_end(0), Some(LaunchEnd::Unknown));
    assert_eq!(trace.launch_end(1), None);
    assert_eq!(pieces(&trace, &WarpFilter::all()), "3:1 [3:1 ? unknown]");
    let report = trace.verify();
    assert_eq!(report.unfinished_warps, 0);
    assert!(report.problems.iter().any(|problem| matches!(problem, Problem::MissingAccounting { .. })));
}

#[test]
fn an_untraced_launch_that_failed_is_told() {
    let info = launch().0.with_chosen(ChosenWarps::NONE).unwrap();
    let mut recorder = recorder("stop");
    recorder.early_ends = vec![(0, EarlyEnd::failed("no"))];
    let trace = TraceFile::from_bytes(recorder.record(&[(info, Streams::new())])).unwrap();
    assert_eq!(trace.launch_end(0), Some(LaunchEnd::Failed { message: "no".to_owned() }));
    let report = trace.verify();
    assert!(matches!(&report.problems[..], [Problem::EndedEarly { launch: 0, .. }]), "{report}");
}

fn with_sections(more: &[Vec<u8>]) -> TraceFile {
    let file = recorder("stop").record(&[launch()]);
    let index = file.windows(4).position(|bytes| bytes == b"INDX").unwrap();
    TraceFile::from_bytes([&file[..index], &more.concat()].concat()).unwrap()
}

#[test]
fn early_ends_that_cannot_be_end_what_can_be_read() {
    let section = |launch| EarlyEnd::Interrupted.encode_section(launch).unwrap();
    let is_damaged = |trace: &TraceFile| trace.completeness().to_string().contains("ENDS");
    assert!(!is_damaged(&with_sections(&[section(0)])));
    assert!(is_damaged(&with_sections(&[section(1)])), "no such launch");
    assert!(is_damaged(&with_sections(&[section(0), section(0)])), "twice");
    let odd = encode_section(SectionKind::EarlyEnd, &[0, 0, 0, 0, 9, 0, 0, 0]);
    let trace = with_sections(&[odd]);
    assert!(is_damaged(&trace) && trace.early_end(0).is_none());
}

#[test]
fn no_flipped_byte_is_more_than_an_error() {
    let mut recorder = recorder("stop");
    recorder.account = account;
    recorder.early_ends = vec![(0, EarlyEnd::failed("no"))];
    let file = recorder.record(&[launch()]);
    let end = file.windows(4).position(|bytes| bytes == b"ENDS").unwrap();
    warptrace_decoder::fuzzing::open(&file);
    // Only accounts, early ends and the index; other tests cover the part before.
    let from = file.windows(4).position(|bytes| bytes == b"ACCT").unwrap();
    assert!(from < end);
    for at in from..file.len() {
        for bit in 0..8 {
            let mut odd = file.clone();
            odd[at] ^= 1 << bit;
            warptrace_decoder::fuzzing::open(&odd);
        }
    }
}

#[test]
fn a_damaged_message_is_not_believed() {
    let mut recorder = recorder("stop");
    recorder.early_ends = vec![(0, EarlyEnd::failed("it broke"))];
    let mut file = recorder.record(&[launch()]);
    // Damages the message: the index lists the section, but its checksum is wrong.
    let at = file.windows(8).position(|bytes| bytes == b"it broke").unwrap();
    file[at] = b'I';
    let trace = TraceFile::from_bytes(file).unwrap();
    assert!(trace.completeness().to_string().contains("ENDS"), "{}", trace.completeness());
    assert!(trace.early_end(0).is_none() && pieces(&trace, &WarpFilter::all()) == "1:3 4:3 6:3");
}
