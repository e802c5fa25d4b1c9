//! From device memory to the writer.

use super::SessionError;
use super::pool::Pool;
use super::worker::{Drained, Worker};
use crate::Device;
use std::io::Write;
use warptrace_format::file::LaunchInfo;

/// Chunks, in bytes of the pool, that are collected at a time: what is on the host at once is bounded however large the
/// pool is.
const BATCH_BYTES: u64 = 64 << 20;

/// Copies what `launches` left in the first `claimed` chunks of the pool, hands it to the writer, and makes the pool empty again. Chunks of the launch
/// `skip` are left out.
pub(super) fn drain<W: Write + Send + 'static>(
    device: &mut dyn Device,
    pool: &mut Pool,
    claimed: u32,
    launches: Vec<LaunchInfo>,
    skip: Option<u32>,
    worker: &mut Worker<W>,
) -> Result<(), SessionError> {
    // A chunk has at most 1 MiB, so that a batch is never empty.
    let batch = (BATCH_BYTES / u64::from(pool.chunk_bytes)) as u32;
    let mut drained = Drained { begin: launches.clone(), skip, ..worker.empty() };
    let mut first = 0;
    while first < claimed {
        let count = batch.min(claimed - first);
        let address = pool.chunks.address + u64::from(first) * u64::from(pool.chunk_bytes);
        device.collect(address, pool.chunk_bytes, count, &mut drained.packed)?;
        first += count;
        // Nearly empty chunks go on together.
        if first < claimed && drained.packed.len() as u64 >= BATCH_BYTES / 2 {
            let next = Drained { skip, ..worker.empty() };
            worker.write(std::mem::replace(&mut drained, next))?;
        }
    }
    drained.end = launches;
    pool.read_accounts(device, &mut drained.accounts)?;
    worker.write(drained)?;
    pool.reset(device)
}
