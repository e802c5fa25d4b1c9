//! How much a page shows, so that it stays small.

use serde::Serialize;

/// Most bytes of a page.
pub const MAX_BYTES: usize = 2_000_000;

/// Declares the limits, each with its number on a page that is small enough.
macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $full:expr,)*) => {
        /// Most rows of each kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub(crate) struct Limits {
            $($(#[$doc])* pub(crate) $name: usize,)*
        }

        impl Limits {
            /// What a page shows if it is small enough.
            pub(crate) const FULL: Self = Self { $($name: $full,)* };

            /// Returns a quarter of each.
            fn quarter(self) -> Self {
                Self { $($name: quarter(self.$name),)* }
            }
        }
    };
}

limits! {
    /// Lines with figures, hottest first.
    lines: 400,
    /// Lines of source, with context.
    source_lines: 4_000,
    /// Heads of loops.
    loops: 40,
    /// Groups of warps with the same path.
    paths: 12,
    /// Kernels, and launches of a table.
    kernels: 20,
    /// Points of the curve of work.
    curve: 300,
    /// Runs of each warp that is drawn.
    runs: 3_000,
    /// Runs of all warps that can be drawn, but for those that are drawn first.
    all_runs: 400_000,
    /// Warps that can be drawn.
    strips: 16_384,
    /// Launches with a timeline.
    timelines: 8,
    /// Warps of a timeline.
    rows: 128,
    /// Blocks of a launch that are drawn.
    blocks: 2_048,
    /// Stretches of columns of timelines after which there are no more launches.
    columns: 65_536,
    /// Edges, those of most lanes first; parts of the program.
    edges: 400,
    /// Locations of the graph.
    nodes: 120,
    /// Locations and warps that changed.
    changes: 20,
    /// Characters of a name, a path or a line of source.
    text: 240,
}

fn quarter(number: usize) -> usize {
    (number / 4).max(3)
}

/// Runs below which pages become smaller in all their parts.
const FEW_RUNS: usize = 24_000;

impl Limits {
    /// The next smaller page; `None` if this one is the smallest.
    pub(crate) fn smaller(self) -> Option<Self> {
        // Warps that can be drawn take the most room, and are missed the least.
        if self.all_runs > FEW_RUNS {
            return Some(Self { all_runs: quarter(self.all_runs), strips: quarter(self.strips), ..self });
        }
        let smaller = Self { text: quarter(self.text).max(40), ..self.quarter() };
        (smaller != self).then_some(smaller)
    }
}
