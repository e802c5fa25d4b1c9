//! Launches that no caller waits for: a launch reserves room, and a thread of its own drains.
//!
//! ```text
//!  launching threads   Launches::reserve ──▶ the launch ──▶ Launches::launched
//!                          │ ledger, behind a lock that is never held while something is waited for
//!  one more thread     Drainer::step: what has ended? ──▶ claims ──▶ encode, copy, write ──▶ room
//! ```
//! A launch waits if all arenas are full, or if it is not known yet how much one that runs records;
//! but not for longer than its caller says. For a kernel may itself wait for what the program does next.

mod drainer;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use warptrace_format::file::LocationInfo;

pub use self::drainer::{Drainer, Ended, Next};
use super::ledger::{Ledger, OldestLaunch, Reserved, Ticket};
use super::pool::{Effort, Short};
use super::{LaunchReport, Recorder, SessionError};
use crate::{Device, DeviceError, HostMessage, LaunchName, LaunchShape, MemoryChange, RecordingSpec};

/// How long a launch waits for launches that run.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// If they leave it too little room.
    pub short: Duration,
    /// If that is not known, because one of them is the first of its kernel.
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
    /// How long launches that still run were waited for, all of them.
    in_vain: Option<Duration>,
    /// How often a caller has asked for all to be written, and up to which of them it is.
    flushes: u64,
    flushed: u64,
    /// That the recording is to end, and how long launches are waited for then.
    ends: Option<Duration>,
    /// Why nothing more is recorded.
    failed: Option<String>,
    /// Whether a launch that never ends writes into the memory.
    is_abandoned: bool,
    /// Whether memory is not given back.
    keeps_memory: bool,
    /// What makes the device wait for nothing more.
    gives_up: Option<Arc<AtomicBool>>,
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
        let Recorder { mut ledger, worker, .. } = match started {
            Ok(recorder) => recorder,
            Err(error) => return Err((error, device)),
        };
        // Callers know the ranges that their launches are in.
        ledger.window.nvtx.clear();
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
            keeps_memory: false,
            gives_up: device.gives_up(),
        };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), asked: Condvar::new(), done: Condvar::new() });
        let launches = Self(Arc::clone(&shared));
        let drainer =
            Drainer { shared, device, worker, running: Vec::new(), write_at: None, plain: Vec::new() };
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

    /// Says something to the trace's writer. If the format does not hold it, writing the file fails.
    pub fn send(&self, message: HostMessage) {
        self.0.lock().ledger.send(message);
    }

    /// Notes a change of the memory that launches can reach which are reserved from now on.
    pub fn change_memory(&self, change: MemoryChange) {
        self.0.lock().ledger.change_memory(change);
    }

    /// Gives launches that are about to be made together, by the numbers of their kernels, room for their
    /// logs: one, or all of a graph, in an order in which they may run. Waits if there is none, at most for
    /// `patience`.
    ///
    /// The file has their `name`. Which ranges are recorded, callers decide by
    /// [`Window::is_within`](crate::Window::is_within).
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
        name: &LaunchName,
        patience: Patience,
    ) -> Result<Reserved, SessionError> {
        let mut state = self.0.lock();
        if state.ledger.window.max_events.is_some() {
            // Asks how many events there are.
            state = self.flushed(state)?;
        }
        let short = match state.try_reserve(launches, name, Effort::Ample)? {
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
        // Launches that did not end in time are not waited for again, before one of them has ended.
        let longest =
            if state.in_vain.is_some_and(|waited| waited >= longest) { Duration::ZERO } else { longest };
        let started = Instant::now();
        state.waiting += 1;
        let reserved = loop {
            let left = longest.saturating_sub(started.elapsed());
            if left.is_zero() {
                break state.try_reserve(launches, name, Effort::Least);
            }
            self.0.asked.notify_one();
            let waited = self.0.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            match state.try_reserve(launches, name, Effort::Ample) {
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

    /// Notes a launch that is not recorded, by the number of its kernel: the file has it without logs, with
    /// its `name`. Nothing waits, and when it ends is not known; when it began is noted only if it begins now.
    ///
    /// # Errors
    /// [`SessionError::Ended`], if nothing more can be recorded; or the file cannot name its warps, or has as many
    /// launches as are noted.
    pub fn note(
        &self,
        kernel: u32,
        shape: &LaunchShape,
        name: &LaunchName,
        begins_now: bool,
    ) -> Result<(), SessionError> {
        let mut state = self.0.lock();
        if let Some(reason) = &state.failed {
            return Err(SessionError::Ended { reason: reason.clone() });
        }
        state.ledger.note(kernel, shape, name, begins_now)?;
        if state.ledger.is_full() {
            self.0.asked.notify_one();
        }
        Ok(())
    }

    /// Has the device keep the memory of the recording when that ends: giving it back waits for all kernels that run.
    pub fn keep_memory(&self) {
        self.0.lock().keeps_memory = true;
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

    /// Returns the oldest launch that has not ended. Does not wait.
    pub fn oldest(&self) -> Option<OldestLaunch> {
        self.0.lock().ledger.oldest()
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
        state.ends = Some(state.ends.map_or(patience, |before| before.min(patience)));
        state.failed.get_or_insert_with(|| "the trace was ending".to_owned());
        self.0.asked.notify_one();
        self.0.done.notify_all();
    }

    /// Asks the drainer to end the recording now: launches that run are in the file as far as they have come,
    /// with the positions of their warps ([`EarlyEnd::Running`](warptrace_format::file::EarlyEnd)). Nothing
    /// can be reserved from now on.
    pub fn end_now(&self) {
        self.end(Duration::ZERO);
        let state = self.0.lock();
        if let Some(gives_up) = state.gives_up.as_ref().filter(|_| state.ledger.running() > 0) {
            gives_up.store(true, Ordering::Relaxed);
        }
    }
}

impl<E> State<E> {
    fn try_reserve(
        &mut self,
        launches: &[(u32, LaunchShape)],
        name: &LaunchName,
        effort: Effort,
    ) -> Result<Result<Reserved, Short>, SessionError> {
        if let Some(reason) = &self.failed {
            return Err(SessionError::Ended { reason: reason.clone() });
        }
        self.ledger.name.clone_from(name);
        let mut infos = Vec::with_capacity(launches.len());
        for (kernel, shape) in launches {
            infos.push(self.ledger.describe(&infos, *kernel, shape)?);
        }
        Ok(self.ledger.reserve(infos, effort))
    }

    fn refusal(&self, launches: &[(u32, LaunchShape)]) -> SessionError {
        let infos = launches.iter().map(|(kernel, shape)| self.ledger.describe(&[], *kernel, shape));
        let infos: Result<Vec<_>, _> = infos.collect();
        infos.map_or_else(|error| error, |infos| self.ledger.refusal(&infos))
    }
}
