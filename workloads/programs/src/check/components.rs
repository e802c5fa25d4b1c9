//! Connected components.

use crate::inputs::Graph;

/// Disjoint sets of nodes, with union by size and path halving (Tarjan and van Leeuwen, "Worst-case Analysis
/// of Set Union Algorithms", 1984).
#[derive(Clone, Debug)]
pub struct DisjointSets {
    parents: Vec<u32>,
    sizes: Vec<u32>,
    sets: u32,
}

impl DisjointSets {
    /// Creates one set per node.
    pub fn new(nodes: u32) -> Self {
        Self { parents: (0..nodes).collect(), sizes: vec![1; nodes as usize], sets: nodes }
    }

    /// Number of sets.
    pub fn sets(&self) -> u32 {
        self.sets
    }

    /// Returns the representative of a node's set. Panics if `node` is out of range.
    pub fn find(&mut self, mut node: u32) -> u32 {
        while self.parents[node as usize] != node {
            let grandparent = self.parents[self.parents[node as usize] as usize];
            self.parents[node as usize] = grandparent;
            node = grandparent;
        }
        node
    }

    /// Joins the sets of two nodes. Returns true if they were different. Panics if a node is out of range.
    pub fn join(&mut self, u: u32, v: u32) -> bool {
        let (mut u, mut v) = (self.find(u), self.find(v));
        if u == v {
            return false;
        }
        if self.sizes[u as usize] < self.sizes[v as usize] {
            std::mem::swap(&mut u, &mut v);
        }
        self.parents[v as usize] = u;
        self.sizes[u as usize] += self.sizes[v as usize];
        self.sets -= 1;
        true
    }
}

/// Counts connected components. Arcs count in both directions.
pub fn components(graph: &Graph) -> u32 {
    let mut sets = DisjointSets::new(graph.nodes());
    for (_, u, v, _) in graph.iter_arcs() {
        sets.join(u, v);
    }
    sets.sets()
}
