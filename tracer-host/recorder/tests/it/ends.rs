//! Ends of launches: accounts of their recorded warps, and early ends.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use warptrace_decoder::{Completeness, TraceFile};
use warptrace_format::account::WarpAccount;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::limits::MAX_EARLY_ENDS;
use warptrace_format::file::{
    Accounts, EarlyEnd, LaunchInfo, SECTION_HEADER_BYTES, SectionHeader, decode_accounts,
};
use warptrace_host::writer::{TraceWriter, WriterOptions};

use crate::additions::sections;
use crate::recordings::{Recorder, Streams, decode, event, metadata};
use crate::support::record;

fn recorded(launch: LaunchInfo, streams: &Streams) -> Vec<u8> {
    record(&Recorder::new(vec![CodecSpec::Raw]), &[(launch, streams.clone())])
}

#[test]
fn accounts_reach_from_the_first_chosen_warp_to_the_last() {
    // 24 blocks of two warps; warp 1 of blocks 5, 9 and 13 is recorded.
    let chosen = ChosenWarps { first_block: 5, blocks: 3, block_step: 4, first_warp: 1, block_warps: 1 };
    let launch = LaunchInfo::new(1, 0, [6, 4, 1], [64, 1, 1], 0).unwrap().with_chosen(chosen).unwrap();
    let streams = [(11, vec![event(3, 0xff); 40]), (27, vec![event(4, 1), event(5, 2)])].into();
    let file = recorded(launch, &streams);
    let [at] = sections(&file, b"ACCT")[..] else { panic!("one section") };
    let length = SectionHeader::parse(&file[at..], 0).unwrap().total_bytes() as usize;
    let body = &file[at..at + length][SECTION_HEADER_BYTES..];
    let Accounts { header, runs, .. } = decode_accounts(body, 0).unwrap();
    assert_eq!((header.first_warp, header.last_warp()), (11, 27));
    let found: Vec<_> = runs.iter().map(|run| (run.warps, run.account.recorded)).collect();
    assert_eq!(found, [(1, 40), (15, 0), (1, 2)]);
    let none = WarpAccount { finished: 1, ..WarpAccount::default() };
    assert_eq!(runs[1].account, none, "neither chosen nor with events");
}

#[test]
fn long_ways_without_a_chosen_warp_have_no_accounts() {
    let chosen = ChosenWarps { first_block: 7, blocks: 3, block_step: 40_000, first_warp: 0, block_warps: 1 };
    let launch = LaunchInfo::new(0, 0, [100_000, 1, 1], [32, 1, 1], 0).unwrap().with_chosen(chosen).unwrap();
    let streams: Streams = [(7, vec![event(1, 1); 3]), (80_007, vec![event(2, 1)])].into();
    let file = recorded(launch, &streams);
    assert_eq!(sections(&file, b"ACCT").len(), 3, "sections of at most 16,384 warps");
    let trace = TraceFile::from_bytes(file).unwrap();
    let report = trace.verify();
    assert!(report.is_ok() && report.accounts == 3, "{report}");
    assert_eq!(decode(&trace, 0, 0).unwrap(), streams);
}

#[test]
fn a_launch_ends_early_once_and_the_number_of_early_ends_is_limited() {
    let metadata = metadata(vec![CodecSpec::Raw]);
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    let end = EarlyEnd::Interrupted;
    for number in 0..=MAX_EARLY_ENDS as u32 {
        assert!(writer.end_early(number, &end).is_err(), "there is no such launch");
        let info = LaunchInfo::new(number, 0, [1; 3], [32, 1, 1], 0).unwrap();
        writer.begin_launch(&info).unwrap();
        assert_eq!(writer.end_early(number, &end).is_ok(), number < MAX_EARLY_ENDS as u32);
        assert!(writer.end_early(number, &end).is_err(), "a launch ends once");
    }
    let trace = TraceFile::from_bytes(writer.finish().unwrap().0).unwrap();
    assert_eq!(*trace.completeness(), Completeness::Complete);
}
