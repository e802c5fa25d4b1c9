//! Breadth-first search with a worklist: the vertices that one round finds are the work of the next.

#[warptrace::kernels]
pub mod search {
    use warptrace::device::{AtomicSlice, thread};

    /// The distance of a vertex that was not found yet.
    pub const UNKNOWN: u32 = u32::MAX;

    /// Works on the items `first..end` of the queue, vertices of one distance: gives each neighbour that no
    /// vertex has found yet its distance, and appends it to the queue. `tail` is where the queue ends.
    ///
    /// The edges are compressed: vertex `v` has the neighbours `targets[offsets[v]..offsets[v + 1]]`.
    #[kernel]
    pub fn expand(
        offsets: &[u32],
        targets: &[u32],
        queue: AtomicSlice<u32>,
        tail: AtomicSlice<u32>,
        distances: AtomicSlice<u32>,
        first: u32,
        end: u32,
    ) {
        let item = u64::from(first) + thread::index().get();
        if item >= u64::from(end) {
            return;
        }
        let vertex = queue.load(item as usize) as usize;
        let distance = distances.load(vertex) + 1;
        for edge in offsets[vertex]..offsets[vertex + 1] {
            let neighbour = targets[edge as usize];
            // Of all threads that come to it, one finds it.
            if distances.compare_exchange(neighbour as usize, UNKNOWN, distance).is_ok() {
                let slot = tail.fetch_add(0, 1);
                queue.store(slot as usize, neighbour);
            }
        }
        trace!("many neighbours", if offsets[vertex + 1] - offsets[vertex] > 32);
    }
}
