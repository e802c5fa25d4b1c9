//! Text before and after the functions of each module.

pub(super) const KERNEL: &str = "
    use warptrace::device::{DisjointSlice, thread};

    #[kernel]
    pub fn run(out: DisjointSlice<u32>, number: u32) {
        #![allow(unused)]
        let Some((index, value)) = out.own(thread::index()) else { return };
        *value = dispatch(number, index as u32);
    }
";

pub(super) const PRELUDE: &str = "
    #[derive(Clone, Copy)]
    pub struct Pair { pub a: u32, pub b: u32 }

    const fn pair(a: u32, b: u32) -> Pair { Pair { a, b } }

    const fn size() -> usize { if true { 3 } else { 2 } }
    fn with<const N: usize>(x: u32) -> u32 { x ^ N as u32 }
";
