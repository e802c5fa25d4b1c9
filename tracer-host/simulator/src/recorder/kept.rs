//! The logs of one track of a warp, as they are read when the launch has ended: entries into segments,
//! further segments from log memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use warptrace_abi::log::{ENTRY_BYTES, Entry, LaunchLogs, STOPPED, STOPPED_TIME_SHIFT};
use warptrace_abi::pool::Claims;
use warptrace_format::account::WarpAccount;

use super::track::Track;
use crate::context::LANES;

/// Where a lane's log goes on.
#[derive(Clone, Copy, Default)]
struct WritePointer {
    /// Index of the next entry.
    next: u32,
    /// Index of the last entry of the segment, which holds its link; 0: the lane has no segment.
    link: u32,
    /// There is no memory for another segment: the log takes nothing more.
    stopped: bool,
    /// Events that were lost since.
    lost: u64,
}

/// What a track's logs are written into.
pub(super) struct TrackMemory {
    pub(super) logs: LaunchLogs,
    /// Address of the account.
    account: u64,
    /// Index of the first entry of lane 0's first segment.
    first: u32,
}

impl TrackMemory {
    /// The memory of a warp's track.
    ///
    /// # Safety
    /// The addresses in `logs` are host addresses of memory of the sizes that it implies, valid for as long
    /// as this is used. Nothing else touches the segments of this track, or, but atomically, the
    /// account and the counters of claims.
    pub(super) unsafe fn new(logs: &LaunchLogs, track: u32, warp: u32) -> Self {
        let stream = u64::from(track) * u64::from(logs.warps) + u64::from(warp);
        let account = logs.accounts + size_of::<WarpAccount>() as u64 * stream;
        Self { logs: *logs, account, first: logs.first_segment(track, warp, 0) }
    }

    /// Claims a segment: the index of its first entry, or `None` if log memory is used up.
    fn claim(&self) -> Option<u32> {
        let entries = u64::from(self.logs.segment_entries);
        let counter = self.logs.claims + core::mem::offset_of!(Claims, log_entries) as u64;
        let first = u64::from(self.logs.claims_from).saturating_add(self.add(counter, entries));
        let fits = first.saturating_add(entries) <= u64::from(self.logs.claims_end);
        fits.then_some(first as u32)
    }

    /// Counts events as lost.
    pub(super) fn lose(&self, events: u64) {
        self.add(self.account + core::mem::offset_of!(WarpAccount, attempted) as u64, events);
        self.add(self.account + core::mem::offset_of!(WarpAccount, lost) as u64, events);
    }

    /// Adds to a number that others may add to as well; returns what it was.
    fn add(&self, address: u64, more: u64) -> u64 {
        let number = std::ptr::with_exposed_provenance_mut::<u64>(address as usize);
        // SAFETY: one of the aligned numbers of the account or of the claims, which are touched by atomics
        // only (contract of `new`).
        unsafe { AtomicU64::from_ptr(number) }.fetch_add(more, Relaxed)
    }

    /// Writes an entry of a first segment of this track, or of one that was claimed for it.
    pub(super) fn write(&self, index: u32, words: [u32; 4]) {
        // SAFETY: an entry of this track (contract of `new`).
        unsafe { self.entry(index).write(words) };
    }

    /// Reads an entry that this track has written.
    pub(super) fn read(&self, index: u32) -> [u32; 4] {
        // SAFETY: an entry of this track (contract of `new`), which holds something.
        unsafe { self.entry(index).read() }
    }

    fn entry(&self, index: u32) -> *mut [u32; 4] {
        let address = self.logs.logs + u64::from(index) * u64::from(ENTRY_BYTES);
        std::ptr::with_exposed_provenance_mut(address as usize)
    }
}

/// The head of a stream whose warp has begun.
const BEGUN: [u32; 4] = [1, 0, 0, 0];

/// The logs of one track of a warp.
pub(super) struct KeptTrack {
    memory: TrackMemory,
    pointers: [WritePointer; LANES],
    /// The stream's head.
    head: [u32; 4],
}

impl KeptTrack {
    /// Empty logs of a warp's track.
    ///
    /// # Safety
    /// As for [`TrackMemory::new`].
    pub(super) unsafe fn new(logs: &LaunchLogs, track: u32, warp: u32) -> Self {
        let pointers = std::array::from_fn(|lane| {
            if lane >= logs.first_lanes as usize {
                return WritePointer::default();
            }
            let first = logs.first_segment(track, warp, lane as u32);
            WritePointer {
                next: first + 1,
                link: first + (logs.first_entries - 1),
                ..WritePointer::default()
            }
        });
        // SAFETY: the caller's promise.
        let memory = unsafe { TrackMemory::new(logs, track, warp) };
        memory.write(memory.first, BEGUN);
        Self { memory, pointers, head: BEGUN }
    }

    /// Appends an entry to a lane's log; if there is no memory for it, counts what it holds as lost at
    /// `time`.
    pub(super) fn append_words(&mut self, lane: u32, words: [u32; 4], holds: u64, time: u32) {
        let mut pointer = self.pointers[lane as usize];
        if pointer.next == pointer.link {
            let Some(segment) = (!pointer.stopped).then(|| self.memory.claim()).flatten() else {
                return self.lose(lane, holds, time);
            };
            self.go_on_in(lane, segment, &mut pointer);
        }
        self.memory.write(pointer.next, words);
        pointer.next += 1;
        self.pointers[lane as usize] = pointer;
        if self.memory.logs.first_lanes > 1 {
            self.head[2] |= 1 << lane;
        }
    }

    /// Lets a lane's log go on in a segment that was claimed for it.
    fn go_on_in(&mut self, lane: u32, segment: u32, pointer: &mut WritePointer) {
        if pointer.link == 0 {
            self.memory.write(segment, [self.head[2], lane, 0, 0]);
            self.head[2] = segment;
            self.memory.write(self.memory.first, self.head);
            pointer.next = segment + 1;
        } else {
            self.memory.write(pointer.link, [segment, 0, 0, 0]);
            pointer.next = segment;
        }
        pointer.link = segment + (self.memory.logs.segment_entries - 1);
    }

    /// Counts events as lost, and notes the time of a lane's first ones: in its link, or in the stream's head
    /// if it has none and the time is the earliest there.
    fn lose(&mut self, lane: u32, events: u64, time: u32) {
        let pointer = &mut self.pointers[lane as usize];
        pointer.lost += events;
        let (is_first, [low, high, ..]) = (!std::mem::replace(&mut pointer.stopped, true), self.head);
        if is_first && pointer.link != 0 {
            self.memory.write(pointer.link, [0, STOPPED, time, 0]);
        } else if is_first && (high == 0 || (time.wrapping_sub(!low) as i32) < 0) {
            // What a GPU has in the upper half, the clock's upper half, nobody reads.
            [self.head[0], self.head[1]] = [!time, u32::MAX];
            self.memory.write(self.memory.first, self.head);
        }
    }
}

impl Track for KeptTrack {
    fn append(&mut self, lane: u32, entry: Entry, _: bool) {
        self.append_words(lane, entry.to_words(), entry.count.into(), entry.time);
    }

    fn write_open(&mut self, entry: Entry) {
        let lane = entry.mask.trailing_zeros();
        let mut pointer = self.pointers[lane as usize];
        if pointer.stopped {
            if pointer.link != 0 {
                let [.., stopped_at, _] = self.memory.read(pointer.link);
                let [mask, key, ..] = Entry { count: 0, ..entry }.to_words();
                let time = (Entry::clock(entry.to_words()) >> STOPPED_TIME_SHIFT) as u32 | STOPPED;
                self.memory.write(pointer.link, [mask, key, stopped_at, time]);
            }
            return;
        }
        if pointer.link == 0 {
            let Some(segment) = self.memory.claim() else { return };
            self.go_on_in(lane, segment, &mut pointer);
            self.pointers[lane as usize] = pointer;
        }
        self.memory.write(pointer.next, entry.to_words());
    }

    fn has_copies(&self) -> bool {
        false
    }

    /// Writes where the lane's log ends into its last link, that it has left and whether it has a log into
    /// the head, and what was lost into the account.
    fn close(&mut self, lane: u32) {
        let WritePointer { next, link, stopped, lost } = self.pointers[lane as usize];
        let holds_entries = self.memory.logs.first_lanes == 1 || self.head[2] >> lane & 1 != 0;
        if stopped {
            self.memory.lose(lost);
        }
        if link != 0 && stopped {
            let [.., stopped_at, _] = self.memory.read(link);
            self.memory.write(link, [0, STOPPED, stopped_at, 0]);
        } else if link != 0 && holds_entries {
            self.memory.write(link, [0, link - next, 0, 0]);
        }
        self.head[3] |= 1 << lane;
        self.memory.write(self.memory.first, self.head);
    }
}
