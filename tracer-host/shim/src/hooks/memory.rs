//! Memory that the program gets and gives back: noted for the traces, if they have what kernels access. The
//! driver's answer stays what it is.

use std::ffi::{CStr, c_char};

use warptrace_format::file::BufferKind;
use warptrace_host::{Memory, MemoryChange};

use super::Handle;
use crate::driver::{Answer, SUCCESS, is_capturing};
use crate::inside::guarded;
use crate::state::{lock, state};

/// Tells the traces of a change, if they have accesses. It is made only then.
fn tell(change: impl FnOnce() -> Option<MemoryChange>) {
    guarded(|| {
        let state = state().filter(|state| state.records_accesses())?;
        lock(&state.traces).change_memory(change()?);
        Some(())
    });
}

/// Notes the memory that the driver has written to `address`, if it has given any.
///
/// # Safety
/// The driver has written there if it succeeded.
pub(super) unsafe fn got(answer: Answer, address: *const u64, bytes: usize, kind: BufferKind) -> Answer {
    if answer == SUCCESS && !address.is_null() {
        // SAFETY: the caller's promise.
        let address = unsafe { *address };
        let name = String::new();
        tell(|| Some(MemoryChange::Got(Memory { address, bytes: bytes as u64, kind, name })));
    }
    answer
}

/// Notes that memory goes; before it does, since another thread may get it at once.
pub(super) fn goes(address: u64) {
    tell(|| Some(MemoryChange::Gone(address)));
}

/// Notes that the program has memory that is not known.
pub(super) fn lacks(answer: Answer) -> Answer {
    if answer == SUCCESS {
        tell(|| Some(MemoryChange::Unknown));
    }
    answer
}

/// Notes memory of `height` rows, which are `pitch` bytes apart.
///
/// # Safety
/// As [`got`]; the driver has written the pitch, too.
pub(super) unsafe fn got_pitched(
    answer: Answer,
    address: *const u64,
    pitch: *const usize,
    height: usize,
) -> Answer {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = if answer == SUCCESS && !pitch.is_null() { (*pitch).saturating_mul(height) } else { 0 };
        got(answer, address, bytes, BufferKind::Device)
    }
}

/// Notes memory that the program gets in the order of a stream. In a stream that is captured into a graph, the
/// program gets the memory when the graph is launched, at an address that is not known here.
///
/// # Safety
/// As [`got`]; the stream is the program's.
pub(super) unsafe fn got_in_stream(
    answer: Answer,
    address: *const u64,
    bytes: usize,
    stream: Handle,
) -> Answer {
    if answer == SUCCESS {
        tell(|| is_capturing(stream).then_some(MemoryChange::Unknown));
    }
    // SAFETY: the caller's promise.
    unsafe { got(answer, address, bytes, BufferKind::Pool) }
}

/// Where the device has another address for memory of the host, that is a buffer, too.
///
/// # Safety
/// The driver has written the address if it succeeded.
pub(super) unsafe fn device_pointer(answer: Answer, address: *const u64, host: Handle) -> Answer {
    // SAFETY: the caller's promise.
    if answer == SUCCESS && unsafe { *address } != host as u64 { lacks(answer) } else { answer }
}

/// Notes a variable whose address the program asks for. It need not ask for its size.
///
/// # Safety
/// The driver has read the name, and written what was asked for, if it succeeded.
pub(super) unsafe fn global(
    answer: Answer,
    address: *const u64,
    bytes: *const usize,
    name: *const c_char,
) -> Answer {
    if answer == SUCCESS && !address.is_null() && !bytes.is_null() {
        // SAFETY: the caller's promise.
        let (address, bytes, name) = unsafe { (*address, *bytes as u64, CStr::from_ptr(name)) };
        let (kind, name) = (BufferKind::Variable, name.to_string_lossy().into_owned());
        tell(|| Some(MemoryChange::Got(Memory { address, bytes, kind, name })));
    }
    answer
}

/// Notes that what was mapped to these addresses goes.
pub(super) fn unmapped(address: u64, bytes: usize) {
    guarded(|| {
        let state = state().filter(|state| state.records_accesses())?;
        lock(&state.traces).unmap_memory(address, bytes as u64);
        Some(())
    });
}
