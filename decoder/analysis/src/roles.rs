//! Roles: sets of warps of a block that diverge at a branch and do not reconverge, such as the producer and
//! the consumers in a warp-specialized kernel.
//!
//! Each location of a launch has a 32-bit mask of the warp numbers that visited it. Two numbers have the same
//! role if their warps visit the same loop. Loops that all numbers visit are ignored, because roles can
//! diverge after them; if such a loop is reachable from other loops, the warps reconverge and have one role.
//! Numbers without any of these loops form a separate role if there are two others.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::figures::Edge;
use crate::order::OrderItems;

/// Roles of the warps of launches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KernelRoles {
    /// Name of the kernel.
    pub kernel: String,
    /// Launches whose warps have these roles.
    pub launches: u64,
    /// Number of the first of them.
    pub launch: u32,
    /// Location where the warps diverge; `None` if there is no such location.
    pub branch: Option<u16>,
    /// Roles by their lowest warp. The number of a role is its index here, from 1.
    pub roles: Vec<Role>,
}

/// A role of some warps of each block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Role {
    /// Numbers of the warps in their block.
    pub warps: Vec<u32>,
    /// First location after the branch that only these warps visit; `None` if unknown.
    pub side: Option<u16>,
    /// Head of the first loop that only these warps iterate; `None` if they iterate none.
    pub head: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundRoles {
    masks: Vec<u32>,
    branch: Option<u16>,
    roles: Vec<Role>,
}

impl FoundRoles {
    /// Returns the role of the warps with this number in their block, from 1; `None` if they have no events.
    pub(crate) fn role(&self, number: u32) -> Option<u8> {
        let at = self.masks.iter().position(|mask| mask >> number & 1 != 0)?;
        u8::try_from(at + 1).ok()
    }

    pub(crate) fn add_to(self, all: &mut Vec<KernelRoles>, kernel: &str, launch: u32) {
        let is_same = |other: &&mut KernelRoles| {
            other.kernel == kernel && (other.branch, &other.roles) == (self.branch, &self.roles)
        };
        match all.iter_mut().find(is_same) {
            Some(same) => same.launches += 1,
            None => {
                let Self { branch, roles, .. } = self;
                all.push(KernelRoles { kernel: kernel.to_owned(), launches: 1, launch, branch, roles });
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    pub(crate) location: u16,
    /// Bit i is set if warps with the number i in their blocks visited it.
    pub(crate) numbers: u32,
    /// True if a lane visited it more than once before it left the loop.
    pub(crate) is_head: bool,
}

/// Finds the roles of a launch; `None` if all of its warps have one role. `edges` connect its locations.
pub(crate) fn find(came: &[Came], edges: &[Edge]) -> Option<FoundRoles> {
    let heads = || came.iter().filter(|came| came.is_head);
    let all = heads().fold(0, |all, head| all | head.numbers);
    let own: Vec<&Came> = heads().filter(|head| head.numbers != all).collect();
    let mut masks = components(own.iter().map(|head| head.numbers));
    if masks.len() < 2 {
        return None;
    }
    let (mut before, mut behind) = (BTreeMap::new(), BTreeMap::new());
    for (from, to) in edges.iter().filter_map(|edge| edge.from.zip(edge.to)) {
        before.entry(to).or_insert_with(Vec::new).push(from);
        behind.entry(from).or_insert_with(Vec::new).push(to);
    }
    let reached = reach(own.iter().map(|head| head.location), &behind);
    if heads().any(|head| head.numbers == all && reached.contains(&head.location)) {
        return None;
    }
    let looping = masks.iter().fold(0, |all, mask| all | mask);
    let rest = came.iter().fold(0, |all, came| all | came.numbers) & !looping;
    if rest != 0 {
        masks.push(rest);
    }
    masks.order_by_key(|mask| mask.trailing_zeros());

    // Locations from which each role's loops are reachable.
    let leading: Vec<BTreeSet<u16>> = masks
        .iter()
        .map(|mask| {
            let heads = own.iter().filter(|head| head.numbers & mask != 0).map(|head| head.location);
            // For a role without loops, all locations that only it visits.
            let places = came.iter().filter(|came| came.numbers & !mask == 0).map(|came| came.location);
            if mask & looping == 0 { reach(places, &before) } else { reach(heads, &before) }
        })
        .collect();
    // Locations of several roles before they diverge.
    let is_open = |came: &&Came| {
        let roles = |is_it: &dyn Fn(usize) -> bool| (0..masks.len()).filter(|&role| is_it(role)).count();
        roles(&|role| came.numbers & masks[role] != 0) > 1
            && roles(&|role| leading[role].contains(&came.location)) > 1
    };
    let open: BTreeSet<u16> = came.iter().filter(is_open).map(|came| came.location).collect();
    let leads_back = reach(open.iter().copied(), &before);
    let numbers: BTreeMap<u16, u32> = came.iter().map(|came| (came.location, came.numbers)).collect();
    let role_of = |to: u16| {
        let of_one = |mask: &&u32| numbers.get(&to).is_some_and(|numbers| numbers & !**mask == 0);
        masks.iter().position(|mask| of_one(&mask)).filter(|_| !leads_back.contains(&to))
    };
    // By branch: the roles that leave there, and their first locations.
    let mut branches: BTreeMap<u16, BTreeMap<usize, u16>> = BTreeMap::new();
    for (&from, to) in behind.iter().filter(|(from, _)| open.contains(from)) {
        for (role, to) in to.iter().filter_map(|&to| Some((role_of(to)?, to))) {
            let side = branches.entry(from).or_default().entry(role).or_insert(to);
            *side = to.min(*side);
        }
    }
    // The earliest branch reaches most of the others.
    let others = |from: u16| {
        let reached = reach([from].into_iter(), &behind);
        branches.keys().filter(|other| reached.contains(other)).count()
    };
    let branch = branches.keys().copied().max_by_key(|&from| (others(from), std::cmp::Reverse(from)));
    let side = |role: usize| {
        let at = |from: &u16| branches.get(from)?.get(&role).copied();
        branch.as_ref().and_then(at).or_else(|| branches.keys().find_map(at))
    };
    let role = |(role, mask): (usize, &u32)| Role {
        warps: (0..u32::BITS).filter(|number| mask >> number & 1 != 0).collect(),
        side: side(role),
        head: own.iter().filter(|head| head.numbers & mask != 0).map(|head| head.location).min(),
    };
    Some(FoundRoles { roles: masks.iter().enumerate().map(role).collect(), masks, branch })
}

fn components(masks: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut joined: Vec<u32> = Vec::new();
    for mut mask in masks.filter(|mask| *mask != 0) {
        joined.retain(|other| {
            let is_apart = other & mask == 0;
            mask |= if is_apart { 0 } else { *other };
            is_apart
        });
        joined.push(mask);
    }
    joined
}

fn reach(from: impl Iterator<Item = u16>, edges: &BTreeMap<u16, Vec<u16>>) -> BTreeSet<u16> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<u16> = from.collect();
    while let Some(location) = waiting.pop() {
        if reached.insert(location) {
            waiting.extend(edges.get(&location).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(of: &[(u16, u32, bool)]) -> Vec<Came> {
        of.iter().map(|&(location, numbers, is_head)| Came { location, numbers, is_head }).collect()
    }

    fn edges(of: &[(u16, u16)]) -> Vec<Edge> {
        of.iter().map(|&(from, to)| Edge { from: Some(from), to: Some(to), visits: 1, lanes: 1 }).collect()
    }

    fn found(of: &[(u16, u32, bool)], between: &[(u16, u16)]) -> Option<(Option<u16>, Vec<Role>)> {
        find(&came(of), &edges(between)).map(|found| (found.branch, found.roles))
    }

    fn role(warps: &[u32], side: Option<u16>, head: Option<u16>) -> Role {
        Role { warps: warps.to_vec(), side, head }
    }

    #[test]
    fn producers_and_consumers_are_roles_from_their_branch_on() {
        // All warps clear memory in loop 2; warp 0 creates barriers at 3; from 4 on it produces (5, loop 6),
        // and warps 1 to 3 consume (7, loop 8), with an extra loop 9 for warp 3. They end at 10.
        let of = [
            (1, 15, false),
            (2, 15, true),
            (3, 1, false),
            (4, 15, false),
            (5, 1, false),
            (6, 1, true),
            (7, 14, false),
            (8, 14, true),
            (9, 8, true),
            (10, 15, false),
        ];
        let mut between = vec![
            (1, 2),
            (2, 2),
            (2, 3),
            (2, 4),
            (3, 4),
            (4, 5),
            (5, 6),
            (6, 6),
            (4, 7),
            (7, 8),
            (8, 8),
            (8, 9),
            (9, 9),
            (6, 10),
            (8, 10),
            (9, 10),
        ];
        let expected = vec![role(&[0], Some(5), Some(6)), role(&[1, 2, 3], Some(7), Some(8))];
        assert_eq!(found(&of, &between), Some((Some(4), expected)));
        between.extend([(10, 2)]);
        assert_eq!(found(&of, &between), None);
    }

    #[test]
    fn three_roles_have_the_first_branch_and_warps_without_a_loop_are_one() {
        // 1: warp 0 to loop 2, others to 3; there warp 1 to loop 4, warps 2 and 3 to 5, the end.
        let of = [(1, 15, false), (2, 1, true), (3, 14, false), (4, 2, true), (5, 12, false)];
        let between = [(1, 2), (2, 2), (1, 3), (3, 4), (4, 4), (3, 5)];
        let expected =
            vec![role(&[0], Some(2), Some(2)), role(&[1], Some(4), Some(4)), role(&[2, 3], Some(5), None)];
        assert_eq!(found(&of, &between), Some((Some(1), expected)));
    }

    #[test]
    fn one_loop_or_none_or_one_of_all_is_one_role() {
        for of in [
            &[(1, 15, false), (2, 15, false)][..],
            &[(1, 15, false), (2, 1, true)],
            &[(1, 15, true), (2, 1, true)],
            &[(1, 15, false), (2, 3, true), (3, 6, true), (4, 12, true)],
        ] {
            assert_eq!(found(of, &[(1, 2), (1, 3), (1, 4)]), None, "{of:?}");
        }
        assert_eq!(found(&[], &[]), None);
    }
}
