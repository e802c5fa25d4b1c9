//! Rounds: the device encodes warps that have left a kernel while other warps of it still run.
//!
//! A separate thread flattens the logs of each round (`warptrace_encode::FlattenJob`), merges and encodes
//! them, and copies the chunks. Calls of its second device handle do not wait for the program's kernel. The
//! thread that empties the kernel's logs starts rounds and polls their results, but never waits for one while
//! the kernel runs: on a GPU full of waiting warps, none can start before the host provides memory.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use warptrace_abi::pool::Claims;
use warptrace_encode::FlattenJob;
use warptrace_format::codec::CodecSpec;

use super::plan::Plan;
use crate::session::SessionError;
use crate::session::drain::LoggedLaunches;
use crate::session::worker::Account;
use crate::{Device, EncodeJob, HostMemory, packed};

pub(super) struct Round {
    pub(super) plan: Plan,
    /// Its warps, by index in the launch's tables.
    pub(super) warps: Vec<u32>,
}

pub(super) enum News {
    Flattened(Flattened),
    Chunks(HostMemory<u8>),
    /// The round has ended. Has the accounts of its streams: all warps of track 0, then all of track 1.
    Done(Vec<Account>),
    Failed(SessionError),
}

pub(super) struct Flattened {
    /// The headers that no earlier round has seen: the segment and the tag of each.
    pub(super) new_headers: Vec<[u32; 2]>,
    /// Segments that are free because their contents are copied.
    pub(super) segments: Vec<u32>,
    pub(super) outcomes: Vec<u32>,
}

pub(super) struct Running {
    pub(super) launch: u32,
    pub(super) warps: Vec<u32>,
    pub(super) outcomes: Option<Vec<u32>>,
}

/// A round thread and its current round.
pub(super) struct Rounds {
    queue: Option<SyncSender<Round>>,
    news: Receiver<News>,
    thread: Option<JoinHandle<()>>,
    pub(super) running: Option<Running>,
}

impl Rounds {
    pub(super) fn start(device: Box<dyn Device + Send>, codec: CodecSpec) -> Result<Self, SessionError> {
        let (queue, rounds) = sync_channel(1);
        let (sender, news) = channel();
        let run = move || work(device, codec, &rounds, &sender);
        let thread = std::thread::Builder::new().name("warptrace rounds".to_owned()).spawn(run);
        let thread = Some(thread.map_err(|source| SessionError::Thread { source })?);
        Ok(Self { queue: Some(queue), news, thread, running: None })
    }

    /// Starts a round. No round may be running on this thread.
    pub(super) fn begin(&mut self, round: Round) -> Result<(), SessionError> {
        self.running =
            Some(Running { launch: round.plan.job.launch, warps: round.warps.clone(), outcomes: None });
        self.queue.as_ref().and_then(|queue| queue.send(round).ok()).ok_or(SessionError::Unusable)
    }

    /// Returns the next result of the current round. Waits for it up to `wait`, then returns `None`.
    pub(super) fn poll(&mut self, wait: Duration) -> Result<Option<News>, SessionError> {
        if self.running.is_none() {
            return Ok(None);
        }
        match self.news.recv_timeout(wait) {
            Ok(News::Failed(error)) => {
                self.running = None;
                Err(error)
            }
            Ok(news) => Ok(Some(news)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(SessionError::Unusable),
        }
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic was printed already.
            let _ = thread.join();
        }
    }
}

fn work(mut device: Box<dyn Device + Send>, codec: CodecSpec, rounds: &Receiver<Round>, news: &Sender<News>) {
    for round in rounds {
        let last = match round.run(&mut *device, codec, news) {
            Ok(accounts) => News::Done(accounts),
            Err(error) => News::Failed(error),
        };
        if news.send(last).is_err() {
            return;
        }
    }
}

impl Round {
    fn run(
        &self,
        device: &mut dyn Device,
        codec: CodecSpec,
        news: &Sender<News>,
    ) -> Result<Vec<Account>, SessionError> {
        let plan = &self.plan;
        let warps = self.warps.len() as u32;
        let job = FlattenJob { round_warps: warps, ..plan.job };
        let streams = u64::from(warps * job.tracks);
        device.fill(job.links, 4 * u64::from(job.segment_count), 0xff)?;
        device.fill(job.firsts, 128 * streams, 0xff)?;
        let account_bytes = streams * size_of::<Account>() as u64;
        let outcome_bytes = 4 * u64::from(warps);
        let claim_bytes = size_of::<Claims>() as u64;
        for (address, bytes) in [
            (job.freed, 16),
            (job.new_headers, 16),
            (job.claimed, 16),
            (plan.pool.claims, claim_bytes),
            (job.outcomes, outcome_bytes),
            (plan.accounts, account_bytes),
        ] {
            device.fill(address, bytes, 0)?;
        }
        let mut indices = vec![u32::MAX; job.launch_warps as usize];
        for (index, &warp) in (0..).zip(&self.warps) {
            indices[warp as usize] = index;
        }
        device.write(job.indices, bytemuck::cast_slice(&indices))?;
        device.write(job.warps, bytemuck::cast_slice(&self.warps))?;
        device.encode(EncodeJob::Flatten(&job))?;

        let counted = |device: &mut dyn Device, address: u64| -> Result<usize, SessionError> {
            let mut count = [0_u32];
            device.read(address, bytemuck::cast_slice_mut(&mut count))?;
            Ok(count[0].min(job.segment_count) as usize)
        };
        let mut new_headers = vec![[0; 2]; counted(device, job.new_headers)?];
        device.read(job.new_headers + 16, bytemuck::cast_slice_mut(&mut new_headers))?;
        let mut segments = vec![0; counted(device, job.freed)?];
        device.read(job.freed + 16, bytemuck::cast_slice_mut(&mut segments))?;
        let mut outcomes = vec![0; self.warps.len()];
        device.read(job.outcomes, bytemuck::cast_slice_mut(&mut outcomes))?;
        // The receiver may be dropped, here and below.
        let _ = news.send(News::Flattened(Flattened { new_headers, segments, outcomes }));

        self.encode(device, codec, news)?;
        let mut accounts = vec![Account::default(); streams as usize];
        device.read(plan.accounts, bytemuck::cast_slice_mut(&mut accounts))?;
        Ok(accounts)
    }

    /// Merges and encodes the flattened logs in as many steps as needed, and copies the chunks.
    fn encode(
        &self,
        device: &mut dyn Device,
        codec: CodecSpec,
        news: &Sender<News>,
    ) -> Result<(), SessionError> {
        let plan = &self.plan;
        let launches = [plan.logged(self.warps.len() as u32)];
        let Plan { table, scratch, .. } = *plan;
        let logs = LoggedLaunches { codec, pool: &plan.pool, launches: &launches, table, scratch };
        let mut packed = HostMemory::default();
        let send = |packed: &mut HostMemory<u8>| {
            let mut chunks = std::mem::take(packed);
            packed::rename(&mut chunks, plan.pool.chunk_bytes as usize, &self.warps);
            let _ = news.send(News::Chunks(chunks));
            Ok(())
        };
        logs.encode(device, &mut packed, send)?;
        send(&mut packed)
    }
}
