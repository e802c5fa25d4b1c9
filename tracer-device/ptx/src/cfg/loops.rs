//! Natural loops: a header dominates the sources of the edges back to it.

use super::dominators::Dominators;

/// A natural loop. Loops with the same header count as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The block through which all paths into the loop lead.
    pub header: usize,
    /// Blocks with an edge back to the header, in text order.
    pub latches: Vec<usize>,
    /// Index of the enclosing loop.
    pub parent: Option<usize>,
    /// Nesting depth; 1 for an outermost loop.
    pub depth: u32,
    /// Whether the loop contains no other loop.
    pub innermost: bool,
}

/// Returns the loops in the text order of their headers, and for each block its innermost loop.
pub(super) fn find(predecessors: &[Vec<usize>], dominators: &Dominators) -> (Vec<Loop>, Vec<Option<usize>>) {
    let mut forest = Forest { loop_of: vec![None; predecessors.len()], loops: Vec::new(), outer: Vec::new() };
    for (header, latches) in headers(predecessors, dominators) {
        forest.add(header, latches, predecessors, dominators);
    }
    forest.finish()
}

/// Returns the headers with their latches, inner loops before outer loops.
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
    // The outer header dominates the inner one, so the inner one has the greater number.
    headers.sort_by_key(|(header, _)| std::cmp::Reverse(dominators.preorder(*header)));
    headers
}

struct Forest {
    loop_of: Vec<Option<usize>>,
    loops: Vec<Loop>,
    /// For each loop, an enclosing loop or itself. Paths to the outermost loop are compressed on use.
    outer: Vec<usize>,
}

impl Forest {
    fn outermost(&mut self, mut index: usize) -> usize {
        while self.outer[index] != index {
            self.outer[index] = self.outer[self.outer[index]];
            index = self.outer[index];
        }
        index
    }

    /// Adds a loop: all blocks that reach a latch without passing the header. Known inner loops are entered
    /// at their headers only, so each block and each loop is visited once.
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

    fn finish(mut self) -> (Vec<Loop>, Vec<Option<usize>>) {
        // Enclosing loops were found later.
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
