//! Runs a launch on threads of its own, so that the calling one can serve its logs.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rayon::ThreadPool;

use crate::{DeviceError, LiveMemory, Serve};

/// How long is waited for the kernel's end between two calls of `serve`.
const PAUSE: Duration = Duration::from_micros(50);

/// Runs `kernel` in the pool, and calls `serve` with its memory until it has ended, or `serve` fails. Returns
/// what both of them did.
pub(super) fn run_served<R: Send>(
    pool: &ThreadPool,
    kernel: impl FnOnce() -> R + Send,
    memory: &mut dyn LiveMemory,
    serve: &mut Serve<'_>,
) -> (R, Result<(), DeviceError>) {
    let (done, end) = mpsc::channel();
    let mut served = Ok(());
    let result = pool.in_place_scope(|scope| {
        scope.spawn(move |_| {
            // The other end is there until this has come.
            let _ = done.send(kernel());
        });
        loop {
            let result = if served.is_ok() {
                end.recv_timeout(PAUSE)
            } else {
                end.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match result {
                Err(RecvTimeoutError::Timeout) => served = serve(memory),
                Err(RecvTimeoutError::Disconnected) => return None,
                Ok(result) => return Some(result),
            }
        }
    });
    // If the kernel's thread has panicked, the scope has done so, too.
    (result.expect("the kernel's thread has ended"), served)
}
