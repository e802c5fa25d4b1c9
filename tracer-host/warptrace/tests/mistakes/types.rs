//! Type errors in a kernel and in its calls.
#![allow(deprecated, reason = "these are not compiled for a GPU")]

#[warptrace::kernels]
mod arguments {
    #[kernel]
    pub fn size(length: usize) {
        let _ = length;
    }
}

#[warptrace::kernels]
mod plain {
    #[derive(Clone, Copy)]
    pub struct Edge {
        pub from: u32,
        pub to: u32,
    }

    #[kernel]
    pub fn first(edges: &[Edge]) {
        let _ = edges[0].from;
    }
}

#[warptrace::kernels]
mod sums {
    use warptrace::device::{DisjointSlice, simt, thread};

    #[kernel]
    pub fn add(values: &[f32], out: DisjointSlice<f32>) {
        let Some((index, sum)) = out.own(thread::index()) else { return };
        *sum = values[index];
    }

    #[kernel]
    pub fn neighbour(out: DisjointSlice<u32>) {
        out[1] = 7;
    }

    #[kernel]
    pub fn barrier() {
        simt::sync_threads();
    }
}

fn main() -> Result<(), warptrace::Error> {
    let device = warptrace::Device::simulator();
    let out = device.zeros::<f32>(4)?;
    let values = vec![1.0f32; 4];
    let _ = sums::add(&values, &out);
    let doubles = device.upload(&[1.0f64; 4])?;
    let _ = sums::add(&doubles, &out);
    Ok(())
}
