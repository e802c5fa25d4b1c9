//! Stacks of locations as a tree: equal stacks are one node, whoever has them.

use rustc_hash::FxHashMap;

/// The empty stack.
pub(crate) const EMPTY: u32 = 0;
/// Remembered steps, and with them nodes, are forgotten from here on.
const MANY_STEPS: usize = 1 << 16;

/// A stack: its highest location and what lies below.
#[derive(Clone, Copy, Debug)]
struct Node {
    location: u16,
    /// Locations in all.
    depth: u16,
    below: u32,
    /// The last step from here: by which location, and to where.
    last: u16,
    to: u32,
}

/// All stacks that were come to. No stack holds a location twice.
#[derive(Debug)]
pub(crate) struct Stacks {
    nodes: Vec<Node>,
    /// Where one comes to from a stack by a location, which is in the upper 16 bits of the key.
    steps: FxHashMap<u64, u32>,
}

impl Default for Stacks {
    fn default() -> Self {
        let empty = Node { location: 0, depth: 0, below: EMPTY, last: 0, to: EMPTY };
        Self { nodes: vec![empty], steps: FxHashMap::default() }
    }
}

impl Stacks {
    /// How many locations are on a stack.
    #[inline]
    pub(crate) fn depth(&self, stack: u32) -> usize {
        usize::from(self.nodes[stack as usize].depth)
    }

    /// The highest location of a stack that is not empty, and the stack below.
    #[inline]
    pub(crate) fn top(&self, stack: u32) -> (u16, u32) {
        let Node { location, below, .. } = self.nodes[stack as usize];
        (location, below)
    }

    /// The stack after coming to a location: what lies above it is taken off where it is there, otherwise it is
    /// put on top.
    #[inline]
    pub(crate) fn step(&mut self, stack: u32, location: u16) -> u32 {
        let Node { last, to, .. } = self.nodes[stack as usize];
        // From most stacks there is one step.
        if last == location && to != EMPTY { to } else { self.another_step(stack, location) }
    }

    fn another_step(&mut self, stack: u32, location: u16) -> u32 {
        let key = u64::from(stack) | u64::from(location) << 48;
        let to = match self.steps.get(&key) {
            Some(to) => *to,
            None => self.new_step(key, stack, location),
        };
        (self.nodes[stack as usize].last, self.nodes[stack as usize].to) = (location, to);
        to
    }

    #[cold]
    fn new_step(&mut self, key: u64, stack: u32, location: u16) -> u32 {
        let mut to = stack;
        while to != EMPTY && self.nodes[to as usize].location != location {
            to = self.nodes[to as usize].below;
        }
        if to == EMPTY {
            to = self.nodes.len() as u32;
            let depth = self.nodes[stack as usize].depth + 1;
            self.nodes.push(Node { location, depth, below: stack, last: location, to });
        }
        self.steps.insert(key, to);
        to
    }

    /// The locations of a stack, from the lowest on.
    pub(crate) fn locations(&self, stack: u32) -> Vec<u16> {
        let mut locations = Vec::with_capacity(self.depth(stack));
        let mut at = stack;
        while at != EMPTY {
            locations.push(self.nodes[at as usize].location);
            at = self.nodes[at as usize].below;
        }
        locations.reverse();
        locations
    }

    /// The stack with these locations, which differ.
    pub(crate) fn with(&mut self, locations: &[u16]) -> u32 {
        locations.iter().fold(EMPTY, |stack, &location| self.step(stack, location))
    }

    /// Whether so much is remembered that stacks should be [tidied](Self::tidy).
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.steps.len() >= MANY_STEPS
    }

    /// Forgets all stacks but these, whose names change.
    #[cold]
    pub(crate) fn tidy<'a>(&mut self, kept: impl Iterator<Item = &'a mut u32>) {
        let old = std::mem::take(self);
        for stack in kept {
            *stack = self.with(&old.locations(*stack));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one() {
        let mut stacks = Stacks::default();
        let one = stacks.with(&[1, 2, 3]);
        assert_eq!((stacks.locations(one), stacks.depth(one)), (vec![1, 2, 3], 3));
        assert_eq!(stacks.with(&[1, 2, 3]), one);
        assert_eq!(stacks.step(one, 3), one);
        let two = stacks.step(one, 2);
        assert_eq!((stacks.locations(two), stacks.top(one)), (vec![1, 2], (3, two)));
        let (mut kept, nodes) = (stacks.with(&[5, 2]), stacks.nodes.len());
        stacks.tidy([&mut kept].into_iter());
        assert_eq!(stacks.locations(kept), [5, 2]);
        assert!(stacks.nodes.len() < nodes);
    }
}
