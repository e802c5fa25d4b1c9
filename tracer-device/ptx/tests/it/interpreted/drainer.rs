//! A host that empties streamed logs while lanes write them, by the protocol of `warptrace_abi::stream`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use warptrace_abi::log::ENTRY_BYTES;
use warptrace_abi::stream::{
    LOST_BEFORE, MIN_STREAM_ENTRIES, NONE_BEFORE, SLOT_BYTES, StreamLogs, TAG_STEP, slot_words,
};
use warptrace_format::LANES;
use warptrace_ptx::interpret::Memory;

use super::model::lanes as of_mask;
use super::program::below;
use super::segments::{LAUNCH, Segment, Slot, Taken, old_entry};

const QUEUE: u64 = 0x2_0000_0000;
const STATE: u64 = 0x2_1000_0000;
const LOST: u64 = 0x2_2000_0000;
const ENDED: u64 = 0x2_3000_0000;
/// In the middle of the segments, at the end of one of them.
const MIDDLE: u64 = 0x7f13_0000_0000;
const GAVE_UP: usize = 8;
/// Time in nanoseconds after which a waiting lane gives up.
pub(crate) const PATIENCE: u64 = 1 << 40;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Streaming {
    pub(crate) segments: u32,
    pub(crate) entries: u32,
    pub(crate) first_ticket: u64,
    pub(crate) stall: u64,
    pub(crate) habit: Habit,
    /// Maximum number of entries that the host reads in a turn.
    pub(crate) pace: u64,
}

impl Streaming {
    /// Segments of the minimum size, lanes that wait without limit, and a host that frees segments.
    pub(crate) fn patient(segments: u32) -> Self {
        let (entries, habit) = (MIN_STREAM_ENTRIES, Habit::Busy);
        Self { segments, entries, first_ticket: 0, stall: PATIENCE, habit, pace: 100 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    /// Empties, frees and provides segments all the time.
    Busy,
    /// Provides each segment once.
    Lazy,
    /// Stops after this many snapshots until it has seen `times` times that a lane gave up; starts again.
    Sleepy { snapshots: u32, times: u32 },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Drained {
    /// Runs. The runs of a segment are in order.
    pub(crate) runs: Vec<Taken>,
    pub(crate) lost: Vec<u64>,
    /// For each lane of each warp, the first snapshot that saw that it had left.
    pub(crate) ended: Vec<[Option<u32>; LANES as usize]>,
    pub(crate) uses: u64,
    pub(crate) tickets: u64,
    /// Number of entries seen in a snapshot without all their predecessors in the segment.
    pub(crate) holes: u64,
    /// Number of headers that report an earlier loss of the lane.
    pub(crate) lost_before: u64,
}

pub(crate) struct Drainer {
    streaming: Streaming,
    launch: StreamLogs,
    tracks: u32,
    random: ChaCha8Rng,
    segments: Vec<Segment>,
    slots: Vec<Slot>,
    next_tag: u32,
    /// Remaining reads of the snapshot: an entry of a segment, or a word of `ended`.
    to_read: Vec<(Option<usize>, usize)>,
    /// Lanes that had left in the last snapshot, and in the current one.
    ended: Vec<u32>,
    ending: Vec<u32>,
    snapshots: u32,
    /// Number of times that the sleeping host has seen that a lane gave up.
    times: u32,
    /// For each segment taken: stream and lane, ticket, segment number, previous segment.
    given: Vec<((u32, u32), u64, u32, u32)>,
    drained: Drained,
}

impl Drainer {
    /// Returns the warps' spans, which follow the lost events.
    pub(crate) fn spans<'a>(&self, memory: &'a Memory) -> &'a [u8] {
        &memory.region(LOST).expect("a region")[(8 * self.tracks * self.launch.warps) as usize..]
    }

    /// Declares the memory and provides all segments. Numbers: warps, tracks, bytes of the spans.
    pub(crate) fn new(
        streaming: Streaming,
        [warps, tracks, span_bytes]: [u32; 3],
        seed: u64,
        memory: &mut Memory,
    ) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let bytes = u64::from(streaming.entries * ENTRY_BYTES);
        let launch = StreamLogs {
            segments: MIDDLE - u64::from(streaming.segments / 2) * bytes,
            queue: QUEUE,
            state: STATE,
            lost: LOST,
            ended: ENDED,
            stall_nanoseconds: streaming.stall,
            warps,
            launch: LAUNCH,
            segment_entries: streaming.entries,
            slots: streaming.segments.next_power_of_two(),
            ..StreamLogs::default()
        };
        let next_tag =
            [TAG_STEP, 0x8000_0000, 0_u32.wrapping_sub(40 * TAG_STEP)][below(&mut random, 3) as usize];
        let count = (streaming.segments * streaming.entries) as usize;
        let old: Vec<[u32; 4]> = (0..count).map(|_| old_entry(&mut random, next_tag)).collect();
        let slots = u64::from(launch.slots);
        let first = streaming.first_ticket;
        let slot = |index: u64| first + (index + slots - first % slots) % slots;
        let slots: Vec<Slot> = (0..slots).map(|index| Slot { next: slot(index), given: None }).collect();
        let queue = slots.iter().flat_map(|slot| match slot.next.checked_sub(slots.len() as u64) {
            Some(ticket) => {
                slot_words(below(&mut random, 5) as u32, next_tag - TAG_STEP, ticket, launch.slots)
            }
            None => [0; 2],
        });
        memory.declare(QUEUE, bytes_of(queue));
        memory.declare(launch.segments, bytes_of(old.iter().flatten().copied()));
        memory.declare(STATE, [first.to_le_bytes(), [0; 8]].concat());
        memory.declare(LOST, vec![0; (8 * tracks * warps + span_bytes) as usize]);
        memory.declare(ENDED, vec![0; 4 * warps as usize]);
        let segments = old
            .chunks(streaming.entries as usize)
            .map(|old| Segment { before: old.to_vec(), ..Segment::default() });
        let mut drainer = Self {
            streaming,
            launch,
            tracks,
            random,
            segments: segments.collect(),
            slots,
            next_tag,
            to_read: Vec::new(),
            ended: vec![0; warps as usize],
            ending: vec![0; warps as usize],
            snapshots: 0,
            times: 0,
            given: Vec::new(),
            drained: Drained { ended: vec![[None; LANES as usize]; warps as usize], ..Drained::default() },
        };
        drainer.give(memory);
        drainer.begin_snapshot();
        drainer
    }

    pub(crate) fn parameter(&self) -> Vec<u8> {
        let StreamLogs { segments, queue, state, lost, ended, stall_nanoseconds, .. } = self.launch;
        let StreamLogs { warps, launch, segment_entries, slots, .. } = self.launch;
        let mut bytes: Vec<u8> = [segments, queue, state, lost, ended, stall_nanoseconds]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        bytes.extend([warps, launch, segment_entries, slots].into_iter().flat_map(u32::to_le_bytes));
        bytes
    }

    /// Reads part of the log memory, and processes the snapshot when it is complete.
    pub(crate) fn act(&mut self, memory: &mut Memory) {
        match self.streaming.habit {
            Habit::Lazy => return,
            Habit::Sleepy { snapshots, times } if (self.snapshots + 1).is_multiple_of(snapshots) => {
                self.times += word(region(memory, STATE), GAVE_UP).min(1);
                if self.times < times {
                    return;
                }
            }
            _ => {}
        }
        let reads = below(&mut self.random, self.streaming.pace + 1);
        if self.read(memory, reads) {
            self.take(memory);
            self.give(memory);
            self.begin_snapshot();
        }
    }

    /// Processes the rest after the launch, and checks that nothing else was written.
    pub(crate) fn finish(mut self, memory: &mut Memory) -> Drained {
        for _ in 0..3 {
            self.read(memory, u64::MAX);
            self.take(memory);
            self.begin_snapshot();
        }
        self.read(memory, u64::MAX);
        for segment in self.segments.iter().filter(|segment| segment.tag != 0) {
            assert_eq!(segment.owner, None, "a segment of lanes that have left is free");
            assert_eq!(segment.words, segment.before, "no lane writes to a segment that none took");
        }
        for (index, segment) in self.segments.iter().enumerate().filter(|(_, segment)| segment.tag == 0) {
            for (at, before) in segment.before.iter().enumerate() {
                assert_eq!(
                    self.entry(memory, index, at),
                    *before,
                    "no lane writes to a segment that is free"
                );
            }
        }
        self.check_segments_before();
        let lost = region(memory, LOST)[..(8 * self.tracks * self.launch.warps) as usize].chunks_exact(8);
        self.drained.lost = lost.map(|lost| u64::from_le_bytes(lost.try_into().expect("8 bytes"))).collect();
        self.drained.tickets = self.tickets(memory) - self.streaming.first_ticket;
        self.drained
    }

    fn check_segments_before(&mut self) {
        self.given.sort_unstable();
        let mut last = None;
        for &(owner, _, segment, before) in &self.given {
            let expected = match last {
                Some((lane, segment)) if lane == owner => segment + 1,
                _ => NONE_BEFORE,
            };
            assert!(before == expected || before == LOST_BEFORE, "{owner:?}: {before}, not {expected}");
            self.drained.lost_before += u64::from(before == LOST_BEFORE);
            last = Some((owner, segment));
        }
    }

    /// Begins a snapshot of all segments in use, in random order, over any number of turns.
    fn begin_snapshot(&mut self) {
        self.snapshots += 1;
        self.times = 0;
        self.to_read = (0..self.ended.len()).map(|warp| (None, warp)).collect();
        for (index, segment) in self.segments.iter().enumerate().filter(|(_, segment)| segment.tag != 0) {
            self.to_read.extend((0..segment.before.len()).map(|entry| (Some(index), entry)));
        }
        for last in (1..self.to_read.len()).rev() {
            let other = below(&mut self.random, last as u64 + 1) as usize;
            self.to_read.swap(last, other);
        }
    }

    fn read(&mut self, memory: &Memory, count: u64) -> bool {
        for _ in 0..count {
            match self.to_read.pop() {
                None => return true,
                Some((None, warp)) => self.ending[warp] = word(region(memory, ENDED), 4 * warp),
                Some((Some(segment), entry)) => {
                    let words = self.entry(memory, segment, entry);
                    let segment = &mut self.segments[segment];
                    assert!(segment.seen[entry].is_none() || segment.words[entry] == words, "an entry stays");
                    segment.words[entry] = words;
                }
            }
        }
        self.to_read.is_empty()
    }

    fn take(&mut self, memory: &Memory) {
        let streams = self.tracks * self.launch.warps;
        for index in 0..self.segments.len() {
            let segment = &mut self.segments[index];
            if segment.tag == 0 {
                continue;
            }
            for entry in 0..segment.words.len() {
                if segment.has(segment.words[entry]) {
                    segment.seen[entry].get_or_insert(self.snapshots);
                }
            }
            let Some(owner) = segment.header() else { continue };
            assert!(owner.0 < streams && owner.1 < LANES, "{owner:?}");
            if segment.owner.is_none() {
                self.drained.uses += 1;
                let before = segment.before_of_lane();
                self.given.push((owner, segment.ticket, index as u32, before));
            }
            assert_eq!(*segment.owner.get_or_insert(owner), owner, "a header stays");
            while segment.seen.get(segment.taken + 1).is_some_and(Option::is_some) {
                segment.taken += 1;
                self.drained.runs.push(segment.run(segment.taken, owner));
            }
            let written = segment.seen.iter().filter(|seen| seen.is_some()).count();
            let whole = segment.taken + 1 == written;
            self.drained.holes += u64::from(!whole);
            let left = self.ended[(owner.0 % self.launch.warps) as usize] >> owner.1 & 1 != 0;
            assert!(whole || !left, "a lane that has left has filled its segment in order");
            if left || written == segment.seen.len() {
                segment.tag = 0;
                let now = (0..segment.seen.len()).map(|entry| self.entry(memory, index, entry)).collect();
                self.segments[index].before = now;
            }
        }
        self.ended.clone_from(&self.ending);
        for (warp, lanes) in self.ended.iter().zip(&mut self.drained.ended) {
            for lane in of_mask(*warp) {
                lanes[lane as usize].get_or_insert(self.snapshots);
            }
        }
    }

    fn give(&mut self, memory: &mut Memory) {
        let tickets = self.tickets(memory);
        let mut free: Vec<usize> =
            (0..self.segments.len()).filter(|index| self.segments[*index].tag == 0).collect();
        while !free.is_empty() {
            let Some(slot) = self.next_slot(tickets) else { break };
            let chosen = below(&mut self.random, free.len() as u64) as usize;
            let index = free.swap_remove(chosen);
            let (ticket, tag) = (self.slots[slot].next, self.next_tag);
            self.next_tag = self.next_tag.wrapping_add(TAG_STEP).max(TAG_STEP);
            self.slots[slot] =
                Slot { next: ticket + u64::from(self.launch.slots), given: Some((index, tag)) };
            let segment = &mut self.segments[index];
            let entries = segment.before.len();
            *segment = Segment {
                tag,
                ticket,
                owner: None,
                taken: 0,
                before: std::mem::take(&mut segment.before),
                words: vec![[0; 4]; entries],
                seen: vec![None; entries],
            };
            let at = slot * SLOT_BYTES as usize;
            let words = slot_words(index as u32, tag, ticket, self.launch.slots);
            region_mut(memory, QUEUE)[at..at + 8].copy_from_slice(&bytes_of(words.into_iter()));
            region_mut(memory, STATE)[GAVE_UP..GAVE_UP + 4].fill(0);
        }
    }

    /// The slot of the lowest ticket if the holder of its last ticket has read it; otherwise of the lowest
    /// ticket whose slot can be written.
    fn next_slot(&self, tickets: u64) -> Option<usize> {
        let looked = |slot: &Slot| {
            slot.given.is_none_or(|(segment, tag)| {
                let segment = &self.segments[segment];
                segment.tag != tag || segment.owner.is_some()
            })
        };
        let lowest = self.slots.iter().map(|slot| slot.next).min()?;
        let fits = |slot: &Slot| looked(slot) && (slot.next == lowest || slot.next < tickets);
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| fits(slot));
        slots.min_by_key(|(_, slot)| slot.next).map(|(index, _)| index)
    }

    fn tickets(&self, memory: &Memory) -> u64 {
        u64::from_le_bytes(region(memory, STATE)[..8].try_into().expect("8 bytes"))
    }

    fn entry(&self, memory: &Memory, segment: usize, entry: usize) -> [u32; 4] {
        let at = (segment * self.streaming.entries as usize + entry) * ENTRY_BYTES as usize;
        let bytes = &region(memory, self.launch.segments)[at..];
        [0, 4, 8, 12].map(|at| word(bytes, at))
    }
}

fn bytes_of(words: impl Iterator<Item = u32>) -> Vec<u8> {
    words.flat_map(u32::to_le_bytes).collect()
}

fn region(memory: &Memory, address: u64) -> &[u8] {
    memory.region(address).expect("a region")
}

fn region_mut(memory: &mut Memory, address: u64) -> &mut [u8] {
    memory.region_mut(address).expect("a region")
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}
