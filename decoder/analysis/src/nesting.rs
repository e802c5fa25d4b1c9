//! Finds loops from the locations that each lane visits, and counts the visits before a lane left each loop.
//!
//! Each lane has a stack of locations with counts. A visit of a location on the stack ends a loop iteration:
//! the entries above it (the loop's body and inner loops) are removed, and its count increases by one. Any
//! other location is pushed with a count of 1. The count of an entry at its removal, or at the end of the
//! warp, is its number of *trips*; a location with more than one is the head of a loop. With a trace point at
//! the start of each loop body, each trip of an outer loop starts its inner loops anew.
//!
//! The stacks of all lanes share one list of entries, oldest first. An entry has a location, and the lanes
//! that one event pushed and that still have it. An event adds at most one entry. Returning lanes leave the
//! last entries, down to the entry of the location.
//!
//! A cycle is processed in two passes. Each later iteration removes the same entries as the second one; only
//! the count of the lowest location in the stack that the body reaches continues to grow.

use warptrace_format::Event;

use crate::distribution::Distribution;
use crate::trips::Visited;

/// Maximum stack depth. Then the older half is removed, and loops with longer bodies count trip by trip.
const MAX_DEPTH: usize = 256;
/// Entries that are removed from a full stack. The other half must hold the longest body of a cycle.
const HALF: u16 = MAX_DEPTH as u16 / 2;
const _: () = assert!(HALF as usize >= warptrace_format::codec::MAX_BODY);

const LANES: usize = 32;
const FEW_ENTRIES: usize = 256;
/// Entries that are skipped together if none contains the lanes.
const STRETCH: usize = 16;
const UNSEEN: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct Nesting {
    warps: u64,
    /// Lanes of each entry; 0 if all have left.
    entries: Vec<u32>,
    /// Location of each entry, as an index into `visited`.
    numbers: Vec<u16>,
    /// Length of `entries` at which empty entries are removed.
    many: usize,
    number_of: Vec<u32>,
    visited: Vec<Visited>,
    /// Upper bound of the stack depth: the last computed depth plus the entries since then.
    depth_bound: usize,
    /// Depths of all lanes, counted after a stack has become deep.
    depths: Option<Box<[u16; LANES]>>,
    /// Entries and lanes that the second pass of a cycle returned to or pushed.
    reached: Vec<(usize, u32)>,
}

fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        lane
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Once,
    /// In the second pass of a cycle, with trips that count for this many iterations.
    Repeated(u64),
}

impl Nesting {
    pub(crate) fn begin(&mut self, warps: u64) {
        self.end();
        self.warps = warps;
    }

    #[inline(always)]
    pub(crate) fn run(&mut self, event: Event, times: u64) {
        if self.entries.len() >= self.many {
            self.tidy();
        }
        self.visit(event, times, Pass::Once);
    }

    pub(crate) fn cycle(&mut self, body: &[Event], times: u32) {
        if self.entries.len() >= self.many {
            self.tidy();
        }
        body.iter().for_each(|&event| self.visit(event, 1, Pass::Once));
        if times > 1 {
            self.repeat(body, u64::from(times) - 1);
        }
    }

    fn repeat(&mut self, body: &[Event], times: u64) {
        self.reached.clear();
        body.iter().for_each(|&event| self.visit(event, 1, Pass::Repeated(times)));
        // The lowest entry of each lane stays on the stack. Every iteration adds the counts of this one.
        let mut reached = std::mem::take(&mut self.reached);
        reached.sort_unstable_by_key(|(entry, _)| *entry);
        let mut rest = u32::MAX;
        for &(entry, lanes) in &reached {
            let lanes = lanes & rest;
            rest &= !lanes;
            if times == 1 || lanes == 0 {
                continue;
            }
            let visited = &mut self.visited[usize::from(self.numbers[entry])];
            let location = visited.location;
            for event in body.iter().filter(|event| event.location == location) {
                visited.add(event.mask & lanes, times - 1);
            }
        }
        self.reached = reached;
    }

    #[inline(always)]
    fn visit(&mut self, Event { location, mask }: Event, times: u64, pass: Pass) {
        let number = match self.number_of.get(usize::from(location)) {
            Some(&number) if number != UNSEEN => number as u16,
            _ => self.new_number(location),
        };
        let visited = &mut self.visited[usize::from(number)];
        let back = visited.of_stacks(mask);
        let first = mask & !back;
        visited.visit(mask, times);
        // A stack has each location at most once.
        if self.visited.len() > MAX_DEPTH && first != 0 && self.depth_bound >= MAX_DEPTH {
            self.make_room(first);
        }
        if back != 0 {
            self.go_back(number, back, pass);
        }
        if first != 0 {
            if let Pass::Repeated(_) = pass {
                self.reached.push((self.entries.len(), first));
            }
            self.entries.push(first);
            self.numbers.push(number);
            self.depth_bound += 1;
            if let Some(depths) = &mut self.depths {
                lanes_of(first).for_each(|lane| depths[lane] += 1);
            }
        }
    }

    #[cold]
    fn new_number(&mut self, location: u16) -> u16 {
        if self.number_of.len() <= usize::from(location) {
            self.number_of.resize(usize::from(location) + 1, UNSEEN);
        }
        // At most one entry per id.
        let number = self.visited.len() as u16;
        self.number_of[usize::from(location)] = number.into();
        self.visited.push(Visited::new(location));
        number
    }

    /// Pops, for the lanes `back`, all entries above the location, which is on each of their stacks.
    #[inline(always)]
    fn go_back(&mut self, number: u16, back: u32, pass: Pass) {
        let weight = if let Pass::Repeated(weight) = pass { weight } else { 1 };
        let (mut rest, mut end) = (back, self.entries.len());
        while rest != 0 && end > 0 {
            // Most lanes return to one of the last entries.
            let from = end.saturating_sub(STRETCH);
            for entry in (from..end).rev() {
                let lanes = self.entries[entry] & rest;
                if lanes == 0 {
                    continue;
                }
                if self.numbers[entry] == number {
                    rest &= !lanes;
                    if let Pass::Repeated(_) = pass {
                        self.reached.push((entry, lanes));
                    }
                    if rest == 0 {
                        break;
                    }
                } else {
                    self.leave(entry, lanes, weight);
                }
            }
            end = from;
            while rest != 0 && end >= STRETCH {
                let any = self.entries[end - STRETCH..end].iter().fold(0, |any, lanes| any | lanes);
                if any & rest != 0 {
                    break;
                }
                end -= STRETCH;
            }
        }
        while self.entries.last() == Some(&0) {
            self.entries.pop();
            self.numbers.pop();
        }
    }

    #[inline(always)]
    fn leave(&mut self, entry: usize, lanes: u32, weight: u64) {
        self.entries[entry] &= !lanes;
        self.visited[usize::from(self.numbers[entry])].take_off(lanes, weight.saturating_mul(self.warps));
        if let Some(depths) = &mut self.depths {
            lanes_of(lanes).for_each(|lane| depths[lane] -= 1);
        }
    }

    /// Computes the stack depths, and removes the older half of the full stacks of these lanes.
    #[cold]
    fn make_room(&mut self, lanes: u32) {
        if self.depths.is_none() {
            let mut depths = Box::new([0; LANES]);
            for &entry in &self.entries {
                lanes_of(entry).for_each(|lane| depths[lane] += 1);
            }
            let deepest = depths.iter().max().copied().unwrap_or(0);
            if deepest <= HALF {
                self.depth_bound = usize::from(deepest);
                return;
            }
            self.depths = Some(depths);
        }
        let Some(depths) = &self.depths else { return };
        let mut full = lanes_of(lanes)
            .filter(|&lane| usize::from(depths[lane]) >= MAX_DEPTH)
            .fold(0_u32, |full, lane| full | 1 << lane);
        let mut taken = [0; LANES];
        for entry in 0..self.entries.len() {
            let lanes = self.entries[entry] & full;
            if lanes == 0 {
                if full == 0 {
                    break;
                }
                continue;
            }
            // A cycle's body does not reach this far down: the second pass also removes these entries once.
            self.leave(entry, lanes, 1);
            for lane in lanes_of(lanes) {
                taken[lane] += 1;
                if taken[lane] == HALF {
                    full &= !(1 << lane);
                }
            }
        }
    }

    #[cold]
    fn tidy(&mut self) {
        let mut kept = 0;
        for entry in 0..self.entries.len() {
            if self.entries[entry] != 0 {
                self.entries[kept] = self.entries[entry];
                self.numbers[kept] = self.numbers[entry];
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.numbers.truncate(kept);
        self.many = (2 * kept).max(FEW_ENTRIES);
    }

    pub(crate) fn end(&mut self) {
        for (&lanes, &number) in self.entries.iter().zip(&self.numbers) {
            self.visited[usize::from(number)].take_off(lanes, self.warps);
        }
        self.entries.clear();
        self.numbers.clear();
        (self.depth_bound, self.depths) = (0, None);
    }

    pub(crate) fn is_head(&self, location: u16) -> bool {
        let number = self.number_of.get(usize::from(location)).filter(|number| **number != UNSEEN);
        number.is_some_and(|number| self.visited[*number as usize].is_head())
    }

    pub(crate) fn trips(&self, location: u16) -> Distribution {
        let number = self.number_of.get(usize::from(location)).filter(|number| **number != UNSEEN);
        number.map(|number| self.visited[*number as usize].trips()).unwrap_or_default()
    }

    /// Adds the trips of another thread. No warp may be open.
    pub(crate) fn merge(&mut self, mut other: Self) {
        if self.visited.len() < other.visited.len() {
            std::mem::swap(self, &mut other);
        }
        for more in &other.visited {
            let number = match self.number_of.get(usize::from(more.location)) {
                Some(&number) if number != UNSEEN => number as u16,
                _ => self.new_number(more.location),
            };
            self.visited[usize::from(number)].merge(more);
        }
    }
}

#[cfg(test)]
#[path = "nesting_tests.rs"]
mod tests;
