//! Traces of launches with chosen warps.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::sections::Sections;
use crate::support::{Recorder, Streams, decode, event, metadata};
use warptrace_decoder::{Problem, TraceFile};
use warptrace_format::account::WarpAccount;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::codec::{CodecSpec, PredictParams};
use warptrace_format::file::{
    AccountRun, ChunkRef, Compression, LaunchInfo, SectionKind, encode_accounts, encode_frame, encode_section,
};

const NONE: WarpAccount = WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished: 1 };
const ONE: WarpAccount = WarpAccount { attempted: 1, recorded: 1, lost: 0, chunks: 1, finished: 1 };

/// 24 blocks of two warps. Warp 1 of blocks 5, 9 and 13 was chosen.
fn launch() -> LaunchInfo {
    let chosen = ChosenWarps { first_block: 5, blocks: 3, block_step: 4, first_warp: 1, block_warps: 1 };
    LaunchInfo::new(1, 0, [6, 4, 1], [64, 1, 1], 0).unwrap().with_chosen(chosen).unwrap()
}

fn untraced(number: u32) -> LaunchInfo {
    LaunchInfo::new(number, 1, [3, 1, 1], [32, 1, 1], 0).unwrap().with_chosen(ChosenWarps::NONE).unwrap()
}

fn streams() -> Streams {
    [(11, vec![event(3, 0xff); 40]), (27, vec![event(4, 1), event(5, 2)])].into()
}

#[test]
fn what_was_not_chosen_is_no_loss() {
    for tracks in [vec![CodecSpec::Raw], vec![CodecSpec::Predict(PredictParams::DEFAULT), CodecSpec::Raw]] {
        let count = tracks.len() as u64;
        let launches = [(untraced(0), Streams::new()), (launch(), streams()), (untraced(2), Streams::new())];
        let trace = TraceFile::from_bytes(Recorder::new(tracks).record(&launches)).unwrap();
        let report = trace.verify();
        assert!(report.is_ok(), "{report}");
        assert_eq!((report.launches, report.recorded_launches), (3, 1));
        assert_eq!((report.launch_warps, report.chosen_warps, report.accounts), (54, 3, 3 * count));
        let page = report.to_string();
        assert!(page.contains("\nrecorded  launches: 1 of 3, warps: 3 of 54\n"), "{page}");
        assert_eq!(decode(&trace, 1, 0).unwrap(), streams());
        assert_eq!(decode(&trace, 0, 0).unwrap(), Streams::new());
        let warps: Vec<u32> = trace.streams(1, 0).unwrap().map(|stream| stream.unwrap().warp).collect();
        assert_eq!(warps, [11, 27]);
        assert_eq!(trace.streams(0, 0).unwrap().count(), 0);
        let chosen: Vec<bool> = trace.launches().map(LaunchInfo::is_recorded).collect();
        assert_eq!(chosen, [false, true, false]);
    }
}

fn without_index(more: &[Vec<u8>]) -> TraceFile {
    let mut file = Sections::new(&metadata(vec![CodecSpec::Raw]));
    file.put(&launch().encode_section());
    more.iter().for_each(|section| file.put(section));
    TraceFile::from_bytes(file.bytes).unwrap()
}

fn accounts(first: u32, accounts: &[WarpAccount]) -> Vec<u8> {
    let body = encode_accounts(1, 0, first, &AccountRun::of(accounts), Compression::None).unwrap();
    encode_section(SectionKind::Accounts, &body)
}

#[test]
fn events_of_a_warp_that_was_not_chosen_are_a_problem() {
    let chunk = ChunkRef { track: 0, warp: 12, sequence: 0, events: 1, payload: &[3, 0, 1, 0, 0, 0] };
    let frame = encode_frame(1, 0, &[chunk], Compression::None).unwrap().section;
    let chosen = accounts(11, &[&[NONE][..], &[ONE], &[NONE; 15]].concat());
    let sparse = [accounts(11, &[NONE]), accounts(19, &[NONE]), accounts(27, &[NONE])].concat();
    for sections in [vec![frame.clone(), chosen], vec![frame, sparse]] {
        let report = without_index(&sections).verify();
        let found = |problem: &&Problem| {
            matches!(problem, Problem::NotChosen { launch: 1, track: 0, warps: 1, first: 12 })
        };
        assert_eq!(report.problems.iter().filter(found).count(), 1, "{report}");
    }
}

#[test]
fn chosen_warps_without_accounts_are_named() {
    let missing = |sections: &[Vec<u8>]| {
        let report = without_index(sections).verify();
        let missing = report.problems.iter().filter_map(|problem| match problem {
            Problem::MissingAccounting { first, last, .. } => Some((*first, *last)),
            _ => None,
        });
        missing.collect::<Vec<_>>()
    };
    assert_eq!(missing(&[]), [(11, 27)]);
    assert_eq!(missing(&[accounts(11, &[NONE; 2])]), [(19, 27)]);
    assert_eq!(missing(&[accounts(11, &[NONE]), accounts(27, &[NONE])]), [(19, 19)]);
    assert_eq!(missing(&[accounts(11, &[NONE]), accounts(19, &[NONE]), accounts(27, &[NONE])]), []);
}
