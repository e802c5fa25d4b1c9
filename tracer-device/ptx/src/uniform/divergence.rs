//! Divergence and reconvergence in the control flow graph.

use crate::cfg::dominators::Dominators;
use crate::{Cfg, Terminator};

use super::Steps;

/// Control flow without the blocks that always lead to a `trap`.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) successors: Vec<Vec<usize>>,
    pub(super) predecessors: Vec<Vec<usize>>,
    /// For each block, whether lanes may leave the function at its end.
    pub(crate) ends: Vec<bool>,
    /// The reachable blocks in reverse postorder.
    pub(super) order: Vec<usize>,
    /// Immediate postdominator of each block; `None` if it is the function's end or none exists.
    meets: Vec<Option<usize>>,
}

impl Graph {
    /// Builds the graph. Returns `None` if a cycle has several entries.
    pub(crate) fn new(flow: &Cfg) -> Option<Self> {
        let blocks = flow.blocks();
        let doomed = doomed(flow);
        let successors: Vec<Vec<usize>> = (0..blocks.len())
            .map(|block| {
                let mut to: Vec<usize> =
                    flow.successors(block).iter().map(|edge| edge.to).filter(|to| !doomed[*to]).collect();
                to.sort_unstable();
                to.dedup();
                to
            })
            .collect();
        let is_end = |terminator| {
            matches!(terminator, Terminator::Return { .. } | Terminator::Exit { .. } | Terminator::End)
        };
        let ends = blocks.iter().map(|block| is_end(block.terminator)).collect();
        let order = order(&successors);
        let mut place = vec![usize::MAX; blocks.len()];
        order.iter().enumerate().for_each(|(index, block)| place[*block] = index);
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for from in &order {
            for to in &successors[*from] {
                if place[*to] <= place[*from] && !flow.dominates(*to, *from) {
                    return None;
                }
                predecessors[*to].push(*from);
            }
        }
        let mut graph = Self { successors, predecessors, ends, order, meets: Vec::new() };
        graph.find_meetings();
        Some(graph)
    }

    /// Computes immediate postdominators. Vertex 0 follows all ends; block n is vertex n + 1.
    fn find_meetings(&mut self) {
        let count = self.successors.len();
        let mut backwards = vec![Vec::new(); count + 1];
        let mut forwards = vec![Vec::new(); count + 1];
        let mut connect = |from: usize, to: usize| {
            backwards[to].push(from);
            forwards[from].push(to);
        };
        for block in &self.order {
            if self.ends[*block] {
                connect(block + 1, 0);
            }
            self.successors[*block].iter().for_each(|to| connect(block + 1, to + 1));
        }
        let tree = Dominators::new(&forwards, |vertex, nth| backwards[vertex].get(nth).copied());
        let meets = |block: usize| tree.immediate(block + 1).and_then(|vertex| vertex.checked_sub(1));
        self.meets = (0..count).map(meets).collect();
    }

    /// Returns true if lanes may diverge at the end of a block when their predicates differ.
    pub(crate) fn is_choice(&self, block: usize) -> bool {
        self.successors[block].len() + usize::from(self.ends[block]) > 1
    }

    pub(crate) fn meets_at(&self, block: usize) -> Option<usize> {
        self.meets[block]
    }
}

/// Returns for each block whether all paths from it lead to a `trap`.
fn doomed(flow: &Cfg) -> Vec<bool> {
    let blocks = flow.blocks();
    let mut doomed = vec![false; blocks.len()];
    let mut left: Vec<usize> = blocks.iter().map(|block| block.successors.len()).collect();
    let mut work: Vec<usize> = (0..blocks.len())
        .filter(|block| matches!(blocks[*block].terminator, Terminator::Trap { guarded: false }))
        .collect();
    while let Some(block) = work.pop() {
        if std::mem::replace(&mut doomed[block], true) {
            continue;
        }
        for from in flow.predecessors(block) {
            left[*from] -= flow.successors(*from).iter().filter(|edge| edge.to == block).count();
            let goes_on = matches!(
                blocks[*from].terminator,
                Terminator::Return { .. } | Terminator::Exit { .. } | Terminator::End
            );
            if left[*from] == 0 && !goes_on {
                work.push(*from);
            }
        }
    }
    doomed
}

fn order(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; successors.len()];
    let mut order = Vec::new();
    let mut path = vec![(0, 0)];
    seen[0] = true;
    while let Some((block, followed)) = path.last_mut() {
        match successors[*block].get(*followed) {
            None => {
                order.push(*block);
                path.pop();
            }
            Some(to) => {
                *followed += 1;
                if !std::mem::replace(&mut seen[*to], true) {
                    path.push((*to, 0));
                }
            }
        }
    }
    order.reverse();
    order
}

/// The blocks between a branch and its reconvergence point.
pub(super) struct Region {
    /// For each block, the number of the last search that found it, and of the last branch.
    search: Vec<u32>,
    branch: Vec<u32>,
    /// For each block found for the last branch, the number of the branch's sides that reach it.
    sides: Vec<u32>,
    searches: u32,
    branches: u32,
    found: Vec<usize>,
    meetings: Vec<usize>,
}

impl Region {
    pub(super) fn new(blocks: usize) -> Self {
        Self {
            search: vec![0; blocks],
            branch: vec![0; blocks],
            sides: vec![0; blocks],
            searches: 0,
            branches: 0,
            found: Vec::new(),
            meetings: Vec::new(),
        }
    }

    pub(super) fn find(&mut self, graph: &Graph, branch: usize, steps: &mut Steps) -> Option<()> {
        let end = graph.meets_at(branch);
        self.branches += 1;
        self.found.clear();
        for side in &graph.successors[branch] {
            self.searches += 1;
            let mut work = vec![*side];
            while let Some(block) = work.pop() {
                if std::mem::replace(&mut self.search[block], self.searches) == self.searches {
                    continue;
                }
                steps.take(1)?;
                if std::mem::replace(&mut self.branch[block], self.branches) != self.branches {
                    self.sides[block] = 0;
                    self.found.push(block);
                }
                self.sides[block] += 1;
                if Some(block) != end && block != branch {
                    work.extend(&graph.successors[block]);
                }
            }
        }
        let meets = |block: &usize| {
            (self.sides[*block] > 1 || Some(*block) == end) && graph.predecessors[*block].len() > 1
        };
        self.meetings = self.found.iter().copied().filter(meets).collect();
        if let Some(end) = end {
            // Writes in the reconvergence block itself do not count: they happen after reconvergence.
            self.branch[end] = 0;
        }
        Some(())
    }

    pub(super) fn meetings(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.meetings.iter().copied()
    }

    /// Returns true if a block lies on a path from the branch to its reconvergence point.
    pub(super) fn contains(&self, block: usize) -> bool {
        self.branch[block] == self.branches
    }
}

/// The loops that lanes leave in different iterations.
pub(super) struct Loops<'c> {
    flow: &'c Cfg,
    exits: Vec<Vec<usize>>,
    /// For each loop, whether it was already returned.
    left: Vec<bool>,
}

impl<'c> Loops<'c> {
    pub(super) fn new(flow: &'c Cfg, graph: &Graph, steps: &mut Steps) -> Option<Self> {
        let mut exits = vec![Vec::new(); flow.loops().len()];
        for from in &graph.order {
            for to in &graph.successors[*from] {
                for index in outside(flow, flow.loop_of(*from), Some(*to), steps)? {
                    exits[index].push(*to);
                }
            }
        }
        Some(Self { flow, left: vec![false; exits.len()], exits })
    }

    /// Returns the loops, with the targets of their exits, that lanes leave in different iterations because
    /// of this branch. Returns each loop once.
    pub(super) fn left_by(
        &mut self,
        branch: usize,
        meets_at: Option<usize>,
        steps: &mut Steps,
    ) -> Option<Vec<(usize, Vec<usize>)>> {
        let mut left = outside(self.flow, self.flow.loop_of(branch), meets_at, steps)?;
        left.retain(|index| !std::mem::replace(&mut self.left[*index], true));
        Some(left.into_iter().map(|index| (index, std::mem::take(&mut self.exits[index]))).collect())
    }
}

/// Returns the loops around and including `from` that do not contain the block `to`.
fn outside(flow: &Cfg, from: Option<usize>, to: Option<usize>, steps: &mut Steps) -> Option<Vec<usize>> {
    let depth = |index: Option<usize>| index.map_or(0, |index| flow.loops()[index].depth);
    let parent = |index: Option<usize>| index.and_then(|index| flow.loops()[index].parent);
    let (mut inner, mut other) = (from, to.and_then(|to| flow.loop_of(to)));
    let mut found = Vec::new();
    while inner != other {
        steps.take(1)?;
        if depth(inner) >= depth(other) {
            found.extend(inner);
            inner = parent(inner);
        } else {
            other = parent(other);
        }
    }
    Some(found)
}
