//! What parted lanes: each idle lane slot is charged to the last event that the absent lane shared with a
//! lane that is active now. What follows that event in the program sent them different ways.
//!
//! An event with the lanes of the one before changes no cause. Any other goes once through what its lanes
//! shared with others ([`latest`]), and through the partings that are open ([`partings`]); its charges are
//! one addition for each lane ([`charges`]). Events of all lanes of the warp only end what is open.
//!
//! A cycle is gone through twice. Whatever an event of its second time finds is in the body or older than the
//! cycle, and so it is in each later time.

mod charges;
mod latest;
mod partings;

use warptrace_format::Event;

use self::charges::Charges;
use self::latest::Latest;
use self::partings::{Partings, Shared};
use crate::pairs::Sum;
use crate::transitions::OUTSIDE;

const LANES: usize = 32;

/// Finds the causes of idle lane slots over warps that are given one after the other.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    /// Warps that have the events.
    warps: u64,
    /// Lanes of the warp. Others, which only an odd trace has, are left out.
    lanes: u32,
    /// The last event.
    newest: Shared,
    latest: Box<Latest>,
    partings: Partings,
    charges: Charges,
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
    /// Begins a class of this many warps, which have these lanes.
    pub(crate) fn begin(&mut self, lanes: u32, warps: u64) {
        self.warps = warps;
        // All of them share the begin.
        self.lanes = lanes;
        self.newest = Shared { lanes, location: OUTSIDE, time: 0 };
        self.latest.share_all(self.charges.place(OUTSIDE));
        self.partings.begin();
    }

    /// Takes the warp's next events, `times` equal ones. `is_meeting`: their lanes may come from several
    /// events.
    #[inline(always)]
    pub(crate) fn run(&mut self, event: Event, times: u64, is_meeting: bool) {
        self.step(event, times, 1, is_meeting);
    }

    /// Takes the warp's next events, a cycle.
    pub(crate) fn cycle(&mut self, body: &[Event], times: u32) {
        body.iter().for_each(|&event| self.step(event, 1, 1, true));
        if times > 1 {
            self.repeat(body, u64::from(times) - 1);
        }
    }

    /// Takes the body of a cycle, whose first time has been taken, `times` more times.
    fn repeat(&mut self, body: &[Event], times: u64) {
        let before = self.newest.time;
        body.iter().for_each(|&event| self.step(event, 1, times, true));
        let skipped = (times - 1).saturating_mul(body.len() as u64);
        if skipped > 0 {
            self.newest.put_off(before, skipped);
            self.partings.put_off(before, skipped);
        }
    }

    /// Takes `times` equal events in a row, which stand for `weight` like them.
    #[inline(always)]
    fn step(&mut self, Event { location, mask }: Event, times: u64, weight: u64, is_meeting: bool) {
        let (place, weight) = (self.charges.place(location), weight.saturating_mul(self.warps));
        let mut next = Shared { lanes: mask & self.lanes, location, ..self.newest };
        if next.lanes != self.newest.lanes {
            self.partings.go_on(self.newest, next, weight, is_meeting);
            match next.lanes {
                0 => self.latest.share_none(self.lanes, self.charges.place(OUTSIDE)),
                lanes if lanes == self.lanes => self.latest.share_all(place),
                lanes => self.latest.share(lanes, self.lanes & !lanes, place),
            }
        } else if is_shared(next.lanes) {
            self.latest.share_again(place);
        }
        if next.lanes != self.lanes {
            self.charges.charge(&self.latest, place, times.saturating_mul(weight));
        }
        next.time = next.time.saturating_add(times);
        self.newest = next;
    }

    /// From each cause to where lanes were idle: the idle lane slots. In order; `None` if there are too many
    /// pairs.
    pub(crate) fn charges(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.charges.sorted()
    }

    /// From each cause to where lanes met again: how often, and the events between. In order; `None` if there
    /// are too many pairs.
    pub(crate) fn meetings(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.partings.meetings()
    }

    /// Events at `location` after which lanes parted.
    pub(crate) fn partings(&self, location: u16) -> u64 {
        self.partings.partings().get(usize::from(location)).copied().unwrap_or(0)
    }

    /// Adds what was counted elsewhere. No warp is open.
    pub(crate) fn merge(&mut self, other: Self) {
        self.charges.merge(other.charges);
        self.partings.merge(other.partings);
    }
}

#[cfg(test)]
#[path = "causes_tests.rs"]
mod tests;
