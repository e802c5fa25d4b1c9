//! Runs a launch on separate threads, so that the calling thread can empty its logs.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rayon::ThreadPool;

use crate::{DeviceError, LiveMemory, Serve};

/// Wait for the kernel's end between two calls of `serve`.
const PAUSE: Duration = Duration::from_micros(50);

/// Runs `kernel` in the pool, and `serve` until the kernel ends or `serve` fails. Returns both results.
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
            // The receiver exists until the result has arrived.
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
    // A panic of the kernel's thread has already propagated through the scope.
    (result.expect("the kernel's thread has ended"), served)
}
