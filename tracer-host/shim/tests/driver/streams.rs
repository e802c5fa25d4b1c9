//! Copies of streams. If `TEST_DRIVER_LATE` says so, each is done when it is waited for, as late as a driver
//! may.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A copy that a stream was given.
pub enum Copy {
    ToDevice { to: u64, bytes: Vec<u8> },
    ToHost { to: usize, from: u64, bytes: usize },
}

/// What streams have still to do, by their handles.
static QUEUES: Mutex<BTreeMap<usize, Vec<Copy>>> = Mutex::new(BTreeMap::new());
/// The stream in which each event was recorded last.
static RECORDED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a stream a copy.
///
/// # Safety
/// The memory is there until the stream has been waited for.
pub unsafe fn give(stream: usize, copy: Copy) {
    lock(&QUEUES).entry(stream).or_default().push(copy);
    if std::env::var_os("TEST_DRIVER_LATE").is_none() {
        wait(stream);
    }
}

/// Does what a stream was given.
pub fn wait(stream: usize) {
    for copy in lock(&QUEUES).remove(&stream).unwrap_or_default() {
        // SAFETY: promised to `give`.
        unsafe {
            match copy {
                Copy::ToDevice { to, bytes } => (to as *mut u8).copy_from(bytes.as_ptr(), bytes.len()),
                Copy::ToHost { to, from, bytes } => (to as *mut u8).copy_from(from as *const u8, bytes),
            }
        }
    }
}

/// Notes that an event stands behind what a stream was given.
pub fn record(event: usize, stream: usize) {
    lock(&RECORDED).insert(event, stream);
}

/// Does what stands before an event.
pub fn wait_for(event: usize) {
    let stream = lock(&RECORDED).get(&event).copied();
    stream.into_iter().for_each(wait);
}
