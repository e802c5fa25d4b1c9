//! Loops, found in what each lane passes: how often a lane came to a location before it left the loop there.
//!
//! Each lane has a stack of locations, with a count each. When the lane comes to a location that is on its
//! stack, it has gone round a loop: what lies above is taken off (the loop's body, and the loops in it, which
//! are over), and the location's count grows by one. Otherwise the location is put on top with a count of 1.
//! What is taken off, or still there when the warp ends, has made as many *trips* as its count. A location
//! that ever makes more than one is the head of a loop; in structured code with a trace point at the start of
//! each loop's body the heads are those trace points, and nested loops begin anew in each trip of the outer.
//!
//! Lanes with equal stacks share one. A cycle is gone through twice: what its second time takes off, each
//! later time does, too, and only the count of the location lowest in the stack that the body comes to grows
//! on.

use warptrace_format::Event;
use warptrace_format::codec::Item;

use crate::distribution::Distribution;

/// Locations on a stack. With more, the older half is taken off: a loop whose body passes so many others is
/// counted trip by trip.
const MAX_DEPTH: usize = 256;
/// The longest body of a cycle must find room in the half that stays.
const _: () = assert!(MAX_DEPTH / 2 >= warptrace_format::codec::MAX_BODY);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    location: u16,
    trips: u64,
    /// Digest of the entries below.
    below: u64,
}

impl Entry {
    /// The digest that the entry above has.
    fn digest(&self) -> u64 {
        let mixed = (self.below.rotate_left(23) ^ self.trips).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ u64::from(self.location) ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

/// Lanes with equal stacks.
#[derive(Debug)]
struct Class {
    lanes: u32,
    stack: Vec<Entry>,
    /// In the second time of a cycle: the lowest entry that it came to, and by how much its count grew.
    lowest: usize,
    gained: u64,
}

/// Finds the trips of warps that are given one after the other.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// At most one for each lane. A class without lanes is free, its stack empty.
    classes: Vec<Class>,
    /// The class of each lane that has been seen.
    class_of: [u8; 32],
    /// Lanes that have made an event.
    seen: u32,
    /// Bit i: class i has lanes.
    used: u32,
    /// Trips by location.
    trips: Trips,
}

/// Trips of lanes, by location.
#[derive(Debug, Default)]
struct Trips(Vec<Distribution>);

impl Trips {
    #[inline]
    fn add(&mut self, location: u16, trips: u64, times: u64) {
        let at = usize::from(location);
        if self.0.len() <= at {
            self.0.resize_with(at + 1, Distribution::default);
        }
        self.0[at].add(trips, times);
    }

    /// Adds what another thread found.
    fn merge(&mut self, mut other: Self) {
        if self.0.len() < other.0.len() {
            std::mem::swap(&mut self.0, &mut other.0);
        }
        for (trips, more) in self.0.iter_mut().zip(&other.0) {
            trips.merge(more);
        }
    }
}

/// How an event is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// For itself.
    Once,
    /// In the second time of a cycle, whose trips stand for those of so many times.
    Repeated(u64),
}

impl Nesting {
    /// Begins a warp.
    pub(crate) fn begin(&mut self) {
        self.end();
    }

    /// Takes the warp's next events.
    pub(crate) fn push(&mut self, item: &Item<'_>) {
        match item {
            Item::Run { event, times } => self.visit(*event, u64::from(*times), Pass::Once),
            Item::Cycle { body, times } => {
                body.iter().for_each(|&event| self.visit(event, 1, Pass::Once));
                if *times > 1 {
                    self.repeat(body, u64::from(*times) - 1);
                }
            }
        }
    }

    /// Takes the body of a cycle, whose first time has been taken, `times` more times.
    fn repeat(&mut self, body: &[Event], times: u64) {
        for class in &mut self.classes {
            (class.lowest, class.gained) = (usize::MAX, 0);
        }
        body.iter().for_each(|&event| self.visit(event, 1, Pass::Repeated(times)));
        for class in
            self.classes.iter_mut().filter(|class| class.lanes != 0 && class.lowest < class.stack.len())
        {
            let (at, more) = (class.lowest, class.gained.saturating_mul(times - 1));
            class.stack[at].trips = class.stack[at].trips.saturating_add(more);
            for above in at + 1..class.stack.len() {
                class.stack[above].below = class.stack[above - 1].digest();
            }
        }
    }

    /// Takes `times` equal events in a row.
    #[inline]
    fn visit(&mut self, Event { location, mask }: Event, times: u64, pass: Pass) {
        let mut touched = 0_u32;
        let mut rest = mask;
        let fresh = mask & !self.seen;
        if fresh != 0 {
            rest &= !fresh;
            self.seen |= fresh;
            let class = self.take_free(fresh);
            self.classes[class].visit(location, times, pass, &mut self.trips);
            touched |= 1 << class;
        }
        while rest != 0 {
            let class = usize::from(self.class_of[rest.trailing_zeros() as usize]);
            let lanes = self.classes[class].lanes & rest;
            rest &= !lanes;
            let class = if lanes == self.classes[class].lanes { class } else { self.part(class, lanes) };
            self.classes[class].visit(location, times, pass, &mut self.trips);
            touched |= 1 << class;
        }
        // Classes that are equal at this point of a cycle may have counted it in different ways.
        if touched.count_ones() > 1 && pass == Pass::Once {
            self.join(touched);
        }
    }

    /// Gives these lanes a free class with an empty stack.
    fn take_free(&mut self, lanes: u32) -> usize {
        let at = self.used.trailing_ones() as usize;
        if at == self.classes.len() {
            self.classes.push(Class { lanes: 0, stack: Vec::new(), lowest: 0, gained: 0 });
        }
        self.used |= 1 << at;
        let class = &mut self.classes[at];
        (class.lanes, class.lowest, class.gained) = (lanes, usize::MAX, 0);
        self.name(at, lanes);
        at
    }

    /// Notes the class of lanes. There are at most 32.
    fn name(&mut self, class: usize, mut lanes: u32) {
        while lanes != 0 {
            self.class_of[lanes.trailing_zeros() as usize] = class as u8;
            lanes &= lanes - 1;
        }
    }

    /// Makes a class of these lanes of a class that has others, too. The fewer lanes get the new class, since each
    /// of them has to be told.
    fn part(&mut self, from: usize, lanes: u32) -> usize {
        let others = self.classes[from].lanes & !lanes;
        let moved = if others.count_ones() < lanes.count_ones() { others } else { lanes };
        let to = self.take_free(moved);
        let [old, new] = self.classes.get_disjoint_mut([from, to]).expect("a free class is another one");
        old.lanes &= !moved;
        new.stack.extend_from_slice(&old.stack);
        (new.lowest, new.gained) = (old.lowest, old.gained);
        if moved == lanes { to } else { from }
    }

    /// Joins classes that are equal, of these.
    fn join(&mut self, touched: u32) {
        let mut kept = 0_u32;
        let mut rest = touched;
        while rest != 0 {
            let from = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let mut others = kept;
            let mut equal = None;
            while others != 0 && equal.is_none() {
                let to = others.trailing_zeros() as usize;
                others &= others - 1;
                equal = self.classes[to].equals(&self.classes[from]).then_some(to);
            }
            let Some(to) = equal else {
                kept |= 1 << from;
                continue;
            };
            let lanes = std::mem::take(&mut self.classes[from].lanes);
            self.classes[from].stack.clear();
            self.used &= !(1 << from);
            self.classes[to].lanes |= lanes;
            self.name(to, lanes);
        }
    }

    /// Ends the warp: all loops are over.
    pub(crate) fn end(&mut self) {
        for class in self.classes.iter_mut().filter(|class| class.lanes != 0) {
            class.take_off(0, 1, &mut self.trips);
            class.lanes = 0;
        }
        (self.seen, self.used) = (0, 0);
    }

    /// The trips of a location.
    pub(crate) fn trips(&self, location: u16) -> Distribution {
        self.trips.0.get(usize::from(location)).cloned().unwrap_or_default()
    }

    /// Adds what was found elsewhere. No warp is open.
    pub(crate) fn merge(&mut self, other: Self) {
        self.trips.merge(other.trips);
    }
}

impl Class {
    #[inline]
    fn visit(&mut self, location: u16, times: u64, pass: Pass, trips: &mut Trips) {
        let at = match self.stack.last() {
            Some(top) if top.location == location => Some(self.stack.len() - 1),
            _ => self.stack.iter().rposition(|entry| entry.location == location),
        };
        let at = if let Some(at) = at {
            let weight = if let Pass::Repeated(weight) = pass { weight } else { 1 };
            self.take_off(at + 1, weight, trips);
            self.stack[at].trips = self.stack[at].trips.saturating_add(times);
            at
        } else {
            if self.stack.len() == MAX_DEPTH {
                self.forget(trips);
            }
            let below = self.stack.last().map_or(0, Entry::digest);
            self.stack.push(Entry { location, trips: times, below });
            self.stack.len() - 1
        };
        if let Pass::Repeated(_) = pass {
            if at < self.lowest {
                (self.lowest, self.gained) = (at, times);
            } else if at == self.lowest {
                self.gained += times;
            }
        }
    }

    /// Takes off all entries from `from` on, each `weight` times.
    fn take_off(&mut self, from: usize, weight: u64, trips: &mut Trips) {
        let weight = weight.saturating_mul(u64::from(self.lanes.count_ones()));
        for entry in self.stack.drain(from..) {
            trips.add(entry.location, entry.trips, weight);
        }
    }

    /// Takes off the older half of a full stack. No body of a cycle reaches so far down, so they are taken
    /// off once, also in its second time.
    #[cold]
    fn forget(&mut self, trips: &mut Trips) {
        let lanes = u64::from(self.lanes.count_ones());
        for entry in self.stack.drain(..MAX_DEPTH / 2) {
            trips.add(entry.location, entry.trips, lanes);
        }
        let mut below = 0;
        for entry in &mut self.stack {
            entry.below = below;
            below = entry.digest();
        }
        self.lowest = match self.lowest {
            usize::MAX => usize::MAX,
            lowest => lowest.saturating_sub(MAX_DEPTH / 2),
        };
    }

    fn equals(&self, other: &Self) -> bool {
        self.stack.last() == other.stack.last() && self.stack == other.stack
    }
}

#[cfg(test)]
#[path = "nesting_tests.rs"]
mod tests;
