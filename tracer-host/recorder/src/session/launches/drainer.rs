//! Writes the records of launches to the file.

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

/// Maximum polled running launches. A program may submit hundreds, and most end in order.
const POLLED_AT_ONCE: usize = 16;
/// Poll interval for launches, and the interval if a caller waits.
const POLL_EVERY: Duration = Duration::from_millis(1);
const POLL_SOON: Duration = Duration::from_micros(50);
/// Interval between writes, as a multiple of the time of the last one, and its minimum. Writing often limits
/// the loss if a kernel fails or the process ends, and the factor keeps its share of device time low.
const WRITTEN_AFTER: u32 = 25;
const MIN_WRITTEN_AFTER: Duration = Duration::from_millis(20);

/// The next action after a [step](Drainer::step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for a request of a caller.
    Wait,
    /// Make another step after this time or at a request of a caller.
    Again(Duration),
    /// End the recording.
    End,
}

/// Results of a recording that has ended.
#[derive(Debug)]
pub struct Ended<D, W> {
    /// The device; `None` if running launches still write into its memory.
    pub device: Option<D>,
    /// The output and its totals, or why the trace has no end.
    pub outcome: Result<(W, Summary, LaunchReport), SessionError>,
}

/// Writes the records of launches to the file. Owns the device.
pub struct Drainer<D, W: Write + Send + 'static, E> {
    pub(super) shared: Arc<Shared<E>>,
    pub(super) device: D,
    pub(super) worker: Option<Worker<W>>,
    /// Launches that are not known to have ended.
    pub(super) running: Vec<(Ticket, E)>,
    pub(super) write_at: Option<Instant>,
    /// Launches without logs that are being passed to the writer with a drain.
    pub(super) plain: Vec<LaunchInfo>,
}

impl<D, W: Write + Send + 'static, E> std::fmt::Debug for Drainer<D, W, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drainer").field("running", &self.running.len()).finish_non_exhaustive()
    }
}

impl<D: Device, W: Write + Send + 'static, E: Ending> Drainer<D, W, E> {
    /// Drains until the recording is to [end](super::Launches::end) or fails, and ends the file, with a final
    /// message from `last`. After an error, calls `fails` once the file contains the error.
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
        // Requests that arrived since the step are handled first.
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

    /// Polls for ended launches, and drains data that is due. Fails if a kernel, the device or file fails.
    pub fn step(&mut self, now: Instant) -> Result<Next, SessionError> {
        self.poll()?;
        let is_flush = {
            let state = self.shared.lock();
            if let (Some(reason), true) = (&state.failed, state.is_abandoned) {
                return Err(SessionError::Ended { reason: reason.clone() });
            }
            state.flushes > state.flushed && self.running.is_empty() && state.launched.is_empty()
        };
        // The first launch starts the interval; later ones start after each write.
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

    /// Polls for launches that have ended, and reads the counters of their arenas.
    fn poll(&mut self) -> Result<(), SessionError> {
        self.running.append(&mut self.shared.lock().launched);
        let (mut ended, mut running) = (Vec::new(), 0);
        let mut still = Vec::with_capacity(self.running.len());
        let mut all = std::mem::take(&mut self.running).into_iter();
        let mut failed = None;
        for (ticket, mut ending) in all.by_ref() {
            match ending.has_ended() {
                Ok(true) => ended.push(ticket),
                Ok(false) => {
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
            ended.into_iter().for_each(|ticket| state.ledger.ended(ticket));
            (state.ledger.last(), state.ledger.unread())
        };
        let (last, unread) = unread;
        if let Some(error) = failed {
            return Err(error.into());
        }
        self.settle(last, unread)
    }

    /// Reads the counters of arenas in which launches up to `last` have ended.
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

    /// Sends finished arenas to the writer, with `all` also the filling one unless that blocks callers.
    fn drain(&mut self, all: bool) -> Result<(), SessionError> {
        let Some(worker) = &mut self.worker else { return Ok(()) };
        let (started, mut has_drained, plain) = (Instant::now(), false, &mut self.plain);
        drain::run_all(&mut self.device, worker, |drained| {
            let is_empty = drained.is_some();
            let mut state = self.shared.lock();
            // A waiting launch can use any arena.
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
        if let (Some(clock), Some(worker)) = (clock, &mut self.worker) {
            compare_clocks(&clock, &mut self.device, worker);
        }
        let Some(worker) = self.worker.take() else { return self.ended(Err(SessionError::Unusable)) };
        let mut state = self.shared.lock();
        let (pool, mut total) = (state.ledger.pool.take(), state.ledger.total);
        let pool = pool.filter(|_| !state.keeps_memory);
        drop(state);
        let freed = pool.map_or(Ok(()), |mut pool| pool.free(&mut self.device));
        // Frees before the writer thread's result is checked, so that an error of the file leaks no memory.
        let outcome = freed.and_then(|()| end(worker, &mut total));
        self.shared.lock().ledger.total = total;
        self.ended(outcome)
    }

    /// Ends the file while launches run. The file contains their data so far.
    fn leave(mut self, fails: impl FnOnce(&SessionError, &LaunchReport)) -> Ended<D, W> {
        self.device.read_beside();
        // Polls once more, so that ended launches are known.
        if let Err(error) = self.poll() {
            return self.fail(error, fails);
        }
        let running = self.shared.lock().ledger.running();
        let outcome = self.write_rest(None).and_then(|()| Err(SessionError::Running { running }));
        if let Err(error) = &outcome {
            self.shared.lock().failed = Some(error.to_string());
        }
        self.shared.done.notify_all();
        // Running launches still write into the device's memory.
        std::mem::forget(self.device);
        Ended { device: None, outcome }
    }

    /// Writes all data that was not drained, and ends the file. `failed` has the ticket and the error of
    /// launches that failed. Changes nothing if the device cannot be read.
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

    fn fail(mut self, error: SessionError, fails: impl FnOnce(&SessionError, &LaunchReport)) -> Ended<D, W> {
        // After a failed kernel every call fails: report the first launch that has not ended.
        self.running.append(&mut self.shared.lock().launched);
        let failing = |(ticket, ending): &mut (Ticket, E)| ending.has_ended().is_err().then_some(*ticket);
        let failed = self.running.iter_mut().find_map(failing);
        let others = self.shared.lock().ledger.running_beside(failed);
        // Host memory is still readable, and so is device memory if only a call has failed.
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
        // Dropping the worker writes its pending data.
        self.worker = None;
        // Called before launching threads see the error and may end the process.
        let total = self.shared.lock().ledger.total;
        fails(&error, &total);
        let (is_running, pool) = {
            let mut state = self.shared.lock();
            state.failed = Some(error.to_string());
            // New reservations may have been made meanwhile.
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
