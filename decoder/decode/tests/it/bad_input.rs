//! Reading a damaged file yields the recorded events, a stated prefix of them, or an error.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::{Recording, decode, small};
use warptrace_decoder::{Completeness, OpenError, PrefixReason, Problem, TraceFile, fuzzing};
use warptrace_format::file::{
    FLAG_OPTIONAL, FormatError, PREAMBLE_BYTES, SECTION_HEADER_BYTES, SectionHeader, SectionKind,
    TRAILER_BYTES, Tag, Trailer,
};

/// Returns the file offset, tag and length of each section.
fn sections(bytes: &[u8]) -> Vec<(usize, Tag, usize)> {
    let mut at = PREAMBLE_BYTES;
    let mut found = Vec::new();
    while at < bytes.len() {
        let header = SectionHeader::parse(&bytes[at..], at as u64).unwrap();
        let length = header.total_bytes() as usize;
        found.push((at, header.tag, length));
        at += length;
    }
    found
}

fn first(bytes: &[u8], tag: &[u8; 4]) -> usize {
    sections(bytes).into_iter().find(|(_, found, _)| found.0 == *tag).unwrap().0
}

/// Every stream that decodes is a prefix of the recorded one, and equal if the file claims completeness.
/// Verification finds a problem.
fn assert_honest(trace: &TraceFile, recording: &Recording, what: &str) {
    let whole = *trace.completeness() == Completeness::Complete;
    for launch in trace.launches() {
        let recorded = recording.get(&launch.number()).unwrap_or_else(|| panic!("{what}: invented a launch"));
        for track in 0..2 {
            let decoded = decode(trace, launch.number(), track);
            let Ok(streams) = decoded else { continue };
            for (warp, events) in &streams {
                let expected = recorded.get(warp).unwrap_or_else(|| panic!("{what}: invented warp {warp}"));
                assert!(expected.starts_with(events), "{what}: other events for warp {warp}");
            }
            if whole {
                assert_eq!(&streams, recorded, "{what}: a whole file without some events");
            }
            for (&warp, expected) in recorded {
                let single: Result<Vec<_>, _> =
                    trace.decode_warp(launch.number(), warp, track).unwrap().collect();
                let Ok(single) = single else { continue };
                assert!(expected.starts_with(&single), "{what}: other events for warp {warp} by itself");
                assert!(!whole || single == *expected, "{what}: warp {warp} by itself lacks events");
            }
        }
    }
    let report = trace.verify();
    assert!(!report.is_ok(), "{what}: not noticed by verification\n{report}");
}

#[test]
fn every_truncation_is_an_error_or_a_stated_prefix() {
    let (bytes, recording) = small();
    let metadata_end = sections(&bytes)[1].0;
    let ends: Vec<_> = sections(&bytes).into_iter().map(|(at, _, length)| at + length).collect();
    for length in 0..bytes.len() {
        let what = format!("cut to {length} bytes");
        match TraceFile::from_bytes(bytes[..length].to_vec()) {
            Err(error) => {
                assert!(length < metadata_end, "{what}: {error}");
                assert!(matches!(error, OpenError::Format(_)), "{what}: {error}");
            }
            Ok(trace) => {
                assert!(length >= metadata_end, "{what} opened");
                let last_end = *ends.iter().filter(|&&end| end <= length).max().unwrap();
                let Completeness::Prefix { valid_bytes, reason } = trace.completeness() else {
                    panic!("{what}: taken for whole")
                };
                assert_eq!(*valid_bytes, last_end as u64, "{what}");
                match reason {
                    PrefixReason::Unfinished => assert_eq!(length, last_end, "{what}"),
                    PrefixReason::CutShort { offset, section, missing } => {
                        assert_eq!(*offset, last_end as u64, "{what}");
                        let header = length < last_end + SECTION_HEADER_BYTES;
                        assert_eq!(section.is_none(), header, "{what}");
                        assert!(*missing > 0);
                    }
                    other => panic!("{what}: {other:?}"),
                }
                assert_honest(&trace, &recording, &what);
            }
        }
    }
}

#[test]
fn everything_before_a_cut_can_still_be_read() {
    let (bytes, recording) = small();
    // Cut before the second launch: the first is complete.
    let launches: Vec<_> = sections(&bytes).into_iter().filter(|(_, tag, _)| tag.0 == *b"LNCH").collect();
    let trace = TraceFile::from_bytes(bytes[..launches[1].0].to_vec()).unwrap();
    assert_eq!(trace.launches().len(), 1);
    assert_eq!(decode(&trace, 3, 0).unwrap(), recording[&3]);
    assert_eq!(decode(&trace, 3, 1).unwrap(), recording[&3]);
    let report = trace.verify();
    assert!(matches!(report.problems[..], [Problem::Incomplete(_)]), "{report}");
    assert_eq!(report.accounts, 8);
}

fn changes(at: usize, each: usize) -> impl Iterator<Item = u8> {
    [0x01, 0x80, 0xff].into_iter().cycle().skip(at % 3).take(each)
}

/// Changes every byte of a small file in turn, in `each` ways.
fn every_changed_byte(each: usize) {
    let (bytes, recording) = small();
    for at in 0..bytes.len() {
        for change in changes(at, each) {
            let mut bad = bytes.clone();
            bad[at] ^= change;
            if let Ok(trace) = TraceFile::from_bytes(bad) {
                assert_honest(&trace, &recording, &format!("byte {at} changed by {change:#x}"));
            }
        }
        let mut bad = bytes[..bytes.len() - TRAILER_BYTES].to_vec();
        if let Some(byte) = bad.get_mut(at) {
            *byte ^= 0x10;
            if let Ok(trace) = TraceFile::from_bytes(bad) {
                assert_honest(&trace, &recording, &format!("unfinished, byte {at} changed"));
            }
        }
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    every_changed_byte(1);
}

/// Changes every byte of a small file in turn, in `each` ways, and repairs the checksums.
fn changes_that_the_checksums_agree_with(each: usize) {
    let (bytes, _) = small();
    for at in 0..bytes.len() {
        for change in changes(at, each) {
            let mut bad = bytes.clone();
            bad[at] ^= change;
            // `open` repairs the checksums and reads everything. The result may be arbitrary, within limits.
            fuzzing::open(&bad);
        }
    }
}

#[test]
fn changes_that_the_checksums_agree_with_do_no_harm() {
    changes_that_the_checksums_agree_with(1);
}

#[test]
fn what_is_no_trace_is_told_apart() {
    let message = |bytes: Vec<u8>| TraceFile::from_bytes(bytes).unwrap_err().to_string();
    assert!(message(Vec::new()).contains("empty"));
    assert!(message(vec![0; 100_000]).contains("zeros"));
    assert!(message(b"#!/bin/sh\necho hello\n".to_vec()).contains("not a .wtrc trace"));
    let (good, _) = small();
    let text: Vec<u8> = good.iter().copied().filter(|&byte| byte != b'\r').collect();
    assert!(message(text).contains("binary mode"));
    let mut newer = good;
    newer[8] = 2;
    let message = message(newer);
    assert!(message.contains("version 2") && message.contains("offset 8"), "{message}");
}

fn set_length(bytes: &mut [u8], at: usize, length: u64) {
    bytes[at + 8..at + 16].copy_from_slice(&length.to_le_bytes());
    let crc = crc32fast::hash(&bytes[at..at + 20]);
    bytes[at + 20..at + 24].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn a_length_of_2_to_the_63_is_named_with_its_offset() {
    let (good, recording) = small();
    for length in [1 << 63, u64::MAX, (32 << 20) + 1] {
        let mut bad = good.clone();
        set_length(&mut bad, PREAMBLE_BYTES, length);
        let message = TraceFile::from_bytes(bad).unwrap_err().to_string();
        assert!(message.contains(&length.to_string()), "{message}");
        assert!(message.contains("`length` at offset 32"), "{message}");
    }
    // In a frame, without an index: the file opens up to this frame.
    let frame = first(&good, b"FRAM");
    let mut bad = good.clone();
    set_length(&mut bad, frame, 1 << 63);
    bad.truncate(bad.len() - TRAILER_BYTES);
    let trace = TraceFile::from_bytes(bad).unwrap();
    let Completeness::Prefix { valid_bytes, reason: PrefixReason::Damaged(error) } = trace.completeness()
    else {
        panic!("{:?}", trace.completeness())
    };
    assert_eq!(*valid_bytes, frame as u64);
    assert!(matches!(
        error,
        FormatError::TooLarge { field: "length", offset, value, .. } if *offset == frame as u64 + 8 && *value == 1 << 63
    ));
    assert_honest(&trace, &recording, "2^63");
    // An allowed length, but longer than the file.
    let mut bad = good;
    set_length(&mut bad, frame, 32 << 20);
    bad.truncate(bad.len() - TRAILER_BYTES);
    let trace = TraceFile::from_bytes(bad).unwrap();
    assert!(matches!(
        trace.completeness(),
        Completeness::Prefix { reason: PrefixReason::CutShort { section: Some(Tag([b'F', ..])), .. }, .. }
    ));
}

#[test]
fn bytes_after_the_end_are_named_and_the_rest_is_read() {
    let (mut bytes, recording) = small();
    let length = bytes.len() as u64;
    bytes.extend_from_slice(b"junk");
    let trace = TraceFile::from_bytes(bytes).unwrap();
    let reason = PrefixReason::TrailingBytes { offset: length, bytes: 4 };
    assert!(matches!(trace.completeness(), Completeness::Prefix { reason: found, .. } if *found == reason));
    assert_eq!(decode(&trace, 3, 0).unwrap(), recording[&3]);
}

#[test]
fn a_damaged_index_is_made_anew() {
    let (good, recording) = small();
    let index = first(&good, b"INDX");
    let mut bad = good;
    bad[index + SECTION_HEADER_BYTES + 20] ^= 1;
    let trace = TraceFile::from_bytes(bad).unwrap();
    let Completeness::Prefix { valid_bytes, reason: PrefixReason::IndexDamaged(error) } =
        trace.completeness()
    else {
        panic!("{:?}", trace.completeness())
    };
    assert_eq!(*valid_bytes, index as u64);
    assert!(matches!(error, FormatError::Checksum { section: "INDX", .. }));
    for (&launch, streams) in &recording {
        assert_eq!(&decode(&trace, launch, 0).unwrap(), streams);
    }
    let report = trace.verify();
    assert!(matches!(report.problems[..], [Problem::Incomplete(_)]), "{report}");
}

fn with_section(good: &[u8], tag: &[u8; 4], flags: u16, body: &[u8]) -> Vec<u8> {
    let index = first(good, b"INDX");
    let header = SectionHeader {
        tag: Tag(*tag),
        version: SectionKind::from_tag(Tag(*tag)).map_or(1, SectionKind::version),
        flags,
        length: body.len() as u64,
        body_crc: crc32fast::hash(body),
    };
    let mut bytes = [&good[..index], &header.encode(), body, &good[index..]].concat();
    let trailer_at = bytes.len() - TRAILER_BYTES;
    let old_at = good.len() - TRAILER_BYTES;
    let old = Trailer::parse(&good[old_at..], old_at as u64).unwrap();
    let added = (bytes.len() - good.len()) as u64;
    let trailer = Trailer {
        index_offset: old.index_offset + added,
        file_length: old.file_length + added,
        entries: old.entries,
        index_sections: old.index_sections,
    };
    bytes[trailer_at..].copy_from_slice(&trailer.encode());
    bytes
}

#[test]
fn unknown_sections_are_skipped_when_optional_and_refused_when_not() {
    let (good, recording) = small();
    let optional = with_section(&good, b"NOTE", FLAG_OPTIONAL, b"a later release wrote this");
    let trace = TraceFile::from_bytes(optional.clone()).unwrap();
    assert_eq!(*trace.completeness(), Completeness::Complete);
    assert!(trace.verify().is_ok());
    assert_eq!(decode(&trace, 3, 0).unwrap(), recording[&3]);
    // The scan without an index skips it, too.
    let cut = TraceFile::from_bytes(optional[..optional.len() - TRAILER_BYTES].to_vec()).unwrap();
    assert_eq!(decode(&cut, 3, 0).unwrap(), recording[&3]);

    let needed = with_section(&good, b"NEED", 0, b"");
    let error = TraceFile::from_bytes(needed).unwrap_err().to_string();
    assert!(error.contains("\"NEED\"") && error.contains("newer"), "{error}");
}

#[test]
fn an_index_that_leaves_a_frame_out_is_not_believed() {
    let (good, recording) = small();
    // Inserts a frame that the index does not list.
    let (at, _, length) = sections(&good).into_iter().find(|(_, tag, _)| tag.0 == *b"FRAM").unwrap();
    let body = &good[at + SECTION_HEADER_BYTES..at + length];
    let bytes = with_section(&good, b"FRAM", 0, body);
    let trace = TraceFile::from_bytes(bytes).unwrap();
    assert!(matches!(
        trace.completeness(),
        Completeness::Prefix { reason: PrefixReason::IndexDamaged(_), .. }
    ));
    assert!(decode(&trace, 3, 0).is_err());
    assert!(!trace.verify().is_ok());
    assert_eq!(decode(&trace, 4, 0).unwrap(), recording[&4]);
}

#[test]
fn a_file_that_shrinks_while_it_is_open_is_an_error() {
    let (bytes, _) = small();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let trace = TraceFile::open(file.path()).unwrap();
    file.as_file().set_len(100).unwrap();
    let error = decode(&trace, 3, 0).unwrap_err().to_string();
    assert!(error.contains("shortened"), "{error}");
    assert!(!trace.verify().is_ok());
}

#[test]
fn a_second_launch_of_one_number_does_not_replace_the_first() {
    let (good, recording) = small();
    let (at, _, length) = sections(&good).into_iter().find(|(_, tag, _)| tag.0 == *b"LNCH").unwrap();
    let mut body = good[at + SECTION_HEADER_BYTES..at + length].to_vec();
    // Blocks along y.
    body[12] += 1;
    let second = with_section(&good, b"LNCH", 0, &body);
    for bytes in [second.clone(), second[..second.len() - TRAILER_BYTES].to_vec()] {
        let trace = TraceFile::from_bytes(bytes).unwrap();
        assert!(!trace.verify().is_ok());
        let whole = TraceFile::from_bytes(good.clone()).unwrap();
        let [found, expected] = [&trace, &whole].map(|trace| trace.launches().next().unwrap().grid());
        assert_eq!(found, expected);
        assert_eq!(decode(&trace, 3, 0).unwrap(), recording[&3]);
    }
}

mod full {
    use super::*;

    #[test]
    fn every_changed_byte_is_noticed() {
        every_changed_byte(3);
    }

    #[test]
    fn changes_that_the_checksums_agree_with_do_no_harm() {
        changes_that_the_checksums_agree_with(3);
    }
}
