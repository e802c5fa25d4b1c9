//! Launches that nobody waits for: whoever makes them reserves room, and a thread beside drains.
//!
//! ```text
//!  launching threads   Launches::reserve ──▶ the launch ──▶ Launches::launched
//!                          │ ledger, behind a lock that is never held while something is waited for
//!  one more thread     Drainer::step: what has ended? ──▶ claims ──▶ encode, copy, write ──▶ room
//! ```
//! A launch waits if all arenas are full, or if another runs of which nobody knows yet how much it records;
//! but not for longer than its caller says. For a kernel may itself wait for what the program does next.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warptrace_format::file::LocationInfo;

use super::ledger::{Ledger, Reserved, Ticket};
use super::pool::{Effort, Short};
use super::recorder::{end, end_early};
use super::worker::Worker;
use super::{LaunchReport, Recorder, SessionError, drain};
use crate::writer::Summary;
use crate::{Device, DeviceError, LaunchShape, RecordingSpec};

/// When so many launches have not ended, those behind them are not asked for: a program may begin hundreds,
/// and most end in the order in which they began.
const LOOKED_AT: usize = 16;
/// How often launches are looked at that have not ended; and if somebody waits for that.
const LOOK_EVERY: Duration = Duration::from_millis(1);
const LOOK_SOON: Duration = Duration::from_micros(50);
/// What was recorded is written after so many times as long as writing it took the last time, and no sooner
/// than this: a kernel that fails, or a program that ends without telling anybody, takes no more with it, and
/// writing takes little of the device's time.
const WRITTEN_AFTER: u32 = 25;
const MIN_WRITTEN_AFTER: Duration = Duration::from_millis(20);

/// How long a launch waits for launches that run.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// If they leave it too little room.
    pub short: Duration,
    /// If nobody knows, because one of them is the first of its kernel.
    pub unknown: Duration,
}

/// Tells when launches have ended that were made together.
pub trait Ending: Send {
    /// Tells how long they took, once they have ended; `None` while they run. Does not wait.
    ///
    /// # Errors
    /// If one of the kernels has failed.
    fn ended(&mut self) -> Result<Option<Duration>, DeviceError>;
}

/// What launching threads and the drainer share.
#[derive(Debug)]
struct Shared<E> {
    state: Mutex<State<E>>,
    /// Tells the drainer of what it waits for.
    asked: Condvar,
    /// Tells launches that there may be room, and who flushes that it is done.
    done: Condvar,
}

#[derive(Debug)]
struct State<E> {
    ledger: Ledger,
    /// Launches that the drainer does not know of.
    launched: Vec<(Ticket, E)>,
    /// Whether the drainer sleeps until it is woken.
    is_idle: bool,
    /// Launches that wait.
    waiting: usize,
    /// How long launches were waited for in vain that still run, all of them.
    in_vain: Option<Duration>,
    /// How often somebody has asked for all to be written, and up to which of them it is.
    flushes: u64,
    flushed: u64,
    /// That the recording is to end, and how long launches are waited for then.
    ends: Option<Duration>,
    /// Why nothing more is recorded.
    failed: Option<String>,
    /// Whether somebody else writes into the memory, for ever.
    is_abandoned: bool,
}

impl<E> Shared<E> {
    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A recording for those who make its launches, from any thread.
#[derive(Debug)]
pub struct Launches<E>(Arc<Shared<E>>);

/// A recording that has started: where launches find room, and what brings to the file what they record.
type Started<D, W, E> = (Launches<E>, Drainer<D, W, E>);

impl<E> Clone for Launches<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E: Ending> Launches<E> {
    /// Starts a recording on a device whose kernels others launch: takes memory and begins the file. What is
    /// returned besides brings to the file what launches record, on a thread that the caller gives it.
    ///
    /// # Errors
    /// As [`Recorder::start`]; also if logs are to be streamed.
    pub fn start<D: Device, W: Write + Send + 'static>(
        mut device: D,
        spec: &RecordingSpec,
        output: W,
    ) -> Result<Started<D, W, E>, (SessionError, D)> {
        let started = Recorder::start_with(&mut device, &[], Vec::new(), (spec, (&[], "")), true, output);
        let Recorder { ledger, worker, .. } = match started {
            Ok(recorder) => recorder,
            Err(error) => return Err((error, device)),
        };
        let state = State {
            ledger,
            launched: Vec::new(),
            is_idle: false,
            waiting: 0,
            in_vain: None,
            flushes: 0,
            flushed: 0,
            ends: None,
            failed: None,
            is_abandoned: false,
        };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), asked: Condvar::new(), done: Condvar::new() });
        let launches = Self(Arc::clone(&shared));
        let drainer = Drainer { shared, device, worker, running: Vec::new(), write_at: None };
        Ok((launches, drainer))
    }

    /// Adds kernels, each with its source file or an empty text, and locations, which launches may name from
    /// now on; returns the first kernel's number.
    ///
    /// # Errors
    /// As [`Recorder::add_kernels`].
    pub fn add_kernels(
        &self,
        kernels: &[(&str, &str)],
        locations: Vec<LocationInfo>,
    ) -> Result<u32, SessionError> {
        self.0.lock().ledger.add_kernels(kernels, locations)
    }

    /// Keeps a text in the file, as [`Recorder::keep_text`].
    pub fn keep_text(&self, name: &str, text: &str) {
        self.0.lock().ledger.keep_text(name, text);
    }

    /// Gives launches that are about to be made together, by the numbers of their kernels, room for their
    /// logs: one, or all of a graph, in an order in which they may run. Waits if there is none, at most for
    /// `patience`.
    ///
    /// The caller makes the launches, and says so by [`launched`](Self::launched) or
    /// [`cancel`](Self::cancel).
    ///
    /// # Errors
    /// [`SessionError::Busy`], if those before do not end and leave no room, and other
    /// [refusals](SessionError::is_refusal): then nothing has changed, and the caller may run the kernels
    /// untraced. [`SessionError::Ended`], if nothing more can be recorded.
    pub fn reserve(
        &self,
        launches: &[(u32, LaunchShape)],
        patience: Patience,
    ) -> Result<Reserved, SessionError> {
        let mut state = self.0.lock();
        if state.ledger.window.max_events.is_some() {
            // Asks how many events there are.
            state = self.flushed(state)?;
        }
        let short = match state.try_reserve(launches, Effort::Ample)? {
            Ok(reserved) => {
                self.wake(&state);
                return Ok(reserved);
            }
            Err(short) => short,
        };
        let (longest, is_first) = match short {
            Short::Room => (patience.short, false),
            Short::Unknown => (patience.unknown, true),
            Short::Never => return Err(state.refusal(launches)),
        };
        // Nobody waits once more for launches that were waited for in vain, before one of them has ended.
        let longest =
            if state.in_vain.is_some_and(|waited| waited >= longest) { Duration::ZERO } else { longest };
        let started = Instant::now();
        state.waiting += 1;
        let reserved = loop {
            let left = longest.saturating_sub(started.elapsed());
            if left.is_zero() {
                break state.try_reserve(launches, Effort::Least);
            }
            self.0.asked.notify_one();
            let waited = self.0.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            match state.try_reserve(launches, Effort::Ample) {
                Ok(Err(Short::Room | Short::Unknown)) => {}
                found => break found,
            }
        };
        state.waiting -= 1;
        if !longest.is_zero() {
            let waits = &mut state.ledger.total.waits;
            *(if is_first { &mut waits.for_first } else { &mut waits.for_room }) += 1;
            waits.time += started.elapsed();
        }
        match reserved? {
            Ok(reserved) => Ok(reserved),
            Err(Short::Never) => Err(state.refusal(launches)),
            Err(_) => {
                if !longest.is_zero() {
                    state.in_vain = Some(longest);
                }
                Err(SessionError::Busy { running: state.ledger.running(), patience: longest })
            }
        }
    }

    /// Says that launches were made, and how it is known when they have ended.
    pub fn launched(&self, ticket: Ticket, ending: E) {
        let mut state = self.0.lock();
        state.launched.push((ticket, ending));
        self.wake(&state);
    }

    /// Takes back what was reserved: the launches are not made.
    pub fn cancel(&self, ticket: Ticket) {
        self.0.lock().ledger.cancel(ticket);
        self.0.done.notify_all();
    }

    /// Wakes the drainer, if it sleeps.
    fn wake(&self, state: &State<E>) {
        if state.is_idle || state.ledger.pool.as_ref().is_some_and(|pool| pool.is_closing()) {
            self.0.asked.notify_one();
        }
    }

    /// Waits until all launches have ended and what they recorded is written.
    ///
    /// # Errors
    /// If a kernel, the device or the file fails.
    pub fn flush(&self) -> Result<(), SessionError> {
        self.flushed(self.0.lock()).map(drop)
    }

    fn flushed<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<E>>,
    ) -> Result<MutexGuard<'s, State<E>>, SessionError> {
        state.flushes += 1;
        let asked = state.flushes;
        self.0.asked.notify_one();
        loop {
            if let Some(reason) = &state.failed {
                return Err(SessionError::Ended { reason: reason.clone() });
            }
            if state.flushed >= asked {
                return Ok(state);
            }
            state = self.0.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sums over all launches that have ended; what is in the file up to the last [`flush`](Self::flush).
    pub fn total(&self) -> LaunchReport {
        self.0.lock().ledger.total
    }

    /// How many launches wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.0.lock().waiting
    }

    /// Tells whether no launch runs, and how much each has needed is known.
    pub fn is_idle(&self) -> bool {
        self.0.lock().ledger.is_idle()
    }

    /// Gives the recording up: what was written until now is in the file, and its memory is left to whatever
    /// writes there.
    pub fn abandon(&self, why: &str) {
        let mut state = self.0.lock();
        state.failed.get_or_insert_with(|| why.to_owned());
        state.is_abandoned = true;
        self.0.asked.notify_one();
        self.0.done.notify_all();
    }

    /// Asks the [drainer](Drainer::run) to end the recording; launches that run are waited for, so long at
    /// most. Nothing can be reserved from now on.
    pub fn end(&self, patience: Duration) {
        let mut state = self.0.lock();
        state.ends = Some(patience);
        state.failed.get_or_insert_with(|| "the trace was ending".to_owned());
        self.0.asked.notify_one();
        self.0.done.notify_all();
    }
}

impl<E> State<E> {
    fn try_reserve(
        &mut self,
        launches: &[(u32, LaunchShape)],
        effort: Effort,
    ) -> Result<Result<Reserved, Short>, SessionError> {
        if let Some(reason) = &self.failed {
            return Err(SessionError::Ended { reason: reason.clone() });
        }
        let mut infos = Vec::with_capacity(launches.len());
        for (kernel, shape) in launches {
            infos.push(self.ledger.describe(&infos, *kernel, shape)?);
        }
        Ok(self.ledger.reserve(infos, effort))
    }

    fn refusal(&self, launches: &[(u32, LaunchShape)]) -> SessionError {
        let infos = launches.iter().map(|(kernel, shape)| self.ledger.describe(&[], *kernel, shape));
        let infos: Result<Vec<_>, _> = infos.collect();
        match (infos, &self.ledger.pool) {
            (Ok(infos), Some(pool)) => pool.refusal(&infos),
            (Err(error), _) => error,
            _ => SessionError::Unusable,
        }
    }
}

/// What is to be done after a [step](Drainer::step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until somebody asks for something.
    Wait,
    /// Another step, after so long or when somebody asks for something.
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

/// Brings to the file what launches record. It owns the device; nobody else's work waits for it.
pub struct Drainer<D, W: Write + Send + 'static, E> {
    shared: Arc<Shared<E>>,
    device: D,
    /// `None` after the end.
    worker: Option<Worker<W>>,
    /// Launches that have not ended as far as is known.
    running: Vec<(Ticket, E)>,
    /// When what was recorded is written next.
    write_at: Option<Instant>,
}

impl<D, W: Write + Send + 'static, E> std::fmt::Debug for Drainer<D, W, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drainer").field("running", &self.running.len()).finish_non_exhaustive()
    }
}

impl<D: Device, W: Write + Send + 'static, E: Ending> Drainer<D, W, E> {
    /// Drains until the recording is to [end](Launches::end), or something fails, and ends the file. If
    /// something fails before, `fails` is told, once the file says so.
    pub fn run(mut self, fails: impl FnOnce(&SessionError, &LaunchReport)) -> Ended<D, W> {
        loop {
            match self.step(Instant::now()) {
                Ok(Next::End) => return self.finish(fails),
                Ok(Next::Wait) => self.wait(None),
                Ok(Next::Again(after)) => self.wait(Some(after)),
                Err(error) => return self.fail(error, fails),
            }
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

    /// Looks for launches that have ended, and brings to the file what is worth it at this time.
    ///
    /// # Errors
    /// If a kernel, the device or the file fails.
    pub fn step(&mut self, now: Instant) -> Result<Next, SessionError> {
        self.look()?;
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
            true => Next::Again(write_at.saturating_duration_since(now).max(LOOK_EVERY)),
            false if state.waiting > 0 => Next::Again(LOOK_SOON),
            false if state.ledger.pool.as_ref().is_some_and(|pool| pool.is_closing()) => {
                Next::Again(LOOK_SOON)
            }
            false => Next::Again(LOOK_EVERY),
        })
    }

    /// Looks for launches that have ended, and reads how much memory they have claimed.
    fn look(&mut self) -> Result<(), SessionError> {
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
                    failed = Some((ticket, error));
                    break;
                }
            }
            if running >= LOOKED_AT {
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
        if let Some((ticket, error)) = failed {
            // Drained is what came before, as far as the device still has it.
            let _ = self.settle(last, unread).and_then(|()| self.drain(true));
            let error = SessionError::from(error);
            let mut state = self.shared.lock();
            if let (Some(info), Some(worker)) = (state.ledger.failed(ticket), self.worker.take()) {
                let begin = state.ledger.job(None).plain;
                drop(state);
                end_early(worker, begin, info, &error);
            }
            return Err(error);
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
    /// nobody from launching.
    fn drain(&mut self, all: bool) -> Result<(), SessionError> {
        let Some(worker) = &mut self.worker else { return Ok(()) };
        let (started, mut has_drained) = (Instant::now(), false);
        loop {
            let job = {
                let mut state = self.shared.lock();
                // Who waits is helped by any arena.
                let all = all || state.waiting > 0;
                state.ledger.next_job(all)
            };
            let Some(job) = job else { break };
            has_drained = true;
            let arena = job.filled.as_ref().map(|filled| filled.arena);
            let cost = drain::run(job, &mut self.device, worker)?;
            if let Some(arena) = arena {
                self.shared.lock().ledger.drained(arena, &cost);
                self.shared.done.notify_all();
            }
        }
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
            if let Err(error) = self.look() {
                break Err(error);
            }
            if self.shared.lock().ledger.running() == 0 {
                break Ok(());
            }
            if started.elapsed() >= patience {
                break Ok(());
            }
            self.wait(Some(LOOK_EVERY));
        };
        if let Err(error) = waited.and_then(|()| self.drain(true)) {
            return self.fail(error, fails);
        }
        let (running, still, begin) = {
            let mut state = self.shared.lock();
            let ledger = &mut state.ledger;
            (ledger.running(), ledger.first_running(), ledger.job(None).plain)
        };
        let Some(worker) = self.worker.take() else { return self.ended(Err(SessionError::Unusable)) };
        if let Some(info) = still {
            let error = SessionError::Running { running };
            end_early(worker, begin, info, &error);
            // They write into its memory.
            std::mem::forget(self.device);
            return Ended { device: None, outcome: Err(error) };
        }
        let mut state = self.shared.lock();
        let (pool, mut total) = (state.ledger.pool.take(), state.ledger.total);
        drop(state);
        let freed = pool.map_or(Ok(()), |mut pool| pool.free(&mut self.device));
        // Before the thread's answer, so that no error of the file leaves memory behind.
        let outcome = freed.and_then(|()| end(worker, &mut total));
        self.shared.lock().ledger.total = total;
        self.ended(outcome)
    }

    /// Ends the file after an error.
    fn fail(mut self, error: SessionError, fails: impl FnOnce(&SessionError, &LaunchReport)) -> Ended<D, W> {
        // Dropped, it writes what it was given.
        self.worker = None;
        // Before anybody who launches learns of it, and may end the process.
        let total = self.shared.lock().ledger.total;
        fails(&error, &total);
        let (is_running, pool) = {
            let mut state = self.shared.lock();
            state.failed = Some(error.to_string());
            (state.is_abandoned || state.ledger.running() > 0, state.ledger.pool.take())
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
