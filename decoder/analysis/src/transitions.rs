//! From which event each lane came, and where the lanes of an event went: edges and splits.
//!
//! Lanes whose last event is the same wait in one [`Group`]. An event takes its lanes out of their groups,
//! which gives the edges, and makes a group of them. When the lanes of a group go to different locations, its
//! event was split.
//!
//! Of a trace with times a group knows when its event's run began, so that its lanes' time there is known
//! when they go on.
//!
//! A cycle is gone through twice. What its second time counts is what each later time does: a lane of the
//! body has its last event inside of the body by then.

use warptrace_format::Event;

use crate::pairs::{Pairs, Sum};

/// Stands for where a lane comes from before its first event, and where it goes when it has ended. No trace
/// point has this id.
pub(crate) const OUTSIDE: u16 = 0;

/// Lanes whose last event is the same.
#[derive(Clone, Copy, Debug)]
struct Group {
    lanes: u32,
    location: u16,
    went: Went,
    /// When the event's run began; [`UNTIMED`] if that is not known.
    since: u64,
}

/// Where the other lanes of a group went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    Nowhere,
    To(u16),
    /// To several locations.
    Split,
}

/// Stands for a time that is not known.
const UNTIMED: u64 = u64::MAX;
/// Groups from which on those without lanes are removed: the others are at most as many as lanes.
const MANY_GROUPS: usize = 64;

/// Counts edges and splits over warps that are given one after the other.
#[derive(Debug, Default)]
pub(crate) struct Transitions {
    /// Warps that have the events.
    warps: u64,
    /// In the order of their events. Those whose lanes have all gone on have none.
    groups: Vec<Group>,
    /// Edges: pairs of events between which some lane went straight, and the lanes that did.
    edges: Pairs,
    /// Events whose lanes went to different locations, by location.
    splits: Vec<u64>,
    /// Lanes whose later events are unknown, by the location of their last one.
    cut: Vec<u64>,
}

pub(crate) fn add_at(counts: &mut Vec<u64>, location: u16, more: u64) {
    let at = usize::from(location);
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    counts[at] = counts[at].saturating_add(more);
}

pub(crate) fn add_all(counts: &mut Vec<u64>, other: &[u64]) {
    if counts.len() < other.len() {
        counts.resize(other.len(), 0);
    }
    for (count, more) in counts.iter_mut().zip(other) {
        *count = count.saturating_add(*more);
    }
}

impl Transitions {
    /// Begins a class of this many warps, which have these lanes.
    pub(crate) fn begin(&mut self, lanes: u32, warps: u64) {
        self.warps = warps;
        self.groups.clear();
        // Entering is no decision: lanes that begin in several groups split no event.
        self.groups.push(Group { lanes, location: OUTSIDE, went: Went::Split, since: UNTIMED });
    }

    /// Takes the warp's next events, `times` equal ones, which began at the time `now`, if that is known.
    /// Gives `spent` the lane-cycles from the begin of the run from which lanes came to then, with that run's
    /// location. Returns whether the lanes come from several events.
    #[inline(always)]
    pub(crate) fn run(
        &mut self,
        event: Event,
        times: u64,
        now: Option<u64>,
        mut spent: impl FnMut(u16, u64),
    ) -> bool {
        let is_meeting = self.step(event, 1, now, &mut spent);
        if times > 1 {
            // The group stays as it is: all of its lanes go from one repeat to the next.
            self.edge(event.location, event.location, event.mask.count_ones(), times - 1);
        }
        is_meeting
    }

    /// Takes the warp's next events, a cycle, of which it is not known when it began.
    pub(crate) fn cycle(&mut self, body: &[Event], times: u32) {
        for weight in [1, u64::from(times) - 1].into_iter().filter(|weight| *weight > 0) {
            for &event in body {
                self.step(event, weight, None, &mut |_, _| {});
            }
        }
    }

    /// Takes an event that stands for `weight` like it. Returns whether its lanes come from several events.
    #[inline(always)]
    fn step(
        &mut self,
        Event { location, mask }: Event,
        weight: u64,
        now: Option<u64>,
        spent: &mut impl FnMut(u16, u64),
    ) -> bool {
        let (mut rest, mut came_from) = (mask, 0);
        // Most come from one of the last events.
        for at in (0..self.groups.len()).rev() {
            let group = &mut self.groups[at];
            let lanes = group.lanes & rest;
            if lanes == 0 {
                continue;
            }
            rest &= !lanes;
            came_from += 1;
            group.lanes &= !lanes;
            let from = group.location;
            if group.goes_to(location) {
                add_at(&mut self.splits, from, weight.saturating_mul(self.warps));
            }
            if let Some(now) = now
                && group.since != UNTIMED
            {
                spent(from, now.saturating_sub(group.since).saturating_mul(lanes.count_ones().into()));
            }
            self.edge(from, location, lanes.count_ones(), weight);
            if rest == 0 {
                break;
            }
        }
        // One check, not a loop: how many there are, no processor can guess.
        if self.groups.last().is_some_and(|group| group.lanes == 0) {
            self.groups.pop();
        }
        if self.groups.len() == MANY_GROUPS {
            self.groups.retain(|group| group.lanes != 0);
        }
        if rest != 0 {
            // Lanes that the warp does not have: a damaged or odd trace, in which they begin here.
            self.edge(OUTSIDE, location, rest.count_ones(), weight);
        }
        self.groups.push(Group { lanes: mask, location, went: Went::Nowhere, since: now.unwrap_or(UNTIMED) });
        came_from > 1
    }

    #[inline]
    fn edge(&mut self, from: u16, to: u16, lanes: u32, weight: u64) {
        let weight = weight.saturating_mul(self.warps);
        self.edges.count(from, to, Sum { times: weight, amount: weight.saturating_mul(u64::from(lanes)) });
    }

    /// Ends the warp. `is_whole`: its lanes have ended, and no event is missing. Otherwise it is
    /// unknown where they went.
    pub(crate) fn end(&mut self, is_whole: bool) {
        let mut groups = std::mem::take(&mut self.groups);
        for mut group in groups.drain(..) {
            if group.location == OUTSIDE || group.lanes == 0 {
                continue;
            }
            if !is_whole {
                let lanes = u64::from(group.lanes.count_ones());
                add_at(&mut self.cut, group.location, lanes.saturating_mul(self.warps));
                continue;
            }
            if group.goes_to(OUTSIDE) {
                add_at(&mut self.splits, group.location, self.warps);
            }
            self.edge(group.location, OUTSIDE, group.lanes.count_ones(), 1);
        }
        self.groups = groups;
    }

    /// The edges, by where from and where to, in order; `None` if there are too many.
    pub(crate) fn edges(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.edges.sorted()
    }

    /// Events at `location` whose lanes went to different locations.
    pub(crate) fn splits(&self, location: u16) -> u64 {
        self.splits.get(usize::from(location)).copied().unwrap_or(0)
    }

    /// Lanes whose last known event is at `location`, of which it is unknown where they went.
    pub(crate) fn cut(&self, location: u16) -> u64 {
        self.cut.get(usize::from(location)).copied().unwrap_or(0)
    }

    /// Adds what was counted elsewhere. No warp is open.
    pub(crate) fn merge(&mut self, other: Self) {
        self.edges.merge(other.edges);
        add_all(&mut self.splits, &other.splits);
        add_all(&mut self.cut, &other.cut);
    }
}

impl Group {
    /// Notes that lanes of the group go to `location`; answers whether that splits its event.
    fn goes_to(&mut self, location: u16) -> bool {
        match self.went {
            Went::Nowhere => self.went = Went::To(location),
            Went::To(other) if other != location => {
                self.went = Went::Split;
                return true;
            }
            Went::To(_) | Went::Split => {}
        }
        false
    }
}

#[cfg(test)]
#[path = "transitions_tests.rs"]
mod tests;
