//! Whose turn it is.

use super::random::Random;

/// A group that may run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Where the launch has it.
    pub(super) index: usize,
    pub(super) warp: usize,
    /// The group's number, unique in the launch.
    pub(super) group: u64,
    /// Depth of calls and position in the function.
    pub(super) position: (usize, usize),
}

/// Chooses which group runs, for how long, and which groups join. The same schedule gives the same run.
#[derive(Clone, Debug)]
pub struct Schedule {
    kind: Kind,
    random: Random,
    /// Whether groups join only where the ways of the branch meet that has parted them.
    meets: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Turns of random length. `join` and `wait` are chances in 64: to join a group that stands at the same
    /// label, and to let others run first at a label.
    Random { length: u64, join: u64, wait: u64, lowest_first: bool },
    /// Turns end at these steps only, in ascending order, and where the group does.
    Switches { at: Vec<u64>, join: bool },
}

impl Schedule {
    /// Makes random turns. The seed also chooses their character: how long turns are, how often groups join,
    /// and whether the group that is furthest behind in its warp runs first, which is how groups meet most
    /// often.
    #[must_use]
    pub fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let length = [1, 4, 40, 400][random.below(4) as usize];
        let (join, wait, lowest_first) = match random.below(4) {
            0 => (0, 0, false),
            1 => (32, 32, false),
            2 => (64, 60, false),
            _ => (64, 0, true),
        };
        Self { kind: Kind::Random { length, join, wait, lowest_first }, random, meets: false }
    }

    /// Lets groups run to their end, one by one, but for switches to another group after this many steps of
    /// the launch. With `join`, groups that meet at a label join.
    #[must_use]
    pub fn switches(at: &[u64], join: bool) -> Self {
        let mut at = at.to_vec();
        at.sort_unstable();
        Self { kind: Kind::Switches { at, join }, random: Random::new(0), meets: false }
    }

    /// Lets groups join only as hardware does: where the ways of the branch meet that has parted them, unless
    /// one of them has gone on from there.
    #[must_use]
    pub fn where_ways_meet(self) -> Self {
        Self { meets: true, ..self }
    }

    /// Whether groups join only where the ways of the branch meet that has parted them.
    pub(super) fn only_where_ways_meet(&self) -> bool {
        self.meets
    }

    /// Whether the turn of the group that runs ends now.
    pub(super) fn turn_ends(&mut self, step: u64, at_label: bool) -> bool {
        match &self.kind {
            Kind::Random { length, wait, .. } => {
                self.random.below(*length) == 0 || at_label && self.random.below(64) < *wait
            }
            Kind::Switches { at, .. } => at.binary_search(&step).is_ok(),
        }
    }

    /// Whether two groups at the same label join.
    pub(super) fn joins(&mut self) -> bool {
        match self.kind {
            Kind::Random { join, .. } => self.random.below(64) < join,
            Kind::Switches { join, .. } => join,
        }
    }

    /// Chooses one of the candidates, of which there is at least one; `last` is the group that ran until now.
    pub(super) fn choose(&mut self, candidates: &[Candidate], last: u64) -> usize {
        match self.kind {
            Kind::Random { lowest_first, .. } => {
                let chosen = self.random.below(candidates.len() as u64) as usize;
                if !lowest_first {
                    return chosen;
                }
                let warp = candidates[chosen].warp;
                let of_warp = candidates.iter().enumerate().filter(|(_, candidate)| candidate.warp == warp);
                // The deepest call first, then the lowest position.
                of_warp
                    .min_by_key(|(_, candidate)| (usize::MAX - candidate.position.0, candidate.position.1))
                    .map_or(chosen, |(index, _)| index)
            }
            Kind::Switches { .. } => {
                candidates.iter().position(|candidate| candidate.group > last).unwrap_or(0)
            }
        }
    }

    /// Clock cycles of an instruction: enough for a sequence's to be more than the unit of times.
    pub(super) fn cycles(&mut self) -> u64 {
        match self.kind {
            Kind::Random { .. } => 2 + self.random.below(5),
            Kind::Switches { .. } => 3,
        }
    }
}
