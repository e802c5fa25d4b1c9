//! Which branch of the source keeps lanes away from others.

use std::collections::HashMap;
use std::iter::successors;

use warptrace_format::file::LocationInfo;

use crate::points::branches;

/// Finds branches by the tree of locations, whose parents have smaller ids. Each question takes a number of
/// steps that grows with the logarithm of the depth: questions may be 2^20, and a table may be 65,535
/// locations deep.
#[derive(Debug)]
pub(crate) struct Decisions {
    /// By id. Location 0 is around all others.
    nodes: Vec<Node>,
    /// Of each location on a side of a branch, the first point of the branch that was visited.
    first_visited: HashMap<u16, u16>,
}

/// A location in the tree.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    parent: u16,
    /// A location further outwards: of any two steps outwards, one takes it or the part that is left is half
    /// as long.
    jump: u16,
    depth: u32,
    /// Place in an order in which what is inside of a location follows it, and the number of these, itself
    /// among them.
    place: u32,
    size: u32,
}

impl Decisions {
    /// Of the locations of a table, in order of their ids.
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
        // Where the next location inside of each stands.
        let mut next: Vec<u32> = vec![1; ids];
        for id in 1..ids {
            let parent = usize::from(nodes[id].parent);
            nodes[id].place = next[parent];
            next[parent] += nodes[id].size;
            next[id] = nodes[id].place + 1;
        }
        let mut first_visited = HashMap::new();
        for points in branches(locations) {
            if let Some(&first) = points.iter().find(|id| is_visited(**id)) {
                first_visited.extend(points.into_iter().map(|id| (id, first)));
            }
        }
        Self { nodes, first_visited }
    }

    /// The first visited point of the branch behind `cause` in which `place` is; `cause` if there is none.
    pub(crate) fn decision(&self, cause: u16, place: u16) -> u16 {
        let outermost = self.outwards(cause, place).last();
        outermost.and_then(|id| self.first_visited.get(&id)).copied().unwrap_or(cause)
    }

    /// Steps outwards from `place`, which comes first, to the outermost location that is not around `cause`;
    /// none if `place` is around it.
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
    use warptrace_format::LocationKind;

    use super::*;

    /// A table in which the location with each id lies in the one of `parents`, and each is a side of a
    /// branch.
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
        // 1 holds 2 and 5; 2 holds 3, which holds 4; 6 stands alone.
        let table = table(&[0, 1, 2, 3, 1, 0]);
        let decisions = Decisions::new(table.iter(), |id| id != 6);
        for (cause, place, expected) in [
            (1, 4, 2),
            (2, 4, 3),
            (5, 4, 2),
            (4, 5, 5),
            (6, 4, 1),
            // In what is around the cause there is no branch, and none that was not visited.
            (4, 2, 4),
            (4, 4, 4),
            (4, 6, 4),
            // What is not in the table is around nothing and in nothing.
            (9, 4, 1),
            (4, 9, 4),
        ] {
            assert_eq!(decisions.decision(cause, place), expected, "{place} since {cause}");
        }
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
                    decisions.decision(cause, place),
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
        // The last lies deepest.
        for place in 1..u16::MAX {
            let most = 3 * place.ilog2() as usize + 1;
            for cause in [1, 7, place / 3, place / 2, place - 1] {
                let steps = decisions.outwards(cause, place).count();
                assert!(steps <= most, "{steps} steps from {place} to {cause}");
                let outermost = if place <= cause { cause } else { cause + 1 };
                assert_eq!(decisions.decision(cause, place), outermost, "{place} since {cause}");
            }
        }
    }
}
