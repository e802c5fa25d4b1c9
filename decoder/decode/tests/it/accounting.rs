//! Contradictions between accounts of a warp, and between index and sections, are found.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::sections::Sections;
use crate::support::{Recorder, Streams, event};
use warptrace_decoder::{Completeness, Problem, TraceFile, VerifyReport};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{
    AccountRun, Compression, IndexEntry, LaunchInfo, PREAMBLE_BYTES, SectionHeader, SectionKind,
    TRAILER_BYTES, Trailer, encode_accounts, encode_section,
};

fn trace() -> Vec<u8> {
    let launch = LaunchInfo::new(0, 0, [8, 1, 1], [32, 1, 1], 0).unwrap();
    let streams: Streams = (0..8).map(|warp| (warp, vec![event(1, u32::MAX); 10])).collect();
    Recorder::new(vec![CodecSpec::Raw]).record(&[(launch, streams)])
}

/// Returns the sections of a file from `LNCH` to the index, without the index.
fn sections(file: &[u8]) -> Vec<Vec<u8>> {
    let mut at = PREAMBLE_BYTES;
    let mut found = Vec::new();
    while at < file.len() - TRAILER_BYTES {
        let header = SectionHeader::parse(&file[at..], at as u64).unwrap();
        let end = at + header.total_bytes() as usize;
        if !matches!(&header.tag.0, b"META" | b"INDX") {
            found.push(file[at..end].to_vec());
        }
        at = end;
    }
    found
}

/// Replaces the sections of a file, and writes an index modified by `change`.
fn with_sections(file: &[u8], sections: &[Vec<u8>], change: impl Fn(&mut IndexEntry)) -> Vec<u8> {
    let header = SectionHeader::parse(&file[PREAMBLE_BYTES..], 0).unwrap();
    let bytes = file[..PREAMBLE_BYTES + header.total_bytes() as usize].to_vec();
    let mut again = Sections { bytes, index: Vec::new() };
    sections.iter().for_each(|section| again.put(section));
    again.index.iter_mut().for_each(change);
    again.finish()
}

fn accounts(first: u32, accounts: &[WarpAccount]) -> Vec<u8> {
    let body = encode_accounts(0, 0, first, &AccountRun::of(accounts), Compression::None).unwrap();
    encode_section(SectionKind::Accounts, &body)
}

const SOUND: WarpAccount = WarpAccount { attempted: 10, recorded: 10, lost: 0, chunks: 1, finished: 1 };

fn with_one_more(section: &[u8]) -> [VerifyReport; 2] {
    let file = trace();
    let mut first = sections(&file);
    first.insert(1, section.to_vec());
    let last = [sections(&file), vec![section.to_vec()]].concat();
    [first, last].map(|sections| {
        let trace = TraceFile::from_bytes(with_sections(&file, &sections, |_| {})).unwrap();
        assert_eq!(*trace.completeness(), Completeness::Complete);
        trace.verify()
    })
}

#[test]
fn the_same_sections_again_are_a_sound_trace() {
    let file = trace();
    let again = with_sections(&file, &sections(&file), |_| {});
    let report = TraceFile::from_bytes(again).unwrap().verify();
    assert!(report.is_ok(), "{report}");
}

#[test]
fn a_second_account_of_a_warp_is_named_wherever_it_stands() {
    let lost = WarpAccount { attempted: 15, lost: 5, ..SOUND };
    for (first, extra) in [(0, &[SOUND; 8][..]), (0, &[lost; 8]), (2, &[lost, SOUND, lost]), (7, &[lost])] {
        for report in with_one_more(&accounts(first, extra)) {
            let twice = |problem: &&Problem| matches!(problem, Problem::AccountedTwice { .. });
            let found: Vec<_> = report.problems.iter().filter(twice).collect();
            let [Problem::AccountedTwice { launch: 0, track: 0, first: from, last, .. }] = found[..] else {
                panic!("{report}");
            };
            assert_eq!((*from, *last), (first, first + extra.len() as u32 - 1), "{report}");
            assert!(!report.is_ok());
        }
    }
}

#[test]
fn the_problem_says_where_the_second_account_stands() {
    let file = trace();
    let all = [sections(&file), vec![accounts(3, &[SOUND])]].concat();
    let report = TraceFile::from_bytes(with_sections(&file, &all, |_| {})).unwrap().verify();
    assert_eq!(report.problem_count(), 1, "{report}");
    // The section stands where the index of the trace was.
    let trailer_at = file.len() - TRAILER_BYTES;
    let at = Trailer::parse(&file[trailer_at..], trailer_at as u64).unwrap().index_offset;
    assert_eq!(
        report.problems[0].to_string(),
        format!(
            "launch 0, track 0: the section at offset {at} accounts for warps 3 to 3 a second time; \
             which of the accounts is right is not known: record again"
        )
    );
}

#[test]
fn an_account_that_does_not_add_up_is_named_in_either_order() {
    let wrong = WarpAccount { attempted: 12, ..SOUND };
    for report in with_one_more(&accounts(4, &[SOUND, wrong])) {
        let unbalanced = |problem: &Problem| {
            matches!(problem, Problem::Unbalanced { warp: 5, attempted: 12, recorded: 10, lost: 0, .. })
        };
        assert!(report.problems.iter().any(unbalanced), "{report}");
        assert!(report.problems.iter().any(|problem| matches!(problem, Problem::AccountedTwice { .. })));
    }
}

#[test]
fn sections_that_overlap_in_a_chain_are_each_named() {
    let file = trace();
    let mut all = sections(&file);
    // Removes the trace's own accounting.
    all.pop();
    all.extend([accounts(5, &[SOUND; 3]), accounts(0, &[SOUND; 4]), accounts(2, &[SOUND; 4])]);
    let report = TraceFile::from_bytes(with_sections(&file, &all, |_| {})).unwrap().verify();
    let named: Vec<_> = (report.problems.iter())
        .map(|problem| match problem {
            Problem::AccountedTwice { first, last, .. } => (*first, *last),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(named, [(2, 3), (5, 5)]);
}

#[test]
fn a_section_that_is_not_the_one_in_the_index_is_called_by_its_kind() {
    for (kind, name) in [(SectionKind::Accounts, "ACCT"), (SectionKind::Frame, "FRAM")] {
        let file = trace();
        let bytes = with_sections(&file, &sections(&file), |entry| {
            if entry.kind == kind {
                entry.last_warp -= 1;
            }
        });
        let report = TraceFile::from_bytes(bytes).unwrap().verify();
        let message = report.problems[0].to_string();
        assert!(message.starts_with(&format!("{name} at offset ")), "{message}");
        assert!(message.contains("field `last warp` is 7, the index says 6"), "{message}");
    }
}
