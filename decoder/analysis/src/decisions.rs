//! Finds the branch of the source that separates lanes.

use std::collections::{HashMap, HashSet};
use std::iter::successors;

use warptrace_format::LocationKind;
use warptrace_format::file::LocationInfo;

use crate::points::branches;

/// Finds branches in the tree of locations, where parents have smaller ids. A query takes logarithmic steps
/// in the depth, for up to 2^20 queries in a table that is 65,535 locations deep.
#[derive(Debug)]
pub(crate) struct Decisions {
    /// Nodes by id. Location 0 contains all others.
    nodes: Vec<Node>,
    /// For each location on a side of a branch: the branch's first visited point.
    first_visited: HashMap<u16, u16>,
    /// Bodies of loops.
    loops: HashSet<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    parent: u16,
    /// Jump pointer to an outer location, so that walks outward have logarithmic length.
    jump: u16,
    depth: u32,
    /// Index in preorder, and the number of locations inside, including this one.
    place: u32,
    size: u32,
}

impl Decisions {
    pub(crate) fn new<'a>(
        locations: impl Iterator<Item = &'a LocationInfo> + Clone,
        is_visited: impl Fn(u16) -> bool,
    ) -> Self {
        let ids = locations.clone().map(|info| usize::from(info.id) + 1).max().unwrap_or(1);
        let mut nodes = vec![Node { size: 1, ..Node::default() }; ids];
        for info in locations.clone() {
            let outer = nodes[usize::from(info.parent)];
            let further = nodes[usize::from(outer.jump)];
            let is_even =
                outer.depth - further.depth == further.depth - nodes[usize::from(further.jump)].depth;
            let jump = if is_even { further.jump } else { info.parent };
            let node = &mut nodes[usize::from(info.id)];
            (node.parent, node.jump, node.depth) = (info.parent, jump, outer.depth + 1);
        }
        for id in (1..ids).rev() {
            let Node { parent, size, .. } = nodes[id];
            nodes[usize::from(parent)].size += size;
        }
        // For each location, the preorder index that its next child gets.
        let mut next: Vec<u32> = vec![1; ids];
        for id in 1..ids {
            let parent = usize::from(nodes[id].parent);
            nodes[id].place = next[parent];
            next[parent] += nodes[id].size;
            next[id] = nodes[id].place + 1;
        }
        let mut first_visited = HashMap::new();
        for points in branches(locations.clone()) {
            if let Some(&first) = points.iter().find(|id| is_visited(**id)) {
                first_visited.extend(points.into_iter().map(|id| (id, first)));
            }
        }
        let loops = locations.filter(|info| info.kind == LocationKind::LoopBody).map(|info| info.id);
        Self { nodes, first_visited, loops: loops.collect() }
    }

    /// Finds the outermost location that contains `place` and not `cause`. If it is a side of a branch,
    /// returns the first visited point of the branch. If it is the body of a loop that lanes entered right after
    /// `cause`, returns the loop: the other lanes made no trip. Otherwise returns `cause`. `follows` tells
    /// whether lanes continued at a location right after `cause`.
    pub(crate) fn decision(&self, cause: u16, place: u16, follows: impl Fn(u16) -> bool) -> u16 {
        let Some(outermost) = self.outwards(cause, place).last() else { return cause };
        match self.first_visited.get(&outermost) {
            Some(&first) => first,
            None if self.loops.contains(&outermost) && follows(outermost) => outermost,
            None => cause,
        }
    }

    /// Walks outward from `place` to the outermost location that does not contain `cause`, if any.
    fn outwards(&self, cause: u16, place: u16) -> impl Iterator<Item = u16> {
        let node = |id: u16| self.nodes.get(usize::from(id)).copied().unwrap_or_default();
        let inner = node(cause).place;
        let is_around = move |id: u16| {
            let Node { place, size, .. } = node(id);
            id == 0 || id == cause || (place..place + size).contains(&inner)
        };
        successors(Some(place).filter(|id| !is_around(*id)), move |id| {
            let Node { parent, jump, .. } = node(*id);
            [jump, parent].into_iter().find(|id| !is_around(*id))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(parents: &[u16]) -> Vec<LocationInfo> {
        let location = |(id, &parent): (u16, &u16)| LocationInfo {
            parent,
            line: id.into(),
            kind: LocationKind::Then,
            ..LocationInfo::new(id, "", "")
        };
        (1..).zip(parents).map(location).collect()
    }

    #[test]
    fn the_branch_is_the_outermost_that_does_not_hold_the_cause() {
        // 1 contains 2 and 5; 2 contains 3, which contains 4; 6 is separate.
        let table = table(&[0, 1, 2, 3, 1, 0]);
        let decisions = Decisions::new(table.iter(), |id| id != 6);
        for (cause, place, expected) in [
            (1, 4, 2),
            (2, 4, 3),
            (5, 4, 2),
            (4, 5, 5),
            (6, 4, 1),
            // No branch separates the cause from a place around it, or was visited.
            (4, 2, 4),
            (4, 4, 4),
            (4, 6, 4),
            // An id that is not in the table contains nothing and is inside nothing.
            (9, 4, 1),
            (4, 9, 4),
        ] {
            assert_eq!(decisions.decision(cause, place, |_| false), expected, "{place} since {cause}");
        }
    }

    #[test]
    fn a_loop_is_the_decision_of_lanes_that_never_enter_it() {
        // 1 contains the side 2 and the loop 3.
        let mut table = table(&[0, 1, 1]);
        table[2].kind = LocationKind::LoopBody;
        let decisions = Decisions::new(table.iter(), |_| true);
        assert_eq!(decisions.decision(2, 3, |id| id == 3), 3);
        // Lanes did not continue there, but passed another branch.
        assert_eq!(decisions.decision(2, 3, |_| false), 2);
    }

    #[test]
    fn all_tables_are_searched_as_step_by_step() {
        let mut state = 1_u32;
        let mut random = |below: u16| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as u16 % below
        };
        for _ in 0..50 {
            let parents: Vec<u16> = (1..=40).map(|id: u16| id.saturating_sub(1 + random(3))).collect();
            let outwards = |id: u16| {
                let parent = |id: &u16| parents.get(usize::from(*id) - 1).copied().filter(|id| *id > 0);
                successors(Some(id), parent).collect::<Vec<_>>()
            };
            let table = table(&parents);
            let decisions = Decisions::new(table.iter(), |_| true);
            for (cause, place) in (1..=40).flat_map(|cause| (1..=40).map(move |place| (cause, place))) {
                let around = outwards(cause);
                let outermost = outwards(place).into_iter().take_while(|id| !around.contains(id)).last();
                assert_eq!(
                    decisions.decision(cause, place, |_| false),
                    outermost.unwrap_or(cause),
                    "{place} since {cause}: {parents:?}"
                );
            }
        }
    }

    #[test]
    fn steps_outwards_grow_with_the_logarithm_of_the_depth() {
        let parents: Vec<u16> = (0..u16::MAX - 1).collect();
        let table = table(&parents);
        let decisions = Decisions::new(table.iter(), |_| true);
        for place in 1..u16::MAX {
            let most = 3 * place.ilog2() as usize + 1;
            for cause in [1, 7, place / 3, place / 2, place - 1] {
                let steps = decisions.outwards(cause, place).count();
                assert!(steps <= most, "{steps} steps from {place} to {cause}");
                let outermost = if place <= cause { cause } else { cause + 1 };
                assert_eq!(decisions.decision(cause, place, |_| false), outermost, "{place} since {cause}");
            }
        }
    }
}
