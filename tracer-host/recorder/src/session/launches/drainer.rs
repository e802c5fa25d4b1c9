//! Brings to the file what launches record.

use std::io::Write;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use warptrace_format::file::LaunchInfo;

use super::super::drain;
use super::super::ledger::Ticket;
use super::super::recorder::{compare_clocks, end, end_early};
use super::super::running::{self, Rest};
use super::super::worker::Worker;
use super::{Ending, Shared};
use crate::writer::Summary;
use crate::{Device, DeviceError, HostMessage, LaunchReport, SessionError};

/// When this many launches have not ended, those behind them are not asked for: a program may begin hundreds,
/// and most end in the order in which they began.
const POLLED_AT_ONCE: usize = 16;
/// How often launches that have not ended are polled; and if a caller waits for that.
const POLL_EVERY: Duration = Duration::from_millis(1);
const POLL_SOON: Duration = Duration::from_micros(50);
/// What was recorded is written after this many times as long as writing it took the last time, and no sooner
/// than this: a kernel that fails, or a program that ends without a word, takes no more with it, and
/// writing takes little of the device's time.
const WRITTEN_AFTER: u32 = 25;
const MIN_WRITTEN_AFTER: Duration = Duration::from_millis(20);

/// What is to be done after a [step](Drainer::step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until a caller asks for something.
    Wait,
    /// Another step, after that long or when a caller asks for something.
    Again(Duration),
    /// Nothing more: the recording is to end.
    End,
}

/// What is left of a recording that has ended.
#[derive(Debug)]
pub struct Ended<D, W> {
    /// The device; `None` if launches still run that write into its memory.
    pub device: Option<D>,
    /// The output and what is in it; or why the trace has no end.
    pub outcome: Result<(W, Summary, LaunchReport), SessionError>,
}

/// Brings to the file what launches record. It owns the device; nothing else's work waits for it.
pub struct Drainer<D, W: Write + Send + 'static, E> {
    pub(super) shared: Arc<Shared<E>>,
    pub(super) device: D,
    /// `None` after the end.
    pub(super) worker: Option<Worker<W>>,
    /// Launches that have not ended as far as is known.
    pub(super) running: Vec<(Ticket, E)>,
    /// When what was recorded is written next.
    pub(super) write_at: Option<Instant>,
    /// Launches that left no logs, while they are on their way to the writer with others that did.
    pub(super) plain: Vec<LaunchInfo>,
}

impl<D, W: Write + Send + 'static, E> std::fmt::Debug for Drainer<D, W, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drainer").field("running", &self.running.len()).finish_non_exhaustive()
    }
}

impl<D: Device, W: Write + Send + 'static, E: Ending> Drainer<D, W, E> {
    /// Drains until the recording is to [end](super::Launches::end), or something fails, and ends the file.
    /// If something fails before, `fails` is told, once the file says so. `last` makes what the file is told before
    /// it ends, however that is.
    pub fn run(
        mut self,
        last: impl FnOnce() -> Option<HostMessage>,
        fails: impl FnOnce(&SessionError, &LaunchReport),
    ) -> Ended<D, W> {
        let end = loop {
            match self.step(Instant::now()) {
                Ok(Next::End) => break None,
                Ok(Next::Wait) => self.wait(None),
                Ok(Next::Again(after)) => self.wait(Some(after)),
                Err(error) => break Some(error),
            }
        };
        if let Some(message) = last() {
            self.shared.lock().ledger.send(message);
        }
        match end {
            None => self.finish(fails),
            Some(SessionError::Device(DeviceError::GivenUp)) => self.leave(fails),
            Some(error) => self.fail(error, fails),
        }
    }

    fn wait(&self, most: Option<Duration>) {
        let mut state = self.shared.lock();
        // What came since the step is not waited for.
        let is_asked = state.ends.is_some() || state.is_abandoned || state.flushes > state.flushed;
        if most.is_none() && (!state.launched.is_empty() || is_asked) {
            return;
        }
        match most {
            Some(most) => drop(self.shared.asked.wait_timeout(state, most)),
            None => {
                state.is_idle = true;
                let woken = self.shared.asked.wait(state);
                woken.unwrap_or_else(PoisonError::into_inner).is_idle = false;
            }
        }
    }

    /// Polls for launches that have ended, and brings to the file what is worth it at this time.
    ///
    /// # Errors
    /// If a kernel, the device or the file fails.
    pub fn step(&mut self, now: Instant) -> Result<Next, SessionError> {
        self.poll()?;
        let is_flush = {
            let state = self.shared.lock();
            if let (Some(reason), true) = (&state.failed, state.is_abandoned) {
                return Err(SessionError::Ended { reason: reason.clone() });
            }
            state.flushes > state.flushed && self.running.is_empty() && state.launched.is_empty()
        };
        // A while after the last time; the first launch begins it.
        let write_at = *self.write_at.get_or_insert(now + MIN_WRITTEN_AFTER);
        self.drain(is_flush || now >= write_at)?;
        let mut state = self.shared.lock();
        if is_flush && let Some(worker) = &mut self.worker {
            let asked = state.flushes;
            drop(state);
            let written = worker.flush()?;
            state = self.shared.lock();
            state.ledger.total.written(&written);
            state.flushed = asked;
            self.shared.done.notify_all();
        }
        if state.ends.is_some() {
            return Ok(Next::End);
        }
        let is_empty = state.ledger.pool.as_ref().is_none_or(|pool| pool.is_empty());
        Ok(match self.running.is_empty() && state.launched.is_empty() {
            true if state.flushes > state.flushed => Next::Again(Duration::ZERO),
            true if is_empty => {
                self.write_at = None;
                Next::Wait
            }
            true => Next::Again(write_at.saturating_duration_since(now).max(POLL_EVERY)),
            false if state.waiting > 0 => Next::Again(POLL_SOON),
            false if state.ledger.pool.as_ref().is_some_and(|pool| pool.is_closing()) => {
                Next::Again(POLL_SOON)
            }
            false => Next::Again(POLL_EVERY),
        })
    }

    /// Polls for launches that have ended, and reads how much memory they have claimed.
    fn poll(&mut self) -> Result<(), SessionError> {
        self.running.append(&mut self.shared.lock().launched);
        let (mut ended, mut running) = (Vec::new(), 0);
        let mut still = Vec::with_capacity(self.running.len());
        let mut all = std::mem::take(&mut self.running).into_iter();
        let mut failed = None;
        for (ticket, mut ending) in all.by_ref() {
            match ending.ended() {
                Ok(Some(time)) => ended.push((ticket, time)),
                Ok(None) => {
                    running += 1;
                    still.push((ticket, ending));
                }
                Err(error) => {
                    still.push((ticket, ending));
                    failed = Some(error);
                    break;
                }
            }
            if running >= POLLED_AT_ONCE {
                break;
            }
        }
        self.running = still;
        self.running.extend(all);
        let unread = {
            let mut state = self.shared.lock();
            if !ended.is_empty() {
                state.in_vain = None;
            }
            ended.into_iter().for_each(|(ticket, time)| state.ledger.ended(ticket, time));
            (state.ledger.last(), state.ledger.unread())
        };
        let (last, unread) = unread;
        if let Some(error) = failed {
            return Err(error.into());
        }
        self.settle(last, unread)
    }

    /// Reads how much memory was claimed in arenas in which launches up to `last` have ended.
    fn settle(&mut self, last: Ticket, unread: Vec<(usize, u64)>) -> Result<(), SessionError> {
        if unread.is_empty() {
            return Ok(());
        }
        for (arena, counters) in unread {
            let mut claimed = 0_u64;
            self.device.read(counters, bytemuck::bytes_of_mut(&mut claimed))?;
            self.shared.lock().ledger.settle(arena, claimed, last);
        }
        self.shared.done.notify_all();
        Ok(())
    }

    /// Brings what is ready to the writer; with `all` also what is in the arena that fills, if that keeps
    /// no caller from launching.
    fn drain(&mut self, all: bool) -> Result<(), SessionError> {
        let Some(worker) = &mut self.worker else { return Ok(()) };
        let (started, mut has_drained, plain) = (Instant::now(), false, &mut self.plain);
        drain::run_all(&mut self.device, worker, |drained| {
            let is_empty = drained.is_some();
            let mut state = self.shared.lock();
            // Any arena helps a launch that waits.
            let all = all || state.waiting > 0;
            let job = state.ledger.go_on(drained, all);
            has_drained |= job.is_some();
            *plain = job.as_ref().map_or_else(Vec::new, |job| job.plain.clone());
            if is_empty {
                self.shared.done.notify_all();
            }
            job
        })?;
        if has_drained || all {
            let ended = Instant::now();
            self.write_at = Some(ended + ((ended - started) * WRITTEN_AFTER).max(MIN_WRITTEN_AFTER));
        }
        Ok(())
    }

    /// Ends the recording.
    fn finish(mut self, fails: impl FnOnce(&SessionError, &LaunchReport)) -> Ended<D, W> {
        let patience = self.shared.lock().ends.unwrap_or_default();
        let started = Instant::now();
        let waited = loop {
            if let Err(error) = self.poll() {
                break Err(error);
            }
            if self.shared.lock().ledger.running() == 0 {
                break Ok(());
            }
            if started.elapsed() >= patience {
                break Ok(());
            }
            self.wait(Some(POLL_EVERY));
        };
        if waited.is_ok() && self.shared.lock().ledger.running() > 0 {
            return self.leave(fails);
        }
        match waited.and_then(|()| self.drain(true)) {
            Ok(()) => {}
            Err(SessionError::Device(DeviceError::GivenUp)) => return self.leave(fails),
            Err(error) => return self.fail(error, fails),
        }
        let clock = self.shared.lock().ledger.clock.clone();
        if let (Some(clock), Some(worker)) = (clock, &mut self.worker)
            && let Err(error) = compare_clocks(&clock, &mut self.device, worker)
        {
            return self.fail(error, fails);
        }
        let Some(worker) = self.worker.take() else { return self.ended(Err(SessionError::Unusable)) };
        let mut state = self.shared.lock();
        let (pool, mut total) = (state.ledger.pool.take(), state.ledger.total);
        let pool = pool.filter(|_| !state.keeps_memory);
        drop(state);
        let freed = pool.map_or(Ok(()), |mut pool| pool.free(&mut self.device));
        // Before the thread's result, so that no error of the file leaves memory behind.
        let outcome = freed.and_then(|()| end(worker, &mut total));
        self.shared.lock().ledger.total = total;
        self.ended(outcome)
    }

    /// Ends the file while launches run: what they have recorded until now is in it.
    fn leave(mut self, fails: impl FnOnce(&SessionError, &LaunchReport)) -> Ended<D, W> {
        self.device.read_beside();
        // Which launches have ended is asked once more.
        if let Err(error) = self.poll() {
            return self.fail(error, fails);
        }
        let running = self.shared.lock().ledger.running();
        let outcome = self.write_rest(None).and_then(|()| Err(SessionError::Running { running }));
        if let Err(error) = &outcome {
            self.shared.lock().failed = Some(error.to_string());
        }
        self.shared.done.notify_all();
        // They write into its memory.
        std::mem::forget(self.device);
        Ended { device: None, outcome }
    }

    /// Writes all that was not drained, and ends the file. `failed`: launches that failed, and why.
    ///
    /// # Errors
    /// If the device cannot be read: nothing has changed then; or the file not written.
    fn write_rest(&mut self, failed: Option<(Ticket, String)>) -> Result<(), SessionError> {
        let counters = self.shared.lock().ledger.counters();
        let claimed = running::claimed(&mut self.device, counters)?;
        let mut rest = {
            let ledger = &mut self.shared.lock().ledger;
            let failed = failed.map(|(ticket, message)| (ledger.fail(ticket), Some(message)));
            let (lefts, outside) = ledger.left(&claimed);
            Rest { lefts, job: ledger.job(None), outside, failed }
        };
        rest.job.plain.append(&mut self.plain);
        rest.job.plain.sort_unstable_by_key(LaunchInfo::number);
        let mut worker = self.worker.take().ok_or(SessionError::Unusable)?;
        let written = running::write_rest(&mut self.device, &mut worker, rest);
        let mut total = self.shared.lock().ledger.total;
        let ended = end(worker, &mut total);
        self.shared.lock().ledger.total = total;
        written.and(ended.map(drop))
    }

    /// Ends the file after an error.
    fn fail(mut self, error: SessionError, fails: impl FnOnce(&SessionError, &LaunchReport)) -> Ended<D, W> {
        // A failed kernel makes each call fail: the first launch that has not ended is named.
        self.running.append(&mut self.shared.lock().launched);
        let failing = |(ticket, ending): &mut (Ticket, E)| ending.ended().is_err().then_some(*ticket);
        let failed = self.running.iter_mut().find_map(failing);
        let others = self.shared.lock().ledger.running_beside(failed);
        // Memory of the host is still there, and that of a device of which only a call has failed.
        if matches!(error, SessionError::Device(_)) {
            let _ = self.write_rest(failed.map(|ticket| (ticket, error.to_string())));
        }
        if let (Some(ticket), Some(worker)) = (failed, self.worker.take()) {
            let mut state = self.shared.lock();
            if let Some(info) = state.ledger.failed(ticket) {
                let job = state.ledger.job(None);
                drop(state);
                end_early(worker, job, info, &error);
            }
        }
        // Dropped, it writes what it was given.
        self.worker = None;
        // Before a thread that launches learns of it, and may end the process.
        let total = self.shared.lock().ledger.total;
        fails(&error, &total);
        let (is_running, pool) = {
            let mut state = self.shared.lock();
            state.failed = Some(error.to_string());
            // Some may have been reserved since.
            let runs = state.is_abandoned || others + state.ledger.running() > 0;
            (runs, state.ledger.pool.take())
        };
        self.shared.done.notify_all();
        if is_running {
            std::mem::forget(self.device);
            return Ended { device: None, outcome: Err(error) };
        }
        // After a failed kernel this fails, too.
        let _ = pool.map(|mut pool| pool.free(&mut self.device));
        self.ended(Err(error))
    }

    fn ended(self, outcome: Result<(W, Summary, LaunchReport), SessionError>) -> Ended<D, W> {
        Ended { device: Some(self.device), outcome }
    }
}
