//! MIS: a maximal independent set by fixed priorities, without rounds, in persistent blocks.
//!
//! `mis_init` ranks the nodes, `mis_find` decides them. Ranks are unique, so the set equals
//! [`reference()`]'s. A thread's number of passes, and so the trace, depends on the order of the threads.

mod check;
mod reference;

use std::time::Duration;

use warptrace_host::{Buffer, Launcher};
use warptrace_kernels::mis::{IN, mis_find, mis_init};

pub use self::check::check;
pub use self::reference::{priorities, reference};
use crate::grid::Grid;
use crate::inputs::Graph;
use crate::run::ProgramRun;
use crate::{ProgramInfo, WorkloadError};

/// The program's kernels and trace points.
pub const PROGRAM: ProgramInfo = ProgramInfo {
    name: "mis",
    modules: &[warptrace_kernels::mis::MODULE],
    automatic: &[warptrace_kernels::mis::automatic::MODULE],
};

/// Options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MisOptions {
    /// Grid of both kernels. `None`: a grid that fills the device.
    pub grid: Option<Grid>,
    /// Consecutive passes without a decision after which a thread leaves its nodes to another launch.
    /// Otherwise it could wait forever for a block that cannot start, because the grid is larger than the
    /// device holds.
    pub patience: u32,
}

impl Default for MisOptions {
    fn default() -> Self {
        Self { grid: None, patience: 1_000 }
    }
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct MisOutcome {
    /// Whether each node is in the set.
    pub in_set: Vec<bool>,
    /// Total kernel time.
    pub kernel: Duration,
    /// Number of launches: one of `mis_init`, one or more of `mis_find`.
    pub launches: u32,
}

/// Finds a maximal independent set.
///
/// # Errors
/// [`WorkloadError::Input`] if the graph is not symmetric, has self-loops (such a node can be neither in nor
/// out), or if its nodes plus the grid's threads exceed 2^32 - 1. [`WorkloadError::NoProgress`] if the
/// launches do not finish. Also if the device or the recording fails.
pub fn run(
    launcher: &mut dyn Launcher,
    graph: &Graph,
    options: &MisOptions,
) -> Result<MisOutcome, WorkloadError> {
    let mut run = ProgramRun::new(launcher);
    let nodes = graph.nodes();
    let grid = options.grid.unwrap_or_else(|| Grid::filling(run.device(), u64::from(nodes)));
    check_input(graph, grid)?;

    let offsets = Buffer::upload(run.device(), graph.offsets())?;
    let neighbours = Buffer::upload(run.device(), graph.neighbours())?;
    let status = Buffer::<u32>::filled(run.device(), nodes as usize, 0)?;
    let waiting = Buffer::<u32>::filled(run.device(), 1, 0)?;
    let init = mis_init(offsets.global(), status.global(), average_degree(graph));
    let find =
        mis_find(offsets.global(), neighbours.global(), status.global(), waiting.global(), options.patience);
    // SAFETY: the arrays have the lengths that the kernel requires and outlive the launch; `Graph` checked
    // the rows.
    unsafe { run.launch(&init, &grid.independent()) }?;
    loop {
        waiting.fill(run.device(), 0)?;
        // SAFETY: as for `mis_init`, which wrote all of `status`.
        unsafe { run.launch(&find, &grid.communicating()) }?;
        if waiting.download(run.device())?[0] == 0 {
            break;
        }
        // Every launch decides at least one node.
        if run.launches > nodes {
            return Err(WorkloadError::NoProgress { program: PROGRAM.name, launches: run.launches });
        }
    }
    let in_set = status.download(run.device())?.iter().map(|&status| status == IN).collect();
    let outcome = MisOutcome { in_set, kernel: run.kernel, launches: run.launches };
    offsets.free(run.device())?;
    neighbours.free(run.device())?;
    status.free(run.device())?;
    waiting.free(run.device())?;
    Ok(outcome)
}

fn check_input(graph: &Graph, grid: Grid) -> Result<(), WorkloadError> {
    let threads = u64::from(grid.blocks()) * u64::from(grid.threads());
    let problem = if !graph.is_symmetric() {
        "an arc has no twin; load it with twins added".to_owned()
    } else if graph.self_loops() > 0 {
        format!("{} nodes are their own neighbours; load it with self-loops dropped", graph.self_loops())
    } else if u64::from(graph.nodes()) + threads > u64::from(u32::MAX) {
        format!("{} nodes and {threads} threads are more than 2^32 - 1; use a smaller grid", graph.nodes())
    } else {
        return Ok(());
    };
    Err(WorkloadError::Input { program: PROGRAM.name, problem })
}

fn average_degree(graph: &Graph) -> f32 {
    (f64::from(graph.arcs()) / f64::from(graph.nodes())) as f32
}
