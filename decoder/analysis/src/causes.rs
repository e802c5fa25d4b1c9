//! What parted lanes: each idle lane slot is charged to the last event that the absent lane shared with a
//! lane that is active now. What follows that event in the program sent them different ways.
//!
//! A list keeps the events that may still be somebody's last shared one, in slots, the newest last. None of
//! them has only lanes of a newer one, so in structured code it holds the partings that are open. An event
//! looks from the newest to the oldest for events that have both an active lane and lanes that are not
//! charged yet. Events with the lanes of the one before find the same. Where there are many slots, a set of
//! slots for each lane says which have an active lane.
//!
//! The first time that an event is charged, its lanes have parted: those that go on without others, and
//! these. They meet again at the first event that has lanes of both.
//!
//! A cycle is gone through twice. Whatever an event of its second time finds is in the body or older than the
//! cycle, and so it is in each later time.

use warptrace_format::Event;
use warptrace_format::codec::Item;

use crate::pairs::{Pairs, Sum};
use crate::transitions::{OUTSIDE, add_all, add_at};

/// From this number of slots on, those are freed whose event can be no pair's last shared one.
const MANY: usize = 64;
/// Slots at most. Of 32 lanes there are 496 pairs, and each has one last shared event.
const MOST: usize = 512;
const WORDS: usize = MOST / 64;
const LANES: usize = 32;

/// A set of slots.
type Slots = [u64; WORDS];

/// An event that lanes may have shared last.
#[derive(Clone, Copy, Debug)]
struct Shared {
    lanes: u32,
    location: u16,
    /// Whether its lanes have parted.
    is_parted: bool,
    /// Events of the warp up to this one, which is included.
    time: u64,
    /// Lanes that went on first; none if they have not parted or have met again.
    ahead: u32,
    /// Lanes that they left behind.
    behind: u32,
}

/// Finds the causes of idle lane slots over warps that are given one after the other.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    /// Lanes of the warp.
    lanes: u32,
    /// By slot; what is not in `used` is free.
    shared: Vec<Shared>,
    used: Slots,
    /// For each lane the slots of events that have it.
    with: [Slots; LANES],
    /// Length of `shared` from which on it is tidied.
    many: usize,
    /// Lanes of the last event.
    last: u32,
    /// What idle lanes of the last event are charged to: the location, and how many lanes.
    charged: Vec<(u16, u32)>,
    /// Events so far.
    now: u64,
    /// From the cause to where lanes were idle: charges, and the idle lane slots.
    charges: Pairs,
    /// From the cause to where lanes met again: how often, and the events between, without both ends.
    meetings: Pairs,
    /// Events after which lanes parted, by location.
    partings: Vec<u64>,
}

/// The lanes of a mask.
fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        lane
    })
}

/// Whether an event with these lanes is one that lanes share.
const fn is_shared(lanes: u32) -> bool {
    lanes & lanes.wrapping_sub(1) != 0
}

impl Causes {
    /// Begins a warp with these lanes.
    pub(crate) fn begin(&mut self, lanes: u32) {
        (self.lanes, self.last, self.now, self.many) = (lanes, 0, 0, MANY);
        self.clear();
        self.charged.clear();
        self.add(lanes, OUTSIDE);
    }

    /// Frees all slots.
    fn clear(&mut self) {
        self.shared.clear();
        self.used = [0; WORDS];
        self.with = [[0; WORDS]; LANES];
    }

    /// Puts an event into a new slot.
    fn add(&mut self, lanes: u32, location: u16) {
        let time = self.now;
        self.put(Shared { lanes, location, is_parted: false, time, ahead: 0, behind: 0 });
    }

    fn put(&mut self, shared: Shared) {
        let (word, bit) = (self.shared.len() / 64, 1 << (self.shared.len() % 64));
        self.used[word] |= bit;
        lanes_of(shared.lanes).for_each(|lane| self.with[lane][word] |= bit);
        self.shared.push(shared);
    }

    /// Takes the warp's next events.
    #[inline]
    pub(crate) fn push(&mut self, item: &Item<'_>) {
        match item {
            Item::Run { event, times } => self.step(*event, u64::from(*times), 1),
            Item::Cycle { body, times } => {
                body.iter().for_each(|&event| self.step(event, 1, 1));
                if *times > 1 {
                    self.repeat(body, u64::from(*times) - 1);
                }
            }
        }
    }

    /// Takes the body of a cycle, whose first time has been taken, `times` more times.
    fn repeat(&mut self, body: &[Event], times: u64) {
        let before = self.now;
        body.iter().for_each(|&event| self.step(event, 1, times));
        let skipped = (times - 1).saturating_mul(body.len() as u64);
        if skipped > 0 {
            self.now = self.now.saturating_add(skipped);
            for shared in self.shared.iter_mut().filter(|shared| shared.time > before) {
                shared.time = shared.time.saturating_add(skipped);
            }
        }
    }

    /// Takes `times` equal events in a row, which stand for `weight` like them.
    #[inline]
    fn step(&mut self, Event { location, mask }: Event, times: u64, weight: u64) {
        if mask != self.last {
            self.part(location, mask, weight);
        }
        for &(cause, lanes) in &self.charged {
            let times = times.saturating_mul(weight);
            self.charges.count(cause, location, Sum { times, amount: times.saturating_mul(lanes.into()) });
        }
        self.now = self.now.saturating_add(times);
        if is_shared(mask)
            && let Some(newest) = self.shared.last_mut()
        {
            (newest.location, newest.time) = (location, self.now);
        }
    }

    /// Goes from the lanes of the last event to those of the next: ends the partings whose lanes meet, and
    /// finds what idle lanes are charged to.
    fn part(&mut self, location: u16, mask: u32, weight: u64) {
        let brings_others = mask & !self.last != 0;
        self.last = mask;
        self.charged.clear();
        let mut idle = self.lanes & !mask;
        let words = self.shared.len().div_ceil(64);
        let looks_at_all = self.shared.len() <= mask.count_ones() as usize;
        for word in (0..words).rev() {
            let mut slots = match looks_at_all {
                true => self.used[word],
                false => lanes_of(mask).fold(0, |slots, lane| slots | self.with[lane][word]),
            };
            while slots != 0 {
                let bit = slots.ilog2();
                slots &= !(1 << bit);
                let slot = 64 * word + bit as usize;
                let shared = &mut self.shared[slot];
                if shared.lanes & mask == 0 {
                    continue;
                }
                if shared.ahead & mask != 0 && shared.behind & mask != 0 {
                    let between = self.now.saturating_sub(shared.time).saturating_mul(weight);
                    self.meetings.count(shared.location, location, Sum { times: weight, amount: between });
                    (shared.ahead, shared.behind) = (0, 0);
                }
                let found = shared.lanes & idle;
                if found != 0 {
                    idle &= !found;
                    if !shared.is_parted {
                        shared.is_parted = true;
                        (shared.ahead, shared.behind) = (shared.lanes & mask, found);
                        add_at(&mut self.partings, shared.location, weight);
                    }
                    charge(&mut self.charged, shared.location, found.count_ones());
                } else if shared.lanes & !mask == 0 {
                    // Obsolete by this event.
                    let lanes = shared.lanes;
                    self.used[word] &= !(1 << bit);
                    lanes_of(lanes).for_each(|lane| self.with[lane][word] &= !(1 << bit));
                }
            }
            if idle == 0 && !brings_others {
                break;
            }
        }
        if idle != 0 {
            // Only where active lanes are not the warp's: an odd trace.
            charge(&mut self.charged, OUTSIDE, idle.count_ones());
        }
        // Free slots at the end are used again.
        while let Some(slot) = self.shared.len().checked_sub(1)
            && self.used[slot / 64] >> (slot % 64) & 1 == 0
        {
            self.shared.pop();
        }
        if is_shared(mask) {
            if self.shared.len() >= self.many {
                self.tidy();
            }
            self.add(mask, location);
        }
    }

    /// Frees the slots of events of which each pair of lanes is in a newer one.
    #[cold]
    fn tidy(&mut self) {
        let mut with = [0_u32; LANES];
        let mut kept = Vec::with_capacity(self.shared.len());
        for (slot, &shared) in self.shared.iter().enumerate().rev() {
            if self.used[slot / 64] >> (slot % 64) & 1 == 0 {
                continue;
            }
            let mut is_last = false;
            for lane in lanes_of(shared.lanes) {
                is_last |= shared.lanes & !(with[lane] | 1 << lane) != 0;
                with[lane] |= shared.lanes;
            }
            if is_last {
                kept.push(shared);
            }
        }
        self.clear();
        kept.into_iter().rev().for_each(|shared| self.put(shared));
        self.many = (2 * self.shared.len()).clamp(MANY, MOST);
    }

    /// From each cause to where lanes were idle: charges, and the idle lane slots. In order; `None` if there
    /// are too many pairs.
    pub(crate) fn charges(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.charges.sorted()
    }

    /// From each cause to where lanes met again: how often, and the events between. In order; `None` if there
    /// are too many pairs.
    pub(crate) fn meetings(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.meetings.sorted()
    }

    /// Events at `location` after which lanes parted.
    pub(crate) fn partings(&self, location: u16) -> u64 {
        self.partings.get(usize::from(location)).copied().unwrap_or(0)
    }

    /// Adds what was counted elsewhere. No warp is open.
    pub(crate) fn merge(&mut self, other: Self) {
        self.charges.merge(other.charges);
        self.meetings.merge(other.meetings);
        add_all(&mut self.partings, &other.partings);
    }
}

/// Adds lanes to those that are charged to a location.
fn charge(charged: &mut Vec<(u16, u32)>, cause: u16, lanes: u32) {
    match charged.iter_mut().find(|(known, _)| *known == cause) {
        Some((_, known)) => *known += lanes,
        None => charged.push((cause, lanes)),
    }
}

#[cfg(test)]
#[path = "causes_tests.rs"]
mod tests;
