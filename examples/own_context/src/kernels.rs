//! A histogram.

#[warptrace::kernels]
pub mod histogram {
    use warptrace::device::{AtomicSlice, thread};

    /// Counts the values in bins: bin `b` counts the values that are `b` modulo the number of bins, except 0.
    /// Each thread takes every `threads`-th value.
    #[kernel]
    pub fn count(values: &[u32], bins: AtomicSlice<u32>, threads: u32) {
        let mut index = thread::index().get() as usize;
        while index < values.len() {
            let value = values[index];
            if value != 0 {
                bins.fetch_add(value as usize % bins.len(), 1);
            }
            index += threads as usize;
        }
    }
}
