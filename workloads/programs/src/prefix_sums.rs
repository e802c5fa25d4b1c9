//! Prefix sums of higher order and of tuples on a device: a primitive whose kernels have no trace points.

use std::time::Duration;

use warptrace_device::{Global, KernelCall};
use warptrace_host::{Buffer, Launcher};
use warptrace_kernels::prefix_sums::{self, Words4};

use crate::WorkloadError;
use crate::grid::Grid;
use crate::run::ProgramRun;

/// Result of a run.
#[derive(Clone, Debug)]
pub struct ScanOutcome {
    /// The sums, one per value.
    pub sums: Vec<u32>,
    /// Kernel time.
    pub kernel: Duration,
}

/// Computes the sums of order `order` of tuples of `tuple` values, with `blocks` blocks (`None` fills the
/// device).
///
/// # Errors
/// [`WorkloadError::Option`] if the order or the tuple is not 1 to [`MAX`](prefix_sums::MAX), or the grid is
/// out of range. Also if the device or the recording fails.
pub fn run(
    launcher: &mut dyn Launcher,
    order: usize,
    tuple: usize,
    values: &[u32],
    blocks: Option<u32>,
) -> Result<ScanOutcome, WorkloadError> {
    for (option, value) in [("order", order), ("tuple", tuple)] {
        if !(1..=prefix_sums::MAX).contains(&value) {
            let allowed = "there are kernels for 1 to 4";
            return Err(WorkloadError::Option { option, value: value.to_string(), allowed });
        }
    }
    let mut run = ProgramRun::new(launcher);
    let grid = match blocks {
        Some(blocks) => Grid::new(blocks, prefix_sums::BLOCK)?,
        None => Grid::filling(run.device(), values.len() as u64),
    };
    let vectors: Vec<Words4> = values
        .chunks(4)
        .map(|four| Words4(std::array::from_fn(|word| four.get(word).copied().unwrap_or(0))))
        .collect();
    let input = Buffer::upload(run.device(), &vectors)?;
    // Marks sums that no thread writes.
    let output = Buffer::<Words4>::filled(run.device(), vectors.len(), 0xff)?;
    let words = prefix_sums::state_words(order, tuple, 4 * vectors.len() as u64) as usize;
    let states = Buffer::<u64>::filled(run.device(), words, 0)?;
    let ticket = Buffer::<u32>::filled(run.device(), 1, 0)?;
    let call = kernel_of(order, tuple)(input.global(), output.global(), states.global(), ticket.global());
    // SAFETY: the buffers have the sizes that the kernel requires and outlive the launch.
    unsafe { run.launch(&call, &grid.communicating()) }?;
    let sums: Vec<u32> = output.download(run.device())?.into_iter().flat_map(|four| four.0).collect();
    let kernel = run.kernel;
    input.free(run.device())?;
    output.free(run.device())?;
    states.free(run.device())?;
    ticket.free(run.device())?;
    Ok(ScanOutcome { sums: sums[..values.len()].to_vec(), kernel })
}

type Kernel = fn(Global<Words4>, Global<Words4>, Global<u64>, Global<u32>) -> KernelCall;

fn kernel_of(order: usize, tuple: usize) -> Kernel {
    match (order, tuple) {
        (1, 1) => prefix_sums::scan_1_1,
        (1, 2) => prefix_sums::scan_1_2,
        (1, 3) => prefix_sums::scan_1_3,
        (1, 4) => prefix_sums::scan_1_4,
        (2, 1) => prefix_sums::scan_2_1,
        (2, 2) => prefix_sums::scan_2_2,
        (2, 3) => prefix_sums::scan_2_3,
        (2, 4) => prefix_sums::scan_2_4,
        (3, 1) => prefix_sums::scan_3_1,
        (3, 2) => prefix_sums::scan_3_2,
        (3, 3) => prefix_sums::scan_3_3,
        (3, 4) => prefix_sums::scan_3_4,
        (4, 1) => prefix_sums::scan_4_1,
        (4, 2) => prefix_sums::scan_4_2,
        (4, 3) => prefix_sums::scan_4_3,
        _ => prefix_sums::scan_4_4,
    }
}
