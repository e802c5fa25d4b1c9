//! Finds the loops that can be counted without changing the trace.
//!
//! Events of a counted loop are recorded from the group of lanes at its start and the number of ticks of each
//! lane at its end. This equals recording each tick if
//! - each lane that comes to a tick or to the end has come through the start, and each lane that starts comes
//!   to the end: no thread ends in the loop;
//! - lanes come to no other point in between;
//! - lanes stay in one group: they come to no call, and no branch makes them diverge;
//! - no other lanes join them, as diverged lanes do at a reconvergence point. Lanes also join at instructions
//!   that name lanes: a loop with such an instruction is counted only if no other lanes of the warp can be in
//!   it.

use std::collections::BTreeSet;

use super::plan::MarkerPlace;
use crate::uniform::{Divergence, Flaw, has_flaw};
use crate::{Body, Cfg, Function, Instruction, Terminator};
use warptrace_abi::marker::Marker;

/// Whether lanes are in a counted loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Out,
    In(u16),
    /// Lanes may be in and out of a loop, or in different loops.
    Mixed,
}

/// Returns the locations of the loops of a function that can be counted.
pub(super) fn proven(
    function: &Function<'_>,
    body: &Body<'_>,
    flow: &Cfg,
    places: &[MarkerPlace],
) -> BTreeSet<u16> {
    let begins = |place: &MarkerPlace| match place.marker {
        Marker::Enter(location) => Some(location),
        _ => None,
    };
    let mut proven: BTreeSet<u16> = places.iter().filter_map(begins).collect();
    if proven.is_empty() {
        return proven;
    }
    let Some(divergence) = Divergence::new(function, body, flow) else { return BTreeSet::new() };
    let mut walk = Walk {
        body,
        flow,
        places,
        divergence: &divergence,
        failed: BTreeSet::new(),
        alone: BTreeSet::new(),
        entered_in: Vec::new(),
    };
    walk.all();
    proven.retain(|location| !walk.failed.contains(location));
    proven.retain(|location| !walk.alone.contains(location) || walk.is_alone(function, *location));
    proven
}

struct Walk<'w, 'a> {
    body: &'w Body<'a>,
    flow: &'w Cfg,
    places: &'w [MarkerPlace],
    divergence: &'w Divergence,
    failed: BTreeSet<u16>,
    /// Loops that can be counted if no other lanes of the warp are in them.
    alone: BTreeSet<u16>,
    /// Locations of loops, with the blocks in which they start.
    entered_in: Vec<(u16, usize)>,
}

impl Walk<'_, '_> {
    fn all(&mut self) {
        let mut before = vec![None; self.flow.blocks().len()];
        before[0] = Some(State::Out);
        let mut work = vec![0];
        while let Some(block) = work.pop() {
            let Some(state) = before[block] else { continue };
            let after = self.block(block, state);
            for to in &self.divergence.graph.successors[block] {
                let joined = match before[*to] {
                    None => after,
                    Some(known) if known == after => continue,
                    Some(known) => {
                        self.fail(known, Flaw::Entries);
                        self.fail(after, Flaw::Entries);
                        State::Mixed
                    }
                };
                if before[*to] != Some(joined) {
                    before[*to] = Some(joined);
                    work.push(*to);
                }
            }
        }
        for (block, state) in before.iter().enumerate() {
            if let Some(state) = state.filter(|_| self.divergence.joins[block]) {
                self.fail(state, Flaw::Meetings);
            }
        }
    }

    /// Marks the lanes' current loop as not countable, unless a test asks to ignore the reason.
    fn fail(&mut self, state: State, reason: Flaw) {
        if let State::In(location) = state
            && !has_flaw(reason)
        {
            self.failed.insert(location);
        }
    }

    /// Follows lanes through a block; returns their state at its end.
    fn block(&mut self, block: usize, mut state: State) -> State {
        let statements = self.flow.blocks()[block].statements.clone();
        let first = self.places.partition_point(|place| place.statement < statements.start);
        let mut places = self.places[first..].iter().peekable();
        for statement in statements {
            if let Some(place) = places.next_if(|place| place.statement == statement) {
                state = self.marker(block, state, place.marker);
            } else if let Some(instruction) = self.body.statements[statement].instruction()
                && let State::In(location) = state
            {
                if matches!(instruction.name(), "call" | "brkpt" | "ret" | "exit") {
                    self.fail(state, Flaw::Ends);
                } else if joins_lanes(instruction) {
                    self.alone.insert(location);
                }
            }
        }
        if self.divergence.parts[block] {
            self.fail(state, Flaw::Branches);
        }
        if self.flow.blocks()[block].terminator == Terminator::End {
            self.fail(state, Flaw::Ends);
        }
        state
    }

    fn marker(&mut self, block: usize, state: State, marker: Marker) -> State {
        let (next, location) = match marker {
            Marker::Event(_) => {
                self.fail(state, Flaw::Points);
                return state;
            }
            Marker::Enter(location) => {
                self.fail(state, Flaw::Points);
                self.entered_in.push((location, block));
                return State::In(location);
            }
            Marker::Tick(location, _) => (state, location),
            Marker::Leave(location) => (State::Out, location),
        };
        if state != State::In(location) {
            self.fail(state, Flaw::Points);
            self.fail(State::In(location), Flaw::Entries);
        }
        next
    }

    /// Returns true if all lanes of a warp that are ever in a loop are in it together: no branch leads lanes
    /// of both of its sides there, and callers have not made lanes diverge.
    fn is_alone(&self, function: &Function<'_>, location: u16) -> bool {
        let calls = self.body.instructions().any(|(_, instruction)| instruction.is_call());
        if !function.is_entry() || calls {
            return false;
        }
        let mut leads_there = vec![false; self.flow.blocks().len()];
        let begins = self.entered_in.iter().filter(|(found, _)| *found == location);
        let mut work: Vec<usize> = begins.map(|(_, block)| *block).collect();
        while let Some(block) = work.pop() {
            if !std::mem::replace(&mut leads_there[block], true) {
                work.extend(self.flow.predecessors(block));
            }
        }
        let sides = |block: usize| {
            let successors = self.divergence.graph.successors[block].iter();
            successors.filter(|to| leads_there[**to]).count()
        };
        (0..leads_there.len()).all(|block| !self.divergence.parts[block] || sides(block) < 2)
    }
}

fn joins_lanes(instruction: &Instruction<'_>) -> bool {
    instruction.has_modifier("sync")
        || matches!(instruction.name(), "bar" | "barrier" | "nanosleep" | "mbarrier")
}
