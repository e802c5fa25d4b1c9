//! The recording sequences, interpreted: random programs of each lane, in random order, with little memory.

use warptrace_ptx::interpret::Launch;

use self::case::Splicing;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A part of the cases, for the fast tier.
    Part,
    Full,
}

impl Extent {
    fn divided(self, full: u64, by: u64) -> u64 {
        if self == Self::Full { full } else { full.div_ceil(by) }
    }

    /// Returns the number of rounds, given the number in the full tier.
    pub(crate) fn rounds(self, full: u64) -> u64 {
        self.divided(full, 4)
    }

    /// Returns the minimum number of occurrences for a meaningful test, given the minimum in the full tier.
    pub(crate) fn least(self, full: u64) -> u64 {
        self.divided(full, 32)
    }

    /// Returns the distance between two interruptions of a lane.
    pub(crate) fn step(self) -> usize {
        if self == Self::Full { 1 } else { 11 }
    }

    /// Returns numbered splicings. A part has 4 of the 16, each option with both of its values.
    pub(crate) fn choose(self, all: impl Iterator<Item = Splicing>) -> impl Iterator<Item = (u64, Splicing)> {
        (0..).zip(all).filter(move |(number, _)| self == Self::Full || [1, 6, 11, 13].contains(number))
    }
}

pub(crate) fn launch(kernel: &str, grid: [u32; 3], block: [u32; 3], parameters: Vec<Vec<u8>>) -> Launch<'_> {
    let (clock, multiprocessors, max_steps) = (0, 1, 40_000_000);
    Launch { kernel, grid, block, dynamic_shared: 0, parameters, clock, multiprocessors, max_steps }
}

mod after;
mod case;
mod chosen;
mod data;
mod drainer;
mod foreign;
mod kernels;
mod logs;
mod memory;
mod model;
mod native;
mod program;
mod proven;
mod rings;
mod segments;
mod sequences;
mod spans;
mod streamed;
mod streams;
