//! A graph in compressed sparse rows.

use thiserror::Error;

/// A directed graph in compressed sparse rows, possibly with weights. An undirected edge is two arcs.
///
/// Invariants, checked by [`Graph::from_csr`]:
/// * There is at least one node. `offsets` has one more entry than nodes, starts at 0, never decreases and
///   ends at the number of arcs.
/// * Every neighbour is a node.
/// * The arcs of a node are sorted by neighbour, and by weight among equal neighbours.
/// * A weighted graph has one weight per arc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    offsets: Vec<u32>,
    neighbours: Vec<u32>,
    weights: Option<Vec<u32>>,
    symmetric: bool,
    self_loops: u32,
    duplicates: u32,
}

/// Reason why arrays are not a [`Graph`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// There are no nodes.
    #[error("the graph has no nodes; a graph needs at least one")]
    Empty,
    /// There are more nodes than 32-bit ids can number.
    #[error("the graph has {nodes} nodes; at most {limit} are possible")]
    TooManyNodes {
        /// Number of nodes.
        nodes: u64,
        /// Largest possible number.
        limit: u64,
    },
    /// There are more arcs than a 32-bit offset can count.
    #[error("the graph has {arcs} arcs; at most {limit} are possible")]
    TooManyArcs {
        /// Number of arcs.
        arcs: u64,
        /// Largest possible number.
        limit: u64,
    },
    /// An offset is wrong for compressed sparse rows.
    #[error("offset {index} is {found}; expected {expected}")]
    Offset {
        /// Position in `offsets`.
        index: usize,
        /// Its value.
        found: u32,
        /// Expected value.
        expected: String,
    },
    /// An arc leads to a node that does not exist.
    #[error("arc {arc} of node {node} leads to node {neighbour}, but the graph has {nodes} nodes (0 to {})", nodes - 1)]
    NeighbourOutOfRange {
        /// Source node of the arc.
        node: u32,
        /// Position in `neighbours`.
        arc: usize,
        /// The neighbour.
        neighbour: u32,
        /// Nodes of the graph.
        nodes: u32,
    },
    /// A list of arcs names a source that does not exist.
    #[error("an arc leaves node {node}, but the graph has {nodes} nodes (0 to {})", nodes - 1)]
    SourceOutOfRange {
        /// The source.
        node: u32,
        /// Nodes of the graph.
        nodes: u32,
    },
    /// The arcs of a node are not sorted.
    #[error(
        "arc {arc} of node {node} is smaller than the arc before it; sort each row by neighbour, then weight"
    )]
    Unsorted {
        /// The node whose row is not sorted.
        node: u32,
        /// Position in `neighbours` of the arc that is smaller than its predecessor.
        arc: usize,
    },
    /// There is not one weight per arc.
    #[error("{found} weights for {expected} arcs; give one weight an arc")]
    WeightCount {
        /// Number of weights.
        found: usize,
        /// Number of arcs.
        expected: usize,
    },
}

impl Graph {
    /// Maximum number of nodes: `u32::MAX` stays free as a marker.
    pub const MAX_NODES: u64 = u32::MAX as u64 - 1;
    /// Maximum number of arcs.
    pub const MAX_ARCS: u64 = u32::MAX as u64;

    /// Creates a graph from its arrays, in linear time. Returns the first violated invariant as the error.
    pub fn from_csr(
        offsets: Vec<u32>,
        neighbours: Vec<u32>,
        weights: Option<Vec<u32>>,
    ) -> Result<Self, GraphError> {
        let nodes = node_count(&offsets, neighbours.len())?;
        if let Some(weights) = &weights
            && weights.len() != neighbours.len()
        {
            return Err(GraphError::WeightCount { found: weights.len(), expected: neighbours.len() });
        }
        let mut graph = Self { offsets, neighbours, weights, symmetric: false, self_loops: 0, duplicates: 0 };
        graph.check_rows(nodes)?;
        graph.symmetric = graph.find_symmetry();
        Ok(graph)
    }

    /// Number of nodes, at least 1.
    pub fn nodes(&self) -> u32 {
        u32::try_from(self.offsets.len() - 1).expect("the constructor bounds the nodes")
    }

    /// Number of arcs; an undirected edge has two.
    pub fn arcs(&self) -> u32 {
        u32::try_from(self.neighbours.len()).expect("the constructor bounds the arcs")
    }

    /// Start of each node's arcs in [`neighbours`](Self::neighbours), with a final end.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// Target of each arc.
    pub fn neighbours(&self) -> &[u32] {
        &self.neighbours
    }

    /// Weight of each arc, if the graph is weighted.
    pub fn weights(&self) -> Option<&[u32]> {
        self.weights.as_deref()
    }

    /// Returns the positions of a node's arcs in [`neighbours`](Self::neighbours). Panics if there is no
    /// `node`.
    pub fn arcs_of(&self, node: u32) -> std::ops::Range<usize> {
        self.offsets[node as usize] as usize..self.offsets[node as usize + 1] as usize
    }

    /// Returns the targets of a node's arcs, ascending. Panics if `node` is out of range.
    pub fn neighbours_of(&self, node: u32) -> &[u32] {
        &self.neighbours[self.arcs_of(node)]
    }

    /// Returns the number of arcs that leave a node. Panics if `node` is out of range.
    pub fn degree(&self, node: u32) -> u32 {
        self.offsets[node as usize + 1] - self.offsets[node as usize]
    }

    /// The largest degree.
    pub fn max_degree(&self) -> u32 {
        self.offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// Returns true if each arc has a twin in the other direction with the same multiplicity and weight.
    pub fn is_symmetric(&self) -> bool {
        self.symmetric
    }

    /// Number of arcs from a node to itself.
    pub fn self_loops(&self) -> u32 {
        self.self_loops
    }

    /// Number of arcs with the same source and target as the previous arc.
    pub fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Returns true if the graph has no self-loops and no duplicates.
    pub fn is_simple(&self) -> bool {
        self.self_loops == 0 && self.duplicates == 0
    }

    /// Returns the source of each arc: the inverse of [`offsets`](Self::offsets).
    pub fn sources(&self) -> Vec<u32> {
        let mut sources = Vec::with_capacity(self.neighbours.len());
        for node in 0..self.nodes() {
            sources.resize(self.offsets[node as usize + 1] as usize, node);
        }
        sources
    }

    /// Iterates over the arcs in order, as (position, source, target, weight); see [`weight`](Self::weight).
    pub fn iter_arcs(&self) -> impl Iterator<Item = (u32, u32, u32, u32)> + '_ {
        (0..self.nodes()).flat_map(move |node| {
            self.arcs_of(node).map(move |arc| (arc as u32, node, self.neighbours[arc], self.weight(arc)))
        })
    }

    /// Returns the weight of an arc; 1 in an unweighted graph. Panics if `arc` is out of range of the
    /// weights.
    pub fn weight(&self, arc: usize) -> u32 {
        self.weights.as_ref().map_or(1, |weights| weights[arc])
    }

    /// Returns the graph with other weights, or without. Fails with [`GraphError::WeightCount`], or with
    /// [`GraphError::Unsorted`] if the new weights put duplicate arcs out of order.
    pub fn with_weights(self, weights: Option<Vec<u32>>) -> Result<Self, GraphError> {
        Self::from_csr(self.offsets, self.neighbours, weights)
    }

    fn check_rows(&mut self, nodes: u32) -> Result<(), GraphError> {
        for node in 0..nodes {
            let mut before = None;
            for arc in self.arcs_of(node) {
                let neighbour = self.neighbours[arc];
                if neighbour >= nodes {
                    return Err(GraphError::NeighbourOutOfRange { node, arc, neighbour, nodes });
                }
                let key = (neighbour, self.weight(arc));
                if before.is_some_and(|before| before > key) {
                    return Err(GraphError::Unsorted { node, arc });
                }
                self.duplicates += u32::from(before.is_some_and(|(previous, _)| previous == neighbour));
                self.self_loops += u32::from(neighbour == node);
                before = Some(key);
            }
        }
        Ok(())
    }

    /// Compares the graph with its transpose without building it. Arcs in order reach each target's row with
    /// ascending sources, so the n-th arc into a node must mirror the n-th arc out of it.
    fn find_symmetry(&self) -> bool {
        let mut next: Vec<u32> = self.offsets[..self.offsets.len() - 1].to_vec();
        self.iter_arcs().all(|(_, source, target, weight)| {
            let twin = next[target as usize];
            next[target as usize] += 1;
            twin < self.offsets[target as usize + 1]
                && self.neighbours[twin as usize] == source
                && self.weight(twin as usize) == weight
        })
    }
}

/// Checks `offsets` against the number of arcs and returns the number of nodes.
fn node_count(offsets: &[u32], arcs: usize) -> Result<u32, GraphError> {
    if arcs as u64 > Graph::MAX_ARCS {
        return Err(GraphError::TooManyArcs { arcs: arcs as u64, limit: Graph::MAX_ARCS });
    }
    let nodes = offsets.len().saturating_sub(1);
    if nodes as u64 > Graph::MAX_NODES {
        return Err(GraphError::TooManyNodes { nodes: nodes as u64, limit: Graph::MAX_NODES });
    }
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(GraphError::Empty);
    };
    if nodes == 0 {
        return Err(GraphError::Empty);
    }
    let wrong =
        |index: usize, expected: String| GraphError::Offset { index, found: offsets[index], expected };
    if first != 0 {
        return Err(wrong(0, "0".to_owned()));
    }
    if let Some(index) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(wrong(index + 1, format!("at least {}, the offset before it", offsets[index])));
    }
    if last as usize != arcs {
        return Err(wrong(nodes, format!("{arcs}, the number of arcs")));
    }
    Ok(nodes as u32)
}
