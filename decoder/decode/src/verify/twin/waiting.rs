//! The runs of a trace that wait for the twin, with a queue for each lane.

use crate::count::count;
use std::array;
use std::collections::VecDeque;

use warptrace_format::Event;

use super::EventTimes;

#[derive(Clone, Copy, Debug)]
struct Node {
    event: Event,
    /// Number of events not yet matched; 0 if the node is free.
    remaining: u32,
    /// Lanes in whose queues another run is before this one.
    behind: u32,
}

/// The queues. Memory: 16 bytes and 4 bytes for each lane, for each waiting run.
#[derive(Debug)]
pub(super) struct Waiting {
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// For each lane, the indices of its runs, in the order of the trace.
    queues: [VecDeque<u32>; 32],
    lanes: u32,
}

fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        lane
    })
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), queues: array::from_fn(|_| VecDeque::new()), lanes: 0 }
    }

    #[inline]
    pub(super) const fn lanes(&self) -> u32 {
        self.lanes
    }

    pub(super) const fn runs(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    pub(super) fn first(&self, lane: usize) -> Option<Event> {
        self.queues[lane].front().map(|&index| self.nodes[index as usize].event)
    }

    pub(super) fn push(&mut self, EventTimes { event, times }: EventTimes) {
        let node = Node { event, remaining: times, behind: event.mask & self.lanes };
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                count(self.nodes.len()) - 1
            }
        };
        lanes_of(event.mask).for_each(|lane| self.queues[lane].push_back(index));
        self.lanes |= event.mask;
    }

    /// Takes events equal to `run` from the run that is first for each of its lanes. Returns the number
    /// taken; `None` if no such run exists.
    pub(super) fn take(&mut self, run: EventTimes) -> Option<u32> {
        // Runs of one mask have the same order in all their queues, so any lane finds the first.
        let lane = lanes_of(run.event.mask).next()?;
        let index = *self.queues[lane].front()?;
        let node = &mut self.nodes[index as usize];
        if node.event != run.event || node.behind != 0 {
            return None;
        }
        let taken = node.remaining.min(run.times);
        node.remaining -= taken;
        if node.remaining == 0 {
            self.remove_first(index, run.event.mask);
        }
        Some(taken)
    }

    fn remove_first(&mut self, index: u32, mask: u32) {
        for lane in lanes_of(mask) {
            let queue = &mut self.queues[lane];
            queue.pop_front();
            match queue.front() {
                Some(&next) => self.nodes[next as usize].behind &= !(1 << lane),
                None => self.lanes &= !(1 << lane),
            }
        }
        self.free.push(index);
    }
}
