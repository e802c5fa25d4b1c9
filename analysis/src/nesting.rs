//! Loops, found in what each lane passes: how often a lane came to a location before it left the loop there.
//!
//! Each lane has a stack of locations, with a count each. When the lane comes to a location that is on its
//! stack, it has gone round a loop: what lies above is taken off (the loop's body, and the loops in it, which
//! are over), and the location's count grows by one. Otherwise the location is put on top with a count of 1.
//! What is taken off, or still there when the warp ends, has made as many *trips* as its count. A location
//! that ever makes more than one is the head of a loop; in structured code with a trace point at the start of
//! each loop's body the heads are those trace points, and nested loops begin anew in each trip of the outer.
//!
//! Lanes with equal stacks share one; the counts are each lane's own. A cycle is gone through twice: what its
//! second time takes off, each later time does, too, and only the count of the location lowest in the stack
//! that the body comes to grows on.

use warptrace_format::Event;
use warptrace_format::codec::Item;

use crate::distribution::Distribution;
use crate::stacks::{EMPTY, Stacks};

/// Locations on a stack. With more, the older half is taken off: a loop whose body passes so many others is
/// counted trip by trip.
const MAX_DEPTH: usize = 256;
/// The longest body of a cycle must find room in the half that stays.
const _: () = assert!(MAX_DEPTH / 2 >= warptrace_format::codec::MAX_BODY);

const LANES: usize = 32;

/// Lanes with equal stacks.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    lanes: u32,
    stack: u32,
    /// In the second time of a cycle: the lowest entry that it came to, and by how much its count grew.
    lowest: usize,
    gained: u64,
}

/// Finds the trips of warps that are given one after the other.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    stacks: Stacks,
    /// A class without lanes is free.
    classes: [Class; LANES],
    /// The class of each lane that has been seen.
    class_of: [u8; LANES],
    /// Lanes that have made an event.
    seen: u32,
    /// Bit i: class i has lanes.
    used: u32,
    counts: Counts,
    /// Trips by location.
    trips: Trips,
}

/// How often each lane came to the entries of its stack, from the lowest on.
#[derive(Debug, Default)]
struct Counts(Vec<Level>);

/// Counts of one entry.
#[derive(Clone, Debug, Default)]
struct Level {
    /// Lanes whose count is 1: what most are.
    ones: u32,
    /// The counts of the others.
    counts: [u64; LANES],
}

/// The lanes of a mask.
fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        lane
    })
}

impl Counts {
    /// Begins the count of an entry.
    #[inline]
    fn begin(&mut self, level: usize, lanes: u32, count: u64) {
        if self.0.len() <= level {
            self.0.resize(level + 1, Level::default());
        }
        let level = &mut self.0[level];
        if count == 1 {
            level.ones |= lanes;
            return;
        }
        level.ones &= !lanes;
        lanes_of(lanes).for_each(|lane| level.counts[lane] = count);
    }

    #[inline]
    fn add(&mut self, level: usize, lanes: u32, more: u64) {
        let level = &mut self.0[level];
        let ones = level.ones & lanes;
        level.ones &= !ones;
        lanes_of(ones).for_each(|lane| level.counts[lane] = 1);
        lanes_of(lanes).for_each(|lane| level.counts[lane] = level.counts[lane].saturating_add(more));
    }

    /// Moves what is above to the lowest levels, so many levels down.
    fn move_down(&mut self, lanes: u32, by: usize) {
        for level in by..self.0.len() {
            let [low, high] = self.0.get_disjoint_mut([level - by, level]).expect("two levels");
            low.ones = low.ones & !lanes | high.ones & lanes;
            lanes_of(lanes).for_each(|lane| low.counts[lane] = high.counts[lane]);
        }
    }
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

    /// Adds the counts of an entry, each `weight` times.
    #[inline]
    fn add_level(&mut self, location: u16, level: &Level, lanes: u32, weight: u64) {
        let ones = u64::from((level.ones & lanes).count_ones());
        if ones != 0 {
            self.add(location, 1, weight.saturating_mul(ones));
        }
        lanes_of(lanes & !level.ones).for_each(|lane| self.add(location, level.counts[lane], weight));
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
        for class in lanes_of(self.used) {
            let Class { lanes, lowest, gained, .. } = self.classes[class];
            let more = gained.saturating_mul(times - 1);
            if lowest != usize::MAX && more != 0 {
                self.counts.add(lowest, lanes, more);
            }
        }
    }

    /// Takes `times` equal events in a row.
    #[inline]
    fn visit(&mut self, Event { location, mask }: Event, times: u64, pass: Pass) {
        if self.stacks.are_many() {
            let used = self.classes.iter_mut().filter(|class| class.lanes != 0);
            self.stacks.tidy(used.map(|class| &mut class.stack));
        }
        let mut touched = 0_u32;
        let mut rest = mask;
        let fresh = mask & !self.seen;
        if fresh != 0 {
            rest &= !fresh;
            self.seen |= fresh;
            let class = self.take_free(Class { lanes: fresh, lowest: usize::MAX, ..Class::default() });
            self.come_to(class, location, times, pass);
            touched |= 1 << class;
        }
        while rest != 0 {
            let class = usize::from(self.class_of[rest.trailing_zeros() as usize]);
            let lanes = self.classes[class].lanes & rest;
            rest &= !lanes;
            let class = if lanes == self.classes[class].lanes { class } else { self.part(class, lanes) };
            self.come_to(class, location, times, pass);
            touched |= 1 << class;
        }
        // Classes that are equal at this point of a cycle may have counted it in different ways.
        if touched & touched.wrapping_sub(1) != 0 && pass == Pass::Once {
            self.join(touched);
        }
    }

    /// Makes a class of lanes that are in none.
    fn take_free(&mut self, class: Class) -> usize {
        // There are as many as lanes.
        let at = self.used.trailing_ones() as usize;
        self.used |= 1 << at;
        self.classes[at] = class;
        self.name(at, class.lanes);
        at
    }

    /// Notes the class of lanes.
    fn name(&mut self, class: usize, lanes: u32) {
        lanes_of(lanes).for_each(|lane| self.class_of[lane] = class as u8);
    }

    /// Makes a class of these lanes of a class that has others, too. The fewer lanes get the new class, since each
    /// of them has to be told.
    fn part(&mut self, from: usize, lanes: u32) -> usize {
        let others = self.classes[from].lanes & !lanes;
        let moved = if others.count_ones() < lanes.count_ones() { others } else { lanes };
        self.classes[from].lanes &= !moved;
        let to = self.take_free(Class { lanes: moved, ..self.classes[from] });
        if moved == lanes { to } else { from }
    }

    /// Joins classes with equal stacks, of these.
    fn join(&mut self, touched: u32) {
        let mut kept = 0_u32;
        for from in lanes_of(touched) {
            let Class { lanes, stack, .. } = self.classes[from];
            let Some(to) = lanes_of(kept).find(|to| self.classes[*to].stack == stack) else {
                kept |= 1 << from;
                continue;
            };
            self.classes[from].lanes = 0;
            self.used &= !(1 << from);
            self.classes[to].lanes |= lanes;
            self.name(to, lanes);
        }
    }

    /// Lets the lanes of a class come to a location `times` times in a row.
    #[inline]
    fn come_to(&mut self, class: usize, location: u16, times: u64, pass: Pass) {
        let Class { lanes, mut stack, .. } = self.classes[class];
        let mut depth = self.stacks.depth(stack);
        let mut to = self.stacks.step(stack, location);
        if depth == MAX_DEPTH && self.stacks.depth(to) > MAX_DEPTH {
            stack = self.forget(class);
            depth = self.stacks.depth(stack);
            to = self.stacks.step(stack, location);
        }
        let level = self.stacks.depth(to) - 1;
        if level == depth {
            self.counts.begin(level, lanes, times);
        } else {
            let weight = if let Pass::Repeated(weight) = pass { weight } else { 1 };
            self.take_off(lanes, stack, to, weight);
            self.counts.add(level, lanes, times);
        }
        let class = &mut self.classes[class];
        class.stack = to;
        if let Pass::Repeated(_) = pass {
            if level < class.lowest {
                (class.lowest, class.gained) = (level, times);
            } else if level == class.lowest {
                class.gained += times;
            }
        }
    }

    /// Takes off all entries of a stack above `to`, each `weight` times.
    #[inline]
    fn take_off(&mut self, lanes: u32, mut stack: u32, to: u32, weight: u64) {
        while stack != to {
            let level = &self.counts.0[self.stacks.depth(stack) - 1];
            let (location, below) = self.stacks.top(stack);
            self.trips.add_level(location, level, lanes, weight);
            stack = below;
        }
    }

    /// Takes off the older half of a full stack; answers what is left. No body of a cycle reaches so far down,
    /// so they are taken off once, also in its second time.
    #[cold]
    fn forget(&mut self, class: usize) -> u32 {
        const HALF: usize = MAX_DEPTH / 2;
        let Class { lanes, stack, lowest, .. } = self.classes[class];
        let locations = self.stacks.locations(stack);
        for (&location, level) in locations.iter().zip(&self.counts.0).take(HALF) {
            self.trips.add_level(location, level, lanes, 1);
        }
        self.counts.move_down(lanes, HALF);
        let stack = self.stacks.with(&locations[HALF..]);
        let class = &mut self.classes[class];
        class.stack = stack;
        class.lowest = if lowest == usize::MAX { lowest } else { lowest.saturating_sub(HALF) };
        stack
    }

    /// Ends the warp: all loops are over.
    pub(crate) fn end(&mut self) {
        for class in lanes_of(self.used) {
            let Class { lanes, stack, .. } = self.classes[class];
            self.take_off(lanes, stack, EMPTY, 1);
            self.classes[class].lanes = 0;
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

#[cfg(test)]
#[path = "nesting_tests.rs"]
mod tests;
