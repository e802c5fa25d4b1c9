//! Kernels that name values.
//!
//! `values.ptx` is the output of `warptrace_build::compile` for this file (rustc 1.96).

#[warptrace::kernels]
pub mod naming {
    use warptrace::device::{DisjointSlice, math, thread};

    /// Names a number of a generic type in an inlined function.
    fn half<T>(number: T) -> f64
    where
        T: warptrace::device::Value + Into<f64> + Copy,
    {
        trace!("number", number);
        number.into() / 2.0
    }

    /// Sums `data` parts, one of them infinite, and takes the root of a number that may be negative.
    #[kernel]
    pub fn weigh(data: &[u32], out: DisjointSlice<f32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        let (parts, mut sum) = (data[i], 0.0f32);
        for k in 0..parts {
            let part = 1.0 / (k as f32 - 3.0);
            trace!("part", part; "left", parts - k);
            sum += part;
        }
        if i % 3 == 1 {
            trace!("far", i as i64 - (1 << 40));
        } else {
            trace!("small", (i % 5) as i8 - 2);
        }
        let root = math::sqrt(sum);
        trace!("root", root);
        trace!("is even", i % 2 == 0; "place", i);
        *out = root + (half(parts) + half(sum)) as f32;
    }

    /// Scales numbers, and names a value that exists anyway.
    #[kernel]
    pub fn named(data: &[f32], by: f32, out: DisjointSlice<f32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        let scaled = data[i] * by;
        trace!("scaled", scaled);
        *out = if scaled > 4.0 { scaled } else { 4.0 - scaled };
    }

    /// The same without a name.
    #[kernel]
    pub fn unnamed(data: &[f32], by: f32, out: DisjointSlice<f32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        let scaled = data[i] * by;
        *out = if scaled > 4.0 { scaled } else { 4.0 - scaled };
    }
}
