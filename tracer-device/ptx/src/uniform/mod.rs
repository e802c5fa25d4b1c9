//! Which branches all lanes of a warp take together, whatever they compute with.
//!
//! A register is *uniform* where all lanes of a warp that come there have the same value, if they all do so
//! in the same iteration of each loop around. Parameters, constants, addresses of variables and what names
//! the block are uniform; loaded values, lanes' numbers, results of atomics, votes and calls are not, and so
//! everything else that this crate does not know. What an instruction computes of uniform registers is
//! uniform. Lanes that a *divergent* branch (one whose predicate is not uniform) has parted may bring
//! different values of one register
//! - to where they meet: if the register is written on a way from the branch to there;
//! - out of a loop that they leave in different iterations: if it is written in the loop.
//!
//! That is the divergence analysis of Coutinho, Sampaio, Pereira and Meira, "Divergence analysis and
//! optimizations" (PACT 2011), over single assignments as in Braun and others, "Simple and efficient
//! construction of static single assignment form" (CC 2013). It begins with "all is uniform" and takes back
//! what is not until nothing changes.
//!
//! # What it relies on
//! Lanes part at branches only, and those that a branch has parted join where all of its ways come together
//! again (its immediate postdominator), or at an instruction that names lanes, or not at all. A branch that
//! leads some lanes to a `trap` parts none that go on.

mod names;
pub(crate) use self::names::words;
pub(crate) mod parting;
mod values;

use self::parting::Graph;
use self::values::Values;
use crate::{Body, Cfg, Function};

/// Steps that are taken for each statement of a function at most, before the analysis gives up.
const STEPS: usize = 400;
/// Steps that are taken for a function at most. Where a register lives through thousands of loops it has a
/// value in each: such functions would take memory by the square of their length.
const MAX_STEPS: usize = 1 << 21;

/// A mistake to make on purpose: tests must find each.
#[cfg_attr(
    not(feature = "interpreter"),
    expect(unreachable_pub, reason = "exported with the interpreter only")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Flaw {
    /// What is loaded is uniform, from wherever.
    Loads,
    /// So are lanes' numbers.
    Lanes,
    /// So are results of atomics.
    Atomics,
    /// So are results of shuffles.
    Shuffles,
    /// Values that meet are uniform if each is.
    Joins,
    /// Values from different iterations are the same.
    Iterations,
    /// A guard decides nothing.
    Guards,
    /// Lanes may join within a counted loop.
    Meetings,
    /// A loop may hold other points.
    Points,
    /// Threads may end in a loop.
    Ends,
    /// Any branch in a loop is uniform.
    Branches,
    /// Lanes may come to a loop's end without its beginning.
    Entries,
}

#[cfg(feature = "interpreter")]
thread_local! {
    static FLAW: std::cell::Cell<Option<Flaw>> = const { std::cell::Cell::new(None) };
}

/// Runs `run` with a mistake in the analyses of this thread.
#[cfg(feature = "interpreter")]
#[doc(hidden)]
pub fn with_flaw<R>(flaw: Flaw, run: impl FnOnce() -> R) -> R {
    FLAW.set(Some(flaw));
    let result = run();
    FLAW.set(None);
    result
}

/// Whether this mistake is asked for.
pub(crate) fn has_flaw(flaw: Flaw) -> bool {
    #[cfg(feature = "interpreter")]
    return FLAW.get() == Some(flaw);
    #[cfg(not(feature = "interpreter"))]
    {
        let _ = flaw;
        false
    }
}

/// What is known of a function's branches.
#[derive(Clone, Debug)]
pub(crate) struct Divergence {
    pub(crate) graph: Graph,
    /// Of each block, whether lanes may part at its end.
    pub(crate) parts: Vec<bool>,
    /// Of each block, whether lanes that were parted may join at its start.
    pub(crate) joins: Vec<bool>,
}

impl Divergence {
    /// Analyses a function; `None` if it is too large or holds a cycle with two entries.
    pub(crate) fn new(function: &Function<'_>, body: &Body<'_>, flow: &Cfg) -> Option<Self> {
        let graph = Graph::new(flow)?;
        let mut steps = Steps((STEPS * (body.statements.len() + 64)).min(MAX_STEPS));
        let mut values = Values::new(function, body, flow, &graph, &mut steps)?;
        let blocks = flow.blocks().len();
        let mut found = Self { graph, parts: vec![false; blocks], joins: vec![false; blocks] };
        let mut loops = parting::Loops::new(flow, &found.graph, &mut steps)?;
        let mut region = parting::Region::new(blocks);
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

/// What is left of the steps that an analysis may take.
pub(crate) struct Steps(usize);

impl Steps {
    /// Takes steps; `None` if there are not as many left.
    pub(crate) fn take(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }
}
