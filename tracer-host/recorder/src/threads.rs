//! Thread pool for finding, ordering, compressing and copying drained data.
//!
//! It is separate from the program's own rayon pool. A pool thread that waits for one task runs another one
//! meanwhile: a task of the program could then wait for the writer that its own thread has to run.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Returns the pool, as large as rayon's default pool, started on first use; `None` if threads cannot start.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let start = || ThreadPoolBuilder::new().thread_name(|number| format!("warptrace {number}")).build().ok();
    POOL.get_or_init(start).as_ref()
}

/// Runs `run` on a thread of the pool, so that its parallel work uses the pool.
pub(crate) fn install<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    match pool() {
        Some(pool) => pool.install(run),
        None => run(),
    }
}

/// Runs `run` on each thread of the pool, without waiting.
pub(crate) fn on_each(run: impl Fn() + Send + Sync + 'static) {
    if let Some(pool) = pool() {
        pool.spawn_broadcast(move |_| run());
    }
}
