//! Divergence analysis: finds the branches that all lanes of a warp take together, for any input.
//!
//! A register is *uniform* if it has the same value in all lanes of a warp that come to a place in the same
//! iteration of each loop around it. Parameters, constants, addresses of variables and block indices are
//! uniform. Loaded values, lane numbers, results of atomics, votes and calls, and everything unknown to this
//! crate are not. Results that are computed from uniform registers are uniform. A *divergent* branch is one
//! whose predicate is not uniform. After it, lanes may bring different values of a register
//! - to the place where they reconverge, if a path from the branch to there writes the register;
//! - out of a loop that they leave in different iterations, if the loop writes the register.
//!
//! This is the divergence analysis of Coutinho, Sampaio, Pereira and Meira, "Divergence analysis and
//! optimizations" (PACT 2011), on single assignments as in Braun and others, "Simple and efficient
//! construction of static single assignment form" (CC 2013). It starts from "all values are uniform" and
//! iterates to a fixed point.
//!
//! # Assumptions
//! Lanes diverge only at branches. Lanes that a branch has separated reconverge at its immediate
//! postdominator, at an instruction that names lanes, or never. A branch that leads some lanes to a `trap`
//! does not separate the remaining lanes.

mod names;
pub(crate) use self::names::words;
pub(crate) mod divergence;
mod values;

use self::divergence::Graph;
use self::values::Values;
use crate::{Body, Cfg, Function};

/// Maximum number of analysis steps for each statement of a function.
const STEPS: usize = 400;
/// Maximum number of analysis steps for a function. A register that is live through thousands of loops has a
/// value in each, so the memory of such functions would grow with the square of their length.
const MAX_STEPS: usize = 1 << 21;

/// A deliberate mistake in the analyses. Tests must detect each of them.
#[cfg_attr(
    not(feature = "interpreter"),
    expect(unreachable_pub, reason = "exported with the interpreter only")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Flaw {
    /// Loaded values are uniform.
    Loads,
    /// Lane numbers are uniform.
    Lanes,
    /// Results of atomics are uniform.
    Atomics,
    /// Results of shuffles are uniform.
    Shuffles,
    /// Values that join are uniform if each of them is.
    Joins,
    /// Values from different iterations are equal.
    Iterations,
    /// Guards have no influence.
    Guards,
    /// Lanes may reconverge within a counted loop.
    Meetings,
    /// A counted loop may contain other points.
    Points,
    /// Threads may end in a counted loop.
    Ends,
    /// Any branch in a counted loop is uniform.
    Branches,
    /// Lanes may reach a loop's end without passing its start.
    Entries,
}

#[cfg(feature = "interpreter")]
thread_local! {
    static FLAW: std::cell::Cell<Option<Flaw>> = const { std::cell::Cell::new(None) };
}

/// Calls `run` with a mistake in the analyses of this thread.
#[cfg(feature = "interpreter")]
#[doc(hidden)]
pub fn with_flaw<R>(flaw: Flaw, run: impl FnOnce() -> R) -> R {
    FLAW.set(Some(flaw));
    let result = run();
    FLAW.set(None);
    result
}

pub(crate) fn has_flaw(flaw: Flaw) -> bool {
    #[cfg(feature = "interpreter")]
    return FLAW.get() == Some(flaw);
    #[cfg(not(feature = "interpreter"))]
    {
        let _ = flaw;
        false
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Divergence {
    pub(crate) graph: Graph,
    /// For each block, whether lanes may diverge at its end.
    pub(crate) parts: Vec<bool>,
    /// For each block, whether diverged lanes may reconverge at its start.
    pub(crate) joins: Vec<bool>,
}

impl Divergence {
    /// Analyses a function. Returns `None` if it is too large or has a cycle with two entries.
    pub(crate) fn new(function: &Function<'_>, body: &Body<'_>, flow: &Cfg) -> Option<Self> {
        let graph = Graph::new(flow)?;
        let mut steps = Steps((STEPS * (body.statements.len() + 64)).min(MAX_STEPS));
        let mut values = Values::new(function, body, flow, &graph, &mut steps)?;
        let blocks = flow.blocks().len();
        let mut found = Self { graph, parts: vec![false; blocks], joins: vec![false; blocks] };
        let mut loops = divergence::Loops::new(flow, &found.graph, &mut steps)?;
        let mut region = divergence::Region::new(blocks);
        while let Some(branch) = values.next_divergent(&mut steps)? {
            found.parts[branch] = true;
            region.find(&found.graph, branch, &mut steps)?;
            region.meetings().for_each(|block| values.meet(block, &region));
            match found.graph.meets_at(branch) {
                Some(block) => found.joins[block] = true,
                None => region.meetings().for_each(|block| found.joins[block] = true),
            }
            for (index, exits) in loops.left_by(branch, found.graph.meets_at(branch), &mut steps)? {
                exits.iter().for_each(|exit| values.leave(flow, index, *exit));
            }
        }
        Some(found)
    }
}

pub(crate) struct Steps(usize);

impl Steps {
    /// Takes steps. Returns `None` if too few remain.
    pub(crate) fn take(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }
}
