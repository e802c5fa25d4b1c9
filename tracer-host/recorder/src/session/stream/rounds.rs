//! Warps that have left a running kernel are encoded on the device, round by round, while others run.
//!
//! A thread of its own has each round flattened (`warptrace_encode::FlattenJob`), merged and encoded, and
//! copies the chunks, by a device of its own: the same one, whose calls do not wait for the program's kernel.
//! The thread that serves the kernel starts rounds and polls their results, and never waits for one: on a
//! card that is full of waiting warps a round cannot begin before the host has given them memory in another
//! way.

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
use crate::{Device, EncodeJob, packed};

/// A round.
pub(super) struct Round {
    pub(super) plan: Plan,
    /// Its warps, by their index in the launch's tables.
    pub(super) warps: Vec<u32>,
}

/// Results of a round.
pub(super) enum News {
    /// Logs are flat.
    Flattened(Flattened),
    /// Chunks, packed.
    Chunks(Vec<u8>),
    /// The round has ended: the accounts of its streams, track by track.
    Done(Vec<Account>),
    /// It could not go on.
    Failed(SessionError),
}

/// What a round has found in log memory.
pub(super) struct Flattened {
    /// Segments and tags of headers that no round has seen before.
    pub(super) new_headers: Vec<[u32; 2]>,
    /// Segments that are free: what they held is copied.
    pub(super) segments: Vec<u32>,
    /// For each warp of the round what has become of it.
    pub(super) outcomes: Vec<u32>,
}

/// The round that is under way.
pub(super) struct Running {
    pub(super) launch: u32,
    pub(super) warps: Vec<u32>,
    /// What has become of each, when that is known.
    pub(super) outcomes: Option<Vec<u32>>,
}

/// The thread, and what it was given.
pub(super) struct Rounds {
    queue: Option<SyncSender<Round>>,
    news: Receiver<News>,
    thread: Option<JoinHandle<()>>,
    pub(super) running: Option<Running>,
}

impl Rounds {
    /// Starts the thread, which uses `device`.
    pub(super) fn start(device: Box<dyn Device + Send>, codec: CodecSpec) -> Result<Self, SessionError> {
        let (queue, rounds) = sync_channel(1);
        let (sender, news) = channel();
        let run = move || work(device, codec, &rounds, &sender);
        let thread = std::thread::Builder::new().name("warptrace rounds".to_owned()).spawn(run);
        let thread = Some(thread.map_err(|source| SessionError::Thread { source })?);
        Ok(Self { queue: Some(queue), news, thread, running: None })
    }

    /// Starts a round. None is under way.
    pub(super) fn begin(&mut self, round: Round) -> Result<(), SessionError> {
        self.running =
            Some(Running { launch: round.plan.job.launch, warps: round.warps.clone(), outcomes: None });
        self.queue.as_ref().and_then(|queue| queue.send(round).ok()).ok_or(SessionError::Unusable)
    }

    /// Returns the next result of the round under way, if there is one within `wait`.
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
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

/// Does rounds as they come.
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
        // The thread that serves the kernel may be gone, here and below.
        let _ = news.send(News::Flattened(Flattened { new_headers, segments, outcomes }));

        self.encode(device, codec, news)?;
        let mut accounts = vec![Account::default(); streams as usize];
        device.read(plan.accounts, bytemuck::cast_slice_mut(&mut accounts))?;
        Ok(accounts)
    }

    /// Merges and encodes the flat logs, in as many steps as it takes, and copies the chunks.
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
        let mut packed = Vec::new();
        // The thread that serves the kernel may be gone.
        let send = |packed: &mut Vec<u8>| {
            let mut chunks = std::mem::take(packed);
            packed::rename(&mut chunks, plan.pool.chunk_bytes as usize, &self.warps);
            let _ = news.send(News::Chunks(chunks));
            Ok(())
        };
        logs.encode(device, &mut packed, send)?;
        send(&mut packed)
    }
}
