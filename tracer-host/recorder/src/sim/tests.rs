//! Streamed launches, and memory access meanwhile.

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use warptrace_abi::log::ENTRY_BYTES;
use warptrace_abi::stream::{StreamLogs, StreamState, TAG_STEP, has_tag, slot_words, untagged};
use warptrace_format::codec::CodecSpec;
use warptrace_macros::kernels;

use super::*;

#[kernels(device = warptrace_device, only_marked)]
mod turns_kernel {
    /// Runs `times` iterations of both trace points.
    #[kernel]
    pub fn turns(times: u32, fails: u32) {
        for _ in 0..times {
            trace!("LEFT");
            trace!("RIGHT");
        }
        assert!(fails == 0, "as it was told");
    }
}
use turns_kernel::turns;

const ENTRIES: u32 = 8;
const SEGMENTS: u32 = 4;
const RECORDING: Recording = Recording { logs: LogKind::Streamed, ..Recording::DEFAULT };

/// Returns streamed logs of one warp.
fn streaming(device: &mut SimDevice, max_wait: u64) -> StreamLogs {
    let mut allocate = |bytes: u32| device.allocate(bytes.into(), MemoryType::Device).unwrap().address;
    StreamLogs {
        segments: allocate(SEGMENTS * ENTRIES * ENTRY_BYTES),
        queue: allocate(8 * SEGMENTS),
        state: allocate(size_of::<StreamState>() as u32),
        lost: allocate(8),
        ended: allocate(8),
        stall_nanoseconds: max_wait,
        warps: 1,
        launch: 0,
        segment_entries: ENTRIES,
        slots: SEGMENTS,
        ..StreamLogs::default()
    }
}

/// Returns the segment and the tag of a ticket.
fn given(ticket: u64) -> (u32, u32) {
    (ticket as u32 % SEGMENTS, TAG_STEP * (ticket as u32 + 1))
}

/// A host whose only recording lane has one segment at a time.
#[derive(Default)]
struct Host {
    tickets: u64,
    /// Entries read from the current segment, including its header.
    read: u32,
    locations: Vec<u16>,
}

impl Host {
    fn give(&mut self, logs: &StreamLogs, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        let (segment, tag) = given(self.tickets);
        let slot = logs.queue + self.tickets % u64::from(SEGMENTS) * 8;
        let words = slot_words(segment, tag, self.tickets, SEGMENTS);
        memory.write_live(slot, words.map(u32::to_le_bytes).as_flattened())?;
        self.tickets += 1;
        self.read = 0;
        Ok(())
    }

    fn serve(&mut self, logs: &StreamLogs, memory: &mut dyn LiveMemory) -> Result<(), DeviceError> {
        if self.tickets == 0 || self.read == ENTRIES {
            self.give(logs, memory)?;
        }
        let (segment, tag) = given(self.tickets - 1);
        let bytes = (ENTRIES * ENTRY_BYTES) as usize;
        // The state precedes the entries.
        let ranges = [(logs.state, 16), (logs.segments + u64::from(segment) * bytes as u64, bytes)];
        let found = memory.read_live(&ranges)?;
        assert_eq!(found.len(), 16 + bytes);
        let (words, _) = found.as_chunks::<4>();
        let (entries, _) = words[4..].as_chunks::<4>();
        while let Some(entry) = entries.get(self.read as usize) {
            let words = entry.map(u32::from_le_bytes);
            if !has_tag(words, tag) {
                break;
            }
            if self.read != 0 {
                self.locations.push(untagged(words).location);
            }
            self.read += 1;
        }
        Ok(())
    }
}

fn device(threads: usize) -> SimDevice {
    SimDevice::new(SimOptions { threads: Some(threads), ..SimOptions::default() })
}

fn word(device: &mut SimDevice, address: u64) -> u64 {
    let mut bytes = [0; 8];
    device.read(address, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// Runs the kernel with one warp.
fn run(
    device: &mut SimDevice,
    logs: &StreamLogs,
    call: &KernelCall,
    mut serve: impl FnMut(&mut dyn LiveMemory) -> Result<(), DeviceError>,
) -> Result<LaunchTime, DeviceError> {
    let shape = LaunchShape::linear(32, 32);
    // SAFETY: no argument refers to memory; the logs have the stated sizes.
    unsafe {
        let logs = Logs::Streamed { logs, serve: &mut serve };
        device.launch(call, &shape, Some(Traced { recording: RECORDING, logs, sites: &mut Vec::new() }))
    }
}

#[test]
fn logs_are_emptied_while_the_kernel_runs() {
    for threads in [1, 3] {
        let mut device = device(threads);
        let traced = Some((RECORDING, CodecSpec::Raw));
        device.prepare(&Prepare { kernels: &["turns"], traced, ..Prepare::default() }).unwrap();
        let logs = streaming(&mut device, 60_000_000_000);
        let mut host = Host::default();
        run(&mut device, &logs, &turns(500, 0), |memory| host.serve(&logs, memory)).unwrap();
        host.serve(&logs, device.live().unwrap()).unwrap();
        assert_eq!(host.locations, [1, 2].repeat(500));
        let [ended, lost, tickets] = [logs.ended, logs.lost, logs.state].map(|at| word(&mut device, at));
        assert_eq!((ended, lost, tickets), (u32::MAX.into(), 0, host.tickets));
    }
}

#[test]
fn who_serves_may_use_all_threads() {
    let mut device = device(rayon::current_num_threads());
    let logs = streaming(&mut device, 60_000_000_000);
    let mut host = Host::default();
    // Also from a thread of the pool itself.
    rayon::scope(|_| {
        run(&mut device, &logs, &turns(100, 0), |memory| {
            assert_eq!((0..100).into_par_iter().sum::<u32>(), 4950);
            host.serve(&logs, memory)
        })
    })
    .unwrap();
    host.serve(&logs, device.live().unwrap()).unwrap();
    assert_eq!(host.locations.len(), 200);
}

#[test]
fn an_error_of_who_serves_comes_when_the_kernel_has_ended() {
    let mut device = device(2);
    let logs = streaming(&mut device, 20_000_000);
    let mut calls = 0;
    let served = run(&mut device, &logs, &turns(50, 0), |memory| {
        calls += 1;
        memory.read_live(&[(0, 8)]).map(drop)
    });
    assert!(matches!(served, Err(DeviceError::OutOfBounds { address: 0, bytes: 8 })), "{served:?}");
    assert_eq!(calls, 1);
    // The last run is also lost: no segment was given.
    assert_eq!([logs.ended, logs.lost].map(|at| word(&mut device, at)), [u32::MAX.into(), 100]);
}

#[test]
fn an_error_of_the_kernel_comes_first() {
    let mut device = device(2);
    let logs = streaming(&mut device, 20_000_000);
    let problem = || DeviceError::Unsupported { problem: "not so".to_owned() };
    let error = run(&mut device, &logs, &turns(5, 1), |_| Err(problem())).unwrap_err();
    assert!(matches!(error, DeviceError::Simulator { .. }), "{error}");
    // The device still works.
    run(&mut device, &logs, &turns(5, 0), |_| Ok(())).unwrap();
}

#[test]
fn live_memory_is_copied_in_words_within_allocations() {
    let mut device = device(1);
    let at = device.allocate(44, MemoryType::Device).unwrap().address;
    device.write(at, &(0..44).collect::<Vec<u8>>()).unwrap();
    let memory = device.live().unwrap();
    let found = memory.read_live(&[(at + 8, 32), (at, 0), (at + 32, 8), (at, 16)]).unwrap();
    assert_eq!(found, [(8..40).collect::<Vec<u8>>(), (32..40).collect(), (0..16).collect()].concat());
    assert!(memory.read_live(&[]).unwrap().is_empty());
    memory.write_live(at + 16, &[7; 16]).unwrap();
    memory.write_live(at, &[]).unwrap();
    assert_eq!(
        memory.read_live(&[(at + 8, 32)]).unwrap()[..],
        [&[8, 9, 10, 11, 12, 13, 14, 15][..], &[7; 16], &[32, 33, 34, 35, 36, 37, 38, 39]].concat()
    );
    for (address, bytes) in [(at + 40, 8), (at, 48), (at - 8, 8), (u64::MAX - 7, 8), (0, 0)] {
        let error = memory.read_live(&[(at, 8), (address, bytes)]).unwrap_err();
        assert!(matches!(error, DeviceError::OutOfBounds { .. }), "{error}");
        assert!(memory.write_live(address, &vec![0; bytes]).is_err());
    }
    for (address, bytes) in [(at + 4, 8), (at, 12), (at + 1, 0)] {
        let error = memory.read_live(&[(address, bytes)]).unwrap_err();
        assert!(matches!(error, DeviceError::Unsupported { .. }), "{error}");
        assert!(memory.write_live(address, &vec![0; bytes]).is_err());
    }
}

#[test]
fn an_entry_is_seen_whole_with_its_last_word() {
    let mut device = device(1);
    let at = device.allocate(16, MemoryType::Device).unwrap().address;
    let (writes, done) = (100_000, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let words = std::ptr::with_exposed_provenance::<[AtomicU64; 2]>(at as usize);
            // SAFETY: an allocation of two words, which lives until the threads have ended.
            let [first, second] = unsafe { &*words };
            for number in 1..=writes {
                first.store(number, Relaxed);
                second.store(number, Release);
            }
            done.store(true, Relaxed);
        });
        let mut last = 0;
        while !done.load(Relaxed) || last != writes {
            let found = device.live().unwrap().read_live(&[(at, 16)]).unwrap().as_chunks::<8>().0;
            let [first, second] = [0, 1].map(|word| u64::from_le_bytes(found[word]));
            assert!(last <= second && second <= first, "{first} with {second} after {last}");
            last = second;
        }
    });
}

#[test]
fn seconds_are_told_when_they_have_doubled() {
    let next = AtomicU64::new(1);
    let told = [0, 1, 1, 2, 3, 4, 5, 9, 15, 16].map(|seconds| is_due(&next, Duration::from_secs(seconds)));
    assert_eq!(told, [false, true, false, true, false, true, false, true, false, true]);
}
