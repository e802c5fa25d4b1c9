//! A traced kernel, from `trace_loc` to the bytes of its chunks.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use warptrace_device::{KernelCall, encode_call, kernel, simt, trace_loc};
use warptrace_format::chunk::{CHUNK_HEADER_BYTES, ChunkHeader};
use warptrace_format::codec::CodecSpec;
use warptrace_format::pool::{PoolDescriptor, WarpAccount};
use warptrace_format::{Event, RAW_EVENT_BYTES};
use warptrace_sim::{Interaction, Launch, Recording, Simulator};

const CHUNK_BYTES: usize = 1024;

kernel! {
    /// Rounds by lane, a branch, an early return.
    pub fn rounds(limit: u32) {
        trace_loc(1);
        if simt::global_thread_x() >= limit {
            trace_loc(2);
            return;
        }
        for _ in 0..simt::lane() {
            trace_loc(3);
        }
        trace_loc(4);
    }
}

kernel! {
    /// `times` times rounds by lane.
    pub fn staircases(times: u32) {
        for _ in 0..times {
            for _ in 0..simt::lane() {
                trace_loc(3);
            }
            trace_loc(4);
        }
    }
}

/// Events of each warp and what its account says, for `blocks` blocks of 40 threads.
fn record(blocks: u32, chunks: usize, launch: Launch<'_>) -> Vec<(Vec<Event>, WarpAccount)> {
    record_call(&rounds(blocks * 40 - 8), blocks, chunks, launch)
}

/// The same for any kernel. What warps have left is encoded.
fn record_call(
    call: &KernelCall,
    blocks: u32,
    chunks: usize,
    launch: Launch<'_>,
) -> Vec<(Vec<Event>, WarpAccount)> {
    let warps = blocks as usize * 2;
    let mut memory = vec![0u64; chunks * CHUNK_BYTES / 8];
    let mut accounts = vec![WarpAccount::default(); warps];
    let next = AtomicU32::new(0);
    let pool = PoolDescriptor {
        chunks: memory.as_mut_ptr().expose_provenance() as u64,
        next_chunk: next.as_ptr().expose_provenance() as u64,
        accounts: accounts.as_mut_ptr().expose_provenance() as u64,
        chunk_count: chunks as u32,
        chunk_bytes: CHUNK_BYTES as u32,
        warps: warps as u32,
        launch: 7,
        enabled: 1,
        ..PoolDescriptor::default()
    };
    let recording = Recording { codec: CodecSpec::Raw, dual: false, counted: false };
    // SAFETY: chunks, counter and accounts have the sizes given and outlive the launch.
    let launch = unsafe { launch.traced(&pool, recording) };
    Simulator::new().launch(&launch, &|| call.thread()()).expect("a correct kernel");
    let used = next.load(Relaxed).min(chunks as u32);
    let encode = encode_call(0, used);
    // SAFETY: as before.
    let launch = unsafe { Launch::new([1, 1, 1], [32, 1, 1]).threads(1).traced(&pool, recording) };
    Simulator::new().launch(&launch, &|| encode.thread()()).expect("a correct encoder");
    let used = (next.load(Relaxed) as usize).min(chunks);
    let bytes: Vec<u8> = memory.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut found: Vec<_> = bytes.chunks(CHUNK_BYTES).take(used).collect();
    found.sort_by_key(|chunk| ChunkHeader::read(chunk).map(|header| (header.warp, header.sequence)));
    let mut streams: Vec<_> = accounts.iter().map(|&account| (Vec::new(), account)).collect();
    for chunk in found {
        let header = ChunkHeader::read(chunk).expect("a whole chunk");
        // A log, or a chunk in which nothing came to lie.
        if header.length == 0 {
            continue;
        }
        assert_eq!((header.launch, header.track), (7, 0));
        assert_eq!(header.length, header.events * RAW_EVENT_BYTES);
        let payload = &chunk[CHUNK_HEADER_BYTES as usize..][..header.length as usize];
        let events = payload.chunks(5).map(|cut| Event::from_cut(cut.try_into().expect("five bytes")));
        streams[header.warp as usize].0.extend(events);
    }
    streams
}

fn expected(blocks: u32, warp: u32) -> Vec<Event> {
    let count = if warp.is_multiple_of(2) { 32 } else { 8 };
    let all = u32::MAX >> (32 - count);
    if warp == blocks * 2 - 1 {
        return vec![Event { location: 1, mask: all }, Event { location: 2, mask: all }];
    }
    let mut events = vec![Event { location: 1, mask: all }];
    for round in 0..count - 1 {
        events.push(Event { location: 3, mask: all & u32::MAX << (round + 1) });
    }
    events.push(Event { location: 4, mask: all });
    events
}

#[test]
fn every_warp_delivers_its_events_in_order() {
    for interaction in [Interaction::Independent, Interaction::Global] {
        for threads in [1, 2] {
            let launch = Launch::new([6, 1, 1], [40, 1, 1]).interaction(interaction).threads(threads);
            for (warp, (events, account)) in record(6, 64, launch).iter().enumerate() {
                assert_eq!(events, &expected(6, warp as u32), "warp {warp}");
                assert_eq!(account.attempted, events.len() as u64);
                assert_eq!((account.recorded, account.lost, account.finished), (account.attempted, 0, 1));
            }
        }
    }
}

#[test]
fn a_pool_too_small_loses_the_same_events_each_time_on_one_thread() {
    let launch = Launch::new([6, 1, 1], [40, 1, 1]).threads(1);
    let first = record(6, 16, launch);
    let lost: u64 = first.iter().map(|(_, account)| account.lost).sum();
    assert!(lost > 0);
    for (warp, (events, account)) in first.iter().enumerate() {
        assert!(expected(6, warp as u32).starts_with(events));
        assert_eq!(account.attempted, account.recorded + account.lost);
        assert_eq!(account.recorded, events.len() as u64);
    }
    assert_eq!(record(6, 16, launch), first);
}

#[test]
fn logs_of_many_segments_hold_every_event_in_order() {
    // A segment of 1,024 bytes has room for 62 runs.
    for times in [1, 2, 9, 40] {
        let launch = Launch::new([2, 1, 1], [40, 1, 1]).threads(1);
        let found = record_call(&staircases(times), 2, 1000, launch);
        for (warp, (events, account)) in found.iter().enumerate() {
            let lanes = if warp.is_multiple_of(2) { 32 } else { 8 };
            let all = u32::MAX >> (32 - lanes);
            let one = (1..lanes)
                .map(|round| Event { location: 3, mask: all & u32::MAX << round })
                .chain([Event { location: 4, mask: all }]);
            let expected: Vec<Event> = (0..times).flat_map(|_| one.clone()).collect();
            assert_eq!(events, &expected, "warp {warp}, {times} times");
            assert_eq!((account.attempted, account.lost), (events.len() as u64, 0));
            assert_eq!((account.recorded, account.finished), (account.attempted, 1));
        }
    }
}
