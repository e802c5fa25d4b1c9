//! The body of the fuzz target `open_file`, as a library so that tests can run it. Panics on a finding.

use std::ops::ControlFlow;

use warptrace_format::file::data::DATA_HEADER_BYTES;
use warptrace_format::file::{
    ACCOUNTS_HEADER_BYTES, FRAME_HEADER_BYTES, PREAMBLE_BYTES, SECTION_HEADER_BYTES, SectionKind,
};

use crate::count::count;
use crate::file::{Completeness, TraceFile};
use crate::lanes::LaneDigests;
use crate::{DecodeError, EventBlock, Problem, WarpAccesses, WarpFilter};

/// Maximum number of events to decode for one input: a few bytes can announce billions of them.
const MAX_EVENTS: u64 = 1 << 22;

/// Opens `data` as a trace, first unchanged and then with repaired checksums, and reads everything in every
/// way. The second run tests the code after the checksum checks.
pub fn open(data: &[u8]) {
    read_everything(data.to_vec());
    read_everything(repaired(data.to_vec()));
}

fn read_everything(data: Vec<u8>) {
    let Ok(trace) = TraceFile::from_bytes(data) else { return };
    let tracks = count(trace.metadata().tracks.len());
    let pairs: Vec<_> =
        trace.launches().flat_map(|launch| (0..tracks).map(|track| (launch.number(), track))).collect();
    let announced = pairs
        .iter()
        .fold(0u64, |sum, &(launch, track)| sum.saturating_add(trace.totals(launch, track).events));
    if announced > MAX_EVENTS {
        return;
    }
    let report = trace.verify();
    let page = report.to_string();
    assert!(!page.is_empty());
    if report.is_ok() {
        assert_eq!(*trace.completeness(), Completeness::Complete);
        assert_eq!((report.lost_events, report.unfinished_warps), (0, 0));
    }
    let mut total = 0;
    let is_accounted = !report.problems.iter().any(|problem| {
        matches!(problem, Problem::Unreadable(_) | Problem::AccountedTwice { .. } | Problem::Incomplete(_))
    });
    for (launch, track) in pairs {
        let marked = read_marks(&trace, launch, track);
        let lost = trace.losses(launch, track).expect("the launch and the track exist").lost();
        // If accounts overlap or cannot be read, the two ways to read them differ.
        if let Ok(marked) = marked
            && is_accounted
            && report.problems_left_out == 0
        {
            assert_eq!(marked, lost, "marks and losses of launch {launch}");
        }
        let delivered = read_track(&trace, launch, track);
        if track == 0 {
            read_spans(&trace, launch);
            read_accesses(&trace, launch, report.is_ok());
        }
        if report.is_ok() {
            assert_eq!(delivered, Some(trace.totals(launch, track).events));
        }
        total += if track == 0 { delivered.unwrap_or(0) } else { 0 };
    }
    if report.is_ok() {
        assert_eq!(report.events, total);
    }
}

fn read_accesses(trace: &TraceFile, launch: u32, is_ok: bool) {
    if !trace.has_accesses() {
        return;
    }
    let (mut in_order, mut next) = (0, 0);
    let read = trace.accesses_in_order(launch, &WarpFilter::all(), &mut |warp| {
        assert!(warp.warp >= next, "warps ascend");
        next = warp.warp + 1;
        let vectors = warp.in_order();
        assert!(vectors.is_sorted_by_key(|vector| vector.time));
        assert_eq!(vectors.iter().map(|vector| vector.accesses()).sum::<u64>(), warp.accesses());
        assert_eq!(warp.accesses() + warp.left_out + warp.unmatched, warp.recorded + warp.derived);
        in_order += warp.recorded;
        ControlFlow::Continue(())
    });
    let add = |sum: &mut u64, warp: &WarpAccesses| *sum += warp.recorded;
    let folded = trace.fold_accesses(launch, &WarpFilter::all(), || 0, add, |a, b| a + b);
    if let (Ok(_), Ok(folded)) = (&read, &folded) {
        assert_eq!(in_order, *folded);
    }
    if is_ok {
        assert!(
            read.is_ok() && folded.is_ok_and(|sum| sum == trace.totals(launch, trace.data_track()).events)
        );
    }
}

fn read_spans(trace: &TraceFile, launch: u32) {
    let mut next = 0;
    for (warp, span) in trace.warp_spans(launch).filter_map(Result::ok) {
        assert!(warp >= next && span.has_begun(), "warps ascend");
        next = warp + 1;
        assert_eq!(span.nanoseconds().is_some(), span.has_ended());
        if let Some(axis) = trace.axis(&span, span.end_clock) {
            axis.nanoseconds(span.end_clock.wrapping_add(1));
        }
    }
}

/// Decodes a track with marks and returns the number of lost events in the marks. Blocks of a warp must be
/// contiguous with its marks.
fn read_marks(trace: &TraceFile, launch: u32, track: u32) -> Result<u64, DecodeError> {
    let (mut last, mut next, mut lost) = (0, 0, 0u64);
    let flow = trace.decode_all(launch, track, &WarpFilter::all().with_marks(), &mut |block| {
        assert!(last <= block.warp, "blocks are out of order");
        if last != block.warp {
            (last, next) = (block.warp, 0);
        }
        assert_eq!(block.first_event, next);
        next += block.events.len() as u64;
        let missing = block.missing.and_then(|missing| missing.events);
        lost = lost.saturating_add(missing.unwrap_or(0));
        ControlFlow::Continue(())
    })?;
    assert!(flow.is_continue());
    Ok(lost)
}

/// Decodes a track as a whole and warp by warp. Returns the number of events if there was no error.
fn read_track(trace: &TraceFile, launch: u32, track: u32) -> Option<u64> {
    let mut warps: Vec<(u32, u64, LaneDigests)> = Vec::new();
    let mut sink = |block: EventBlock<'_>| {
        if warps.last().is_none_or(|&(warp, ..)| warp < block.warp) {
            warps.push((block.warp, 0, LaneDigests::default()));
        }
        let (warp, events, digests) = warps.last_mut().expect("one was just pushed if there was none");
        assert_eq!((*warp, *events), (block.warp, block.first_event), "blocks are out of order");
        *events += block.events.len() as u64;
        digests.extend(block.events.iter().copied());
        ControlFlow::Continue(())
    };
    let whole = trace.decode_all(launch, track, &WarpFilter::all(), &mut sink);
    let last = warps.len();
    for (number, &(warp, events, digests)) in warps.iter().enumerate().take(64) {
        let single: Result<Vec<_>, _> =
            trace.decode_warp(launch, warp, track).expect("the warp has events").collect();
        match single {
            Ok(single) => {
                // The error that ended the walk may have cut off the last warp.
                if whole.is_ok() || number + 1 < last {
                    assert_eq!(single.len() as u64, events);
                    assert_eq!(single.into_iter().collect::<LaneDigests>(), digests);
                }
            }
            Err(error) => assert!(whole.is_err(), "warp {warp} by itself: {error}"),
        }
    }
    for stream in trace.streams(launch, track).expect("the launch and the track exist").take(1 << 16) {
        if stream.is_err() {
            break;
        }
    }
    whole.is_ok().then(|| warps.iter().map(|&(_, events, _)| events).sum())
}

/// Returns `data` with correct checksums, as far as its sections can be followed. A tie to the section before
/// is updated; a tie to another section stays unchanged.
pub fn repaired(mut data: Vec<u8>) -> Vec<u8> {
    repair_fixed_part(&mut data, 0, PREAMBLE_BYTES);
    let mut at = PREAMBLE_BYTES;
    // The checksum of the section before: original and repaired.
    let mut before = ([0; 4], [0; 4]);
    while let Some(header) = data.get(at..at + SECTION_HEADER_BYTES) {
        let tag = [header[0], header[1], header[2], header[3]];
        let length: [u8; 8] = header[8..16].try_into().expect("8 bytes");
        let body = at + SECTION_HEADER_BYTES;
        let left = data.len() - body;
        // A length beyond the end stays unchanged: readers must refuse it.
        let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
        let inside = length.min(left);
        if tag == SectionKind::Frame.tag().0 {
            repair_fixed_part(&mut data[..body + inside], body, FRAME_HEADER_BYTES);
        } else if tag == SectionKind::Data.tag().0 {
            repair_fixed_part(&mut data[..body + inside], body, DATA_HEADER_BYTES);
        } else if [SectionKind::Accounts, SectionKind::DataAccounts].iter().any(|kind| kind.tag().0 == tag) {
            repair_fixed_part(&mut data[..body + inside], body, ACCOUNTS_HEADER_BYTES);
        } else if [SectionKind::Times, SectionKind::Spans].iter().any(|kind| kind.tag().0 == tag)
            && let Some(tie) = data[..body + inside].get_mut(body..body + 4).filter(|tie| **tie == before.0)
        {
            tie.copy_from_slice(&before.1);
        }
        let crc = crc32fast::hash(&data[body..body + inside]).to_le_bytes();
        before.0.copy_from_slice(&data[at + 16..at + 20]);
        before.1 = crc;
        data[at + 16..at + 20].copy_from_slice(&crc);
        repair_fixed_part(&mut data, at, SECTION_HEADER_BYTES);
        at = body + inside;
    }
    data
}

fn repair_fixed_part(data: &mut [u8], at: usize, length: usize) {
    if let Some(part) = data.get_mut(at..at + length) {
        let (covered, checksum) = part.split_at_mut(length - 4);
        checksum.copy_from_slice(&crc32fast::hash(covered).to_le_bytes());
    }
}
