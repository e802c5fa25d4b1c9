//! Finds events after which lanes diverged, and the locations where these reconverge.
//!
//! Lanes with the same last event are together. If the next event of some of them does not contain all of
//! them, they diverge. They reconverge at the first event with lanes of both sides.

use super::is_shared;
use crate::pairs::{Pairs, Sum};
use crate::transitions::{add_all, add_at};

const GROUP: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shared {
    pub(super) lanes: u32,
    pub(super) location: u16,
    /// Number of events of the warp up to and including this one.
    pub(super) time: u64,
}

/// Lanes that have diverged and not reconverged. Free slots have no lanes.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    used: u32,
    /// By slot: the lanes that continued first, and the lanes that stayed.
    ahead: [u32; GROUP],
    behind: [u32; GROUP],
    /// By slot: the last event that they shared.
    shared: [Shared; GROUP],
}

#[derive(Debug, Default)]
pub(super) struct Divergences {
    /// Events that are still the last event of all of their lanes, except for the newest.
    together: Vec<Shared>,
    /// At most 16 groups: each divergence has different pairs of lanes, and 32 lanes form 496 pairs.
    open: Vec<Group>,
    divergences: Vec<u64>,
    /// Reconvergences by cause and location: their number, and the events in between, without both ends.
    reconvergences: Pairs,
}

impl Divergences {
    pub(super) fn begin(&mut self) {
        self.together.clear();
        self.open.clear();
    }

    /// Moves from the newest event to the event `next`, which counts `weight` times. `next.time` is the
    /// number of events before it. If `is_reconvergence` is false, all lanes come from one event and end no
    /// divergence: each later divergence has lanes that have left that event.
    #[inline(always)]
    pub(super) fn go_on(&mut self, newest: Shared, next: Shared, weight: u64, is_reconvergence: bool) {
        let mask = next.lanes;
        if mask & !newest.lanes != 0 {
            if is_reconvergence {
                self.meet(next, weight);
            }
            self.part_together(mask, weight);
        }
        if newest.lanes & mask == 0 {
            if is_shared(newest.lanes) {
                self.together.push(newest);
            }
        } else if newest.lanes & !mask != 0 {
            self.part(newest, mask, weight);
        }
    }

    #[inline(always)]
    fn meet(&mut self, Shared { lanes, location, time }: Shared, weight: u64) {
        for group in &mut self.open {
            let mut met = 0;
            for slot in 0..GROUP {
                let has_both = (group.ahead[slot] & lanes != 0) & (group.behind[slot] & lanes != 0);
                met |= u32::from(has_both) << slot;
            }
            group.used &= !met;
            while met != 0 {
                let slot = met.trailing_zeros() as usize;
                met &= met - 1;
                (group.ahead[slot], group.behind[slot]) = (0, 0);
                let shared = group.shared[slot];
                let between = time.saturating_sub(shared.time).saturating_mul(weight);
                self.reconvergences.count(shared.location, location, Sum { times: weight, amount: between });
            }
        }
    }

    /// Opens divergences for lanes that are together and that an event contains only in part.
    fn part_together(&mut self, mask: u32, weight: u64) {
        let mut kept = 0;
        for at in 0..self.together.len() {
            let shared = self.together[at];
            self.together[kept] = shared;
            if shared.lanes & mask == 0 {
                kept += 1;
            } else if shared.lanes & !mask != 0 {
                self.part(shared, mask, weight);
            }
        }
        self.together.truncate(kept);
    }

    /// Opens a divergence of the lanes of an event: those in the mask continue without the others.
    #[inline(never)]
    fn part(&mut self, shared: Shared, mask: u32, weight: u64) {
        add_at(&mut self.divergences, shared.location, weight);
        if self.open.iter().all(|group| group.used == u32::MAX) {
            self.open.push(Group::default());
        }
        let Some(group) = self.open.iter_mut().find(|group| group.used != u32::MAX) else { return };
        let slot = group.used.trailing_ones() as usize;
        group.used |= 1 << slot;
        (group.ahead[slot], group.behind[slot]) = (shared.lanes & mask, shared.lanes & !mask);
        group.shared[slot] = shared;
    }

    pub(super) fn put_off(&mut self, before: u64, events: u64) {
        let open = self.open.iter_mut().flat_map(|group| &mut group.shared);
        for shared in open.chain(&mut self.together) {
            shared.put_off(before, events);
        }
    }

    pub(super) fn reconvergences(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.reconvergences.sorted()
    }

    pub(super) fn divergences(&self) -> &[u64] {
        &self.divergences
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.reconvergences.merge(other.reconvergences);
        add_all(&mut self.divergences, &other.divergences);
    }
}

impl Shared {
    pub(super) fn put_off(&mut self, before: u64, events: u64) {
        if self.time > before {
            self.time = self.time.saturating_add(events);
        }
    }
}
