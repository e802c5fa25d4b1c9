//! From device memory to the writer.

use super::SessionError;
use super::pool::Pool;
use super::worker::{Drained, Worker};
use crate::Device;
use std::io::Write;
use warptrace_format::file::LaunchInfo;

/// Bytes of packed chunks that go on to the writer before there are more: what is on the host at once is bounded however
/// much the pool holds.
const BATCH_BYTES: usize = 32 << 20;

/// Copies what `launches` left in the first `claimed` chunks of the pool, hands it to the writer, and makes the pool empty again.
pub(super) fn drain<W: Write + Send + 'static>(
    device: &mut dyn Device,
    pool: &mut Pool,
    claimed: u32,
    launches: Vec<LaunchInfo>,
    worker: &mut Worker<W>,
) -> Result<(), SessionError> {
    let mut drained = Drained { begin: launches.clone(), ..worker.empty() };
    let mut first = 0;
    while first < claimed {
        let address = pool.chunks.address + u64::from(first) * u64::from(pool.chunk_bytes);
        first += device.collect(address, pool.chunk_bytes, claimed - first, &mut drained.packed)?;
        // What is little goes on together.
        if first < claimed && drained.packed.len() >= BATCH_BYTES {
            let next = worker.empty();
            worker.write(std::mem::replace(&mut drained, next))?;
        }
    }
    drained.end = launches;
    drained.end.retain(LaunchInfo::is_recorded);
    pool.read_accounts(device, &mut drained.accounts)?;
    worker.write(drained)?;
    pool.reset(device)
}
