//! Kernels in which two threads could access one element.
#![allow(deprecated, reason = "these are not compiled for a GPU")]

#[warptrace::kernels]
mod races {
    use warptrace::device::{DisjointSlice, thread};

    #[kernel]
    pub fn writes_what_is_read(values: &[u32]) {
        values[0] = 1;
    }

    #[kernel]
    pub fn owns_twice(out: DisjointSlice<u32>) {
        let first = out.own(thread::index());
        let second = out.own(thread::index());
        if let (Some((_, first)), Some((_, second))) = (first, second) {
            *first = *second;
        }
    }
}

fn main() {}
