//! Marks threads that are inside the tracer. Hooks pass their driver calls through.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// While this value lives, the thread is inside the tracer.
pub(crate) struct Inside(());

impl Inside {
    /// Enters the tracer. Returns `None` if the thread is inside already, or ends.
    pub(crate) fn enter() -> Option<Self> {
        match INSIDE.try_with(|inside| inside.replace(true)) {
            Ok(false) => Some(Self(())),
            Ok(true) | Err(_) => None,
        }
    }

    pub(crate) fn is() -> bool {
        INSIDE.try_with(Cell::get).unwrap_or(true)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(false));
    }
}

/// Runs code that must not break the program. Returns `None` if it panics.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}
