//! The kernels, one for each order and tuple.
//!
//! Each is for a one-dimensional grid of any size and blocks of [`BLOCK`](super::BLOCK). `input` and `output`
//! have as many vectors; [`state_words`](super::state_words) says how long `states` is, which is 0, as is
//! `ticket`, one word.

use warptrace_device::Global;
use warptrace_macros::kernels;

use super::{Words4, scan_chunks};

#[kernels(device = warptrace_device, only_marked)]
mod entries {
    use super::*;

    /// Order 1, tuples of 1.
    #[kernel]
    pub fn scan_1_1(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<1, 1, 16>(input, output, states, ticket) };
    }

    /// Order 1, tuples of 2.
    #[kernel]
    pub fn scan_1_2(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<1, 2, 16>(input, output, states, ticket) };
    }

    /// Order 1, tuples of 3.
    #[kernel]
    pub fn scan_1_3(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<1, 3, 12>(input, output, states, ticket) };
    }

    /// Order 1, tuples of 4.
    #[kernel]
    pub fn scan_1_4(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<1, 4, 16>(input, output, states, ticket) };
    }

    /// Order 2, tuples of 1.
    #[kernel]
    pub fn scan_2_1(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<2, 1, 16>(input, output, states, ticket) };
    }

    /// Order 2, tuples of 2.
    #[kernel]
    pub fn scan_2_2(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<2, 2, 16>(input, output, states, ticket) };
    }

    /// Order 2, tuples of 3.
    #[kernel]
    pub fn scan_2_3(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<2, 3, 12>(input, output, states, ticket) };
    }

    /// Order 2, tuples of 4.
    #[kernel]
    pub fn scan_2_4(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<2, 4, 16>(input, output, states, ticket) };
    }

    /// Order 3, tuples of 1.
    #[kernel]
    pub fn scan_3_1(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<3, 1, 16>(input, output, states, ticket) };
    }

    /// Order 3, tuples of 2.
    #[kernel]
    pub fn scan_3_2(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<3, 2, 16>(input, output, states, ticket) };
    }

    /// Order 3, tuples of 3.
    #[kernel]
    pub fn scan_3_3(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<3, 3, 12>(input, output, states, ticket) };
    }

    /// Order 3, tuples of 4.
    #[kernel]
    pub fn scan_3_4(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<3, 4, 16>(input, output, states, ticket) };
    }

    /// Order 4, tuples of 1.
    #[kernel]
    pub fn scan_4_1(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<4, 1, 16>(input, output, states, ticket) };
    }

    /// Order 4, tuples of 2.
    #[kernel]
    pub fn scan_4_2(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<4, 2, 16>(input, output, states, ticket) };
    }

    /// Order 4, tuples of 3.
    #[kernel]
    pub fn scan_4_3(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<4, 3, 12>(input, output, states, ticket) };
    }

    /// Order 4, tuples of 4.
    #[kernel]
    pub fn scan_4_4(input: Global<Words4>, output: Global<Words4>, states: Global<u64>, ticket: Global<u32>) {
        // SAFETY: the arguments are as the module says.
        unsafe { scan_chunks::<4, 4, 16>(input, output, states, ticket) };
    }
}

pub use entries::*;
