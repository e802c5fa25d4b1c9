//! Checks one lane and the host with two segments, in all orders that the memory model allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use loom::sync::atomic::AtomicU64;
use warptrace_abi::stream::{TAG_STEP, has_tag, lane_and_before, slot_words, untagged};

use super::*;

/// Entries of a segment, header included.
const ENTRIES: u32 = 4;
/// Segments, and slots of the queue.
const SEGMENTS: u32 = 2;
/// Addresses, starting at 0.
const QUEUE: u64 = (SEGMENTS * ENTRIES * ENTRY_BYTES) as u64;
const STATE: u64 = QUEUE + (SEGMENTS * SLOT_BYTES) as u64;
const LOST: u64 = STATE + 16;
const ENDED: u64 = LOST + 8;
const LANE: u32 = 3;

fn logs() -> StreamLogs {
    StreamLogs {
        segments: 0,
        queue: QUEUE,
        state: STATE,
        lost: LOST,
        ended: ENDED,
        stall_nanoseconds: 0,
        warps: 1,
        launch: 1,
        segment_entries: ENTRIES,
        slots: SEGMENTS,
        ..StreamLogs::default()
    }
}

#[derive(Clone)]
struct ModelWords {
    words: Arc<Vec<AtomicU64>>,
    /// Polls of a slot after which a lane stops waiting.
    patience: u32,
}

impl ModelWords {
    fn new(patience: u32) -> Self {
        Self { words: Arc::new((0..=ENDED / 8).map(|_| AtomicU64::new(0)).collect()), patience }
    }

    fn word(&self, address: u64) -> &AtomicU64 {
        assert!(address.is_multiple_of(8));
        &self.words[(address / 8) as usize]
    }
}

impl LiveWords for ModelWords {
    fn load(&self, address: u64, order: Ordering) -> u64 {
        self.word(address).load(order)
    }

    fn store(&self, address: u64, word: u64, order: Ordering) {
        self.word(address).store(word, order);
    }

    fn add(&self, address: u64, more: u64, order: Ordering) -> u64 {
        self.word(address).fetch_add(more, order)
    }

    fn set_bits(&self, address: u64, bits: u64, order: Ordering) {
        self.word(address).fetch_or(bits, order);
    }

    fn pause(&self, wait: &mut Wait) -> bool {
        wait.polls += 1;
        loom::thread::yield_now();
        wait.polls < self.patience
    }
}

struct Given {
    number: u32,
    tag: u32,
    read: u32,
}

/// The host, with the given segments in the order of tickets and the runs that it has read.
struct Host {
    memory: ModelWords,
    given: Vec<Given>,
    next_ticket: u64,
    runs: Vec<Entry>,
}

impl Host {
    fn new(memory: ModelWords) -> Self {
        Self { memory, given: Vec::new(), next_ticket: 0, runs: Vec::new() }
    }

    fn give(&mut self, number: u32) {
        let (ticket, tag) = (self.next_ticket, TAG_STEP * (self.next_ticket as u32 + 1));
        let slot = QUEUE + ticket % u64::from(SEGMENTS) * u64::from(SLOT_BYTES);
        self.memory.store(slot, whole(slot_words(number, tag, ticket, SEGMENTS)), Release);
        self.memory.store(STATE + GAVE_UP, 0, Relaxed);
        self.next_ticket += 1;
        self.given.push(Given { number, tag, read: 0 });
    }

    /// Reads new entries of the oldest segment and gives it away again when it is full.
    fn serve(&mut self) {
        let oldest = &mut self.given[0];
        while oldest.read < ENTRIES {
            let at = u64::from((oldest.number * ENTRIES + oldest.read) * ENTRY_BYTES);
            let [low, high] = halves(self.memory.load(at + 8, Acquire));
            if !has_tag([0, 0, low, high], oldest.tag) {
                return;
            }
            let [mask, key] = halves(self.memory.load(at, Relaxed));
            if oldest.read == 0 {
                let words = [mask, key, low, high];
                let (lane, before) = lane_and_before(words);
                assert_eq!(words, header_words(0, 1, LANE, before, oldest.tag));
                assert_eq!(lane, LANE);
            } else {
                self.runs.push(untagged([mask, key, low, high]));
            }
            oldest.read += 1;
        }
        let full = self.given.remove(0);
        self.give(full.number);
    }
}

/// Number of occurrences, in all orders together.
type Times = Arc<AtomicU32>;

fn run(number: u32) -> Entry {
    Entry {
        mask: number << 8 | 1 << LANE,
        location: number as u16,
        count: number,
        time: number << 26 | number,
    }
}

/// Lets a lane append `runs` runs while the host empties its segments. Returns the runs read and events lost.
fn stream(runs: u32, patience: u32) -> (Vec<Entry>, u64) {
    let memory = ModelWords::new(patience);
    let mut host = Host::new(memory.clone());
    (0..SEGMENTS).for_each(|number| host.give(number));
    let lanes = memory.clone();
    let lane = loom::thread::spawn(move || {
        let mut track = StreamedTrack::within(lanes, &logs(), 0, 0);
        for number in 1..=runs {
            track.append(LANE, run(number), false);
        }
        track.close(LANE);
    });
    let host = loom::thread::spawn(move || {
        // Loads `ENDED` before the segments: the entries of a lane that has left are then visible.
        while host.memory.load(ENDED, Acquire) != 1 << LANE {
            host.serve();
            loom::thread::yield_now();
        }
        (0..SEGMENTS).for_each(|_| host.serve());
        host.runs
    });
    lane.join().expect("no panic");
    let runs = host.join().expect("no panic");
    (runs, memory.load(LOST, Relaxed))
}

/// Runs a check in all orders with at most two preemptions, or `LOOM_MAX_PREEMPTIONS`: four take a minute.
fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(check);
}

#[test]
fn each_run_is_read_once_and_whole() {
    model(|| {
        let (runs, lost) = stream(7, u32::MAX);
        assert!(runs.into_iter().eq((1..=7).map(run)));
        assert_eq!(lost, 0);
    });
}

#[test]
fn what_is_not_read_is_lost() {
    let (nothing, last, between) = (Times::default(), Times::default(), Times::default());
    let counted = [&nothing, &last, &between].map(Arc::clone);
    model(move || {
        let (runs, lost) = stream(8, 1);
        let read: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
        assert_eq!(read + lost, (1..=8).sum());
        assert!(runs.is_sorted_by(|one, other| one.count < other.count));
        assert!(runs.iter().all(|&entry| entry == run(entry.count)));
        let [nothing, last, between] = &counted;
        let has_last = runs.last() == Some(&run(8));
        let times = if lost == 0 {
            nothing
        } else if has_last {
            between
        } else {
            last
        };
        times.fetch_add(1, Relaxed);
    });
    let times = [nothing, last, between].map(|times| times.load(Relaxed));
    assert!(times.iter().all(|&times| times > 0), "nothing is lost, the last run, one before it: {times:?}");
}
