//! Copies data from device memory to the writer.

use std::io::Write;
use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warptrace_abi::log::{ENTRY_BYTES, LoggedLaunch};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::LaunchInfo;

use super::SessionError;
use super::classes::{Behavior, Representatives};
use super::ledger::Job;
use super::pool::Filled;
use super::running::{self, Left};
use super::worker::{Account, Drained, Form, Worker};
use crate::{Allocation, Device, DeviceError, EncodeJob, Encoded, HostMemory};

/// Bytes of packed chunks passed to the writer at once. Bounds host memory for pools of any size.
const BATCH_BYTES: usize = 32 << 20;

#[derive(Clone, Debug, Default)]
pub(super) struct DrainCost {
    pub(super) encoding: Duration,
    /// Time of copying from the device and passing on.
    pub(super) copy: Duration,
    /// Maximum bytes of merged runs and chunks.
    pub(super) filled: u64,
    merged: u32,
    /// The kernel and behavior of each launch whose classes were found.
    pub(super) behavior: Vec<(u32, Behavior)>,
}

/// Launches that have left logs, and the memory for encoding them.
#[derive(Clone, Copy)]
pub(super) struct LoggedLaunches<'a> {
    pub(super) codec: CodecSpec,
    pub(super) pool: &'a PoolDescriptor,
    pub(super) launches: &'a [LoggedLaunch],
    /// Memory for the table of launches, and for packed chunks and accounts.
    pub(super) table: Allocation,
    pub(super) scratch: Allocation,
}

impl LoggedLaunches<'_> {
    /// Encodes the logs in as many steps as their chunks need, and appends the chunks to `packed`. Calls
    /// `is_full` to empty `packed` when it is large and more chunks follow.
    pub(super) fn encode(
        self,
        device: &mut dyn Device,
        packed: &mut HostMemory<u8>,
        mut is_full: impl FnMut(&mut HostMemory<u8>) -> Result<(), SessionError>,
    ) -> Result<DrainCost, SessionError> {
        let Self { codec, pool, launches, table, scratch } = self;
        let mut cost = DrainCost::default();
        loop {
            let encoded = device.encode(EncodeJob::Logs { codec, pool, launches, table })?;
            cost.encoding += encoded.time;
            let is_last = encoded.claims.waiting == 0;
            let (claimed, started) = (chunks(pool, &encoded, &mut cost), Instant::now());
            if claimed == 0 && !is_last {
                return Err(SessionError::Pool {
                    problem: format!(
                        "{} warps wait to be encoded, and none could be: their logs are damaged; the kernel, or another program, wrote into the tracer's memory",
                        encoded.claims.waiting
                    ),
                });
            }
            let mut first = 0;
            while first < claimed {
                let address = pool.chunks + u64::from(first) * u64::from(pool.chunk_bytes);
                let (chunk_bytes, count, to) = (pool.chunk_bytes, claimed - first, &mut *packed);
                let streams = launches.last().map_or(0, |last| last.first_stream + last.tracks * last.warps);
                let data = (pool.data_track != 0).then_some((pool.data_track, streams));
                let job = EncodeJob::Collect { first: address, chunk_bytes, count, data, scratch, to };
                first += device.encode(job)?.collected;
                // Small amounts are passed on together.
                if (first < claimed || !is_last) && packed.len() >= BATCH_BYTES {
                    is_full(packed)?;
                }
            }
            if !is_last {
                // Resets the counters of chunks and merged runs, whose contents are on the host now.
                let kept = offset_of!(Claims, merged_entries) as u64;
                device.fill(pool.claims + kept, size_of::<Claims>() as u64 - kept, 0)?;
            }
            cost.copy += started.elapsed();
            if is_last {
                return Ok(cost);
            }
        }
    }
}

/// Runs jobs until `next` returns none. `next` gets the arena that the previous job emptied, and its cost.
pub(super) fn run_all<W: Write + Send + 'static>(
    device: &mut dyn Device,
    worker: &mut Worker<W>,
    mut next: impl FnMut(Option<(usize, DrainCost)>) -> Option<Job>,
) -> Result<(), SessionError> {
    let mut drained = None;
    while let Some(job) = next(drained.take()) {
        let arena = job.filled.as_ref().map(|filled| filled.arena);
        let cost = run(job, device, worker)?;
        drained = arena.map(|arena| (arena, cost));
    }
    Ok(())
}

pub(super) fn run<W: Write + Send + 'static>(
    job: Job,
    device: &mut dyn Device,
    worker: &mut Worker<W>,
) -> Result<DrainCost, SessionError> {
    let Job { codec, news, plain, filled, host } = job;
    news.into_iter().for_each(|message| worker.send(message));
    worker.send_times(host, Vec::new());
    let Some(filled) = filled else {
        worker.write(Drained { begin: plain, ..worker.empty() })?;
        return Ok(DrainCost::default());
    };
    if filled.on_host {
        return run_on_host(codec, filled, plain, device, worker);
    }
    let Filled { arena: _, pool, logged, table, scratch, accounts, logs: used, span_bytes, .. } = filled;
    let Filled { launches, unfinished, .. } = filled;
    let mut cost = DrainCost::default();
    let mut begin = [plain, launches.clone()].concat();
    begin.sort_unstable_by_key(LaunchInfo::number);
    let mut drained = Drained { begin, ..worker.empty() };
    // Empty if all launches failed.
    if !logged.is_empty() {
        let ([mut on_device, mut on_host], mut behavior) = ([Duration::ZERO; 2], Vec::new());
        if pool.classes != 0 {
            let (firsts, times) = Representatives::find(device, &pool, &logged, table)?;
            [on_device, on_host] = times;
            let numbers = logged.iter().map(|launch| launch.launch).zip(firsts.behavior());
            let kernel =
                |number| launches.iter().find(|info| info.number() == number).map(LaunchInfo::kernel);
            behavior.extend(numbers.filter_map(|(number, found)| Some((kernel(number)?, found))));
            drained.classes = Some(Arc::new(firsts));
        }
        let logs = LoggedLaunches { codec, pool: &pool, launches: &logged, table, scratch };
        let mut packed = std::mem::take(&mut drained.packed);
        let classes = drained.classes.clone();
        cost = logs.encode(device, &mut packed, |packed| {
            let mut full = std::mem::replace(&mut drained, worker.empty());
            drained.classes.clone_from(&classes);
            full.packed = std::mem::replace(packed, std::mem::take(&mut drained.packed));
            worker.write(full)
        })?;
        drained.packed = packed;
        cost.encoding += on_device;
        cost.copy += on_host;
        cost.behavior = behavior;
    }
    let started = Instant::now();
    for finished in unfinished {
        device.write(finished, &[0; 4])?;
    }
    let is_given_up =
        read_accounts(device, &logged, [table, scratch], (pool.classes, span_bytes), &mut drained);
    // The chunks are written also if a kernel has failed meanwhile.
    if is_given_up.is_ok() {
        drained.end = launches;
        drained.end.retain(LaunchInfo::is_recorded);
    }
    worker.write(drained)?;
    if is_given_up? {
        return Err(DeviceError::GivenUp.into());
    }
    let merged = pool.merged_from..pool.merged_from + cost.merged;
    let logs =
        if logged.iter().any(|launch| launch.ring == 0) { &[&used[..], &[merged]].concat() } else { &[][..] };
    match clear(device, &pool, accounts, logs) {
        // The data is written, and nothing more will be recorded here.
        Err(DeviceError::GivenUp) => {}
        done => done?,
    }
    cost.copy += started.elapsed();
    Ok(cost)
}

/// Sends data in host memory to the writer, without use of the device, which may have failed.
fn run_on_host<W: Write + Send + 'static>(
    codec: CodecSpec,
    filled: Filled,
    plain: Vec<LaunchInfo>,
    device: &mut dyn Device,
    worker: &mut Worker<W>,
) -> Result<DrainCost, SessionError> {
    let (pool, accounts, logs) = (filled.pool, filled.accounts, filled.logs.clone());
    let left = Left { filled, running: Vec::new(), plain, is_drained: false };
    let (_, cost) = running::write(device, codec, left, worker)?;
    clear(device, &pool, accounts, &logs)?;
    Ok(cost)
}

/// Clears counters, accounts and log ranges of an arena. The zeros mark the ends of later logs.
fn clear(
    device: &mut dyn Device,
    pool: &PoolDescriptor,
    accounts: (u64, u64),
    logs: &[Range<u32>],
) -> Result<(), DeviceError> {
    let each = u64::from(ENTRY_BYTES);
    let mut cleared = vec![(pool.claims, size_of::<Claims>() as u64), accounts];
    cleared.extend(logs.iter().map(|it| (pool.logs + u64::from(it.start) * each, it.len() as u64 * each)));
    cleared.retain(|(_, bytes)| *bytes > 0);
    device.clear(&cleared)
}

/// Returns the number of chunks in use, and updates the memory in use.
fn chunks(pool: &PoolDescriptor, encoded: &Encoded, cost: &mut DrainCost) -> u32 {
    let Claims { merged_entries, chunks, .. } = encoded.claims;
    let merged = merged_entries.min((pool.merged_end - pool.merged_from).into());
    cost.merged = cost.merged.max(merged as u32);
    let chunks = chunks.min(pool.chunk_count);
    let filled = merged * u64::from(ENTRY_BYTES) + u64::from(chunks) * u64::from(pool.chunk_bytes);
    cost.filled = cost.filled.max(filled);
    chunks
}

/// Reads the accounts of launches, and their spans, if they follow: packed, if all are small. Returns true if
/// the device was given up before it had packed them.
fn read_accounts(
    device: &mut dyn Device,
    logged: &[LoggedLaunch],
    [table, scratch]: [Allocation; 2],
    (classes, span_bytes): (u64, u64),
    drained: &mut Drained,
) -> Result<bool, SessionError> {
    let (spans, mut words, mut is_given_up) = (span_bytes != 0, 0, false);
    if !logged.is_empty() {
        match device.encode(EncodeJob::Accounts { launches: logged, table, classes, spans, scratch }) {
            Ok(packed) => words = packed.collected,
            // A kernel that hangs may leave no room for this one, but the rest of the drain is complete.
            Err(DeviceError::GivenUp) => {
                device.read_beside();
                is_given_up = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if words != 0 {
        device.read_to(scratch.address, words as usize, &mut drained.words)?;
        if drained.words[0] == 0 {
            drained.form = Form::Packed(spans);
            return Ok(false);
        }
    }
    drained.form = Form::Tables(spans);
    let bytes = |launch: &LoggedLaunch| {
        let accounts = size_of::<Account>() * (launch.tracks * launch.warps) as usize;
        accounts + span_bytes as usize * launch.warps as usize
    };
    let all: usize = logged.iter().map(bytes).sum();
    drained.tables.resize(all / size_of::<u64>(), 0);
    let mut rest: &mut [u8] = bytemuck::cast_slice_mut(&mut drained.tables);
    // Accounts are contiguous unless a launch failed.
    for launches in logged.chunk_by(|a, b| a.accounts + bytes(a) as u64 == b.accounts) {
        let (now, after) = rest.split_at_mut(launches.iter().map(bytes).sum());
        device.read(launches[0].accounts, now)?;
        rest = after;
    }
    Ok(is_given_up)
}
