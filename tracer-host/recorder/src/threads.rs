//! Thread pools for finding, ordering and compressing drained data, and for copying it.
//!
//! They are separate from the program's own rayon pool. A pool thread that waits for one task runs another one
//! meanwhile: a task of the program could then wait for the writer that its own thread has to run.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Threads that copy from pinned memory. Few cores copy as fast as the link.
const COPYING: usize = 4;

/// A pool, started on first use; `None` if threads cannot start.
type Pool = OnceLock<Option<ThreadPool>>;

/// As large as rayon's default pool.
static POOL: Pool = OnceLock::new();
/// Separate, because a pool takes up new work only when a thread has nothing else to do: copies, for which the
/// device waits, would wait for the compression of earlier data.
static COPIES: Pool = OnceLock::new();

fn run_in<R: Send>(pool: &'static Pool, threads: usize, run: impl FnOnce() -> R + Send) -> R {
    match started(pool, threads) {
        Some(pool) => pool.install(run),
        None => run(),
    }
}

fn started(pool: &'static Pool, threads: usize) -> Option<&'static ThreadPool> {
    let builder = || ThreadPoolBuilder::new().num_threads(threads);
    pool.get_or_init(|| builder().thread_name(|number| format!("warptrace {number}")).build().ok()).as_ref()
}

/// Runs `run` on a thread of the pool, so that its parallel work uses the pool.
pub(crate) fn install<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    run_in(&POOL, 0, run)
}

/// Like [`install`], for work that the device waits for.
pub(crate) fn copy<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    run_in(&COPIES, COPYING, run)
}

/// Runs `run` on each thread of the pool, without waiting.
pub(crate) fn on_each(run: impl Fn() + Send + Sync + 'static) {
    if let Some(pool) = started(&POOL, 0) {
        pool.spawn_broadcast(move |_| run());
    }
}
