//! Loops, found in what each lane passes: how often a lane came to a location before it left the loop there.
//!
//! Each lane has a stack of locations, with a count each. When the lane comes to a location that is on its
//! stack, it has gone round a loop: what lies above is taken off (the loop's body, and the loops in it, which
//! are over), and the location's count grows by one. Otherwise the location is put on top with a count of 1.
//! What is taken off, or still there when the warp ends, has made as many *trips* as its count. A location
//! that ever makes more than one is the head of a loop; in structured code with a trace point at the start of
//! each loop's body the heads are those trace points, and nested loops begin anew in each trip of the outer.
//!
//! The stacks of all lanes are one list of entries, the oldest first: a location and the lanes that were put
//! there by one event and have it still. A lane's stack is the entries that it is in. So an event adds at
//! most one entry for all of its lanes, and lanes that come back go down the list from its end, out of each
//! entry that they pass, up to that of the location.
//!
//! A cycle is gone through twice: what its second time takes off, each later time does, too, and only the
//! count of the location lowest in the stack that the body comes to grows on.

use warptrace_format::Event;

use crate::distribution::Distribution;
use crate::trips::Visited;

/// Locations on a stack. With more, the older half is taken off: a loop whose body passes more locations is
/// counted trip by trip.
const MAX_DEPTH: usize = 256;
/// What is taken off a full stack. The longest body of a cycle must find room in what stays.
const HALF: u16 = MAX_DEPTH as u16 / 2;
const _: () = assert!(HALF as usize >= warptrace_format::codec::MAX_BODY);

const LANES: usize = 32;
/// Entries from which on those without lanes are looked for and removed.
const FEW_ENTRIES: usize = 256;
/// Entries that are skipped at once if none has the lanes.
const STRETCH: usize = 16;
/// Stands for a location that has not been seen.
const UNSEEN: u32 = u32::MAX;

/// Finds the trips of warps that are given one after the other.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// Warps that have the events.
    warps: u64,
    /// Lanes of the entries; none for entries that all have left.
    entries: Vec<u32>,
    /// The location of each entry, as a number in `visited`.
    numbers: Vec<u16>,
    /// Length of `entries` from which on they are tidied.
    many: usize,
    /// For each location id its number in `visited`.
    number_of: Vec<u32>,
    visited: Vec<Visited>,
    /// No stack is deeper: the depth of the deepest when it was looked for, and the entries since.
    depth_bound: usize,
    /// The depths of all lanes, once some stack may be deep.
    depths: Option<Box<[u16; LANES]>>,
    /// What the second time of a cycle came back to or put on top: the entry, and which lanes.
    reached: Vec<(usize, u32)>,
}

/// The lanes of a mask.
fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        lane
    })
}

/// How an event is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// For itself.
    Once,
    /// In the second time of a cycle, whose trips stand for those of this many times.
    Repeated(u64),
}

impl Nesting {
    /// Begins a class of this many warps.
    pub(crate) fn begin(&mut self, warps: u64) {
        self.end();
        self.warps = warps;
    }

    /// Takes the warp's next events, `times` equal ones.
    #[inline(always)]
    pub(crate) fn run(&mut self, event: Event, times: u64) {
        if self.entries.len() >= self.many {
            self.tidy();
        }
        self.visit(event, times, Pass::Once);
    }

    /// Takes the warp's next events, a cycle.
    pub(crate) fn cycle(&mut self, body: &[Event], times: u32) {
        if self.entries.len() >= self.many {
            self.tidy();
        }
        body.iter().for_each(|&event| self.visit(event, 1, Pass::Once));
        if times > 1 {
            self.repeat(body, u64::from(times) - 1);
        }
    }

    /// Takes the body of a cycle, whose first time has been taken, `times` more times.
    fn repeat(&mut self, body: &[Event], times: u64) {
        self.reached.clear();
        body.iter().for_each(|&event| self.visit(event, 1, Pass::Repeated(times)));
        // Of each lane the lowest entry: it stays there, and each time counts what this one did.
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

    /// Takes `times` equal events in a row.
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
        // No location is on a stack twice.
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
        // At most one for each id.
        let number = self.visited.len() as u16;
        self.number_of[usize::from(location)] = number.into();
        self.visited.push(Visited::new(location));
        number
    }

    /// Takes lanes, which all have the location on their stacks, back to it.
    #[inline(always)]
    fn go_back(&mut self, number: u16, back: u32, pass: Pass) {
        let weight = if let Pass::Repeated(weight) = pass { weight } else { 1 };
        let (mut rest, mut end) = (back, self.entries.len());
        while rest != 0 && end > 0 {
            // Most come back to one of the last entries.
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

    /// Takes an entry off the stacks of lanes that are in it.
    #[inline(always)]
    fn leave(&mut self, entry: usize, lanes: u32, weight: u64) {
        self.entries[entry] &= !lanes;
        self.visited[usize::from(self.numbers[entry])].take_off(lanes, weight.saturating_mul(self.warps));
        if let Some(depths) = &mut self.depths {
            lanes_of(lanes).for_each(|lane| depths[lane] -= 1);
        }
    }

    /// Finds out how deep stacks are, and takes the older half off those of these lanes that are full.
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
            // From here on they are counted, until the warp ends.
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
            // No body of a cycle reaches so far down, so they are taken off once, also in its second time.
            self.leave(entry, lanes, 1);
            for lane in lanes_of(lanes) {
                taken[lane] += 1;
                if taken[lane] == HALF {
                    full &= !(1 << lane);
                }
            }
        }
    }

    /// Removes the entries that all lanes have left.
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

    /// Ends the warp: all loops are over.
    pub(crate) fn end(&mut self) {
        for (&lanes, &number) in self.entries.iter().zip(&self.numbers) {
            self.visited[usize::from(number)].take_off(lanes, self.warps);
        }
        self.entries.clear();
        self.numbers.clear();
        (self.depth_bound, self.depths) = (0, None);
    }

    /// Whether a location was ever the head of a loop.
    pub(crate) fn is_head(&self, location: u16) -> bool {
        let number = self.number_of.get(usize::from(location)).filter(|number| **number != UNSEEN);
        number.is_some_and(|number| self.visited[*number as usize].is_head())
    }

    /// The trips of a location.
    pub(crate) fn trips(&self, location: u16) -> Distribution {
        let number = self.number_of.get(usize::from(location)).filter(|number| **number != UNSEEN);
        number.map(|number| self.visited[*number as usize].trips()).unwrap_or_default()
    }

    /// Adds what was found elsewhere. No warp is open.
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
