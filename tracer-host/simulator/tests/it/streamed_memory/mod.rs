//! Memory of a streamed launch and a host that empties it, based only on `warptrace_abi::stream`.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use warptrace_abi::log::{ENTRY_BYTES, Entry};
use warptrace_abi::stream::{
    StreamLogs, TAG_STEP, has_tag, header_words, is_original, is_sole, lane_and_before, lap, slot_words,
    tagged, untagged,
};
use warptrace_format::chosen::ChosenWarps;

pub(crate) const LAUNCH: u32 = 9;
const UNTOUCHED: u64 = 0xcccc_cccc_cccc_cccc;

struct Words {
    all: Vec<AtomicU64>,
    first: usize,
    count: usize,
}

impl Words {
    fn new(count: usize, alignment: usize, word: u64) -> Self {
        let guard = alignment / 8;
        let all: Vec<_> = (0..count + 2 * guard).map(|_| AtomicU64::new(UNTOUCHED)).collect();
        let first = guard - all.as_ptr().addr() % alignment / 8;
        all[first..][..count].iter().for_each(|to| to.store(word, Relaxed));
        Self { all, first, count }
    }

    fn address(&self) -> u64 {
        self.words().as_ptr().expose_provenance() as u64
    }

    fn words(&self) -> &[AtomicU64] {
        &self.all[self.first..][..self.count]
    }

    fn halves(&self, at: usize) -> [u32; 2] {
        let word = self.words()[at].load(Acquire);
        [word as u32, (word >> 32) as u32]
    }

    fn put(&self, at: usize, [first, second]: [u32; 2]) {
        self.words()[at].store(u64::from(first) | u64::from(second) << 32, Release);
    }

    fn check_guards(&self) {
        let (before, rest) = self.all.split_at(self.first);
        let mut others = before.iter().chain(&rest[self.count..]);
        assert!(others.all(|word| word.load(Relaxed) == UNTOUCHED), "memory is written outside its bounds");
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) segments: u32,
    pub(crate) entries: u32,
    pub(crate) slots: u32,
}

/// The runs of each lane of each stream, in order.
pub(crate) type Runs = BTreeMap<(u32, u32), Vec<Entry>>;

#[derive(Clone, Debug)]
struct Given {
    ticket: u64,
    tag: u32,
    /// Entries read, header included.
    read: u32,
    /// Stream and lane, after the header was read.
    owner: Option<(u32, u32)>,
    runs: Vec<Entry>,
}

pub(crate) struct Host {
    room: Room,
    warps: u32,
    /// The clock of waiting lanes, in nanoseconds.
    pub(crate) clock: &'static AtomicU64,
    /// The warps that record, `warps` in number. `NONE`: all warps.
    pub(crate) chosen: ChosenWarps,
    segments: Words,
    queue: Words,
    state: Words,
    lost: Words,
    ended: Words,
    /// State of each segment; `None` if it is free.
    given: Vec<Option<Given>>,
    free: Vec<u32>,
    next_ticket: u64,
    tag: u32,
    /// For each slot: true until a lane has taken the slot's segment.
    unclaimed: Vec<bool>,
    /// Copies of runs, with their streams.
    copies: Vec<(u32, Entry)>,
    /// By stream, lane and ticket.
    runs: BTreeMap<(u32, u32, u64), Vec<Entry>>,
}

impl Host {
    pub(crate) fn new(room: Room, warps: u32, tracks: u32) -> Self {
        assert!(
            room.slots >= room.segments && room.slots.is_power_of_two() && room.entries.is_power_of_two()
        );
        let bytes = room.entries * ENTRY_BYTES;
        let words = (room.segments * bytes / 8) as usize;
        Self {
            room,
            warps,
            clock: Box::leak(Box::default()),
            chosen: ChosenWarps::NONE,
            segments: Words::new(words, bytes as usize, UNTOUCHED),
            queue: Words::new(room.slots as usize, 256, 0),
            state: Words::new(2, 256, 0),
            lost: Words::new((warps * tracks) as usize, 256, 0),
            ended: Words::new(warps.div_ceil(2) as usize, 256, 0),
            given: vec![None; room.segments as usize],
            free: (0..room.segments).rev().collect(),
            next_ticket: 0,
            // A few tags before they wrap.
            tag: 0_u32.wrapping_sub(10 * TAG_STEP),
            unclaimed: vec![false; room.slots as usize],
            runs: BTreeMap::new(),
            copies: Vec::new(),
        }
    }

    pub(crate) fn logs(&self, max_wait: u64) -> StreamLogs {
        StreamLogs {
            segments: self.segments.address(),
            queue: self.queue.address(),
            state: self.state.address(),
            lost: self.lost.address(),
            ended: self.ended.address(),
            stall_nanoseconds: max_wait,
            warps: self.warps,
            launch: LAUNCH,
            segment_entries: self.room.entries,
            slots: self.room.slots,
            chosen: self.chosen,
            ..StreamLogs::default()
        }
    }

    pub(crate) fn serve(&mut self) {
        self.read();
        self.give(u32::MAX);
    }

    /// Reads new entries and frees segments that are full or whose lanes have left.
    pub(crate) fn read(&mut self) {
        // Loads `ended` before the segments: the entries of a lane that has left are then visible.
        let ended: Vec<u32> = (0..self.warps).map(|warp| self.ended(warp)).collect();
        for number in 0..self.room.segments {
            let Some(mut given) = self.given[number as usize].take() else { continue };
            self.read_segment(number, &mut given);
            let full = given.read == self.room.entries;
            let left = given
                .owner
                .is_some_and(|(stream, lane)| ended[(stream % self.warps) as usize] >> lane & 1 != 0);
            if full || left {
                let (stream, lane) = given.owner.expect("it was read");
                let before = self.runs.insert((stream, lane, given.ticket), given.runs);
                assert!(before.is_none(), "a ticket is one lane's");
                self.free.push(number);
            } else {
                self.given[number as usize] = Some(given);
            }
        }
    }

    fn read_segment(&mut self, number: u32, given: &mut Given) {
        let first = (number * self.room.entries) as usize;
        while given.read < self.room.entries {
            let at = 2 * (first + given.read as usize);
            // The second half is written last.
            let [low, high] = self.segments.halves(at + 1);
            let [mask, key] = self.segments.halves(at);
            let words = [mask, key, low, high];
            if !has_tag(words, given.tag) {
                break;
            }
            if given.read == 0 {
                let ([stream, launch, ..], (lane, before)) = (words, lane_and_before(words));
                assert_eq!(words, header_words(stream, LAUNCH, lane, before, given.tag), "launch {launch}");
                given.owner = Some((stream, lane));
                self.unclaimed[(given.ticket % u64::from(self.room.slots)) as usize] = false;
            } else {
                let run = untagged(words);
                assert!(run.is_run() && words == tagged(run, given.tag, is_sole(words)));
                let (stream, lane) = given.owner.expect("the header comes first");
                if is_original(words, lane) {
                    given.runs.push(run);
                } else {
                    self.copies.push((stream, run));
                }
            }
            given.read += 1;
        }
    }

    pub(crate) fn give(&mut self, most: u32) {
        for _ in 0..most {
            let slot = (self.next_ticket % u64::from(self.room.slots)) as usize;
            if self.unclaimed[slot] {
                break;
            }
            let Some(number) = self.free.pop() else { break };
            self.tag = self.tag.wrapping_add(TAG_STEP).max(TAG_STEP);
            let (ticket, tag) = (self.next_ticket, self.tag);
            self.given[number as usize] = Some(Given { ticket, tag, read: 0, owner: None, runs: Vec::new() });
            self.unclaimed[slot] = true;
            assert_ne!(self.queue.halves(slot)[0] >> 24, lap(ticket, self.room.slots));
            self.queue.put(slot, slot_words(number, tag, ticket, self.room.slots));
            self.next_ticket += 1;
            if self.state.halves(1)[0] != 0 {
                self.state.put(1, [0, 0]);
            }
        }
    }

    /// Advances the clock while a lane waits and no segment is free, until it stops waiting.
    pub(crate) fn pass_time(&mut self) {
        let (tickets, gave_up) = self.state();
        if tickets > self.next_ticket && !gave_up {
            self.clock.fetch_add(100_000, Relaxed);
        }
    }

    pub(crate) fn ended(&self, warp: u32) -> u32 {
        self.ended.halves((warp / 2) as usize)[(warp % 2) as usize]
    }

    /// Returns the number of tickets, and whether a lane has stopped waiting since a segment was given.
    pub(crate) fn state(&self) -> (u64, bool) {
        let gave_up = self.state.halves(1);
        assert!(gave_up[0] <= 1 && gave_up[1] == 0);
        (self.state.words()[0].load(Acquire), gave_up[0] != 0)
    }

    pub(crate) fn claimed(&self) -> usize {
        self.runs.len() + self.given.iter().flatten().filter(|given| given.owner.is_some()).count()
    }

    pub(crate) fn lost(&self) -> Vec<u64> {
        self.lost.words().iter().map(|word| word.load(Relaxed)).collect()
    }

    pub(crate) fn runs(&self) -> Runs {
        for words in [&self.segments, &self.queue, &self.state, &self.lost, &self.ended] {
            words.check_guards();
        }
        let mut all = self.runs.clone();
        for given in self.given.iter().flatten() {
            if let Some((stream, lane)) = given.owner {
                all.insert((stream, lane, given.ticket), given.runs.clone());
            }
        }
        // The original of each copy was read or lost.
        let lost = self.lost();
        for (stream, copy) in self.copies.iter().filter(|(stream, _)| lost[*stream as usize] == 0) {
            let leader = copy.mask.trailing_zeros();
            let of_leader = all.range((*stream, leader, 0)..=(*stream, leader, u64::MAX));
            let mut originals = of_leader.flat_map(|(_, runs)| runs);
            assert!(originals.any(|run| run == copy), "{copy:?}");
        }
        let mut runs = Runs::new();
        for ((stream, lane, _), more) in all {
            runs.entry((stream, lane)).or_default().extend(more);
        }
        runs
    }
}
