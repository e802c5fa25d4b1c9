//! Copies in streams. If `TEST_DRIVER_LATE` is set, copies run only when the program waits for them, as late
//! as a driver may run them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub enum Copy {
    ToDevice { to: u64, bytes: Vec<u8> },
    ToHost { to: usize, from: u64, bytes: usize },
}

static QUEUES: Mutex<BTreeMap<usize, Vec<Copy>>> = Mutex::new(BTreeMap::new());
static RECORDED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// The memory exists until the stream has been waited for.
pub unsafe fn give(stream: usize, copy: Copy) {
    lock(&QUEUES).entry(stream).or_default().push(copy);
    if std::env::var_os("TEST_DRIVER_LATE").is_none() {
        wait(stream);
    }
}

pub fn wait(stream: usize) {
    for copy in lock(&QUEUES).remove(&stream).unwrap_or_default() {
        // SAFETY: guaranteed by the caller of `give`.
        unsafe {
            match copy {
                Copy::ToDevice { to, bytes } => (to as *mut u8).copy_from(bytes.as_ptr(), bytes.len()),
                Copy::ToHost { to, from, bytes } => (to as *mut u8).copy_from(from as *const u8, bytes),
            }
        }
    }
}

/// The event comes after the copies of the stream so far.
pub fn record(event: usize, stream: usize) {
    lock(&RECORDED).insert(event, stream);
}

/// Runs the copies before an event.
pub fn wait_for(event: usize) {
    let stream = lock(&RECORDED).get(&event).copied();
    stream.into_iter().for_each(wait);
}
