//! Launches that no caller waits for: a launch reserves memory, and a separate thread drains.
//!
//! ```text
//!  launching threads   Launches::reserve ──▶ the launch ──▶ Launches::launched
//!                          │ ledger, protected by a lock that is never held during a wait
//!  one more thread     Drainer::step: what has ended? ──▶ claims ──▶ encode, copy, write ──▶ room
//! ```
//! A launch waits if all arenas are full, or if the amount that a running launch records is not known yet.
//! The caller limits the wait, because a kernel may itself wait for a later action of the program.

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

/// Maximum wait of a launch for running launches.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// If they leave too little memory.
    pub short: Duration,
    /// If their need is unknown, because one of them is the first launch of its kernel.
    pub unknown: Duration,
}

/// Detects the end of launches that were made together.
pub trait Ending: Send {
    /// Returns true if the launches have ended. Never waits. Fails if a kernel failed.
    fn has_ended(&mut self) -> Result<bool, DeviceError>;
}

/// State shared by launching threads and the drainer.
#[derive(Debug)]
struct Shared<E> {
    state: Mutex<State<E>>,
    /// Wakes the drainer.
    asked: Condvar,
    /// Wakes launches when memory may be free, and flushing threads when the flush is done.
    done: Condvar,
}

#[derive(Debug)]
struct State<E> {
    ledger: Ledger,
    /// Launches that the drainer has not received yet.
    launched: Vec<(Ticket, E)>,
    is_idle: bool,
    waiting: usize,
    /// The last wait without result; reset when a launch ends.
    in_vain: Option<Duration>,
    /// Number of flush requests, and the last one that is done.
    flushes: u64,
    flushed: u64,
    /// Set if the recording is to end: the maximum wait for running launches.
    ends: Option<Duration>,
    failed: Option<String>,
    /// Whether a launch that never ends may write into the memory.
    is_abandoned: bool,
    keeps_memory: bool,
    gives_up: Option<Arc<AtomicBool>>,
}

impl<E> Shared<E> {
    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A recording, for the threads that make its launches.
#[derive(Debug)]
pub struct Launches<E>(Arc<Shared<E>>);

type Started<D, W, E> = (Launches<E>, Drainer<D, W, E>);

impl<E> Clone for Launches<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E: Ending> Launches<E> {
    /// Starts a recording on a device whose kernels are launched by other code: allocates memory and begins
    /// the file. The caller runs the returned drainer, which writes the records of launches, on a thread.
    /// Fails like [`Recorder::start`], and if logs are to be streamed.
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
        // Callers check the NVTX ranges of their launches.
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

    /// Adds kernels and locations for later launches. Each kernel has a name and a source file, which may be
    /// an empty text. Returns the number of the first added kernel. Fails like [`Recorder::add_kernels`].
    pub fn add_kernels(
        &self,
        kernels: &[(&str, &str)],
        locations: Vec<LocationInfo>,
    ) -> Result<u32, SessionError> {
        self.0.lock().ledger.add_kernels(kernels, locations)
    }

    /// Sends a message to the writer. If the format cannot hold it, writing the file fails.
    pub fn send(&self, message: HostMessage) {
        self.0.lock().ledger.send(message);
    }

    /// Registers a change of the memory that launches can access. It applies to launches that are reserved
    /// after this call.
    pub fn change_memory(&self, change: MemoryChange) {
        self.0.lock().ledger.change_memory(change);
    }

    /// Reserves log memory for launches that are about to be made together: a single launch, or all launches
    /// of a graph in a possible order of execution. Each launch has a kernel number and a shape; in the file,
    /// all of them have the name `name`. Callers select the recorded ranges by
    /// [`Window::is_within`](crate::Window::is_within). Waits for memory, at most for `patience`. Afterwards
    /// the caller makes the launches and calls [`launched`](Self::launched), or calls
    /// [`cancel`](Self::cancel).
    ///
    /// # Errors
    /// [`SessionError::Busy`] if running launches leave too little memory, and other
    /// [refusals](SessionError::is_refusal). Then nothing has changed, and the caller may run the kernels
    /// untraced. [`SessionError::Ended`] if nothing more can be recorded.
    pub fn reserve(
        &self,
        launches: &[(u32, LaunchShape)],
        name: &LaunchName,
        patience: Patience,
    ) -> Result<Reserved, SessionError> {
        let mut state = self.0.lock();
        if state.ledger.window.max_events.is_some() {
            // Updates the number of recorded events.
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
        // After a wait without result, do not wait again for the same launches before one of them has ended.
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

    /// Registers a launch that is not recorded: the file lists it without logs, under `name`. Does not wait.
    /// The end of the launch is unknown, and its start is stored only if it begins now. Fails with
    /// [`SessionError::Ended`] if nothing more can be recorded, or too many launches were registered this
    /// way; or if the format does not support the launch's shape.
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

    /// Keeps the recording's memory allocated at the end: freeing it would wait for all running kernels.
    pub fn keep_memory(&self) {
        self.0.lock().keeps_memory = true;
    }

    /// Registers that launches were made, and how to detect their end.
    pub fn launched(&self, ticket: Ticket, ending: E) {
        let mut state = self.0.lock();
        state.launched.push((ticket, ending));
        self.wake(&state);
    }

    /// Cancels a reservation whose launches are not made.
    pub fn cancel(&self, ticket: Ticket) {
        self.0.lock().ledger.cancel(ticket);
        self.0.done.notify_all();
    }

    /// Wakes the drainer if it sleeps or an arena is closing.
    fn wake(&self, state: &State<E>) {
        if state.is_idle || state.ledger.pool.as_ref().is_some_and(|pool| pool.is_closing()) {
            self.0.asked.notify_one();
        }
    }

    /// Waits until all launches have ended and are written. Fails if a kernel, the device or the file fails.
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

    /// Returns the totals of ended launches; file data is counted up to the last [`flush`](Self::flush).
    pub fn total(&self) -> LaunchReport {
        self.0.lock().ledger.total
    }

    /// Returns the oldest launch that has not ended. Does not wait.
    pub fn oldest(&self) -> Option<OldestLaunch> {
        self.0.lock().ledger.oldest()
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.0.lock().waiting
    }

    /// Returns true if no launch runs and the memory use of all launches is known.
    pub fn is_idle(&self) -> bool {
        self.0.lock().ledger.is_idle()
    }

    /// Abandons the recording. Keeps the file as written so far, and the memory, to which a kernel may write.
    pub fn abandon(&self, why: &str) {
        let mut state = self.0.lock();
        state.failed.get_or_insert_with(|| why.to_owned());
        state.is_abandoned = true;
        self.0.asked.notify_one();
        self.0.done.notify_all();
    }

    /// Asks the [drainer](Drainer::run) to end the recording. It waits for running launches, at most for
    /// `patience`. No reservations succeed from now on.
    pub fn end(&self, patience: Duration) {
        let mut state = self.0.lock();
        state.ends = Some(state.ends.map_or(patience, |before| before.min(patience)));
        state.failed.get_or_insert_with(|| "the trace was ending".to_owned());
        self.0.asked.notify_one();
        self.0.done.notify_all();
    }

    /// Like [`end`](Self::end), but does not wait: the file has the records of running launches so far and
    /// the positions of their warps ([`EarlyEnd::Running`](warptrace_format::file::EarlyEnd)).
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
