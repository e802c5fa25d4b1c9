use std::collections::BTreeMap;
use std::ops::ControlFlow;

use warptrace_format::codec::CodecSpec;
use warptrace_format::data::native::WarpRecorder;
use warptrace_format::file::data::{DataChunk, Tile, cut_into_tiles, encode_data};
use warptrace_format::file::{
    Compression, DeviceInfo, LaunchInfo, Metadata, SiteInfo, SiteKind, SiteSpace, encode_sites,
};

use super::*;
use crate::accesses::WarpAccesses;
use crate::all::WarpFilter;
use crate::sections::Sections;

const WARPS: u32 = 40;
const UNBOUNDED: (usize, usize) = (usize::MAX, usize::MAX);

/// Accesses of one warp: random addresses at three sites. Warp 7 has by far the most.
fn stream(warp: u32) -> Vec<u8> {
    let mut recorder = WarpRecorder::new(usize::MAX);
    for turn in 0..if warp == 7 { 60 } else { 20 + warp % 5 } {
        let access = |lane: u32| (lane, u64::from(lane ^ turn ^ warp).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        recorder.access(1 + (turn % 3) as u16, turn, &(0..32).map(access).collect::<Vec<_>>());
    }
    recorder.leave(1000, u32::MAX);
    recorder.finish().concat().into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Drains the warps in `parts` parts. Each part has one section for each list of warps.
fn trace(parts: usize, sections: &[Vec<u32>]) -> Vec<u8> {
    let metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw]);
    let mut file = Sections::new(&metadata.with_kernel("k", ""));
    let sites = (1..4).map(|site| SiteInfo::new(site, SiteKind::Load, SiteSpace::Global, 4));
    file.put(&encode_sites(&sites.collect::<Vec<_>>()).unwrap());
    file.put(&LaunchInfo::new(0, 0, [WARPS, 1, 1], [32, 1, 1], 0).unwrap().encode_section());
    let streams: Vec<_> = (0..WARPS).map(stream).collect();
    for part in 0..parts {
        for warps in sections {
            let chunk = |&warp: &u32| {
                let stream = &streams[warp as usize];
                let each = stream.len() / 16 / parts * 16;
                let end = if part + 1 == parts { stream.len() } else { each * (part + 1) };
                DataChunk { warp, sequence: part as u32, entries: &stream[each * part..end] }
            };
            let chunks: Vec<_> = warps.iter().map(chunk).collect();
            let tiles: Vec<_> = cut_into_tiles(&chunks).map(Tile::encode).collect();
            file.put(&encode_data(0, &tiles, Compression::Suited).unwrap().0);
        }
    }
    file.finish()
}

/// All warps in one section; in sections that overlap partly; in two that overlap fully; in many.
fn arrangements() -> [Vec<Vec<u32>>; 4] {
    let turns = |count: u32| -> Vec<Vec<u32>> {
        (0..count).map(|turn| (0..WARPS).filter(move |warp| warp % count == turn).collect()).collect()
    };
    let chained =
        (0..8).map(|at| (0..WARPS).filter(move |warp| (warp + 2 * (warp % 2)).min(WARPS - 1) / 5 == at));
    let small = turns(2).iter().flat_map(|warps| warps.chunks(4).map(<[u32]>::to_vec)).collect();
    [turns(1), chained.map(Iterator::collect).collect(), turns(2), small]
}

type Read = (BTreeMap<u32, WarpAccesses>, Vec<(Range<u32>, String)>, u64);

fn read(trace: &TraceFile, (most_bytes, most_entries): (usize, usize)) -> Read {
    trace.renew_work();
    let (mut found, mut failed, mut next) = (BTreeMap::new(), Vec::new(), 0);
    let walk = Walk::new(trace, 0, 0..WARPS).with_bounds(most_bytes, most_entries);
    let flow = trace.each_warp((0, walk), |accesses| accesses, &mut |warps, read| {
        assert!(warps.start >= next && warps.end > warps.start, "{warps:?} behind {next}");
        next = warps.end;
        match read {
            Ok(read) => {
                found.insert(warps.start, read);
            }
            Err(error) => failed.push((warps, error.to_string())),
        }
        ControlFlow::Continue(())
    });
    assert_eq!(flow, ControlFlow::Continue(()));
    (found, failed, trace.work.spent())
}

#[test]
fn sections_that_overlap_are_read_once() {
    for sections in arrangements() {
        let trace = TraceFile::from_bytes(trace(6, &sections)).unwrap();
        let of_launch = trace.frames(0, trace.data_track());
        assert!(of_launch.len() >= 6);
        let entries: u64 = of_launch.iter().map(|section| u64::from(section.chunks)).sum();
        let bytes: u64 = of_launch.iter().map(|section| section.length).sum();
        let (whole, failed, spent) = read(&trace, UNBOUNDED);
        assert_eq!((whole.len(), failed.len()), (WARPS as usize, 0));
        // The walk visits each entry a second time when it assembles the entry's warp.
        assert!((16 * entries + bytes..=17 * entries + bytes).contains(&spent), "{spent} for {entries}");
        let mut before = spent;
        for most_bytes in [1 << 20, 100_000, 30_000, 1] {
            let (found, failed, spent) = read(&trace, (most_bytes, usize::MAX));
            assert!(found == whole && failed.is_empty() && spent >= before, "{most_bytes}");
            before = spent;
        }
        assert!(before > spent, "the bounds were reached");
        let add = |sum: &mut u64, warp: &WarpAccesses| *sum += warp.recorded;
        let sum = trace.fold_accesses(0, &WarpFilter::all(), || 0, add, |a, b| a + b);
        assert_eq!(sum.unwrap(), trace.totals(0, trace.data_track()).events);
    }
}

#[test]
fn what_is_held_stays_within_its_bound() {
    for sections in arrangements() {
        let trace = TraceFile::from_bytes(trace(4, &sections)).unwrap();
        for most_bytes in [200_000, 60_000] {
            let mut walk = Walk::new(&trace, 0, 0..WARPS).with_bounds(most_bytes, usize::MAX);
            while walk.next_warps().is_some() {
                assert!(walk.bytes <= most_bytes || walk.held.len() == 1);
                assert_eq!(walk.bytes, walk.held.values().map(|of| of.bytes).sum::<usize>());
            }
            assert_eq!((walk.bytes, walk.held.len()), (0, 0));
        }
    }
}

#[test]
fn a_warp_with_too_many_entries_is_told_of_and_the_others_are_read() {
    for sections in arrangements() {
        let trace = TraceFile::from_bytes(trace(3, &sections)).unwrap();
        let mut whole = read(&trace, UNBOUNDED).0;
        whole.remove(&7);
        for most_bytes in [usize::MAX, 50_000, 1] {
            let (found, failed, _) = read(&trace, (most_bytes, 1500));
            assert!(found == whole);
            assert!(failed.len() == 1 && failed[0].0 == (7..8) && failed[0].1.contains("1500"), "{failed:?}");
        }
    }
}

#[test]
fn a_section_that_cannot_be_read_takes_only_its_warps_along() {
    for sections in arrangements() {
        let bytes = trace(2, &sections);
        let sound = TraceFile::from_bytes(bytes.clone()).unwrap();
        let whole = read(&sound, UNBOUNDED).0;
        for bad in sound.frames(0, sound.data_track()) {
            let mut damaged = bytes.clone();
            damaged[usize::try_from(bad.offset + bad.length).unwrap() - 3] ^= 0x55;
            let damaged = TraceFile::from_bytes(damaged).unwrap();
            let spoiled = bad.first_warp..bad.last_warp + 1;
            for most_bytes in [usize::MAX, 40_000, 1] {
                let (found, failed, _) = read(&damaged, (most_bytes, usize::MAX));
                assert!(failed.len() == 1 && failed[0].0 == spoiled, "{failed:?}, {spoiled:?}");
                assert!(found.iter().eq(whole.iter().filter(|(warp, _)| !spoiled.contains(warp))));
            }
            let report = damaged.verify();
            assert!(!report.is_ok());
            let sink = &mut |_| ControlFlow::Continue(());
            assert!(damaged.accesses_in_order(0, &WarpFilter::all(), sink).is_err());
        }
    }
}
