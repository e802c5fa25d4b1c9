//! Fault: a kernel in which one thread traps, writes out of bounds or hangs.

use std::time::Duration;

use warptrace_format::file::DeviceKind;
use warptrace_host::{Buffer, LaunchShape, Launcher};
use warptrace_kernels::fault::{HANG, STRAY, TRAP};

use crate::run::ProgramRun;
use crate::{ProgramInfo, WorkloadError};

/// The program's kernel and trace points.
pub const PROGRAM: ProgramInfo =
    ProgramInfo { name: "fault", modules: &[warptrace_kernels::fault::MODULE], automatic: &[] };

/// Threads per block.
pub const BLOCK: u32 = 128;

/// Behaviour of the faulting thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Executes a trap.
    Trap,
    /// Writes out of bounds. GPUs only: the simulator does not guard its memory.
    Stray,
    /// Waits forever.
    Hang,
    /// Ends normally.
    Nothing,
}

impl Fault {
    fn number(self) -> u32 {
        match self {
            Self::Trap => TRAP,
            Self::Stray => STRAY,
            Self::Hang => HANG,
            Self::Nothing => u32::MAX,
        }
    }
}

/// Options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultOptions {
    /// Behaviour of the thread `culprit`.
    pub fault: Fault,
    /// Number of threads.
    pub threads: u32,
    /// Number of the faulting thread.
    pub culprit: u32,
    /// Loop iterations of each thread before the fault; some threads take up to three more.
    pub turns: u32,
}

/// Runs the kernel and returns its time. Fails if the kernel does, as with most [`Fault`]s, or for
/// [`Fault::Stray`] on the simulator.
pub fn run(launcher: &mut dyn Launcher, options: &FaultOptions) -> Result<Duration, WorkloadError> {
    let mut run = ProgramRun::new(launcher);
    let &FaultOptions { fault, threads, culprit, turns } = options;
    if fault == Fault::Stray && run.device().facts().info.kind == DeviceKind::Simulator {
        let allowed = "the simulator does not guard its memory; take `trap` or a GPU";
        return Err(WorkloadError::Option { option: "how", value: "stray".to_owned(), allowed });
    }
    let flag = Buffer::<u32>::filled(run.device(), 1, 0)?;
    let call = warptrace_kernels::fault::fault(flag.global(), fault.number(), culprit, turns);
    // SAFETY: the flag outlives the launch. A stray write is what was asked for.
    unsafe { run.launch(&call, &LaunchShape::linear(u64::from(threads), BLOCK)) }?;
    flag.free(run.device())?;
    Ok(run.kernel)
}
