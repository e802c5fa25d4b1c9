//! Limits that keep the page small.

use serde::Serialize;

/// Maximum size of a page in bytes.
pub const MAX_BYTES: usize = 2_000_000;

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $full:expr,)*) => {
        /// Maximum number of rows of each kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub(crate) struct Limits {
            $($(#[$doc])* pub(crate) $name: usize,)*
        }

        impl Limits {
            pub(crate) const FULL: Self = Self { $($name: $full,)* };

            fn quarter(self) -> Self {
                Self { $($name: quarter(self.$name),)* }
            }
        }
    };
}

limits! {
    /// Lines with figures, hottest first.
    lines: 400,
    /// Lines of source, including context.
    source_lines: 4_000,
    loops: 40,
    /// Groups of warps with the same path.
    paths: 12,
    /// Kernels, and launches in a table.
    kernels: 20,
    /// Points of the work curve.
    curve: 300,
    /// Runs of each drawn warp.
    runs: 3_000,
    /// Runs of all warps that can be drawn. Runs of the titled warps are included even beyond this limit.
    all_runs: 400_000,
    /// Warps that can be drawn.
    strips: 16_384,
    timelines: 8,
    /// Warps in a timeline.
    rows: 128,
    /// Drawn blocks of a launch.
    blocks: 2_048,
    /// Column entries of timelines after which no further launches are added.
    columns: 65_536,
    /// Edges, most lanes first; also parts of the program.
    edges: 400,
    nodes: 120,
    /// Locations and warps that changed.
    changes: 20,
    /// Characters of a name, a path or a source line.
    text: 240,
}

fn quarter(number: usize) -> usize {
    (number / 4).max(3)
}

/// Number of runs at or below which all limits shrink.
const FEW_RUNS: usize = 24_000;

impl Limits {
    /// Returns limits for a smaller page, or `None` if these are the smallest.
    pub(crate) fn smaller(self) -> Option<Self> {
        // The warps that can be drawn take the most space and are needed least, so they shrink first.
        if self.all_runs > FEW_RUNS {
            return Some(Self { all_runs: quarter(self.all_runs), strips: quarter(self.strips), ..self });
        }
        let smaller = Self { text: quarter(self.text).max(40), ..self.quarter() };
        (smaller != self).then_some(smaller)
    }
}
