//! The threads that find, order, compress and copy what was drained.
//!
//! They are not those of the program: a thread that waits for one task of a pool does another one meanwhile,
//! and a task of the program may wait for the very writer that would then do it.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// As many threads as rayon's own pool would have, started when they are first asked for; `None` if the
/// system has none left.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let start = || ThreadPoolBuilder::new().thread_name(|number| format!("warptrace {number}")).build().ok();
    POOL.get_or_init(start).as_ref()
}

/// Does something on one of the threads, so that what it does in parallel is done by all of them.
pub(crate) fn install<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    match pool() {
        Some(pool) => pool.install(run),
        None => run(),
    }
}

/// Has each thread do something, and does not wait for it.
pub(crate) fn on_each(run: impl Fn() + Send + Sync + 'static) {
    if let Some(pool) = pool() {
        pool.spawn_broadcast(move |_| run());
    }
}
