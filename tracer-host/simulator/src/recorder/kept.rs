//! Logs of one track of a warp that are read after the launch: segments of entries, extended from log memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use warptrace_abi::log::{ENTRY_BYTES, Entry, LaunchLogs, STOPPED, STOPPED_TIME_SHIFT};
use warptrace_abi::pool::Claims;
use warptrace_format::account::WarpAccount;

use super::track::Track;
use crate::context::LANES;

#[derive(Clone, Copy, Default)]
struct WritePointer {
    next: u32,
    /// Index of the link, the last entry of the segment; 0 if the lane has no segment.
    link: u32,
    /// True after the lane found no memory for another segment. The log then accepts no entries.
    stopped: bool,
    /// Events lost since then.
    lost: u64,
}

pub(super) struct TrackMemory {
    pub(super) logs: LaunchLogs,
    account: u64,
    /// Index of the first entry of lane 0's first segment.
    first: u32,
}

impl TrackMemory {
    /// # Safety
    /// The addresses in `logs` are host addresses of memory with the implied sizes, valid while the result is
    /// used. Nothing else accesses this track's segments. Others access account and claims only atomically.
    pub(super) unsafe fn new(logs: &LaunchLogs, track: u32, warp: u32) -> Self {
        let stream = u64::from(track) * u64::from(logs.warps) + u64::from(warp);
        let account = logs.accounts + size_of::<WarpAccount>() as u64 * stream;
        Self { logs: *logs, account, first: logs.first_segment(track, warp, 0) }
    }

    /// Reserves a segment and returns the index of its first entry; `None` if log memory is used up.
    fn claim(&self) -> Option<u32> {
        let entries = u64::from(self.logs.segment_entries);
        let counter = self.logs.claims + core::mem::offset_of!(Claims, log_entries) as u64;
        let first = u64::from(self.logs.claims_from).saturating_add(self.add(counter, entries));
        let fits = first.saturating_add(entries) <= u64::from(self.logs.claims_end);
        fits.then_some(first as u32)
    }

    pub(super) fn lose(&self, events: u64) {
        self.add(self.account + core::mem::offset_of!(WarpAccount, attempted) as u64, events);
        self.add(self.account + core::mem::offset_of!(WarpAccount, lost) as u64, events);
    }

    fn add(&self, address: u64, more: u64) -> u64 {
        let number = std::ptr::with_exposed_provenance_mut::<u64>(address as usize);
        // SAFETY: an aligned number of the account or the claims: only atomic access (contract of `new`).
        unsafe { AtomicU64::from_ptr(number) }.fetch_add(more, Relaxed)
    }

    pub(super) fn write(&self, index: u32, words: [u32; 4]) {
        // SAFETY: an entry of this track (contract of `new`).
        unsafe { self.entry(index).write(words) };
    }

    pub(super) fn read(&self, index: u32) -> [u32; 4] {
        // SAFETY: an initialized entry of this track (contract of `new`).
        unsafe { self.entry(index).read() }
    }

    fn entry(&self, index: u32) -> *mut [u32; 4] {
        let address = self.logs.logs + u64::from(index) * u64::from(ENTRY_BYTES);
        std::ptr::with_exposed_provenance_mut(address as usize)
    }
}

/// Head of a stream whose warp has begun.
const BEGUN: [u32; 4] = [1, 0, 0, 0];

pub(super) struct KeptTrack {
    memory: TrackMemory,
    pointers: [WritePointer; LANES],
    head: [u32; 4],
}

impl KeptTrack {
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
        // SAFETY: guaranteed by the caller.
        let memory = unsafe { TrackMemory::new(logs, track, warp) };
        memory.write(memory.first, BEGUN);
        Self { memory, pointers, head: BEGUN }
    }

    /// Appends an entry to a lane's log. If memory is used up, counts its `holds` events as lost at `time`.
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

    /// Counts events as lost. Stores the time of the lane's first loss in its link. If the lane has no link,
    /// stores the time in the stream's head if it is the earliest.
    fn lose(&mut self, lane: u32, events: u64, time: u32) {
        let pointer = &mut self.pointers[lane as usize];
        pointer.lost += events;
        let (is_first, [low, high, ..]) = (!std::mem::replace(&mut pointer.stopped, true), self.head);
        if is_first && pointer.link != 0 {
            self.memory.write(pointer.link, [0, STOPPED, time, 0]);
        } else if is_first && (high == 0 || (time.wrapping_sub(!low) as i32) < 0) {
            // On a GPU, the second word is the upper half of the clock's complement. Readers only test it for 0.
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

    /// Writes the log's end into its link, its lane masks into the head, its losses into the account.
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
