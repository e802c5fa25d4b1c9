//! Finds why lanes were idle. Each idle lane slot is charged to the last event that the idle lane shared with
//! an active lane, because the code after that event made the lanes diverge.
//!
//! An event with the same lanes as the previous one changes no cause. Other events update what lanes last
//! shared ([`latest`]) and the open divergences ([`divergences`]), and charge each idle lane with one addition
//! ([`charges`]). An event of all lanes of the warp only closes open divergences.
//!
//! A cycle is processed in two passes. An event of the second pass refers to events that are in the body or
//! older than the cycle, as it does in each later iteration.

mod charges;
mod divergences;
mod latest;

use warptrace_format::Event;

use self::charges::Charges;
use self::divergences::{Divergences, Shared};
use self::latest::Latest;
use crate::pairs::Sum;
use crate::transitions::OUTSIDE;

const LANES: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Causes {
    warps: u64,
    /// Lanes of the warp. Other lanes, which only malformed traces have, are ignored.
    lanes: u32,
    newest: Shared,
    latest: Box<Latest>,
    divergences: Divergences,
    charges: Charges,
}

fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        lane
    })
}

const fn is_shared(lanes: u32) -> bool {
    lanes & lanes.wrapping_sub(1) != 0
}

impl Causes {
    pub(crate) fn begin(&mut self, lanes: u32, warps: u64) {
        self.warps = warps;
        // All lanes share the start of the warp.
        self.lanes = lanes;
        self.newest = Shared { lanes, location: OUTSIDE, time: 0 };
        self.latest.share_all(self.charges.place(OUTSIDE));
        self.divergences.begin();
    }

    /// Takes the next `times` equal events. If `is_reconvergence`, their lanes may come from several events.
    #[inline(always)]
    pub(crate) fn run(&mut self, event: Event, times: u64, is_reconvergence: bool) {
        self.step(event, times, 1, is_reconvergence);
    }

    pub(crate) fn cycle(&mut self, body: &[Event], times: u32) {
        body.iter().for_each(|&event| self.step(event, 1, 1, true));
        if times > 1 {
            self.repeat(body, u64::from(times) - 1);
        }
    }

    fn repeat(&mut self, body: &[Event], times: u64) {
        let before = self.newest.time;
        body.iter().for_each(|&event| self.step(event, 1, times, true));
        let skipped = (times - 1).saturating_mul(body.len() as u64);
        if skipped > 0 {
            self.newest.put_off(before, skipped);
            self.divergences.put_off(before, skipped);
        }
    }

    #[inline(always)]
    fn step(&mut self, Event { location, mask }: Event, times: u64, weight: u64, is_reconvergence: bool) {
        let (place, weight) = (self.charges.place(location), weight.saturating_mul(self.warps));
        let mut next = Shared { lanes: mask & self.lanes, location, ..self.newest };
        if next.lanes != self.newest.lanes {
            self.divergences.go_on(self.newest, next, weight, is_reconvergence);
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

    pub(crate) fn charges(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.charges.sorted()
    }

    /// Returns, for each pair of cause and location of reconvergence, the number of reconvergences and the
    /// number of events between divergence and reconvergence. Returns `None` if there are too many pairs.
    pub(crate) fn reconvergences(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.divergences.reconvergences()
    }

    pub(crate) fn divergences(&self, location: u16) -> u64 {
        self.divergences.divergences().get(usize::from(location)).copied().unwrap_or(0)
    }

    /// Adds the sums of another thread. Must not be called within a warp.
    pub(crate) fn merge(&mut self, other: Self) {
        self.charges.merge(other.charges);
        self.divergences.merge(other.divergences);
    }
}

#[cfg(test)]
#[path = "causes_tests.rs"]
mod tests;
