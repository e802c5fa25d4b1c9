//! Schedules: the order in which groups run.

use super::random::Random;

#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) index: usize,
    pub(super) warp: usize,
    /// The group's unique number in the launch.
    pub(super) group: u64,
    /// Call depth and position in the function.
    pub(super) position: (usize, usize),
}

/// Decides which group runs, for how long, and which groups join. A schedule always gives the same run.
#[derive(Clone, Debug)]
pub struct Schedule {
    kind: Kind,
    random: Random,
    /// Whether groups join only at the reconvergence point of the branch that separated them.
    meets: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Turns of random length. `join` is the chance in 64 that a group joins another at the same label;
    /// `wait` is the chance in 64 that a group lets others run first at a label.
    Random { length: u64, join: u64, wait: u64, lowest_first: bool },
    /// Turns end only at these steps (ascending), and when the group ends.
    Switches { at: Vec<u64>, join: bool },
}

impl Schedule {
    /// Makes random turns. The seed also determines the lengths of turns, how often groups join, and whether
    /// the group that is furthest behind in its warp runs first, which makes groups join most often.
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

    /// Runs groups one by one to their ends, with a switch to another group after each of these steps of the
    /// launch. With `join`, groups at the same label join.
    #[must_use]
    pub fn switches(at: &[u64], join: bool) -> Self {
        let mut at = at.to_vec();
        at.sort_unstable();
        Self { kind: Kind::Switches { at, join }, random: Random::new(0), meets: false }
    }

    /// Lets groups join only as on hardware: at their branch's reconvergence point, unless one has left it.
    #[must_use]
    pub fn where_ways_meet(self) -> Self {
        Self { meets: true, ..self }
    }

    pub(super) fn only_where_ways_meet(&self) -> bool {
        self.meets
    }

    pub(super) fn turn_ends(&mut self, step: u64, at_label: bool) -> bool {
        match &self.kind {
            Kind::Random { length, wait, .. } => {
                self.random.below(*length) == 0 || at_label && self.random.below(64) < *wait
            }
            Kind::Switches { at, .. } => at.binary_search(&step).is_ok(),
        }
    }

    pub(super) fn joins(&mut self) -> bool {
        match self.kind {
            Kind::Random { join, .. } => self.random.below(64) < join,
            Kind::Switches { join, .. } => join,
        }
    }

    /// Chooses one of the candidates, which must not be empty. `last` is the group that ran last.
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

    /// Returns the clock cycles of an instruction. A sequence takes more than one unit of recorded time.
    pub(super) fn cycles(&mut self) -> u64 {
        match self.kind {
            Kind::Random { .. } => 2 + self.random.below(5),
            Kind::Switches { .. } => 3,
        }
    }
}
