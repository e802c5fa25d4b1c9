//! The thread that looks for launches that have ended, and the end of the process.

use std::ffi::c_void;
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::PATIENCE;
use crate::driver::Relaxed;
use crate::inside::{Inside, guarded};
use crate::state::{State, lock, state};

/// How often launches are looked at that have not ended.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// While this lives, the thread gets no signals, nor do threads that it starts, ever.
pub(super) struct Signals(libc::sigset_t);

impl Signals {
    pub(super) fn block() -> Self {
        // SAFETY: both sets are the system's own type, which it fills.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the mask that the thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Starts the thread that looks for launches that have ended, and ends all traces when the process ends.
pub(super) fn watch(state: &'static State) -> bool {
    let look = || {
        let Some(_inside) = Inside::enter() else { return };
        let _ = guarded(|| {
            let _relaxed = Relaxed::enter();
            let mut traces = lock(&state.traces);
            while !traces.closed {
                for context in std::mem::take(&mut traces.ending) {
                    traces.end(state, context);
                }
                state.finished.notify_all();
                traces = if traces.look(state) {
                    // Not woken by each launch: they need the lock.
                    drop(traces);
                    std::thread::sleep(LOOK_EVERY);
                    lock(&state.traces)
                } else {
                    state.launched.wait(traces).unwrap_or_else(PoisonError::into_inner)
                };
            }
            traces.finish_all(state);
        });
        lock(&state.traces).is_finished = true;
        state.finished.notify_all();
    };
    std::thread::Builder::new().name("warptrace".to_owned()).spawn(look).is_ok()
}

/// Ends the trace of a context that is about to end.
pub(crate) fn end(state: &State, context: *mut c_void) {
    let (mut traces, key) = (lock(&state.traces), context as usize);
    if traces.is_watched && !traces.is_finished {
        // As below: it may be a destructor that ends the context.
        traces.ending.push(key);
        state.launched.notify_one();
        while traces.ending.contains(&key) && !traces.is_finished {
            traces = state.finished.wait(traces).unwrap_or_else(PoisonError::into_inner);
        }
    }
    traces.end(state, key);
}

/// Ends all traces of the process. The thread in which the process ends has lost its own variables, which
/// libraries need: so another one ends the traces.
pub(super) extern "C" fn at_exit() {
    let Some(_inside) = Inside::enter() else { return };
    let _ = guarded(|| {
        let Some(state) = state() else { return };
        let started = Instant::now();
        let traces = loop {
            match state.traces.try_lock() {
                Ok(traces) => break Some(traces),
                Err(TryLockError::Poisoned(poisoned)) => break Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if started.elapsed() > PATIENCE => break None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if let Some(mut traces) = traces {
            traces.closed = true;
            state.launched.notify_one();
            while traces.is_watched && !traces.is_finished {
                traces = state.finished.wait(traces).unwrap_or_else(PoisonError::into_inner);
            }
            // If there was no other thread, or it has failed.
            traces.finish_all(state);
        }
        lock(&state.summary).write();
    });
}
