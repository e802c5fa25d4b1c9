//! Verification finds the documented problems and describes them clearly.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::sections::Sections;
use crate::support::{Recorder, Streams, ecl, event, small};
use warptrace_decoder::{Problem, TraceFile, VerifyReport};
use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_format::file::{ChunkRef, LaunchInfo};

fn launch() -> LaunchInfo {
    LaunchInfo::new(0, 0, [4, 1, 1], [32, 1, 1], 0).unwrap()
}

fn streams() -> Streams {
    (0..4u32)
        .map(|warp| (warp, (0..200).map(|number| event(1 + (number % 20) as u16, u32::MAX - warp)).collect()))
        .collect()
}

fn verify(bytes: Vec<u8>) -> VerifyReport {
    TraceFile::from_bytes(bytes).unwrap().verify()
}

fn only(report: &VerifyReport) -> &Problem {
    assert_eq!(report.problem_count(), 1, "{report}");
    assert!(!report.is_ok());
    &report.problems[0]
}

#[test]
fn a_sound_trace_reads_well() {
    let report = verify(Recorder::new(vec![ecl(), CodecSpec::Raw]).record(&[(launch(), streams())]));
    assert!(report.is_ok());
    let bytes = report.bytes;
    let (frames, chunks) = (report.frames, report.chunks);
    assert_eq!(
        report.to_string(),
        format!(
            "file      {bytes} bytes, complete by its accounts\n\
             contents  launches: 1, frames: {frames}, chunks: {chunks}\n\
             decoded   events: 800, warps with events: 4\n\
             accounts  checked: 8, events lost: 0, warps not finished: 0\n\
             tracks    pairs of events compared: 800; warps equal: 4, equal as far as both go: 0, different: 0, \
             not comparable: 0\n\
             result    no problem found"
        )
    );
}

#[test]
fn progress_ends_at_the_announced_number_of_events() {
    let (bytes, _) = small();
    let trace = TraceFile::from_bytes(bytes).unwrap();
    let mut seen = Vec::new();
    let report = trace.verify_with_progress(&mut |done, total| seen.push((done, total)));
    let (done, total) = *seen.last().unwrap();
    assert_eq!((done, done), (total, 2 * report.events));
    assert!(seen.is_sorted());
}

#[test]
fn losses_are_counted_and_named() {
    let mut recorder = Recorder::new(vec![CodecSpec::Raw]);
    recorder.account = |_, warp, account| {
        if warp % 2 == 1 {
            (account.attempted, account.lost) = (account.attempted + 7, 7);
        }
    };
    let report = verify(recorder.record(&[(launch(), streams())]));
    assert_eq!(report.lost_events, 14);
    assert!(matches!(only(&report), Problem::Lost { launch: 0, track: 0, events: 14, warps: 2, .. }));
    let page = report.to_string();
    assert!(
        page.contains(
            "in 2 of 4 warps (warps 1, 3): the memory of logs and chunks was full; give more memory"
        ),
        "{page}"
    );
    assert!(page.contains("\nlost      14 events in 2 warps: the memory"), "{page}");
}

#[test]
fn warps_that_did_not_finish_are_named() {
    let mut recorder = Recorder::new(vec![CodecSpec::Raw]);
    recorder.account = |_, warp, account| account.finished = u32::from(warp < 2);
    let report = verify(recorder.record(&[(launch(), streams())]));
    assert!(
        matches!(only(&report), Problem::Unfinished { warps: 2, first_warps, .. } if first_warps[0] == 2)
    );
    assert_eq!(report.unfinished_warps, 2);
}

#[test]
fn accounting_that_does_not_fit_is_named() {
    let mut recorder = Recorder::new(vec![CodecSpec::Raw]);
    recorder.account = |_, warp, account| account.attempted += u64::from(warp == 1);
    let report = verify(recorder.record(&[(launch(), streams())]));
    assert!(matches!(
        only(&report),
        Problem::Unbalanced { warp: 1, attempted: 201, recorded: 200, lost: 0, .. }
    ));

    recorder.account = |_, _, account| (account.recorded, account.lost) = (u64::MAX, 1);
    let report = verify(recorder.record(&[(launch(), Streams::new())]));
    let first = &report.problems[0];
    assert!(matches!(first, Problem::Unbalanced { .. }), "an overflowing sum is no balance: {first}");

    recorder.account = |_, warp, account| account.chunks += u32::from(warp == 3);
    let report = verify(recorder.record(&[(launch(), streams())]));
    assert!(matches!(only(&report), Problem::Miscounted { warp: 3, what: "chunks", .. }));

    // A warp with recorded events by its account, but without events in the file.
    recorder.account = |_, warp, account| {
        if warp == 2 {
            (account.attempted, account.recorded) = (5, 5);
        }
    };
    let mut without = streams();
    without.remove(&2);
    let report = verify(recorder.record(&[(launch(), without)]));
    assert!(matches!(
        only(&report),
        Problem::Miscounted { warp: 2, what: "events", expected: 5, found: 0, .. }
    ));
}

#[test]
fn missing_accounting_is_one_problem() {
    let recorder = Recorder::new(vec![CodecSpec::Raw]);
    let mut file = Sections::new(&recorder.metadata);
    file.put(&launch().encode_section());
    let report = verify(file.finish());
    assert!(matches!(only(&report), Problem::MissingAccounting { first: 0, last: 3, .. }));
}

#[test]
fn locations_and_lanes_are_checked() {
    let mut recorder = Recorder::new(vec![ecl()]);
    recorder.metadata.locations.truncate(19);
    let report = verify(recorder.record(&[(launch(), streams())]));
    let Problem::UnknownLocation { location: 20, events: 40, first } = only(&report) else {
        panic!("{report}")
    };
    assert_eq!((first.warp, first.event), (0, 19));

    // Blocks of 40 threads: odd warps have 8 lanes.
    let launch = LaunchInfo::new(0, 0, [2, 1, 1], [40, 1, 1], 0).unwrap();
    let report = verify(Recorder::new(vec![ecl()]).record(&[(launch, streams())]));
    let Problem::LaneOutside { events: 400, first, mask, lanes: 0xff } = only(&report) else {
        panic!("{report}")
    };
    assert_eq!((first.warp, first.event, *mask), (1, 0, u32::MAX - 1));
}

#[test]
fn tracks_that_differ_are_named_with_the_event() {
    let recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]);
    let trace = streams();
    let mut twin = streams();
    twin.get_mut(&2).unwrap()[123].mask = 1;
    let report = verify(recorder.record_tracks(&[(launch(), vec![&trace, &twin])]));
    let problem = only(&report);
    assert!(matches!(
        problem,
        Problem::TracksDiffer { warp: 2, event: 123, twin: Event { mask: 1, .. }, .. }
    ));
    assert_eq!(
        problem.to_string(),
        "launch 0, warp 2: event 123 of track 1, location 4 mask 0x00000001, does not fit track 0, \
         where lanes 0x00000001 come to location 4 mask 0xfffffffd"
    );
    let compared = report.twin.unwrap();
    assert_eq!((compared.equal_warps, compared.different_warps), (3, 1));
}

#[test]
fn tracks_of_other_lengths_differ_unless_events_were_lost() {
    let mut recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]);
    let trace = streams();
    let mut twin = streams();
    twin.get_mut(&1).unwrap().truncate(150);
    let report = verify(recorder.record_tracks(&[(launch(), vec![&trace, &twin])]));
    assert!(matches!(only(&report), Problem::LengthsDiffer { warp: 1, trace: 200, twin: 150, .. }));

    recorder.account = |track, warp, account| {
        if (track, warp) == (1, 1) {
            (account.attempted, account.lost) = (200, 50);
        }
    };
    let report = verify(recorder.record_tracks(&[(launch(), vec![&trace, &twin])]));
    assert!(matches!(only(&report), Problem::Lost { track: 1, events: 50, .. }));
    let compared = report.twin.unwrap();
    assert_eq!((compared.equal_warps, compared.prefix_warps, compared.different_warps), (3, 1, 0));
    assert_eq!(compared.events, 3 * 200 + 150);

    // A loss explains missing events, not different ones.
    twin.get_mut(&1).unwrap()[149].location = 7;
    let report = verify(recorder.record_tracks(&[(launch(), vec![&trace, &twin])]));
    assert!(
        report.problems.iter().any(|problem| matches!(problem, Problem::TracksDiffer { event: 149, .. }))
    );
}

/// Events of a warp in two diverged groups of lanes: as runs where they began, and in the actual order.
fn diverged() -> (Streams, Streams) {
    let (low, high) = (0x0000_ffff, 0xffff_0000);
    let mut trace = vec![event(1, low); 300];
    trace.extend((0..300).map(|number| event(2 + number % 3, high)));
    trace.push(event(9, u32::MAX));
    let mut twin: Vec<Event> =
        (0..300).flat_map(|number| [event(1, low), event(2 + number % 3, high)]).collect();
    twin.push(event(9, u32::MAX));
    (Streams::from([(1, trace)]), Streams::from([(1, twin)]))
}

#[test]
fn events_that_share_no_lane_may_change_places() {
    let (trace, twin) = diverged();
    for codec in [ecl(), CodecSpec::Predict(PredictParams::DEFAULT)] {
        let recorder = Recorder::new(vec![codec, CodecSpec::Raw]);
        for tracks in [vec![&trace, &twin], vec![&twin, &trace]] {
            let report = verify(recorder.record_tracks(&[(launch(), tracks)]));
            assert!(report.is_ok(), "{report}");
            let compared = report.twin.unwrap();
            assert_eq!((compared.equal_warps, compared.events), (1, 601));
        }
    }
    // Events with a common lane may not.
    let recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]);
    let mut wrong = twin;
    wrong.get_mut(&1).unwrap().swap(599, 600);
    let report = verify(recorder.record_tracks(&[(launch(), vec![&trace, &wrong])]));
    assert!(
        only(&report).to_string().ends_with(
            "event 599 of track 1, location 9 mask 0xffffffff, does not fit track 0, \
             where lanes 0xffff0000 come to location 4 mask 0xffff0000"
        ),
        "{report}"
    );
}

#[test]
fn as_many_events_of_other_lanes_are_a_difference() {
    let recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]);
    let [trace, twin] =
        [1, 2].map(|mask| Streams::from([(3, vec![event(1, 4), event(1, mask), event(1, mask)])]));
    let report = verify(recorder.record_tracks(&[(launch(), vec![&trace, &twin])]));
    assert_eq!(
        only(&report).to_string(),
        "launch 0, warp 3: event 1 of track 1, location 1 mask 0x00000002, does not fit track 0, \
         where lanes 0x00000002 have no event left"
    );
    let compared = report.twin.unwrap();
    assert_eq!((compared.different_warps, compared.events), (1, 1));
}

#[test]
fn a_loss_excuses_what_its_own_track_lacks() {
    let mut recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]);
    let (trace, twin) = diverged();
    let mut part = trace.clone();
    part.get_mut(&1).unwrap().truncate(400);
    // The trace lost its end. With runs where they began, 300 events of one half and 100 of the other remain.
    recorder.account = |track, _, account| {
        if track == 0 && account.recorded == 400 {
            (account.attempted, account.lost) = (601, 201);
        }
    };
    let report = verify(recorder.record_tracks(&[(launch(), vec![&part, &twin])]));
    assert!(matches!(only(&report), Problem::Lost { track: 0, events: 201, .. }));
    let compared = report.twin.unwrap();
    assert_eq!((compared.prefix_warps, compared.different_warps, compared.events), (1, 0, 400));

    // The other track's loss does not explain it.
    recorder.account = |track, _, account| {
        if track == 1 && account.recorded == 601 {
            (account.attempted, account.lost) = (602, 1);
        }
    };
    let report = verify(recorder.record_tracks(&[(launch(), vec![&part, &twin])]));
    let differ = |problem: &Problem| matches!(problem, Problem::LengthsDiffer { trace: 400, twin: 601, .. });
    assert!(report.problems.iter().any(differ), "{report}");
    assert_eq!(report.twin.unwrap().different_warps, 1);
}

#[test]
fn tracks_too_far_apart_are_not_comparable() {
    let mut trace: Vec<Event> =
        (0..200_000u32).map(|number| event(1 + (number % 7) as u16, 1 + number / 7 % 2)).collect();
    let mut twin = trace.clone();
    trace.push(event(9, 4));
    twin.insert(0, event(9, 4));
    let [trace, twin] = [trace, twin].map(|events| Streams::from([(0, events)]));
    let recorder = Recorder::new(vec![ecl(), CodecSpec::Raw]);
    let report = verify(recorder.record_tracks(&[(launch(), vec![&trace, &twin])]));
    assert!(matches!(only(&report), Problem::TracksTooFarApart { warp: 0, event: 0, .. }), "{report}");
    assert!(report.to_string().contains("65536 runs of track 0 stand before event 0 of track 1"), "{report}");
    assert_eq!(report.twin.unwrap().unreadable_warps, 1);
}

#[test]
fn a_missing_chunk_is_named() {
    let recorder = Recorder::new(vec![CodecSpec::Raw]);
    let mut file = Sections::new(&recorder.metadata);
    file.put(&launch().encode_section());
    let payload = [1, 0, 1, 0, 0, 0];
    let chunk = |sequence| ChunkRef { track: 0, warp: 1, sequence, events: 1, payload: &payload };
    let offset = file.bytes.len();
    file.put_frame(0, &[chunk(0), chunk(2)]);
    let report = verify(file.finish());
    assert_eq!(
        report.problems[0].to_string(),
        format!(
            "launch 0, track 0, warp 1: chunk 2 (FRAM at offset {offset}) stands where chunk 1 should be; \
             a chunk is missing, doubled or out of order"
        )
    );
}

#[test]
fn a_chunk_that_does_not_decode_is_named_and_the_rest_is_checked() {
    let recorder = Recorder::new(vec![CodecSpec::Raw]);
    let mut file = Sections::new(&recorder.metadata);
    file.put(&launch().encode_section());
    let payload = [1, 0, 1, 0, 0, 0];
    let zero_mask = [1, 0, 0, 0, 0, 0];
    let chunk = |warp, events, payload| ChunkRef { track: 0, warp, sequence: 0, events, payload };
    file.put_frame(
        0,
        &[chunk(0, 1, &payload), chunk(1, 2, &payload), chunk(2, 1, &zero_mask), chunk(3, 1, &payload)],
    );
    let trace = TraceFile::from_bytes(file.finish()).unwrap();
    let report = trace.verify();
    let unreadable = report.problems.iter().filter(|problem| matches!(problem, Problem::Unreadable(_)));
    let messages: Vec<_> = unreadable.map(ToString::to_string).collect();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].contains("warp 1, chunk 0") && messages[0].contains("2 events were announced"));
    assert!(messages[1].contains("warp 2, chunk 0") && messages[1].contains("mask 0"));
    assert_eq!(report.events, 2);
    // Decoding reports the same errors, after the events before them.
    let found: Vec<_> = trace.decode_warp(0, 2, 0).unwrap().collect();
    assert!(matches!(found[..], [Err(_)]));
    assert!(crate::support::decode(&trace, 0, 0).is_err());
}

#[test]
fn many_problems_are_counted_and_some_are_listed() {
    let launch = LaunchInfo::new(0, 0, [500, 1, 1], [32, 1, 1], 0).unwrap();
    let mut recorder = Recorder::new(vec![CodecSpec::Raw]);
    recorder.account = |_, _, account| account.attempted += 1;
    let report = verify(recorder.record(&[(launch, Streams::new())]));
    assert_eq!((report.problem_count(), report.problems.len(), report.problems_left_out), (500, 100, 400));
    assert!(report.to_string().ends_with("and 400 more"));
}

#[test]
fn many_launches_are_reported_as_one_after_the_other() {
    let numbered = |number| LaunchInfo::new(number, 0, [4, 1, 1], [32, 1, 1], 0).unwrap();
    let launches: Vec<(LaunchInfo, Streams)> = (0..150).map(|number| (numbered(number), streams())).collect();
    let mut recorder = Recorder::new(vec![CodecSpec::Raw, CodecSpec::Raw]);
    recorder.account = |launch, warp, account| {
        // One warp of launches 0, 3, 6 ... counts too many events; one warp of each launch lost events.
        account.recorded += u64::from(launch % 3 == 0 && warp == 2);
        if warp == 1 {
            (account.attempted, account.lost) = (account.attempted + 7, 7);
        }
    };
    let bytes = recorder.record(&launches);
    let trace = TraceFile::from_bytes(bytes).unwrap();
    let mut seen = Vec::new();
    let report = trace.verify_with_progress(&mut |done, total| seen.push((done, total)));
    assert!(seen.is_sorted() && seen.len() > 3 && seen.last() == Some(&(150 * 1600, 150 * 1600)), "{seen:?}");
    assert_eq!((report.launches, report.warps, report.events), (150, 600, 150 * 800));
    assert_eq!((report.lost_events, report.lost.map(|lost| lost.warps)), (150 * 2 * 7, Some(300)));
    assert_eq!(report.accounts, 1200);
    let twin = report.twin.unwrap();
    assert_eq!(twin.equal_warps + twin.prefix_warps, 600);
    let mut expected: Vec<String> = Vec::new();
    for launch in &launches {
        let alone = verify(recorder.record(std::slice::from_ref(launch)));
        expected.extend(alone.problems.iter().map(ToString::to_string));
    }
    assert_eq!(report.problem_count(), expected.len() as u64);
    let found: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected[..100]);
}
