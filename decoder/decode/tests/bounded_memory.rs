//! Memory stays below a fixed limit for hostile and long files. Tests run one at a time.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

#[path = "it/support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::{Recorder, Streams, event, small};
use warptrace_decoder::{TraceFile, WarpFilter, fuzzing};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{Compression, LaunchInfo, PREAMBLE_BYTES, SECTION_HEADER_BYTES};

/// An allocator that counts allocated bytes and their maximum.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call is forwarded to the system's allocator unchanged; the counters do not affect memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller guarantees the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller guarantees the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller guarantees the same contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Excludes memory allocated before.
fn peak(run: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    run();
    PEAK.load(Ordering::Relaxed) - before
}

fn read_everything(bytes: &[u8]) {
    let Ok(trace) = TraceFile::from_bytes(bytes.to_vec()) else { return };
    let _ = trace.verify();
    let tracks = trace.metadata().tracks.len() as u32;
    for launch in trace.launches() {
        for track in 0..tracks {
            let sink = &mut |_: warptrace_decoder::EventBlock<'_>| ControlFlow::Continue(());
            let _ = trace.decode_all(launch.number(), track, &WarpFilter::all(), sink);
            trace.streams(launch.number(), track).into_iter().flatten().for_each(drop);
        }
    }
}

/// Sets every aligned word to `values` of four hostile values, and repairs checksums. Returns the peak.
fn hostile_words(good: &[u8], values: usize) -> usize {
    let hostile = [u64::MAX, 1 << 63, 1 << 31, 0x00ff_ffff_00ff_ffff].into_iter().cycle();
    let mut most = 0;
    for at in (PREAMBLE_BYTES..good.len() - 8).step_by(4) {
        for value in hostile.clone().skip(at / 4 % 4).take(values) {
            let mut bad = good.to_vec();
            bad[at..at + 8].copy_from_slice(&value.to_le_bytes());
            let bad = fuzzing::repaired(bad);
            most = most.max(peak(|| read_everything(&bad)));
        }
    }
    most
}

fn long(warps: u32, events: usize, batch: usize) -> Vec<u8> {
    let launch = LaunchInfo::new(0, 0, [warps, 1, 1], [32, 1, 1], 0).unwrap();
    let streams: Streams = (0..warps)
        .map(|warp| {
            let events = (0..events).map(|number| event(1 + (number % 20) as u16, u32::MAX - warp));
            (warp, events.collect())
        })
        .collect();
    let mut recorder = Recorder::new(vec![CodecSpec::Raw]).compression(Compression::Zstd(1));
    recorder.metadata.chunk_bytes = 1 << 16;
    recorder.capacity = recorder.metadata.payload_capacity();
    recorder.batch = batch;
    recorder.record(&[(launch, streams)])
}

const MIB: usize = 1 << 20;

/// Checks hostile files with `values` values for each word, and files with these numbers of events. A shape
/// is the number of warps, and the number of consecutive chunks of a warp.
fn check(values: usize, events: &[usize], shapes: &[(u32, usize)]) {
    // Parallel tests of this program would also allocate.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    // Allocates rayon's threads and zstd's tables.
    read_everything(&long(8, 1000, usize::MAX));

    let (good, _) = small();
    for good in [&good, &include_bytes!("golden/runs-v2.wtrc")[..]] {
        let most = hostile_words(good, values);
        assert!(most < 48 * MIB, "hostile words: {} MiB", most / MIB);
    }

    // Sections that announce missing contents.
    for fill in [0, 0xff] {
        let mut bad = good.clone();
        bad[PREAMBLE_BYTES + SECTION_HEADER_BYTES..].fill(fill);
        let most = peak(|| read_everything(&fuzzing::repaired(bad)));
        assert!(most < 48 * MIB, "filled with {fill}: {} MiB", most / MIB);
    }

    // More events take the same memory, much less than the events (8 bytes each).
    for &(warps, batch) in shapes {
        let peaks = events.iter().map(|events| {
            let bytes = long(warps, events / warps as usize, batch);
            peak(|| read_everything(&bytes)) - bytes.len()
        });
        let peaks: Vec<usize> = peaks.collect();
        let what = format!("{warps} warps, batch {batch}: {peaks:?} bytes");
        assert!(peaks.iter().all(|peak| *peak < 112 * MIB && *peak < peaks[0] + 8 * MIB), "{what}");
    }
}

#[test]
fn memory_is_bounded() {
    // All frames overlap, and the events need twice the size of a window.
    check(1, &[24_000_000], &[(8, 2)]);
}

mod full {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        // The chunks of a warp are consecutive; all frames overlap; one warp exceeds a window.
        check(4, &[16_000_000, 32_000_000], &[(8, usize::MAX), (8, 2), (1, usize::MAX)]);
        let trace = TraceFile::from_bytes(long(1, 16_000_000, usize::MAX)).unwrap();
        let report = trace.verify();
        assert!(report.is_ok(), "{report}");
        assert_eq!(report.events, 16_000_000);
    }
}
