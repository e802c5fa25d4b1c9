//! From device memory to the writer.

use std::io::Write;
use std::mem::offset_of;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warptrace_abi::log::{ENTRY_BYTES, LoggedLaunch};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::LaunchInfo;

use super::SessionError;
use super::classes::Classes;
use super::ledger::Job;
use super::pool::Filled;
use super::worker::{Account, Drained, Span, Worker, append};
use crate::{Allocation, Device, EncodeJob, Encoded};

/// Bytes of packed chunks that go on to the writer before there are more: what is on the host at once is
/// bounded however much the pool holds.
const BATCH_BYTES: usize = 32 << 20;

/// What a drain cost.
#[derive(Clone, Debug, Default)]
pub(super) struct DrainCost {
    /// Merging and encoding.
    pub(super) encoding: Duration,
    /// Copying from the device and handing over.
    pub(super) copy: Duration,
    /// The most bytes that merged runs and chunks had at once.
    pub(super) filled: u64,
    /// Of each launch whose classes were found: its kernel, and whether the lanes of its warps part.
    pub(super) parted: Vec<(u32, bool)>,
}

/// Launches that have left logs, and the memory in which these are encoded.
#[derive(Clone, Copy)]
pub(super) struct LoggedLaunches<'a> {
    pub(super) codec: CodecSpec,
    pub(super) pool: &'a PoolDescriptor,
    pub(super) launches: &'a [LoggedLaunch],
    /// Memory for a table of them, and where chunks are packed.
    pub(super) table: Allocation,
    pub(super) scratch: Allocation,
}

impl LoggedLaunches<'_> {
    /// Encodes the logs, in as many steps as their chunks take, and appends the chunks to `packed`, which
    /// `is_full` empties when there is much and more is to come.
    pub(super) fn encode(
        self,
        device: &mut dyn Device,
        packed: &mut Vec<u8>,
        mut is_full: impl FnMut(&mut Vec<u8>) -> Result<(), SessionError>,
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
                let job = EncodeJob::Collect { first: address, chunk_bytes, count, scratch, to };
                first += device.encode(job)?.collected;
                // What is little goes on together.
                if (first < claimed || !is_last) && packed.len() >= BATCH_BYTES {
                    is_full(packed)?;
                }
            }
            if !is_last {
                // Chunks, and memory for merged runs, are empty: what they held is on the host.
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

/// Brings jobs to the writer until there is none: `next` is told which arena the one before has emptied, and
/// what that cost. Launches go on meanwhile.
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

/// Brings what a job says to the writer.
fn run<W: Write + Send + 'static>(
    job: Job,
    device: &mut dyn Device,
    worker: &mut Worker<W>,
) -> Result<DrainCost, SessionError> {
    let Job { codec, news, plain, filled, host } = job;
    news.into_iter().try_for_each(|message| worker.send(message))?;
    worker.send_times(host, Vec::new())?;
    let Some(Filled { arena: _, pool, logged, table, scratch, accounts, span_bytes, launches }) = filled
    else {
        worker.write(Drained { begin: plain, ..worker.empty() })?;
        return Ok(DrainCost::default());
    };
    let mut cost = DrainCost::default();
    let mut begin = [plain, launches.clone()].concat();
    begin.sort_unstable_by_key(LaunchInfo::number);
    let mut drained = Drained { begin, ..worker.empty() };
    // What failed is not among them.
    if !logged.is_empty() {
        let (mut finding, mut parted) = (Duration::ZERO, Vec::new());
        if pool.classes != 0 {
            let (classes, parts, time) = Classes::find(device, &pool, &logged, table)?;
            (drained.classes, finding) = (classes.map(Arc::new), time);
            let numbers = logged.iter().map(|launch| launch.launch).zip(parts);
            let kernel =
                |number| launches.iter().find(|info| info.number() == number).map(LaunchInfo::kernel);
            parted.extend(numbers.filter_map(|(number, parts)| Some((kernel(number)?, parts))));
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
        cost.encoding += finding;
        cost.parted = parted;
    }
    let started = Instant::now();
    if span_bytes == 0 {
        read_accounts(device, &logged, &mut drained.accounts)?;
    } else {
        read_with_spans(device, &logged, &mut drained)?;
    }
    if let Some(classes) = &drained.classes {
        classes.fill(&mut drained.accounts);
    }
    drained.end = launches;
    drained.end.retain(LaunchInfo::is_recorded);
    worker.write(drained)?;
    device.fill(pool.claims, size_of::<Claims>() as u64, 0)?;
    device.fill(accounts.0, accounts.1, 0)?;
    cost.copy += started.elapsed();
    Ok(cost)
}

/// Returns how many chunks hold something, and notes how much memory that is.
fn chunks(pool: &PoolDescriptor, encoded: &Encoded, cost: &mut DrainCost) -> u32 {
    let Claims { merged_entries, chunks, .. } = encoded.claims;
    let merged = merged_entries.min((pool.merged_end - pool.merged_from).into());
    let chunks = chunks.min(pool.chunk_count);
    let filled = merged * u64::from(ENTRY_BYTES) + u64::from(chunks) * u64::from(pool.chunk_bytes);
    cost.filled = cost.filled.max(filled);
    chunks
}

/// Reads the accounts of launches, one behind the other, and nothing else.
fn read_accounts(
    device: &mut dyn Device,
    logged: &[LoggedLaunch],
    to: &mut Vec<Account>,
) -> Result<(), SessionError> {
    let each = size_of::<Account>();
    let count = |launch: &LoggedLaunch| (launch.tracks * launch.warps) as usize;
    // What is there already need not be set: all of it is read.
    to.resize(logged.iter().map(count).sum(), Account::default());
    let mut rest = &mut to[..];
    // Between them there is nothing, unless a launch failed.
    let follow = |a: &LoggedLaunch, b: &LoggedLaunch| a.accounts + (count(a) * each) as u64 == b.accounts;
    for launches in logged.chunk_by(follow) {
        let (accounts, after) = rest.split_at_mut(launches.iter().map(count).sum());
        device.read(launches[0].accounts, bytemuck::cast_slice_mut(accounts))?;
        rest = after;
    }
    Ok(())
}

/// Reads the accounts and the spans of launches, which stand in turns.
fn read_with_spans(
    device: &mut dyn Device,
    logged: &[LoggedLaunch],
    drained: &mut Drained,
) -> Result<(), SessionError> {
    let of = |launch: &LoggedLaunch| {
        let accounts = size_of::<Account>() * (launch.tracks * launch.warps) as usize;
        (accounts, accounts + size_of::<Span>() * launch.warps as usize)
    };
    drained.accounts.clear();
    drained.spans.clear();
    let mut bytes = Vec::new();
    for launches in logged.chunk_by(|a, b| a.accounts + of(a).1 as u64 == b.accounts) {
        bytes.resize(launches.iter().map(|launch| of(launch).1).sum(), 0);
        device.read(launches[0].accounts, &mut bytes)?;
        let mut rest = &bytes[..];
        for launch in launches {
            let (accounts, all) = of(launch);
            let (of_launch, after) = rest.split_at(all);
            let (accounts, spans) = of_launch.split_at(accounts);
            append(&mut drained.accounts, accounts);
            append(&mut drained.spans, spans);
            rest = after;
        }
    }
    Ok(())
}
