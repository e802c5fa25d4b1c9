//! Builds flat logs from streamed segments, for warps that have left a kernel in which others still run.
//!
//! The host lists the warps of a *round*. First, [`link_segments`] reads the headers of all segments, one
//! thread per segment. Each names the previous segment of its lane, which links the round's segments into one
//! chain per lane. Then each warp of [`flatten_warps`] takes a warp of the round, reserves entries for its
//! chains, copies the originals there, and lists the segments as free. It omits copies of runs, because all
//! originals of a warp that has left are in memory. The host handles warps with lost events: a copy may then
//! hold a run whose original is missing. If too few entries remain, a warp waits for another round.

use core::ptr::with_exposed_provenance_mut;

use warptrace_abi::log::{ENTRY_BYTES, Entry, FLAT_ENTRIES};
use warptrace_abi::stream::{
    LOST_BEFORE, NONE_BEFORE, TAG_STEP, has_tag, is_original, lane_and_before, untagged,
};
use warptrace_device::{atomic, simt};
use warptrace_format::LANES;
use warptrace_format::Memory;

use crate::memory::{GlobalMemory, at_entry};
use crate::warp::{self, NEVER, by_first, sum};

/// The initial value in [`FlattenJob::outcomes`]: the warp is not processed yet.
pub const PENDING: u32 = 0;
/// The warp's logs are flat.
pub const FLATTENED: u32 = 1;
/// Too few entries remained for the warp's logs. Its segments are unchanged.
pub const NO_ROOM: u32 = 2;
/// The warp has lost events. Its segments are unchanged.
pub const HAS_LOST: u32 = 3;

/// Words of a job, which is the argument of the kernels.
pub const JOB_WORDS: usize = 34;

/// Addresses and sizes of a round. All addresses are multiples of 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlattenJob {
    /// Segment 0. Segments that were not used since the segment length was set are all zero.
    pub segments: u64,
    /// Array of `u32`, one per segment: the next segment of its lane. Initially [`NEVER`](u32::MAX).
    pub links: u64,
    /// Array of `u32`, 32 per stream of the round: the first segment of each lane. Initially `u32::MAX`.
    pub firsts: u64,
    /// Array of `u32`: the warps of the round, as indices into the launch's tables.
    pub warps: u64,
    /// Array of `u32`, one per warp of the launch: its index in the round, or `u32::MAX`.
    pub indices: u64,
    /// Array of `u32`, one per warp of the round: its outcome, such as [`FLATTENED`].
    pub outcomes: u64,
    /// The launch's table of lost events.
    pub lost: u64,
    /// `u32`: the number of freed segments, initially 0. Their numbers follow at offset 16.
    pub freed: u64,
    /// Log memory, which holds the flat logs and their positions.
    pub logs: u64,
    /// `u64`: entries reserved from [`flat_from`](Self::flat_from) on, initially 0. May exceed the space.
    pub claimed: u64,
    /// Array of `u32`, one per segment: the last header's tag that any round has seen; initially 0.
    pub seen: u64,
    /// `u32`: number of new headers, initially 0. From offset 16, 8 bytes for each: its segment and tag.
    pub new_headers: u64,
    /// Recorded warps of the launch.
    pub launch_warps: u32,
    /// Number of the launch.
    pub launch: u32,
    /// Number of segments.
    pub segment_count: u32,
    /// Entries per segment, including the header.
    pub segment_entries: u32,
    /// Warps of the round.
    pub round_warps: u32,
    /// Tracks of the launch. Streams of the round have the numbers `track * round_warps + index`.
    pub tracks: u32,
    /// Index of the first entry with positions of flat logs.
    pub flat_logs: u32,
    /// Index of the first entry for flat logs.
    pub flat_from: u32,
    /// Index after the last entry for flat logs.
    pub flat_end: u32,
    /// Not used; 0.
    pub unused: u32,
}

const _: () = assert!(size_of::<FlattenJob>() == 4 * JOB_WORDS);

impl FlattenJob {
    /// Returns the address and length in bytes of each memory region that a round uses.
    pub fn parts(&self) -> [(u64, u64); 12] {
        let [segments, warps, launch_warps] =
            [self.segment_count, self.round_warps, self.launch_warps].map(u64::from);
        let (streams, tracks) = (warps * u64::from(self.tracks), u64::from(self.tracks));
        [
            (self.segments, segments * u64::from(self.segment_entries) * u64::from(ENTRY_BYTES)),
            (self.links, 4 * segments),
            (self.firsts, 4 * u64::from(LANES) * streams),
            (self.warps, 4 * warps),
            (self.indices, 4 * launch_warps),
            (self.outcomes, 4 * warps),
            (self.lost, 8 * launch_warps * tracks),
            (self.freed, 16 + 4 * segments),
            (self.logs, u64::from(self.flat_end) * u64::from(ENTRY_BYTES)),
            (self.claimed, 8),
            (self.seen, 4 * segments),
            (self.new_headers, 16 + 8 * segments),
        ]
    }

    #[inline(always)]
    pub(crate) fn segment(&self, number: u32) -> u64 {
        self.segments + u64::from(number) * u64::from(self.segment_entries * ENTRY_BYTES)
    }

    #[inline(always)]
    pub(crate) fn launch_streams(&self) -> u32 {
        self.launch_warps * self.tracks
    }

    /// Finds the warp and lane that a segment's header names. Returns `None` if they are not in the round.
    #[inline(always)]
    pub(crate) fn place(&self, header: [u32; 4], index_of: impl FnOnce(u32) -> u32) -> Option<SegmentPlace> {
        let (lane, before) = lane_and_before(header);
        let is_header = header[3] >= TAG_STEP;
        if !is_header || header[1] != self.launch || header[0] >= self.launch_streams() || lane >= LANES {
            return None;
        }
        // `max` shows the compiler that the divisor is not 0.
        let warps = self.launch_warps.max(1);
        let (track, index) = (header[0] / warps, index_of(header[0] % warps));
        if index >= self.round_warps {
            return None;
        }
        let first = (track * self.round_warps + index) * LANES + lane;
        Some(SegmentPlace { index, first, before })
    }

    /// Returns the words of a segment's entry in its lane's flat log, or `None` if it is not an original run.
    #[inline(always)]
    pub(crate) fn flat(words: [u32; 4], tag: u32, lane: u32) -> Option<[u32; 4]> {
        let fits = has_tag(words, tag) & is_original(words, lane);
        let entry: Entry = untagged(words);
        if fits && entry.is_run() { Some(entry.to_words()) } else { None }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct SegmentPlace {
    pub(crate) index: u32,
    /// Index of the lane among all lanes of the round.
    pub(crate) first: u32,
    /// The previous segment, as encoded in the header.
    pub(crate) before: u32,
}

#[inline(always)]
fn at(array: u64, index: u32) -> GlobalMemory {
    GlobalMemory::new(array + 4 * u64::from(index))
}

/// Links the segments of the round's lanes. Any number of threads may call it.
#[inline(always)]
pub(crate) fn link_segments(job: &FlattenJob) {
    let mut number = simt::global_thread_x();
    while number < job.segment_count {
        let header = GlobalMemory::new(job.segment(number)).get128_now(0);
        note_header(job, number, header[3]);
        if let Some(place) = job.place(header, |warp| at(job.indices, warp).get32(0)) {
            let (mut first, mut outcome) = (at(job.firsts, place.first), at(job.outcomes, place.index));
            match place.before {
                NONE_BEFORE => first.set32(0, number),
                LOST_BEFORE => outcome.set32(0, HAS_LOST),
                before if before <= job.segment_count => at(job.links, before - 1).set32(0, number),
                _ => {}
            }
        }
        number += simt::grid_threads_x();
    }
}

/// Lists a header if it is new. Its lane has then taken the segment from the queue.
#[inline(always)]
fn note_header(job: &FlattenJob, number: u32, tag: u32) {
    let mut seen = at(job.seen, number);
    if tag >= TAG_STEP && seen.get32(0) != tag {
        seen.set32(0, tag);
        let counter = with_exposed_provenance_mut::<u32>(job.new_headers as usize);
        // SAFETY: `new_headers` is the address of the round's counter.
        let listed = unsafe { atomic::add_u32(counter, 1) };
        GlobalMemory::new(job.new_headers + 16 + 8 * u64::from(listed)).set64(0, [number, tag]);
    }
}

/// Flattens the logs of the round's warps. Any number of whole warps may call it.
#[inline(always)]
pub(crate) fn flatten_warps(job: &FlattenJob) {
    let warps = simt::block_threads() / simt::WARP_LANES;
    let mut index = simt::block_idx()[0] * warps + simt::warp_in_block();
    while index < job.round_warps {
        let outcome = flatten_warp(job, index);
        if simt::lane() == 0 {
            at(job.outcomes, index).set32(0, outcome);
        }
        index += simt::grid_size()[0] * warps;
    }
}

#[inline(always)]
fn flatten_warp(job: &FlattenJob, index: u32) -> u32 {
    let lane = simt::lane();
    let first_of =
        |track: u32, lane: u32| at(job.firsts, (track * job.round_warps + index) * LANES + lane).get32(0);
    // The logs stay empty until they are complete.
    let head_of = |track: u32, lane: u32| {
        let flat_logs = job.flat_logs + (track * job.round_warps + index) * FLAT_ENTRIES;
        at_entry(job.logs, flat_logs + lane / 2)
    };
    let mut has_lost = at(job.outcomes, index).get32(0) == HAS_LOST;
    let warp = at(job.warps, index).get32(0);
    let (mut track, mut segments) = (0, 0);
    while track < job.tracks {
        head_of(track, lane).set64(8 * (lane % 2), [0, 0]);
        let lost = GlobalMemory::new(job.lost + 8 * u64::from(track * job.launch_warps + warp)).get64(0);
        has_lost |= lost[0] | lost[1] != 0;
        let mut segment = first_of(track, lane);
        while segment < job.segment_count && segments < job.segment_count {
            segments += 1;
            segment = at(job.links, segment).get32(0);
        }
        track += 1;
    }
    if has_lost {
        return HAS_LOST;
    }
    let mut remaining = sum(segments);
    if remaining == 0 {
        return FLATTENED;
    }
    let mut entries = 0;
    track = 0;
    while track < job.tracks {
        let mut owner = 0;
        while owner < LANES {
            let mut segment = first_of(track, owner);
            let mut most = remaining;
            while segment < job.segment_count && most != 0 {
                let following = at(job.links, segment).get32(0);
                entries += copy_segment::<false>(job, segment, owner, [0, 0]);
                segment = following;
                most -= 1;
            }
            owner += 1;
        }
        track += 1;
    }
    let mut next = by_first(|| claim(job, u64::from(entries)));
    let end = next.saturating_add(entries);
    if next == NEVER {
        return NO_ROOM;
    }
    let freed = with_exposed_provenance_mut::<u32>(job.freed as usize);
    // SAFETY: `freed` is the address of the round's counter.
    let mut listed = by_first(|| unsafe { atomic::add_u32(freed, remaining) });
    track = 0;
    while track < job.tracks {
        let mut owner = 0;
        while owner < LANES {
            let (begin, mut segment) = (next, first_of(track, owner));
            while segment < job.segment_count && remaining != 0 {
                let following = at(job.links, segment).get32(0);
                next = copy_segment::<true>(job, segment, owner, [next, end]).min(end);
                if lane == 0 && listed < job.segment_count {
                    at(job.freed + 16, listed).set32(0, segment);
                }
                listed += 1;
                remaining -= 1;
                segment = following;
            }
            if lane == 0 {
                head_of(track, owner).set64(8 * (owner % 2), [begin, next - begin]);
            }
            owner += 1;
        }
        track += 1;
    }
    FLATTENED
}

/// Reserves entries for flat logs. Returns the index of the first, or [`NEVER`] if too few remain.
#[inline(always)]
fn claim(job: &FlattenJob, entries: u64) -> u32 {
    let counter = with_exposed_provenance_mut::<u64>(job.claimed as usize);
    let there_are = u64::from(job.flat_end - job.flat_from);
    // SAFETY: `claimed` is the address of the round's counter.
    unsafe {
        if atomic::load_u64(counter) + entries > there_are {
            return NEVER;
        }
        let before = atomic::add_u64(counter, entries);
        if before + entries <= there_are { job.flat_from + before as u32 } else { NEVER }
    }
}

/// Finds the originals in a lane's segment. If `COPIED`, writes them to the entries from `next` to `end`.
/// Returns the index after the last. All lanes of the warp call it.
#[inline(always)]
fn copy_segment<const COPIED: bool>(
    job: &FlattenJob,
    segment: u32,
    owner: u32,
    [mut next, end]: [u32; 2],
) -> u32 {
    let (memory, lane) = (GlobalMemory::new(job.segment(segment)), simt::lane());
    let tag = memory.get128_now(0)[3];
    let mut first = 1;
    while first < job.segment_entries {
        let number = first + lane;
        let is_there = number < job.segment_entries;
        let words = memory.get128_now(ENTRY_BYTES * if is_there { number } else { 0 });
        let flat = FlattenJob::flat(words, tag, owner);
        let found = warp::ballot(is_there && flat.is_some());
        if let (true, true, Some(flat)) = (COPIED, is_there, flat) {
            let before = (found & ((1 << lane) - 1)).count_ones();
            if next + before < end {
                at_entry(job.logs, next + before).set128(0, flat);
            }
        }
        next += found.count_ones();
        first += simt::WARP_LANES;
    }
    next
}
