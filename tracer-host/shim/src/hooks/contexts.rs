//! Ends the traces of contexts before the program destroys the contexts.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Mutex;

use super::Handle;
use crate::driver::{self, Answer, SUCCESS};
use crate::inside::guarded;
use crate::state::{lock, state};
use crate::trace;

/// Counts how often the program retains each device's primary context. The last release destroys it.
static RETAINED: Mutex<Option<HashMap<c_int, u64>>> = Mutex::new(None);

fn count(device: c_int, change: impl FnOnce(u64) -> u64) -> u64 {
    let mut retained = lock(&RETAINED);
    let count = retained.get_or_insert_with(HashMap::new).entry(device).or_default();
    *count = change(*count);
    *count
}

pub(super) fn end(context: Handle) {
    guarded(|| {
        let (_current, _relaxed) = (driver::Current::keep(), driver::Relaxed::enter());
        state().map(|state| trace::end(state, context))
    });
}

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
