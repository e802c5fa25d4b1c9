//! Sparse matrix times vector. The rows are compressed: row `r` has the entries `offsets[r]..offsets[r + 1]`.

#[warptrace::kernels]
pub mod spmv {
    use warptrace::device::{DisjointSlice, thread};

    /// Computes `y = A x`, one thread a row.
    #[kernel]
    pub fn multiply(offsets: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: DisjointSlice<f32>) {
        let Some((row, out)) = y.own(thread::index()) else { return };
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        let mut sum = 0.0;
        for k in start..end {
            sum += values[k] * x[columns[k] as usize];
        }
        trace!("long row", if end - start > 64);
        *out = sum;
    }
}
