//! Natural loops: a header that dominates the ends of the edges that lead back to it.

use super::dominators::Dominators;

/// A natural loop. Loops that share a header are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The block that all ways into the loop lead through.
    pub header: usize,
    /// The blocks from which control goes back to the header, in text order.
    pub latches: Vec<usize>,
    /// Index of the loop around this one.
    pub parent: Option<usize>,
    /// 1 for an outermost loop, one more for each loop around it.
    pub depth: u32,
    /// Whether no other loop is within it.
    pub innermost: bool,
}

/// Returns the loops in the text order of their headers, and of each block the innermost loop around it.
pub(super) fn find(predecessors: &[Vec<usize>], dominators: &Dominators) -> (Vec<Loop>, Vec<Option<usize>>) {
    let mut forest = Forest { loop_of: vec![None; predecessors.len()], loops: Vec::new(), outer: Vec::new() };
    for (header, latches) in headers(predecessors, dominators) {
        forest.add(header, latches, predecessors, dominators);
    }
    forest.finish()
}

/// Returns headers and what leads back to them, inner loops before the loops around them.
fn headers(predecessors: &[Vec<usize>], dominators: &Dominators) -> Vec<(usize, Vec<usize>)> {
    let mut headers: Vec<(usize, Vec<usize>)> = predecessors
        .iter()
        .enumerate()
        .map(|(header, from)| {
            let latches = from.iter().copied().filter(|latch| dominators.dominates(header, *latch));
            (header, latches.collect::<Vec<_>>())
        })
        .filter(|(_, latches)| !latches.is_empty())
        .collect();
    // An inner header is dominated by the outer one, so its number is greater.
    headers.sort_by_key(|(header, _)| std::cmp::Reverse(dominators.preorder(*header)));
    headers
}

/// Loops found so far.
struct Forest {
    loop_of: Vec<Option<usize>>,
    loops: Vec<Loop>,
    /// Of each loop, a loop around it or itself: a way to the outermost, shortened as it is used.
    outer: Vec<usize>,
}

impl Forest {
    /// Returns the outermost loop known so far around a loop.
    fn outermost(&mut self, mut index: usize) -> usize {
        while self.outer[index] != index {
            self.outer[index] = self.outer[self.outer[index]];
            index = self.outer[index];
        }
        index
    }

    /// Adds a loop: all blocks from which a latch is reached without passing the header. Loops that it meets
    /// are entered through their headers only, so each block and each loop is visited once.
    fn add(
        &mut self,
        header: usize,
        latches: Vec<usize>,
        predecessors: &[Vec<usize>],
        dominators: &Dominators,
    ) {
        let index = self.loops.len();
        let mut work = latches.clone();
        self.loops.push(Loop { header, latches, parent: None, depth: 0, innermost: true });
        self.outer.push(index);
        self.loop_of[header] = Some(index);
        while let Some(block) = work.pop() {
            let enter = match self.loop_of[block] {
                None => {
                    self.loop_of[block] = Some(index);
                    block
                }
                Some(inner) => {
                    let inner = self.outermost(inner);
                    if inner == index {
                        continue;
                    }
                    self.outer[inner] = index;
                    self.loops[inner].parent = Some(index);
                    self.loops[index].innermost = false;
                    self.loops[inner].header
                }
            };
            work.extend(predecessors[enter].iter().copied().filter(|from| dominators.is_reachable(*from)));
        }
    }

    /// Counts depths and sorts the loops by header.
    fn finish(mut self) -> (Vec<Loop>, Vec<Option<usize>>) {
        // A loop around another was found later.
        for index in (0..self.loops.len()).rev() {
            let around = self.loops[index].parent.map_or(0, |parent| self.loops[parent].depth);
            self.loops[index].depth = around + 1;
        }
        let mut order: Vec<usize> = (0..self.loops.len()).collect();
        order.sort_by_key(|index| self.loops[*index].header);
        let mut number = vec![0; order.len()];
        for (new, old) in order.iter().copied().enumerate() {
            number[old] = new;
        }
        for entry in &mut self.loops {
            entry.parent = entry.parent.map(|parent| number[parent]);
        }
        self.loops.sort_by_key(|entry| entry.header);
        let loop_of = self.loop_of.into_iter().map(|index| index.map(|old| number[old])).collect();
        (self.loops, loop_of)
    }
}
