//! Interface of the logs of one track of a warp.

use warptrace_abi::log::{Entry, MAX_KEY_COUNT};

use super::kept::KeptTrack;
use super::ring::RingTrack;
use super::stream::StreamedTrack;
use crate::launch::LogMemory;

pub(super) trait Track {
    /// Appends an entry to a lane's log, or counts its events as lost. `is_sole`: no lane appends a copy.
    fn append(&mut self, lane: u32, entry: Entry, is_sole: bool);

    /// Writes a run that begins to the entry where its leader will append it, if the logs hold open runs.
    fn write_open(&mut self, _: Entry) {}

    /// Returns true if lanes that leave a run before its leader append a copy of it.
    fn has_copies(&self) -> bool;

    fn close(&mut self, lane: u32);

    /// Appends a run to its leader's log, in as many entries as its count requires.
    fn append_run(&mut self, mask: u32, location: u16, count: u32, time: u32) {
        let mut remaining = count;
        while remaining != 0 {
            let count = remaining.min(MAX_KEY_COUNT);
            self.append(mask.trailing_zeros(), Entry { mask, location, count, time }, true);
            remaining -= count;
        }
    }
}

/// Returns the logs of a track of a warp that records; `None` if no such warp exists.
///
/// # Safety
/// As for [`Launch::traced`](crate::Launch::traced) and [`Launch::streamed`](crate::Launch::streamed) while
/// the logs are used. No other logs are for the same track of this warp.
pub(super) unsafe fn open(memory: &LogMemory, track: u32, warp: u32) -> Option<Box<dyn Track>> {
    match memory {
        LogMemory::Kept(logs) if warp < logs.warps && logs.ring != 0 => {
            // SAFETY: guaranteed by the caller.
            Some(Box::new(unsafe { RingTrack::new(logs, track, warp) }))
        }
        LogMemory::Kept(logs) if warp < logs.warps => {
            // SAFETY: guaranteed by the caller.
            Some(Box::new(unsafe { KeptTrack::new(logs, track, warp) }))
        }
        LogMemory::Streamed { logs, clock } if warp < logs.warps => {
            // SAFETY: guaranteed by the caller.
            Some(Box::new(unsafe { StreamedTrack::new(logs, *clock, track, warp) }))
        }
        _ => None,
    }
}
