//! Edges of a list of triangles, with the triangles that use them.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EdgeUse {
    pub(crate) triangle: u32,
    /// The edge joins corners `slot` and `slot + 1` (modulo 3) of the triangle.
    pub(crate) slot: u8,
    /// Whether the triangle traverses the edge from its lower to its higher point.
    pub(crate) ascending: bool,
}

/// Calls `visit` for each edge, in ascending order, with its points (lower first) and all its uses, in linear
/// time except for sorting the edges at each point. Panics if a triangle names a point outside `0..points`.
pub(crate) fn for_each_edge(
    points: usize,
    triangles: &[[u32; 3]],
    mut visit: impl FnMut([u32; 2], &[EdgeUse]),
) {
    // Buckets by lower point. The stable sort by higher point keeps the order of the triangles.
    let mut starts = vec![0usize; points + 1];
    for (low, _, _) in half_edges(triangles) {
        starts[low as usize + 1] += 1;
    }
    for point in 0..points {
        starts[point + 1] += starts[point];
    }
    let mut next = starts.clone();
    let mut placed = vec![(0u32, EdgeUse::default()); triangles.len() * 3];
    for (low, high, edge_use) in half_edges(triangles) {
        placed[next[low as usize]] = (high, edge_use);
        next[low as usize] += 1;
    }
    let mut uses = Vec::new();
    for low in 0..points {
        let bucket = &mut placed[starts[low]..starts[low + 1]];
        bucket.sort_by_key(|(high, _)| *high);
        for group in bucket.chunk_by(|a, b| a.0 == b.0) {
            uses.clear();
            uses.extend(group.iter().map(|(_, edge_use)| *edge_use));
            visit([low as u32, group[0].0], &uses);
        }
    }
}

fn half_edges(triangles: &[[u32; 3]]) -> impl Iterator<Item = (u32, u32, EdgeUse)> + '_ {
    triangles.iter().enumerate().flat_map(|(triangle, corners)| {
        (0..3u8).map(move |slot| {
            let (from, to) = (corners[slot as usize], corners[(slot as usize + 1) % 3]);
            let edge_use = EdgeUse { triangle: triangle as u32, slot, ascending: from < to };
            (from.min(to), from.max(to), edge_use)
        })
    })
}
