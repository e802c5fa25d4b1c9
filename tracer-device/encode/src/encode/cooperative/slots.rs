//! Predictions of the slots and their updates, for all lanes of a group.

use warptrace_format::Memory;
use warptrace_format::codec::PredictParams;
use warptrace_format::codec::predict::Slot;
use warptrace_format::codec::predict::code::{self, Code};
use warptrace_format::codec::predict::encoder::NOWHERE;
use warptrace_format::codec::predict::mask::MaskForm;
use warptrace_format::codec::predict::stack::{Relation, Relations, Stack};

use super::{MaskRun, Member};
use crate::memory::SharedMemory;
use crate::warp;

/// The work of a lane, with all values that do not depend on the slot.
#[derive(Clone, Copy)]
pub(super) struct Item {
    /// Whether the lane has an event.
    is_run: bool,
    location: u32,
    mask: u32,
    /// The previous location and mask.
    last: u32,
    mask_before: u32,
    stack: Stack,
    /// Whether the first repeat of the previous run comes first.
    again: bool,
    nearest: Relation,
    nearest_base: u32,
    relations: Relations,
}

impl Item {
    #[inline(always)]
    pub(super) fn new(
        stack: Stack,
        mask_before: u32,
        last: u32,
        own: MaskRun,
        again: bool,
        is_run: bool,
    ) -> Self {
        let MaskRun { mask, location, .. } = own;
        let nearest = stack.nearest(mask_before, mask);
        let nearest_base = stack.base(nearest, mask_before);
        let relations = Relations::new(nearest, nearest_base == mask, mask, mask_before);
        Self { is_run, location, mask, last, mask_before, stack, again, nearest, nearest_base, relations }
    }

    #[inline(always)]
    fn exact(&self) -> bool {
        self.nearest_base == self.mask
    }

    #[inline(always)]
    fn is_first(&self) -> bool {
        self.last == NOWHERE
    }

    /// Returns true if a slot expects the location. No step leads away from [`NOWHERE`].
    #[inline(always)]
    fn located(&self, slot: Slot) -> bool {
        (slot.expected ^ self.last ^ self.location) & (NOWHERE | 0xffff) == 0
    }

    #[inline(always)]
    fn hits(&self, slot: Slot) -> bool {
        // Evaluates both alternatives without a branch, so that common work is done once.
        let (by_seen, is_seen, fits) = (slot.by_seen(), slot.seen == self.mask, self.relations.has(slot));
        self.located(slot) & ((by_seen & is_seen) | (!by_seen & self.exact() & fits))
    }

    #[inline(always)]
    pub(super) fn misses(&self, slot: Slot) -> bool {
        self.is_run & !self.hits(slot)
    }

    #[inline(always)]
    pub(super) fn form(&self, slot: Slot) -> MaskForm {
        MaskForm::new(
            self.located(slot),
            self.exact(),
            slot.seen == self.mask,
            self.relations.has(slot),
            self.mask == self.mask_before,
        )
    }

    /// Returns the codes of a missed event, `run` hits after the last miss: up to its location, and its mask.
    #[inline(always)]
    pub(super) fn codes(&self, slot: Slot, run: u32) -> (Code, Code) {
        let form = self.form(slot);
        let base = if form.expected {
            self.stack.base(slot.relation(), self.mask_before)
        } else {
            self.nearest_base
        };
        let rest = form.code(self.nearest, self.mask, base);
        let head = if self.is_first() { Code::new(0, 2) } else { code::head(run, form.located) };
        let last = if self.is_first() { 0 } else { self.last };
        let location = if form.located { Code::NONE } else { code::location(last, self.location) };
        match code::first(self.location, self.mask) {
            Some(code) if self.is_first() => (code, Code::NONE),
            _ => (head.then(location), rest),
        }
    }
}

/// The state of a lane's slot at its event, and the outcome of the first repeat before it.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub(super) slot: Slot,
    /// Whether the repeat missed, and whether its location was expected.
    pub(super) misses_again: bool,
    pub(super) located_again: bool,
}

/// Finds and updates the slot of the lane's item. Lanes with the same slot take turns. Runs `meanwhile`
/// between two synchronizations of the warp.
#[inline(always)]
pub(super) fn outcome(
    memory: SharedMemory,
    params: PredictParams,
    item: &Item,
    member: Member,
    meanwhile: impl FnOnce(),
) -> Outcome {
    let slot_at = params.slot_at(item.last);
    let turn = turn(params, slot_at, member);
    // Turns start at 1. Lanes without work have turn 0: no lane waits for them, and they read no slot.
    let turn = if item.is_run | item.again { turn + 1 } else { 0 };
    let mut outcome = Outcome { slot: Slot::default(), misses_again: false, located_again: false };
    let before = Relations::new(Relation::SAME, true, item.mask_before, item.mask_before);
    // A chunk's first event changes no slot.
    let learns = item.is_run & !item.is_first();
    warp::sync_warp();
    meanwhile();
    let mut now = 1;
    loop {
        if turn == now {
            let [expected, seen] = memory.get64(slot_at);
            outcome.slot = Slot { expected, seen };
            if item.again {
                let slot = outcome.slot;
                let fits = if slot.by_seen() { slot.seen == item.mask_before } else { before.has(slot) };
                outcome.located_again = slot.step() == 0;
                outcome.misses_again = !outcome.located_again | !fits;
                if outcome.misses_again {
                    outcome.slot = Slot::same_again(item.mask_before);
                }
            }
            let slot = outcome.slot;
            let misses = learns & !item.hits(slot);
            let step = item.last ^ item.location;
            let learned = item.form(slot).learned(step, slot, item.nearest, item.mask);
            let next = if misses { learned } else { slot };
            memory.set64_if(misses | outcome.misses_again, slot_at, [next.expected, next.seen]);
        }
        warp::sync_warp();
        now += 1;
        if warp::ballot(turn >= now) == 0 {
            break;
        }
    }
    outcome
}

/// Counts the lower lanes of the group that have the same slot.
#[inline(always)]
fn turn(params: PredictParams, slot_at: u32, member: Member) -> u32 {
    let (mut same, mut bit) = (member.below(), 8);
    while bit < params.tail_at() {
        let has = slot_at & bit != 0;
        let having = warp::ballot(has);
        same &= if has { having } else { !having };
        bit *= 2;
    }
    same.count_ones()
}
