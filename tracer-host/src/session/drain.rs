//! From device memory to the writer.

use std::io::Write;
use std::time::{Duration, Instant};

use warptrace_format::file::LaunchInfo;

use super::SessionError;
use super::pool::Pool;
use super::worker::{Drained, Worker};
use crate::{Device, Recording};

/// Bytes of packed chunks that go on to the writer before there are more: what is on the host at once is
/// bounded however much the pool holds.
const BATCH_BYTES: usize = 32 << 20;

/// What a drain cost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DrainCost {
    /// Merging and encoding.
    pub(super) encoding: Duration,
    /// Copying from the device and handing over.
    pub(super) copy: Duration,
}

/// Merges and encodes what `launches` left, in as many rounds as it takes, copies it from the device, hands
/// it to the writer, and makes the pool empty again.
pub(super) fn drain<W: Write + Send + 'static>(
    device: &mut dyn Device,
    pool: &mut Pool,
    recording: Recording,
    launches: Vec<LaunchInfo>,
    worker: &mut Worker<W>,
) -> Result<DrainCost, SessionError> {
    let mut cost = DrainCost::default();
    let mut drained = Drained { begin: launches.clone(), ..worker.empty() };
    loop {
        let (descriptor, logged, table) = pool.logged();
        let encoded = device.encode(recording, &descriptor, logged, table)?;
        cost.encoding += encoded.time;
        let (claimed, started) = (pool.encoded(&encoded), Instant::now());
        let is_last = encoded.claims.waiting == 0;
        if claimed == 0 && !is_last {
            return Err(SessionError::Pool {
                problem: format!(
                    "{} warps wait to be encoded, and none could be: their logs are damaged; the kernel, or another program, wrote into the trace pool",
                    encoded.claims.waiting
                ),
            });
        }
        let mut first = 0;
        while first < claimed {
            first += pool.collect(device, [first, claimed], &mut drained.packed)?;
            // What is little goes on together.
            if (first < claimed || !is_last) && drained.packed.len() >= BATCH_BYTES {
                let next = worker.empty();
                worker.write(std::mem::replace(&mut drained, next))?;
            }
        }
        if !is_last {
            pool.begin_round(device)?;
        }
        cost.copy += started.elapsed();
        if is_last {
            break;
        }
    }
    let started = Instant::now();
    drained.end = launches;
    drained.end.retain(LaunchInfo::is_recorded);
    pool.read_accounts(device, &mut drained.accounts)?;
    worker.write(drained)?;
    pool.reset(device)?;
    cost.copy += started.elapsed();
    Ok(cost)
}
