//! The end of the process, and the signals of threads that are started here.

use std::sync::TryLockError;
use std::time::{Duration, Instant};

use super::{PATIENCE, Traces};
use crate::inside::{Inside, guarded};
use crate::state::{lock, state};

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

/// Ends all traces of the process. The thread in which the process ends has lost its own variables, which
/// libraries need: so the recorders' own threads end them.
pub(super) extern "C" fn at_exit() {
    let Some(_inside) = Inside::enter() else { return };
    let _ = guarded(|| {
        let Some(state) = state() else { return };
        super::noted::begin_waiting(state, None);
        let started = Instant::now();
        let recorders = loop {
            match state.traces.try_lock() {
                Ok(mut traces) => break traces.close(),
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner().close(),
                // A trace begins.
                Err(TryLockError::WouldBlock) if started.elapsed() > PATIENCE => break Vec::new(),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        super::hang::wait();
        // What the driver has goes with the process.
        std::mem::forget(Traces::finish(state, recorders));
        lock(&state.summary).write();
    });
}
