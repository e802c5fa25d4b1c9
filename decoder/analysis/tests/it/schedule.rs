//! Where and when warps ran: constructed spans with known figures, damaged files, and sentences.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::sections::Sections;
use crate::support::{event, metadata};
use warptrace_analysis::words;
use warptrace_analysis::{
    Analysis, AnalysisError, BlockRan, LaunchSchedule, Selection, WarpRan, analyse, blocks,
};
use warptrace_decoder::{DecodeError, TraceFile};
use warptrace_format::account::WarpAccount;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::codec::encode_stream;
use warptrace_format::file::{ChunkRef, EarlyEnd, LaunchInfo, TIMES};
use warptrace_format::span::WarpSpan;

/// The global timer when the first launch begins.
const START: u64 = 1_700_000_000_000_000_000;

/// Multiprocessor of a warp, its start time, and its end time, if it ended, relative to `START`.
type Warp = (u32, u64, Option<u64>);

fn span(&(sm, begin, end): &Warp) -> WarpSpan {
    // Clocks of multiprocessors are unrelated. Two cycles are a nanosecond.
    let clock = |time: u64| (u64::from(sm) << 50) + 2 * time;
    WarpSpan {
        begin_clock: clock(begin),
        begin_timer: START + begin,
        end_clock: end.map_or(0, clock),
        end_timer: end.map_or(0, |end| START + end),
        begin_sm: sm + 1,
        end_sm: if end.is_some() { sm + 1 } else { 0 },
    }
}

fn written(launches: &[(LaunchInfo, Vec<Warp>)]) -> Vec<u8> {
    written_with(launches, None)
}

fn written_with(launches: &[(LaunchInfo, Vec<Warp>)], end: Option<EarlyEnd>) -> Vec<u8> {
    let metadata = metadata(&[(1, "enter", 3)]).with_property(TIMES, "blocks");
    let mut file = Sections::new(&metadata);
    for (info, warps) in launches {
        file.put(&info.encode_section());
        let (events, payload) = encode_stream(metadata.tracks[0], &[event(1, 3)], 400).remove(0);
        let mut accounts = Vec::new();
        for (index, warp) in (0..).zip(warps) {
            let number = info.chosen_warp(index).unwrap();
            let chunk = ChunkRef { track: 0, warp: number, sequence: 0, events, payload: &payload };
            file.put_frame(info.number(), &[chunk]);
            let finished = u32::from(warp.2.is_some());
            accounts.push(WarpAccount { attempted: 1, recorded: 1, lost: 0, chunks: 1, finished });
        }
        let spans: Vec<WarpSpan> = warps.iter().map(span).collect();
        file.put_accounts(info, 0, &accounts, &spans);
    }
    end.iter().for_each(|end| file.put(&end.encode_section(0).unwrap()));
    file.finish()
}

fn launch(number: u32, blocks: u32) -> LaunchInfo {
    LaunchInfo::new(number, 0, [blocks, 1, 1], [64, 1, 1], 0).unwrap()
}

/// A warp with a span takes memory, and equal warps take only a few bits of the file.
#[test]
fn a_file_cannot_name_any_number_of_warps() {
    let metadata = metadata(&[(1, "enter", 3)]).with_property(TIMES, "blocks");
    let written = |launches: u32| {
        let mut file = Sections::new(&metadata);
        let silent = WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished: 1 };
        let (accounts, spans) = (vec![silent; 1 << 16], vec![span(&(0, 0, Some(5))); 1 << 16]);
        for number in 0..launches {
            let info = launch(number, 1 << 15);
            file.put(&info.encode_section());
            file.put_accounts(&info, 0, &accounts, &spans);
        }
        TraceFile::from_bytes(file.finish()).unwrap()
    };
    let few = analyse(&written(8), &Selection::default()).unwrap().schedule.unwrap();
    assert_eq!(few.launches.iter().map(|launch| launch.warps).sum::<u64>(), 8 << 16);
    let many = analyse(&written(48), &Selection::default()).unwrap_err();
    assert!(matches!(many, AnalysisError::Decode { source: DecodeError::TooMuchWork { .. } }), "{many}");
}

/// Returns warps on two multiprocessors: blocks 0 and 2 on SM 3, and 1, 3 and 4 on SM 7, where 4 takes long.
fn uneven() -> Vec<Warp> {
    vec![
        (3, 1_000, Some(1_100)),
        (3, 1_010, Some(1_090)),
        (7, 1_000, Some(1_080)),
        (7, 1_000, Some(1_100)),
        (3, 1_150, Some(1_240)),
        (3, 1_150, Some(1_250)),
        (7, 1_020, Some(1_120)),
        (7, 1_020, Some(1_110)),
        (7, 1_150, Some(1_500)),
        (7, 1_160, Some(1_560)),
    ]
}

fn all(trace: &TraceFile) -> Analysis {
    warptrace_analysis::fuzzing::check_trace(trace);
    analyse(trace, &Selection::default()).unwrap()
}

fn schedule_of(analysis: &Analysis, launch: usize) -> &LaunchSchedule {
    &analysis.schedule.as_ref().unwrap().launches[launch]
}

#[test]
fn a_launch_waits_for_its_slow_block() {
    let trace = TraceFile::from_bytes(written(&[(launch(0, 5), uneven())])).unwrap();
    assert_eq!(trace.verify().problems.len(), 0);
    let analysis = all(&trace);
    let found = schedule_of(&analysis, 0);
    assert_eq!((found.begin, found.nanoseconds), (START + 1_000, 560));
    assert_eq!((found.warps, found.blocks, found.sms, found.waves), (10, 5, 2, 2));
    // Of 80, 80, 90, 90, 100, 100, 100, 100, 350, 400; and of 100, 100, 100, 100, 410.
    assert_eq!((found.median_warp_nanoseconds, found.median_block_nanoseconds), (100, 100));
    // SM 3: 100 and 100; SM 7: 1000 to 1120, and 410.
    assert_eq!((found.busy_nanoseconds, found.most_busy_nanoseconds), (200 + 530, 530));
    assert_eq!(found.waiting_nanoseconds, 1_560 - 1_250);
    let slow = BlockRan { block: 4, sm: 7, wave: 2, begin_nanoseconds: 150, nanoseconds: Some(410) };
    assert_eq!((found.longest, found.last), (Some(slow), Some(slow)));
    assert!((found.imbalance() - 2.0 * 530.0 / 730.0).abs() < 1e-9);
    let placed = blocks(&trace, &launch(0, 5), &Selection::default()).unwrap().unwrap();
    assert_eq!((placed.begin, placed.nanoseconds), (found.begin, found.nanoseconds));
    let brief = |ran: &BlockRan| (ran.sm, ran.block, ran.wave, ran.begin_nanoseconds, ran.end_nanoseconds());
    assert_eq!(
        placed.blocks.iter().map(brief).collect::<Vec<_>>(),
        [
            (3, 0, 1, 0, Some(100)),
            (3, 2, 2, 150, Some(250)),
            (7, 1, 1, 0, Some(100)),
            (7, 3, 1, 20, Some(120)),
            (7, 4, 2, 150, Some(560))
        ]
    );
    let warp = analysis.warps.iter().nth(9).unwrap().ran.unwrap();
    let expected = WarpRan { sm: 7, begin_nanoseconds: 160, nanoseconds: Some(400), median_nanoseconds: 100 };
    assert_eq!(warp, expected);
    assert_eq!(analysis.schedule.as_ref().unwrap().timer_step_nanoseconds, 10);
    let said = words::schedule(&trace, &analysis);
    assert_eq!(
        said,
        [
            "block 4 on SM 7 ran 4.1 times as long as the median block: SMs waited 28% of the launch for it; launch 0 \
          (`k`) ran for 560 ns: 5 blocks in 2 waves on 2 SMs",
            "the global timer went in steps of 10 ns: times are not more exact",
        ]
    );
}

#[test]
fn a_launch_that_did_not_run_to_its_end_says_so() {
    let mut warps = uneven();
    warps[8].2 = None;
    for (end, name, words) in [
        (EarlyEnd::failed("as it was told"), "failed", "failed, after at least"),
        (EarlyEnd::Interrupted, "interrupted", "was interrupted, after at least"),
    ] {
        let bytes = written_with(&[(launch(0, 5), warps.clone())], Some(end));
        let trace = TraceFile::from_bytes(bytes).unwrap();
        let analysis = all(&trace);
        assert_eq!(schedule_of(&analysis, 0).ended, name);
        let said =
            format!("launch 0 (`k`) {words} 560 ns: 4 blocks in 2 waves on 2 SMs are known to have ended");
        assert_eq!(words::schedule(&trace, &analysis)[0], said);
    }
}

#[test]
fn launches_have_gaps_and_overlap() {
    let even = |from: u64, to: u64| {
        vec![(0, from, Some(to)), (0, from, Some(to)), (1, from, Some(to)), (1, from, Some(to))]
    };
    let launches = [
        (launch(0, 2), even(0, 100)),
        (launch(1, 2), even(150, 300)),
        (launch(2, 2), even(250, 280)),
        (launch(3, 2), even(290, 400)),
    ];
    let trace = TraceFile::from_bytes(written(&launches)).unwrap();
    let analysis = all(&trace);
    let schedule = analysis.schedule.as_ref().unwrap();
    let gaps: Vec<_> =
        schedule.launches.iter().map(|one| (one.gap_nanoseconds, one.overlap_nanoseconds)).collect();
    assert_eq!(gaps, [(0, 0), (50, 0), (0, 30), (0, 10)]);
    assert_eq!((schedule.nanoseconds, schedule.gap_nanoseconds, schedule.overlap_nanoseconds), (400, 50, 40));
    assert!(schedule.launches.iter().all(|one| one.waiting_nanoseconds == 0));
    let said = words::schedule(&trace, &analysis);
    assert!(said[0].ends_with("no SM waited for its end"), "{said:?}");
    assert_eq!(said[1], "4 launches in 400 ns: none ran in 12% of it; they overlap for 40 ns");
}

#[test]
fn what_did_not_end_and_what_was_not_chosen_is_told_apart() {
    let chosen = ChosenWarps { first_block: 1, blocks: 2, block_step: 2, first_warp: 1, block_warps: 1 };
    let info = launch(0, 5).with_chosen(chosen).unwrap();
    let trace = TraceFile::from_bytes(written(&[(info, vec![(2, 5, None), (3, 6, Some(16))])])).unwrap();
    let analysis = all(&trace);
    let found = schedule_of(&analysis, 0);
    assert_eq!((found.warps, found.unended_warps, found.blocks, found.sms), (1, 1, 1, 1));
    assert_eq!(found.last.unwrap().block, 3);
    assert_eq!((analysis.losses.unplaced_warps, analysis.losses.unfinished_warps), (Some(1), 1));
    assert_eq!(analysis.warps.iter().next().unwrap().ran.unwrap().nanoseconds, None);
    let placed = blocks(&trace, &info, &Selection::default()).unwrap().unwrap();
    let ends: Vec<_> =
        placed.blocks.iter().map(|ran| (ran.block, ran.begin_nanoseconds, ran.nanoseconds)).collect();
    assert_eq!(ends, [(1, 0, None), (3, 1, Some(10))]);
}

#[test]
fn damaged_spans_leave_the_rest_and_are_told() {
    let bytes = written(&[(launch(0, 5), uneven()), (launch(1, 5), uneven())]);
    let at = bytes.windows(4).position(|four| four == b"SPAN").unwrap();
    for place in [at, at + 3, at + 24, at + 24 + 9, at + 40] {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        let trace = TraceFile::from_bytes(damaged).unwrap();
        // A changed tag hides all later sections from the index; a walk ends there.
        let is_walked = place < at + 24;
        assert!(!trace.verify().problems.is_empty());
        let found = analyse(&trace, &Selection::default());
        if is_walked {
            continue;
        }
        let analysis = found.unwrap();
        assert_eq!(analysis.losses.unplaced_warps, Some(10));
        assert!(words::missing(&analysis.losses).unwrap().contains("begin or end of 10 warps missing"));
        let schedule = analysis.schedule.unwrap();
        assert_eq!(schedule.launches.iter().map(|one| one.launch).collect::<Vec<_>>(), [1]);
        assert_eq!(analysis.counts.visits, 20);
    }
}
