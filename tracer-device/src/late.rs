//! Runs that were taken out while their lanes were elsewhere.
//!
//! The lanes of the pending run count repeats of it by themselves (see `event`): they look whether it is still theirs, and then each
//! adds one to its own word. Another group of the warp may come between the two and take the run out, with what has been counted so
//! far. The count of one more repeat then comes late. It is not lost: the run is noted here with what its lowest lane
//! had counted, and when any of its lanes comes into the tracer again, all of them have counted, and the difference is put into the
//! queue as a run of its own, before their next event.
//!
//! A run is noted only if none of its lanes are among those that take it out; otherwise its lanes have come along, and have counted.
//! A lane is in one noted run at most, because coming into the tracer strikes out the one that it was in. So a run's lowest lane
//! names its place:
//!
//! ```text
//! offset  size  field
//!      0     8  in the warp's header: lanes that name a noted run; lanes of noted runs of several lanes, and perhaps others
//!
//!      0   512  in the table, a place of 16 bytes for each lane: mask, location, what the lane had counted, zero
//! ```

use warptrace_format::Memory;

use crate::simt;
use crate::space::SharedMemory;
use crate::state::{COUNTED, LATE_TABLE};

/// Bytes of the table.
pub(crate) const LATE_TABLE_BYTES: u32 = 16 * simt::WARP_LANES;

/// What a lane has counted.
#[inline(always)]
pub(crate) fn counted(state: SharedMemory, lane: u32) -> u32 {
    state.get32(COUNTED + 4 * lane)
}

/// What stands in the warp's header.
#[derive(Clone, Copy)]
pub(crate) struct Noted {
    /// Lanes that name a noted run.
    pub(crate) names: u32,
    /// All lanes of noted runs of several lanes, and perhaps others.
    pub(crate) wide: u32,
}

/// Notes a run that is taken out when its lowest lane, `lane`, has counted `counted`.
#[inline(always)]
pub(crate) fn note(
    mut state: SharedMemory,
    noted: Noted,
    lane: u32,
    mask: u32,
    location: u32,
    counted: u32,
) -> Noted {
    state.set128(LATE_TABLE + 16 * lane, [mask, location, counted, 0]);
    let several = mask & (mask - 1) != 0;
    Noted { names: noted.names | 1 << lane, wide: noted.wide | if several { mask } else { 0 } }
}

/// Strikes out the noted runs that have lanes in `mask`. Hands those that were repeated late to `put`: mask, location, count.
///
/// A kernel that diverges for long has many noted runs, most of one lane: they are found by their name, without a look at the others.
#[inline(always)]
pub(crate) fn settle(
    state: SharedMemory,
    noted: Noted,
    mask: u32,
    mut put: impl FnMut(u32, u32, u32),
) -> Noted {
    let all = noted.wide & mask != 0;
    let mut left = if all { noted.names } else { noted.names & mask };
    let Noted { mut names, mut wide } = noted;
    if all {
        wide = 0;
    }
    while left != 0 {
        let lane = simt::lowest(left);
        let [lanes, location, before, _] = state.get128(LATE_TABLE + 16 * lane);
        if lanes & mask != 0 {
            names &= !(1 << lane);
            let late = counted(state, lane).wrapping_sub(before);
            if late != 0 {
                put(lanes, location, late);
            }
        } else if lanes & (lanes - 1) != 0 {
            wide |= lanes;
        }
        left &= left - 1;
    }
    Noted { names, wide }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    /// A warp's header, in which lane `lane` has counted `counts[lane]`.
    fn header(counts: &[u32]) -> (Vec<u128>, SharedMemory) {
        let mut bytes = vec![0_u128; 256];
        let mut state = SharedMemory::new(bytes.as_mut_ptr().expose_provenance() as u64, true);
        for (lane, &count) in counts.iter().enumerate() {
            state.set32(COUNTED + 4 * lane as u32, count);
        }
        (bytes, state)
    }

    fn settled(state: SharedMemory, noted: Noted, mask: u32) -> (Noted, Vec<(u32, u32, u32)>) {
        let mut late = Vec::new();
        let noted = settle(state, noted, mask, |lanes, location, count| late.push((lanes, location, count)));
        (noted, late)
    }

    const NONE: Noted = Noted { names: 0, wide: 0 };

    #[test]
    fn a_count_that_comes_late_is_found_with_any_lane_of_its_run() {
        for mask in [0b0010, 0b0100, 0b0110, u32::MAX] {
            let (_bytes, mut state) = header(&[0, 7, 9]);
            let noted = note(state, NONE, 1, 0b0110, 5, 7);
            state.set32(COUNTED + 4, 8);
            let (noted, late) = settled(state, noted, mask);
            assert_eq!((noted.names, noted.wide, late), (0, 0, vec![(0b0110, 5, 1)]), "{mask:b}");
        }
    }

    #[test]
    fn without_a_late_count_the_note_is_struck_out_silently() {
        let (_bytes, state) = header(&[0, 7, 9]);
        let noted = note(state, NONE, 1, 0b0110, 5, 7);
        let (noted, late) = settled(state, noted, 0b0100);
        assert_eq!((noted.names, noted.wide, late), (0, 0, vec![]));
    }

    #[test]
    fn other_lanes_leave_notes_alone() {
        let (_bytes, mut state) = header(&[0, 7, 9, 3, 1]);
        let noted = note(state, NONE, 1, 0b0_0110, 5, 7);
        let noted = note(state, noted, 3, 0b0_1000, 6, 3);
        state.set32(COUNTED + 4, 8);
        state.set32(COUNTED + 12, u32::MAX);
        let (noted, late) = settled(state, noted, 0b1_0001);
        assert_eq!((noted.names, late), (0b1010, vec![]));
        // A run of one lane is found by its name, and the one of several lanes stays.
        let (noted, late) = settled(state, noted, 0b0_1000);
        assert_eq!((noted.names, noted.wide, late), (0b0010, 0b0110, vec![(0b1000, 6, u32::MAX - 3)]));
        let (noted, late) = settled(state, noted, u32::MAX);
        assert_eq!((noted.names, late), (0, vec![(0b0110, 5, 1)]));
    }

    #[test]
    fn a_counter_may_pass_its_end() {
        let (_bytes, mut state) = header(&[u32::MAX]);
        let noted = note(state, NONE, 0, 1, 5, u32::MAX);
        state.set32(COUNTED, 0);
        assert_eq!(settled(state, noted, 1).1, [(1, 5, 1)]);
    }
}
