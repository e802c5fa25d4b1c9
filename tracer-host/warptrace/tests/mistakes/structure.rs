//! Errors that the attribute reports.

mod alone {
    #[kernel]
    pub fn no_attribute_before_the_module(x: u32) {
        let _ = x;
    }
}

mod imported {
    use warptrace::kernel;

    #[kernel]
    pub fn no_attribute_before_the_module(x: u32) {
        let _ = x;
    }
}

#[warptrace::kernels]
mod shapes {
    use warptrace::device::DisjointSlice;

    #[kernel]
    pub fn returns(values: &[u32]) -> u32 {
        values[0]
    }

    #[kernel]
    pub fn mutable(values: &mut [u32]) {
        values[0] = 1;
    }

    #[kernel]
    pub fn generic<T>(out: DisjointSlice<T>) {}

    struct Walk;
    impl Walk {
        #[kernel]
        pub fn method(out: DisjointSlice<u32>) {}
    }

    #[kernel]
    pub fn closure(x: u32) {
        let inside = |y: u32| {
            trace!("inside");
            y
        };
        inside(x);
    }
}

fn main() {}
