//! Breadth-first search with a worklist: the vertices found in one round are the work of the next round.

#[warptrace::kernels]
pub mod search {
    use warptrace::device::{AtomicSlice, thread};

    /// Distance of a vertex that was not found yet.
    pub const UNKNOWN: u32 = u32::MAX;

    /// Processes the entries `first..end` of the queue, vertices of equal distance. Sets the distance of each
    /// neighbour that was not found yet, and appends it to the queue. `tail` is the end of the queue.
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
            // Of all threads that reach the neighbour, exactly one succeeds.
            if distances.compare_exchange(neighbour as usize, UNKNOWN, distance).is_ok() {
                let slot = tail.fetch_add(0, 1);
                queue.store(slot as usize, neighbour);
            }
        }
        trace!("many neighbours", if offsets[vertex + 1] - offsets[vertex] > 32);
    }
}
