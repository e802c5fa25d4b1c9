//! Which events parted their lanes, and where those meet again.
//!
//! Lanes whose last event is the same are together. The next event of any of them leaves none of them out, or
//! it parts them: those that go on without others, and these. They meet again at the first event that has
//! lanes of both.

use super::is_shared;
use crate::pairs::{Pairs, Sum};
use crate::transitions::{add_all, add_at};

/// Partings that are looked at at once.
const GROUP: usize = 32;

/// The last event of some lanes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shared {
    pub(super) lanes: u32,
    pub(super) location: u16,
    /// Events of the warp up to this one, which is included.
    pub(super) time: u64,
}

/// Lanes that have parted and not met; free slots have none.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Slots in use.
    used: u32,
    /// By slot: the lanes that went on first, and those that they left behind.
    ahead: [u32; GROUP],
    behind: [u32; GROUP],
    /// By slot, the event that they shared.
    shared: [Shared; GROUP],
}

/// Finds partings and meetings over warps that are given one after the other.
#[derive(Debug, Default)]
pub(super) struct Partings {
    /// Events whose lanes have had no other since, but for the newest.
    together: Vec<Shared>,
    /// At most 16: a parting that is open has two lanes that have shared no event since, and of 32 lanes
    /// there are 496 pairs.
    open: Vec<Group>,
    /// Events after which lanes parted, by location.
    partings: Vec<u64>,
    /// From the cause to where lanes met again: how often, and the events between, without both ends.
    meetings: Pairs,
}

impl Partings {
    /// Begins a warp.
    pub(super) fn begin(&mut self) {
        self.together.clear();
        self.open.clear();
    }

    /// Goes from the newest event to an event with these lanes, which stands for `weight` like it. `time`:
    /// events before it. `is_meeting`: the lanes may come from several events. Those of one have met there,
    /// and what parts lanes later has some that are no longer at that event.
    #[inline(always)]
    pub(super) fn go_on(&mut self, newest: Shared, next: Shared, weight: u64, is_meeting: bool) {
        let mask = next.lanes;
        if mask & !newest.lanes != 0 {
            if is_meeting {
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

    /// Ends the partings whose lanes meet.
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
                self.meetings.count(shared.location, location, Sum { times: weight, amount: between });
            }
        }
    }

    /// Parts lanes that are together and of which an event has some.
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

    /// Parts the lanes of an event: those of the mask go on without the others.
    #[inline(never)]
    fn part(&mut self, shared: Shared, mask: u32, weight: u64) {
        add_at(&mut self.partings, shared.location, weight);
        if self.open.iter().all(|group| group.used == u32::MAX) {
            self.open.push(Group::default());
        }
        let Some(group) = self.open.iter_mut().find(|group| group.used != u32::MAX) else { return };
        let slot = group.used.trailing_ones() as usize;
        group.used |= 1 << slot;
        (group.ahead[slot], group.behind[slot]) = (shared.lanes & mask, shared.lanes & !mask);
        group.shared[slot] = shared;
    }

    /// Puts off events since `before` by `events`.
    pub(super) fn put_off(&mut self, before: u64, events: u64) {
        let open = self.open.iter_mut().flat_map(|group| &mut group.shared);
        for shared in open.chain(&mut self.together) {
            shared.put_off(before, events);
        }
    }

    /// From each cause to where lanes met again: how often, and the events between. In order; `None` if there
    /// are too many pairs.
    pub(super) fn meetings(&mut self) -> Option<Vec<((u16, u16), Sum)>> {
        self.meetings.sorted()
    }

    /// Events after which lanes parted, by location.
    pub(super) fn partings(&self) -> &[u64] {
        &self.partings
    }

    /// Adds what was counted elsewhere. No warp is open.
    pub(super) fn merge(&mut self, other: Self) {
        self.meetings.merge(other.meetings);
        add_all(&mut self.partings, &other.partings);
    }
}

impl Shared {
    /// Puts the event off by `events` if it came after `before`.
    pub(super) fn put_off(&mut self, before: u64, events: u64) {
        if self.time > before {
            self.time = self.time.saturating_add(events);
        }
    }
}
