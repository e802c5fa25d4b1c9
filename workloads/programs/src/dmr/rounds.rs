//! Host side of the refinement rounds.

use std::time::Duration;

use warptrace_device::KernelCall;
use warptrace_host::{Blocks, LaunchShape, Launcher};
use warptrace_kernels::dmr::{DmrRound, claim, commit, counter, emit, init, mark, scratch};

use super::arrays::Arrays;
use super::prepare::Records;
use super::{DmrError, DmrOptions, DmrOutcome, PROGRAM, RoundReport};
use crate::grid::Grid;
use crate::inputs::Mesh;

/// Factor by which cavity scratch grows, and the number of items shrinks, after a round without progress.
const ESCALATION: u32 = 8;

/// Refines `mesh`. The result depends on the number of threads, but not on the device or the order of the
/// threads. Fails if an option is out of range, the device or recording fails, or a limit is exceeded.
pub fn run(launcher: &mut dyn Launcher, mesh: &Mesh, options: &DmrOptions) -> Result<DmrOutcome, DmrError> {
    let bound = options.check()?;
    let device = launcher.device();
    let grid = options.grid.unwrap_or_else(|| Grid::filling(device, mesh.triangles().len() as u64));
    let arrays = Arrays::new(device, &Records::new(mesh), grid, options.room, options.cavity_bound)?;
    let mut refiner = Refiner {
        launcher,
        arrays,
        grid,
        cos_squared: bound.cos_squared(),
        floor_squared: options.floor_squared(mesh),
        items_limit: grid.blocks() * grid.threads(),
        bound: options.cavity_bound,
        rounds: Vec::new(),
        kernels: PROGRAM.kernels().map(|name| (name, 0, Duration::ZERO)).collect(),
    };
    match refiner.refine(options) {
        Ok(()) => refiner.finish(),
        Err(error) => {
            // Reports the first error, not an error of the cleanup.
            let _ = refiner.arrays.free(refiner.launcher.device());
            Err(error)
        }
    }
}

struct Refiner<'l> {
    launcher: &'l mut dyn Launcher,
    arrays: Arrays,
    grid: Grid,
    cos_squared: f64,
    floor_squared: f64,
    items_limit: u32,
    /// Largest cavity in the next round, in triangles.
    bound: u32,
    rounds: Vec<RoundReport>,
    kernels: Vec<(&'static str, u32, Duration)>,
}

impl Refiner<'_> {
    fn refine(&mut self, options: &DmrOptions) -> Result<(), DmrError> {
        self.find_bad()?;
        while self.arrays.waiting() > 0 {
            if self.rounds.len() as u64 >= u64::from(options.max_rounds) {
                let waiting = self.arrays.waiting();
                return Err(DmrError::Rounds { rounds: self.rounds.len() as u32, waiting });
            }
            let report = self.round()?;
            self.rounds.push(report);
            if report.winners + report.dropped + report.skipped > 0 {
                (self.items_limit, self.bound) =
                    (self.grid.blocks() * self.grid.threads(), options.cavity_bound);
            } else {
                self.escalate()?;
            }
        }
        Ok(())
    }

    /// Prepares the next round after one without progress: fewer items, with more scratch for each cavity.
    fn escalate(&mut self) -> Result<(), DmrError> {
        let triangles = self.arrays.triangles_used;
        if self.items_limit == 1 && self.bound >= triangles {
            let (round, waiting) = (self.rounds.len() as u32, self.arrays.waiting());
            return Err(DmrError::Stuck { round, waiting, bound: self.bound, triangles });
        }
        self.items_limit = (self.items_limit / ESCALATION).max(1);
        self.bound = self.bound.saturating_mul(ESCALATION).min(triangles.max(2));
        let words = u64::from(scratch::words(self.bound)) * u64::from(self.items_limit);
        Ok(self.arrays.reserve_scratch(self.launcher.device(), words)?)
    }

    fn numbers(&self, items: u32) -> DmrRound {
        DmrRound {
            cos_squared: self.cos_squared,
            floor_squared: self.floor_squared,
            head: self.arrays.head,
            tail: self.arrays.tail,
            items,
            bound: self.bound,
            // Rounds start at 1: keys of round 0 would include the initial value of the owners.
            round: self.rounds.len() as u32 + 1,
            points: self.arrays.points_used,
            triangles: self.arrays.triangles_used,
            unused: 0,
        }
    }

    fn launch(&mut self, call: &KernelCall, threads: u32) -> Result<(), DmrError> {
        let block = self.grid.threads();
        let grid = [threads.div_ceil(block).max(1), 1, 1];
        // Blocks share data only through atomics, whose order does not affect the decisions.
        let shape = LaunchShape::new(grid, [block, 1, 1], Blocks::Independent);
        // SAFETY: the arguments are the arrays of `self.arrays`, which are sized for this many threads and
        // hold a consistent mesh between launches.
        let time = unsafe { self.launcher.launch(call, &shape) }?;
        if let Some(entry) = self.kernels.iter_mut().find(|entry| entry.0 == call.name()) {
            entry.1 += 1;
            entry.2 += time.kernel;
        }
        Ok(())
    }

    fn find_bad(&mut self) -> Result<(), DmrError> {
        let (mesh, work) = (self.arrays.mesh(), self.arrays.work());
        let (threads, most) = (self.arrays.triangles_used, self.grid.blocks() * self.grid.threads());
        self.launch(&init::dmr_find_bad(mesh, work, self.numbers(0)), threads.min(most))?;
        let counters = self.arrays.take_counters(self.launcher.device())?;
        self.arrays.tail = counters[counter::EMITTED as usize];
        let hands = self.arrays.tail.div_ceil(most);
        self.launch(&init::dmr_enqueue(mesh, work, self.numbers(hands)), threads.min(most))
    }

    fn round(&mut self) -> Result<RoundReport, DmrError> {
        let waiting = self.arrays.waiting();
        let items = waiting.min(self.items_limit);
        self.arrays.reserve(self.launcher.device(), items)?;
        let (mesh, work, numbers) = (self.arrays.mesh(), self.arrays.work(), self.numbers(items));
        for call in [
            mark::dmr_mark(mesh, work, numbers),
            claim::dmr_check(mesh, work, numbers),
            claim::dmr_reclaim(mesh, work, numbers),
            claim::dmr_verify(mesh, work, numbers),
            commit::dmr_commit(mesh, work, numbers),
            emit::dmr_count(mesh, work, numbers),
            emit::dmr_emit(mesh, work, numbers),
        ] {
            self.launch(&call, items)?;
        }
        let counters = self.arrays.take_counters(self.launcher.device())?;
        let count = |which: u64| counters[which as usize];
        // Winners without room are the last ones, so the slots in use have no gap.
        let winners = count(counter::WINNERS) - count(counter::NO_ROOM);
        self.arrays.points_used += winners;
        self.arrays.triangles_used += 2 * winners;
        self.arrays.head = self.arrays.head.wrapping_add(items);
        self.arrays.tail = self.arrays.tail.wrapping_add(count(counter::EMITTED));
        Ok(RoundReport {
            waiting,
            items,
            winners,
            second_claim: count(counter::SECOND),
            splits: count(counter::SPLITS),
            dropped: count(counter::DROPPED),
            skipped: count(counter::SKIPPED),
            too_large: count(counter::TOO_LARGE),
        })
    }

    fn finish(self) -> Result<DmrOutcome, DmrError> {
        let reallocations = self.arrays.growths;
        let refined = self.arrays.finish(self.launcher.device())?;
        Ok(DmrOutcome {
            refined,
            rounds: self.rounds,
            launches: self.kernels.iter().map(|entry| entry.1).sum(),
            kernel: self.kernels.iter().map(|entry| entry.2).sum(),
            kernels: self.kernels,
            reallocations,
        })
    }
}
