//! Edges and splits: the event each lane came from, and where the lanes of an event went.
//!
//! Lanes with the same last event form a [`Group`]. An event removes its lanes from their groups, which gives
//! the edges, and makes a new group of them. An event is split if the lanes of its group go to different
//! locations. For the lanes' time there, a group has the start time of its event's run, if known.
//!
//! A cycle is processed in two passes: later iterations count the same as the second one, because each lane
//! of the body then has its last event inside the body.

use warptrace_format::Event;

use crate::pairs::{Pairs, Sum};

/// Where a lane comes from before its first event, and goes to when it ends. No trace point has this id.
pub(crate) const OUTSIDE: u16 = 0;

#[derive(Clone, Copy, Debug)]
struct Group {
    lanes: u32,
    location: u16,
    went: Went,
    /// Start time of the event's run; [`UNTIMED`] if unknown.
    since: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    Nowhere,
    To(u16),
    Split,
}

const UNTIMED: u64 = u64::MAX;
/// Number of groups at which empty ones are removed. At most 32 groups have lanes.
const MANY_GROUPS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Transitions {
    warps: u64,
    /// Groups in the order of their events. A group is empty after all of its lanes left.
    groups: Vec<Group>,
    /// Edges: pairs of events with lanes that went directly from one to the other, and these lanes.
    edges: Pairs,
    splits: Vec<u64>,
    /// Lanes whose later events are unknown, by the location of their last event.
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
    pub(crate) fn begin(&mut self, lanes: u32, warps: u64) {
        self.warps = warps;
        self.groups.clear();
        // Lanes that begin in several groups split no event.
        self.groups.push(Group { lanes, location: OUTSIDE, went: Went::Split, since: UNTIMED });
    }

    /// Takes the next `times` equal events, which started at `now`, if known. Calls `spent` with the
    /// locations of the lanes' last runs, and the lane-cycles since their starts. Returns true if lanes come
    /// from several events.
    #[inline(always)]
    pub(crate) fn run(
        &mut self,
        event: Event,
        times: u64,
        now: Option<u64>,
        mut spent: impl FnMut(u16, u64),
    ) -> bool {
        let is_reconvergence = self.step(event, 1, now, &mut spent);
        if times > 1 {
            // All lanes of the group go from one repetition to the next, so the group does not change.
            self.edge(event.location, event.location, event.mask.count_ones(), times - 1);
        }
        is_reconvergence
    }

    /// Takes a cycle. Its start time is unknown.
    pub(crate) fn cycle(&mut self, body: &[Event], times: u32) {
        for weight in [1, u64::from(times) - 1].into_iter().filter(|weight| *weight > 0) {
            for &event in body {
                self.step(event, weight, None, &mut |_, _| {});
            }
        }
    }

    #[inline(always)]
    fn step(
        &mut self,
        Event { location, mask }: Event,
        weight: u64,
        now: Option<u64>,
        spent: &mut impl FnMut(u16, u64),
    ) -> bool {
        let (mut rest, mut came_from) = (mask, 0);
        // Most lanes come from one of the last events.
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
        // One check, because the branch predictor cannot predict the number of iterations of a loop.
        if self.groups.last().is_some_and(|group| group.lanes == 0) {
            self.groups.pop();
        }
        if self.groups.len() == MANY_GROUPS {
            self.groups.retain(|group| group.lanes != 0);
        }
        if rest != 0 {
            // Lanes that the warp does not have, in a damaged or malformed trace. They begin here.
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

    /// Ends the warp. If not `is_whole`, the destinations of its lanes are unknown.
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

    pub(crate) fn edges(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.edges.sorted()
    }

    pub(crate) fn splits(&self, location: u16) -> u64 {
        self.splits.get(usize::from(location)).copied().unwrap_or(0)
    }

    pub(crate) fn cut(&self, location: u16) -> u64 {
        self.cut.get(usize::from(location)).copied().unwrap_or(0)
    }

    /// Adds the counts of another thread. No warp may be open.
    pub(crate) fn merge(&mut self, other: Self) {
        self.edges.merge(other.edges);
        add_all(&mut self.splits, &other.splits);
        add_all(&mut self.cut, &other.cut);
    }
}

impl Group {
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
