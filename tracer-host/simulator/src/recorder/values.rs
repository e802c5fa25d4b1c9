//! Records a warp's named values as kernels on a GPU do: runs of equal steps, on the track after the events.

use warptrace_abi::data::accesses;
use warptrace_format::data::native::WarpRuns;

use super::kept::KeptTrack;
use super::track::Track as _;
use crate::launch::LogMemory;
use crate::warp::bits;

pub(super) struct ValueRecorder {
    runs: WarpRuns,
    track: KeptTrack,
    /// Site and mask of the current group, and the values of its lanes so far.
    group: (u16, u32),
    held: Vec<(u32, u64)>,
}

impl ValueRecorder {
    /// Returns the recorder of a warp; `None` if the warp does not record or its logs are not kept.
    ///
    /// # Safety
    /// As for [`super::track::open`].
    pub(super) unsafe fn new(memory: &LogMemory, track: u32, warp: u32) -> Option<Self> {
        let LogMemory::Kept(logs) = memory else { return None };
        if warp >= logs.warps || logs.ring != 0 {
            return None;
        }
        // SAFETY: guaranteed by the caller.
        let track = unsafe { KeptTrack::new(logs, track, warp) };
        Some(Self { runs: WarpRuns::default(), track, group: (0, 0), held: Vec::new() })
    }

    /// Records the value of a lane of `mask`. The lanes of a group come consecutively, in ascending order.
    /// Each group advances `clock`, the warp's clock.
    pub(super) fn value(&mut self, site: u16, (lane, mask): (u32, u32), value: u64, clock: &mut u32) {
        if self.group != (site, mask) || self.held.last().is_some_and(|(last, _)| *last >= lane) {
            self.end_group(clock);
        }
        self.group = (site, mask);
        self.held.push((lane, value));
        if mask >> lane == 1 {
            self.end_group(clock);
        }
    }

    fn end_group(&mut self, clock: &mut u32) {
        if self.held.is_empty() {
            return;
        }
        // Groups with equal times could not be distinguished.
        *clock = clock.wrapping_add(1);
        let (site, time) = (self.group.0, *clock);
        let track = &mut self.track;
        self.runs.access((site, time), &self.held, &mut |lane, entry| {
            let words = entry.to_words();
            track.append_words(lane, words, accesses(words[1]).into(), time);
        });
        self.held.clear();
    }

    pub(super) fn leave(&mut self, mask: u32, clock: &mut u32) {
        self.end_group(clock);
        *clock = clock.wrapping_add(1);
        let (track, time) = (&mut self.track, *clock);
        self.runs.leave(time, mask, &mut |lane, entry| {
            let words = entry.to_words();
            track.append_words(lane, words, accesses(words[1]).into(), time);
        });
        bits(mask).for_each(|lane| self.track.close(lane as u32));
    }
}
