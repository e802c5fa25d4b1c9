//! Hooks that report the program's memory to traces with accesses. They keep the driver's result.

use std::ffi::{CStr, c_char};

use warptrace_format::file::BufferKind;
use warptrace_host::{Memory, MemoryChange};

use super::Handle;
use crate::driver::{Answer, SUCCESS, is_capturing};
use crate::inside::guarded;
use crate::state::{lock, state};

/// Sends a change to the traces. Calls `change` only if they have accesses.
fn tell(change: impl FnOnce() -> Option<MemoryChange>) {
    guarded(|| {
        let state = state().filter(|state| state.records_accesses())?;
        lock(&state.traces).change_memory(change()?);
        Some(())
    });
}

/// # Safety
/// If `answer` is success, `address` is null or readable.
pub(super) unsafe fn got(answer: Answer, address: *const u64, bytes: usize, kind: BufferKind) -> Answer {
    if answer == SUCCESS && !address.is_null() {
        // SAFETY: guaranteed by the caller.
        let address = unsafe { *address };
        let name = String::new();
        tell(|| Some(MemoryChange::Got(Memory { address, bytes: bytes as u64, kind, name })));
    }
    answer
}

/// Registers that memory is freed. Called before the driver frees it: another thread may get it at once.
pub(super) fn goes(address: u64) {
    tell(|| Some(MemoryChange::Gone(address)));
}

/// Registers that the program has unknown memory.
pub(super) fn lacks(answer: Answer) -> Answer {
    if answer == SUCCESS {
        tell(|| Some(MemoryChange::Unknown));
    }
    answer
}

/// # Safety
/// Same as [`got`]. `pitch` is null, or readable if `answer` is success.
pub(super) unsafe fn got_pitched(
    answer: Answer,
    address: *const u64,
    pitch: *const usize,
    height: usize,
) -> Answer {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let bytes = if answer == SUCCESS && !pitch.is_null() { (*pitch).saturating_mul(height) } else { 0 };
        got(answer, address, bytes, BufferKind::Device)
    }
}

/// Registers a stream-ordered allocation. Launches of a captured one allocate at unknown addresses.
///
/// # Safety
/// Same as [`got`]. The stream is the program's.
pub(super) unsafe fn got_in_stream(
    answer: Answer,
    address: *const u64,
    bytes: usize,
    stream: Handle,
) -> Answer {
    if answer == SUCCESS {
        tell(|| is_capturing(stream).then_some(MemoryChange::Unknown));
    }
    // SAFETY: guaranteed by the caller.
    unsafe { got(answer, address, bytes, BufferKind::Pool) }
}

/// Registers unknown memory if the device has another address for a host buffer.
///
/// # Safety
/// If `answer` is success, the driver has written the address.
pub(super) unsafe fn device_pointer(answer: Answer, address: *const u64, host: Handle) -> Answer {
    // SAFETY: guaranteed by the caller.
    if answer == SUCCESS && unsafe { *address } != host as u64 { lacks(answer) } else { answer }
}

/// # Safety
/// If `answer` is success, the driver has read the name, and written address and size if they are not null.
pub(super) unsafe fn global(
    answer: Answer,
    address: *const u64,
    bytes: *const usize,
    name: *const c_char,
) -> Answer {
    if answer == SUCCESS && !address.is_null() && !bytes.is_null() {
        // SAFETY: guaranteed by the caller.
        let (address, bytes, name) = unsafe { (*address, *bytes as u64, CStr::from_ptr(name)) };
        let (kind, name) = (BufferKind::Variable, name.to_string_lossy().into_owned());
        tell(|| Some(MemoryChange::Got(Memory { address, bytes, kind, name })));
    }
    answer
}

pub(super) fn unmapped(address: u64, bytes: usize) {
    guarded(|| {
        let state = state().filter(|state| state.records_accesses())?;
        lock(&state.traces).unmap_memory(address, bytes as u64);
        Some(())
    });
}
