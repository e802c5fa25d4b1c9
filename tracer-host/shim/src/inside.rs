//! Tells whether the thread is inside of the tracer, whose own calls of the driver go straight to it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The thread is inside of the tracer until this is dropped.
pub(crate) struct Inside(());

impl Inside {
    /// Enters; `None` if the thread is inside already, or ends.
    pub(crate) fn enter() -> Option<Self> {
        match INSIDE.try_with(|inside| inside.replace(true)) {
            Ok(false) => Some(Self(())),
            Ok(true) | Err(_) => None,
        }
    }

    /// Tells whether the thread is inside.
    pub(crate) fn is() -> bool {
        INSIDE.try_with(Cell::get).unwrap_or(true)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(false));
    }
}

/// Runs what must never break the program; `None` if it panics.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}
