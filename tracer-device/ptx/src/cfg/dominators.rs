//! Dominators by the simple variant of Lengauer and Tarjan, "A fast algorithm for finding dominators in a
//! flowgraph" (TOPLAS 1979): O(m log n) for any graph.

/// Marks an unreachable block or a missing vertex.
const NONE: usize = usize::MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dominators {
    /// Immediate dominator of each block, or [`NONE`].
    immediate: Vec<usize>,
    /// Number of each block in the tree's preorder, or [`NONE`] if it is unreachable.
    preorder: Vec<usize>,
    /// Number of blocks that each block dominates, itself included.
    size: Vec<usize>,
}

impl Dominators {
    /// Computes the dominators from vertex 0. `successor` returns the nth successor of a vertex, if any.
    pub(crate) fn new(
        predecessors: &[Vec<usize>],
        successor: impl Fn(usize, usize) -> Option<usize>,
    ) -> Self {
        let blocks = predecessors.len();
        let search = Search::new(blocks, successor);
        let dominator = search.dominators(predecessors);
        let count = search.order.len();
        // A dominator comes before the vertices it dominates, so one backward pass sums the sizes.
        let mut size = vec![1; count];
        for vertex in (1..count).rev() {
            size[dominator[vertex]] += size[vertex];
        }
        let mut preorder = vec![0; count];
        let mut next = vec![1; count];
        for vertex in 1..count {
            let parent = dominator[vertex];
            preorder[vertex] = next[parent];
            next[parent] += size[vertex];
            next[vertex] = preorder[vertex] + 1;
        }
        let mut tree =
            Self { immediate: vec![NONE; blocks], preorder: vec![NONE; blocks], size: vec![0; blocks] };
        for (vertex, block) in search.order.iter().copied().enumerate() {
            tree.preorder[block] = preorder[vertex];
            tree.size[block] = size[vertex];
            if vertex > 0 {
                tree.immediate[block] = search.order[dominator[vertex]];
            }
        }
        tree
    }

    pub(super) fn is_reachable(&self, block: usize) -> bool {
        self.preorder[block] != NONE
    }

    pub(crate) fn immediate(&self, block: usize) -> Option<usize> {
        Some(self.immediate[block]).filter(|dominator| *dominator != NONE)
    }

    /// Returns a reachable block's number in the tree's preorder, greater than its dominators' numbers.
    pub(super) fn preorder(&self, block: usize) -> Option<usize> {
        Some(self.preorder[block]).filter(|number| *number != NONE)
    }

    pub(super) fn dominates(&self, dominator: usize, block: usize) -> bool {
        match (self.preorder(dominator), self.preorder(block)) {
            (Some(first), Some(number)) => first <= number && number < first + self.size[dominator],
            _ => false,
        }
    }
}

/// A depth-first search from block 0. Its numbers are the algorithm's vertices.
struct Search {
    order: Vec<usize>,
    /// Vertex of each block, or [`NONE`].
    vertex: Vec<usize>,
    parent: Vec<usize>,
}

impl Search {
    fn new(blocks: usize, successor: impl Fn(usize, usize) -> Option<usize>) -> Self {
        let mut search = Self { order: vec![0], vertex: vec![NONE; blocks], parent: vec![0] };
        search.vertex[0] = 0;
        // Block, and the number of its edges followed.
        let mut path = vec![(0, 0)];
        while let Some((block, followed)) = path.last_mut() {
            let Some(to) = successor(*block, *followed) else {
                path.pop();
                continue;
            };
            *followed += 1;
            if search.vertex[to] == NONE {
                search.parent.push(search.vertex[*block]);
                search.vertex[to] = search.order.len();
                search.order.push(to);
                path.push((to, 0));
            }
        }
        search
    }

    /// Returns the immediate dominator of each vertex; 0 for vertex 0.
    fn dominators(&self, predecessors: &[Vec<usize>]) -> Vec<usize> {
        let count = self.order.len();
        let mut forest = Forest::new(count);
        let mut bucket: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut dominator = vec![0; count];
        for vertex in (1..count).rev() {
            for predecessor in &predecessors[self.order[vertex]] {
                let predecessor = self.vertex[*predecessor];
                if predecessor != NONE {
                    let best = forest.evaluate(predecessor);
                    forest.semi[vertex] = forest.semi[vertex].min(forest.semi[best]);
                }
            }
            bucket[forest.semi[vertex]].push(vertex);
            let parent = self.parent[vertex];
            forest.ancestor[vertex] = parent;
            for waiting in std::mem::take(&mut bucket[parent]) {
                let best = forest.evaluate(waiting);
                dominator[waiting] = if forest.semi[best] < forest.semi[waiting] { best } else { parent };
            }
        }
        for vertex in 1..count {
            if dominator[vertex] != forest.semi[vertex] {
                dominator[vertex] = dominator[dominator[vertex]];
            }
        }
        dominator
    }
}

/// The forest of the processed vertices, with path compression.
struct Forest {
    semi: Vec<usize>,
    ancestor: Vec<usize>,
    best: Vec<usize>,
    path: Vec<usize>,
}

impl Forest {
    fn new(count: usize) -> Self {
        Self {
            semi: (0..count).collect(),
            ancestor: vec![NONE; count],
            best: (0..count).collect(),
            path: Vec::new(),
        }
    }

    /// Returns the vertex with the least semidominator between `vertex` and its tree's root, root excluded.
    fn evaluate(&mut self, vertex: usize) -> usize {
        let mut at = vertex;
        while self.ancestor[at] != NONE && self.ancestor[self.ancestor[at]] != NONE {
            self.path.push(at);
            at = self.ancestor[at];
        }
        while let Some(vertex) = self.path.pop() {
            let above = self.ancestor[vertex];
            if self.semi[self.best[above]] < self.semi[self.best[vertex]] {
                self.best[vertex] = self.best[above];
            }
            self.ancestor[vertex] = self.ancestor[above];
        }
        self.best[vertex]
    }
}
