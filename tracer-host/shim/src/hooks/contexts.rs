//! Contexts that the program ends: their traces are ended before.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Mutex;

use super::Handle;
use crate::driver::{self, Answer, SUCCESS};
use crate::inside::guarded;
use crate::state::{lock, state};
use crate::trace;

/// How often each device's primary context is retained: it ends with the last release.
static RETAINED: Mutex<Option<HashMap<c_int, u64>>> = Mutex::new(None);

/// Changes how often a device's context is retained, and returns that.
fn count(device: c_int, change: impl FnOnce(u64) -> u64) -> u64 {
    let mut retained = lock(&RETAINED);
    let count = retained.get_or_insert_with(HashMap::new).entry(device).or_default();
    *count = change(*count);
    *count
}

/// Ends the trace of a context.
pub(super) fn end(context: Handle) {
    guarded(|| {
        let (_current, _relaxed) = (driver::Current::keep(), driver::Relaxed::enter());
        state().map(|state| trace::end(state, context))
    });
}

/// Ends the trace of a context that has a part of a device.
pub(super) fn end_green(green: Handle) {
    if let Some(Some(context)) = guarded(|| driver::context_of_green(green)) {
        end(context);
    }
}

pub(super) fn retain(answer: Answer, device: c_int) -> Answer {
    if answer == SUCCESS {
        guarded(|| count(device, |retained| retained + 1));
    }
    answer
}

pub(super) fn release(device: c_int) {
    guarded(|| {
        if count(device, |retained| retained.saturating_sub(1)) == 0 {
            driver::primary_context(device).into_iter().for_each(end);
        }
    });
}

pub(super) fn reset(device: c_int) {
    guarded(|| {
        count(device, |_| 0);
        driver::primary_context(device).into_iter().for_each(end);
    });
}
