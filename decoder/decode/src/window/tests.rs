use std::collections::BTreeMap;
use std::ops::ControlFlow;

use warptrace_format::Event;
use warptrace_format::codec::{CodecSpec, encode_stream};
use warptrace_format::file::{ChunkRef, Compression, DeviceInfo, LaunchInfo, Metadata};

use super::*;
use crate::all::BlockSink;
use crate::sections::Sections;

const WARPS: u32 = 16;

fn events(warp: u32) -> Vec<Event> {
    let count = if warp == 5 { 4000 } else { 100 + 37 * warp };
    (0..count).map(|number| Event { location: 1 + (number % 200) as u16, mask: warp + 1 }).collect()
}

fn trace(batch: usize) -> TraceFile {
    let metadata = Metadata::new("test", DeviceInfo::simulator("sim"), vec![CodecSpec::Raw])
        .with_kernel("k", "")
        .with_pool(512, 0);
    let mut file = Sections::new(&metadata);
    file.put(&LaunchInfo::new(0, 0, [WARPS, 1, 1], [32, 1, 1], 0).unwrap().encode_section());
    let chunks: Vec<_> = (0..WARPS).map(|warp| encode_stream(CodecSpec::Raw, &events(warp), 480)).collect();
    let longest = chunks.iter().map(Vec::len).max().unwrap();
    for from in (0..longest).step_by(batch) {
        let mut refs = Vec::new();
        for (warp, chunks) in (0..).zip(&chunks) {
            for (sequence, (events, payload)) in chunks.iter().enumerate().skip(from).take(batch) {
                let sequence = sequence as u32;
                refs.push(ChunkRef { track: 0, warp, sequence, events: *events, payload });
            }
        }
        file.put_chunks(0, &refs, (1500, Compression::Suited));
    }
    TraceFile::from_bytes(file.finish()).unwrap()
}

#[test]
fn windows_of_any_size_cover_every_warp_once_in_order() {
    for batch in [1, 3, 1000] {
        let trace = trace(batch);
        for window_bytes in [1, 3000, 20_000, 1 << 20] {
            let windows = || Windows::new(&trace, 0, vec![0], 0..WARPS).with_window_bytes(window_bytes);
            let mut walk = windows();
            let (mut next, mut huge, mut count) = (0, 0, 0);
            while let Some(window) = walk.next_window(&mut |_, error| Err(error)).unwrap() {
                assert_eq!(window.warps.start, next);
                next = window.warps.end;
                let mut last = window.warps.start;
                for HeldRun { warps, held } in &window.held {
                    assert!(last <= warps.start && warps.start < warps.end && warps.end <= window.warps.end);
                    last = warps.end;
                    if matches!(held, Held::Huge) {
                        assert_eq!((warps.len(), warps.end), (1, next), "a huge warp ends its window");
                        huge += 1;
                    }
                }
                let bytes: usize = window.held.iter().map(|run| run.held.bytes()).sum();
                assert!(bytes <= window_bytes);
                count += 1;
            }
            assert_eq!(next, WARPS);
            match window_bytes {
                1 => assert_eq!(huge, WARPS, "batch {batch}"),
                3000 => assert!(huge > 1 && huge < WARPS),
                20_000 => assert_eq!((huge, count > 2), (1, true), "only warp 5 is larger"),
                _ => assert_eq!((huge, count), (0, 1)),
            }

            let mut found: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
            let mut sink = |block: crate::EventBlock<'_>| {
                found.entry(block.warp).or_default().extend_from_slice(block.events);
                ControlFlow::Continue(())
            };
            let sink = BlockSink::new(None, &mut sink);
            trace.decode_windows(windows(), (0, 0), CodecSpec::Raw, sink).unwrap();
            assert_eq!(found, (0..WARPS).map(|warp| (warp, events(warp))).collect());
        }
    }
}

#[test]
fn a_bad_frame_can_be_left_out() {
    let good = trace(1);
    let mut bytes = vec![0; good.length as usize];
    good.source.read_exact_at(&mut bytes, 0).unwrap();
    let bad = good.frames(0, 0)[3];
    bytes[(bad.offset + bad.length - 1) as usize] ^= 1;
    let trace = TraceFile::from_bytes(bytes).unwrap();
    let mut walk = Windows::new(&trace, 0, vec![0], 0..WARPS);
    assert!(walk.next_window(&mut |_, error| Err(error)).is_err());
    let mut walk = Windows::new(&trace, 0, vec![0], 0..WARPS);
    let mut left_out = Vec::new();
    let window = walk.next_window(&mut |entry, _| {
        left_out.push(entry.offset);
        Ok(())
    });
    let runs = window.unwrap().unwrap().held;
    let chunks: usize = runs.iter().map(|run| run.warps.len() * run.held.chunks(0).count()).sum();
    assert_eq!(left_out, [bad.offset]);
    let all: u32 = trace.frames(0, 0).iter().map(|frame| frame.chunks).sum();
    assert_eq!(chunks as u32, all - bad.chunks);
}
