//! MST: a minimum spanning forest by Borůvka's rounds over a shrinking list of edges.
//!
//! `mst_init` lists the edges. Each round launches `mst_lightest` and `mst_merge`, until no edge joins two
//! trees. Edges are ordered by weight and then by number, so the forest equals
//! [`kruskal`](crate::check::mst::kruskal)'s. The paths of the threads depend on their order.

mod check;

use std::time::Duration;

use warptrace_device::Global;
use warptrace_host::{Buffer, Launcher};
use warptrace_kernels::mst::{Edge, mst_init, mst_lightest, mst_merge};

pub use self::check::check;
use crate::grid::Grid;
use crate::inputs::Graph;
use crate::run::ProgramRun;
use crate::{ProgramInfo, WorkloadError};

/// The program's kernels and trace points.
pub const PROGRAM: ProgramInfo = ProgramInfo {
    name: "mst",
    modules: &[warptrace_kernels::mst::MODULE],
    automatic: &[warptrace_kernels::mst::automatic::MODULE],
};

/// Each round at least halves the number of trees with outgoing edges, which is under 2^32.
const MAX_ROUNDS: u32 = 32;

/// Options of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MstOptions {
    /// Grid of all launches. `None`: a grid that fills the device, but is no larger than the list of edges.
    pub grid: Option<Grid>,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct MstOutcome {
    /// Arcs of the forest, ascending: one per edge, which leaves the edge's lower node.
    pub arcs: Vec<u32>,
    /// Sum of the edges' weights.
    pub weight: u64,
    /// Number of rounds that merged trees.
    pub rounds: u32,
    /// Total kernel time.
    pub kernel: Duration,
    /// Number of launches: one `mst_init`, two per round, and a final `mst_lightest` if the graph has edges.
    pub launches: u32,
}

/// Finds the minimum spanning forest. Edges of an unweighted graph weigh 1. Self-loops and all but the
/// lightest of repeated edges are ignored.
///
/// # Errors
/// [`WorkloadError::Input`] if the graph is not symmetric, or if nodes or edges plus the grid's threads
/// exceed 2^32 - 1. [`WorkloadError::NoProgress`] if rounds do not finish. Also if the device or recording
/// fails.
pub fn run(
    launcher: &mut dyn Launcher,
    graph: &Graph,
    options: &MstOptions,
) -> Result<MstOutcome, WorkloadError> {
    let mut run = ProgramRun::new(launcher);
    check_input(graph, options.grid)?;
    let lists = Lists::new(&mut run, graph)?;
    let mut edges = lists.list_edges(&mut run, graph, options)?;
    let (mut from, mut to) = (lists.edges[0].global(), lists.edges[1].global());
    let (mut lightest, mut next) = (lists.lightest[0].global(), lists.lightest[1].global());
    let mut rounds = 0;
    while edges > 0 {
        if rounds == MAX_ROUNDS {
            return Err(WorkloadError::NoProgress { program: PROGRAM.name, launches: run.launches });
        }
        edges = lists.keep(&mut run, options, (from, to), edges, lightest)?;
        if edges == 0 {
            break;
        }
        let parents = lists.parents.global();
        let call = mst_merge(to, edges, parents, lightest, next, lists.chosen.global());
        let shape = grid(&mut run, options, edges).communicating();
        // SAFETY: `keep` wrote the first `edges` edges of the list and the lightest edge of each tree; ends
        // of edges are nodes.
        unsafe { run.launch(&call, &shape) }?;
        (from, to) = (to, from);
        (lightest, next) = (next, lightest);
        rounds += 1;
    }
    let chosen = lists.chosen.download(run.device())?;
    lists.free(&mut run)?;
    let arcs: Vec<u32> = (0..graph.arcs()).filter(|&arc| chosen[arc as usize] != 0).collect();
    let weight = arcs.iter().map(|&arc| u64::from(graph.weight(arc as usize))).sum();
    Ok(MstOutcome { arcs, weight, rounds, kernel: run.kernel, launches: run.launches })
}

fn check_input(graph: &Graph, grid: Option<Grid>) -> Result<(), WorkloadError> {
    let threads = grid.map_or(Grid::MAX_THREADS, |grid| u64::from(grid.blocks()) * u64::from(grid.threads()));
    // An undirected edge has two arcs.
    let items = u64::from(graph.nodes()).max(u64::from(graph.arcs()) / 2);
    let problem = if !graph.is_symmetric() {
        "an arc has no twin of the same weight; load it with twins added"
    } else if items + threads > u64::from(u32::MAX) {
        "its nodes or edges and the grid's threads are more than 2^32 - 1; use a smaller grid"
    } else {
        return Ok(());
    };
    Err(WorkloadError::Input { program: PROGRAM.name, problem: problem.to_owned() })
}

fn grid(run: &mut ProgramRun<'_>, options: &MstOptions, items: u32) -> Grid {
    options.grid.unwrap_or_else(|| Grid::filling(run.device(), u64::from(items)))
}

struct Lists {
    offsets: Buffer<u32>,
    neighbours: Buffer<u32>,
    weights: Buffer<u32>,
    /// Parent of each node in its tree; a root is its own parent.
    parents: Buffer<u32>,
    /// Edges of this round and the next.
    edges: [Buffer<Edge>; 2],
    /// Length of the list that a kernel writes.
    length: Buffer<u32>,
    /// Lightest edge of each tree, in this round and the next.
    lightest: [Buffer<u64>; 2],
    chosen: Buffer<u8>,
}

impl Lists {
    fn new(run: &mut ProgramRun<'_>, graph: &Graph) -> Result<Self, WorkloadError> {
        let nodes = graph.nodes() as usize;
        let room = ((graph.arcs() - graph.self_loops()) / 2) as usize;
        let device = run.device();
        Ok(Self {
            offsets: Buffer::upload(device, graph.offsets())?,
            neighbours: Buffer::upload(device, graph.neighbours())?,
            weights: match graph.weights() {
                Some(weights) => Buffer::upload(device, weights)?,
                None => Buffer::upload(device, &vec![1; graph.arcs() as usize])?,
            },
            parents: Buffer::filled(device, nodes, 0)?,
            edges: [Buffer::filled(device, room, 0)?, Buffer::filled(device, room, 0)?],
            length: Buffer::filled(device, 1, 0)?,
            // All bits set means `NO_EDGE`.
            lightest: [Buffer::filled(device, nodes, 0xff)?, Buffer::filled(device, nodes, 0xff)?],
            chosen: Buffer::filled(device, graph.arcs() as usize, 0)?,
        })
    }

    /// Writes the edges to the first list and returns their number.
    fn list_edges(
        &self,
        run: &mut ProgramRun<'_>,
        graph: &Graph,
        options: &MstOptions,
    ) -> Result<u32, WorkloadError> {
        let call = mst_init(
            self.offsets.global(),
            self.neighbours.global(),
            self.weights.global(),
            self.parents.global(),
            self.edges[0].global(),
            self.length.global(),
        );
        // Blocks share only the order of the list.
        let shape = grid(run, options, graph.nodes()).independent();
        // SAFETY: the arrays have the lengths that the kernel requires; the list has room for half of all
        // arcs that are not self-loops; `Graph` checked the rows.
        unsafe { run.launch(&call, &shape) }?;
        self.written(run)
    }

    /// Keeps the edges between trees, finds each tree's lightest edge, and returns the number of edges kept.
    fn keep(
        &self,
        run: &mut ProgramRun<'_>,
        options: &MstOptions,
        (from, to): (Global<Edge>, Global<Edge>),
        count: u32,
        lightest: Global<u64>,
    ) -> Result<u32, WorkloadError> {
        self.length.fill(run.device(), 0)?;
        let call = mst_lightest(from, count, self.parents.global(), lightest, to, self.length.global());
        let shape = grid(run, options, count).communicating();
        // SAFETY: `from` has `count` edges whose ends are nodes, and `to` has room for as many.
        unsafe { run.launch(&call, &shape) }?;
        self.written(run)
    }

    fn written(&self, run: &mut ProgramRun<'_>) -> Result<u32, WorkloadError> {
        let length = self.length.download(run.device())?[0];
        if length as usize > self.edges[0].len() {
            return Err(WorkloadError::NoProgress { program: PROGRAM.name, launches: run.launches });
        }
        Ok(length)
    }

    fn free(self, run: &mut ProgramRun<'_>) -> Result<(), WorkloadError> {
        let device = run.device();
        self.offsets.free(device)?;
        self.neighbours.free(device)?;
        self.weights.free(device)?;
        self.parents.free(device)?;
        self.length.free(device)?;
        self.chosen.free(device)?;
        for list in self.edges {
            list.free(device)?;
        }
        for table in self.lightest {
            table.free(device)?;
        }
        Ok(())
    }
}
