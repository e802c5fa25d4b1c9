//! Logs of one track of a warp as rings, which keep each lane's latest runs (`warptrace_abi::log`, "Rings").

use warptrace_abi::log::{Entry, LaunchLogs};

use super::kept::TrackMemory;
use super::track::Track;
use crate::context::LANES;

#[derive(Clone, Copy)]
struct WritePointer {
    next: u32,
    /// Index of the last entry of the half, which holds no run.
    link: u32,
    /// True if the other half holds runs.
    other_is_full: bool,
    lost: u64,
}

pub(super) struct RingTrack {
    memory: TrackMemory,
    pointers: [WritePointer; LANES],
}

impl RingTrack {
    /// # Safety
    /// As for [`TrackMemory::new`].
    pub(super) unsafe fn new(logs: &LaunchLogs, track: u32, warp: u32) -> Self {
        let pointers = std::array::from_fn(|lane| {
            let next = logs.first_segment(track, warp, lane as u32);
            WritePointer { next, link: next + (logs.segment_entries - 1), other_is_full: false, lost: 0 }
        });
        // SAFETY: guaranteed by the caller.
        Self { memory: unsafe { TrackMemory::new(logs, track, warp) }, pointers }
    }

    /// Switches a lane to the other half and counts the events in that half as lost.
    fn turn(&self, pointer: &mut WritePointer) {
        let half = self.memory.logs.segment_entries;
        pointer.link ^= half;
        pointer.next = pointer.link - (half - 1);
        if pointer.other_is_full {
            let count = |index| u64::from(Entry::from_words(self.memory.read(index)).count);
            pointer.lost += (pointer.next..pointer.link).map(count).sum::<u64>();
        }
        pointer.other_is_full = true;
    }
}

impl Track for RingTrack {
    fn append(&mut self, lane: u32, entry: Entry, _: bool) {
        let mut pointer = self.pointers[lane as usize];
        if pointer.next == pointer.link {
            self.turn(&mut pointer);
        }
        self.memory.write(pointer.next, entry.to_words());
        pointer.next += 1;
        self.pointers[lane as usize] = pointer;
    }

    fn has_copies(&self) -> bool {
        false
    }

    fn close(&mut self, lane: u32) {
        let WritePointer { next, link, lost, .. } = self.pointers[lane as usize];
        let half = self.memory.logs.segment_entries;
        // The last entry of the first half.
        let state = link & !half;
        let before = next - (state + 1 - half);
        self.memory.write(state, [lost as u32, (lost >> 32) as u32, before, 0]);
        self.memory.lose(lost);
    }
}
