//! How much a page shows, so that it stays small.

use serde::Serialize;

/// Most bytes of a page.
pub const MAX_BYTES: usize = 2_000_000;

/// Most rows of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Limits {
    /// Lines with figures, hottest first.
    pub(crate) lines: usize,
    /// Lines of source, with context.
    pub(crate) source_lines: usize,
    /// Heads of loops.
    pub(crate) loops: usize,
    /// Groups of warps with the same path.
    pub(crate) paths: usize,
    /// Groups of unfinished warps.
    pub(crate) standing: usize,
    /// Points of the curve of work.
    pub(crate) curve: usize,
    /// Runs of each warp that is drawn.
    pub(crate) runs: usize,
    /// Runs of all warps that can be drawn, but for those that are drawn first.
    pub(crate) all_runs: usize,
    /// Warps that can be drawn.
    pub(crate) strips: usize,
    /// Launches with a timeline.
    pub(crate) timelines: usize,
    /// Warps of a timeline.
    pub(crate) rows: usize,
    /// Blocks of a launch that are drawn.
    pub(crate) blocks: usize,
    /// Stretches of columns of timelines after which there are no more launches.
    pub(crate) columns: usize,
    /// Edges, those of most lanes first; parts of the program.
    pub(crate) edges: usize,
    /// Locations of the graph.
    pub(crate) nodes: usize,
    /// Locations and warps that changed.
    pub(crate) changes: usize,
    /// Characters of a name, a path or a line of source.
    pub(crate) text: usize,
}

/// Runs below which pages become smaller in all their parts.
const FEW_RUNS: usize = 24_000;

impl Limits {
    /// What a page shows if it is small enough.
    pub(crate) const FULL: Self = Self {
        lines: 400,
        source_lines: 4_000,
        loops: 40,
        paths: 12,
        standing: 20,
        curve: 300,
        runs: 3_000,
        all_runs: 400_000,
        strips: 16_384,
        timelines: 8,
        rows: 128,
        blocks: 2_048,
        columns: 65_536,
        edges: 400,
        nodes: 120,
        changes: 20,
        text: 240,
    };

    /// The next smaller page; `None` if this one is the smallest.
    pub(crate) fn smaller(self) -> Option<Self> {
        let less = |number: usize| (number / 4).max(3);
        // Warps that can be drawn take the most room, and are missed the least.
        if self.all_runs > FEW_RUNS {
            return Some(Self { all_runs: less(self.all_runs), strips: less(self.strips), ..self });
        }
        let smaller = Self {
            lines: less(self.lines),
            source_lines: less(self.source_lines),
            loops: less(self.loops),
            paths: less(self.paths),
            standing: less(self.standing),
            curve: less(self.curve),
            runs: less(self.runs),
            all_runs: less(self.all_runs),
            strips: less(self.strips),
            timelines: less(self.timelines),
            rows: less(self.rows),
            blocks: less(self.blocks),
            columns: less(self.columns),
            edges: less(self.edges),
            nodes: less(self.nodes),
            changes: less(self.changes),
            text: less(self.text).max(40),
        };
        (smaller != self).then_some(smaller)
    }
}
