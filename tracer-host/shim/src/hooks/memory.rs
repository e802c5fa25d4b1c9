//! Memory that the program gets and gives back: noted for the traces, if they have what kernels access. The
//! driver's answer stays what it is.

use std::ffi::{CStr, c_char, c_uint, c_void};

use cudarc::driver::sys::CUipcMemHandle;
use warptrace_format::file::BufferKind;
use warptrace_host::{Memory, MemoryChange};

use super::Handle;
use crate::driver::{Answer, SUCCESS, is_capturing};
use crate::hooks::launch::per_thread;
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
unsafe fn got(answer: Answer, address: *const u64, bytes: usize, kind: BufferKind) -> Answer {
    if answer == SUCCESS && !address.is_null() {
        // SAFETY: the caller's promise.
        let address = unsafe { *address };
        let name = String::new();
        tell(|| Some(MemoryChange::Got(Memory { address, bytes: bytes as u64, kind, name })));
    }
    answer
}

/// Notes that memory goes; before it does, since another thread may get it at once.
fn goes(address: u64) {
    tell(|| Some(MemoryChange::Gone(address)));
}

/// Notes that the program has memory of which nothing more is known.
fn lacks(answer: Answer) -> Answer {
    if answer == SUCCESS {
        tell(|| Some(MemoryChange::Unknown));
    }
    answer
}

type Alloc = unsafe extern "C" fn(*mut u64, usize) -> Answer;

pub(super) unsafe fn alloc(real: Alloc, address: *mut u64, bytes: usize) -> Answer {
    // SAFETY: the program's own call.
    unsafe { got(real(address, bytes), address, bytes, BufferKind::Device) }
}

pub(super) unsafe fn alloc_pitch(
    real: unsafe extern "C" fn(*mut u64, *mut usize, usize, usize, c_uint) -> Answer,
    address: *mut u64,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: c_uint,
) -> Answer {
    // SAFETY: the program's own call, which has written the pitch if it succeeded.
    unsafe {
        let answer = real(address, pitch, width, height, element);
        let bytes = if answer == SUCCESS && !pitch.is_null() { (*pitch).saturating_mul(height) } else { 0 };
        got(answer, address, bytes, BufferKind::Device)
    }
}

pub(super) unsafe fn alloc_managed(
    real: unsafe extern "C" fn(*mut u64, usize, c_uint) -> Answer,
    address: *mut u64,
    bytes: usize,
    flags: c_uint,
) -> Answer {
    // SAFETY: the program's own call.
    unsafe { got(real(address, bytes, flags), address, bytes, BufferKind::Managed) }
}

/// Notes memory that is there in the order of a stream. Where launches are put into a graph, it is there when
/// that is launched, and where it is then is not told here.
///
/// # Safety
/// As [`got`]; the stream is the program's.
unsafe fn got_in_stream(answer: Answer, address: *const u64, bytes: usize, stream: Handle) -> Answer {
    if answer == SUCCESS {
        tell(|| is_capturing(stream).then_some(MemoryChange::Unknown));
    }
    // SAFETY: the caller's promise.
    unsafe { got(answer, address, bytes, BufferKind::Pool) }
}

type AllocAsync = unsafe extern "C" fn(*mut u64, usize, Handle) -> Answer;
type AllocFromPool = unsafe extern "C" fn(*mut u64, usize, Handle, Handle) -> Answer;
type FreeAsync = unsafe extern "C" fn(u64, Handle) -> Answer;

pub(super) unsafe fn alloc_async(
    real: AllocAsync,
    address: *mut u64,
    bytes: usize,
    stream: Handle,
) -> Answer {
    // SAFETY: the program's own call.
    unsafe { got_in_stream(real(address, bytes, stream), address, bytes, stream) }
}

pub(super) unsafe fn alloc_async_per_thread(
    real: AllocAsync,
    address: *mut u64,
    bytes: usize,
    stream: Handle,
) -> Answer {
    // SAFETY: the program's own call.
    unsafe { got_in_stream(real(address, bytes, stream), address, bytes, per_thread(stream)) }
}

pub(super) unsafe fn alloc_from_pool(
    real: AllocFromPool,
    address: *mut u64,
    bytes: usize,
    pool: Handle,
    stream: Handle,
) -> Answer {
    // SAFETY: the program's own call.
    unsafe { got_in_stream(real(address, bytes, pool, stream), address, bytes, stream) }
}

pub(super) unsafe fn alloc_from_pool_per_thread(
    real: AllocFromPool,
    address: *mut u64,
    bytes: usize,
    pool: Handle,
    stream: Handle,
) -> Answer {
    // SAFETY: the program's own call.
    unsafe { got_in_stream(real(address, bytes, pool, stream), address, bytes, per_thread(stream)) }
}

pub(super) unsafe fn free_async(real: FreeAsync, address: u64, stream: Handle) -> Answer {
    goes(address);
    // SAFETY: the program's own call.
    unsafe { real(address, stream) }
}

pub(super) unsafe fn free(real: unsafe extern "C" fn(u64) -> Answer, address: u64) -> Answer {
    goes(address);
    // SAFETY: the program's own call.
    unsafe { real(address) }
}

pub(super) unsafe fn host_alloc(
    real: unsafe extern "C" fn(*mut Handle, usize, c_uint) -> Answer,
    address: *mut Handle,
    bytes: usize,
    flags: c_uint,
) -> Answer {
    // SAFETY: the program's own call. Addresses are the same for the device.
    unsafe { got(real(address, bytes, flags), address.cast(), bytes, BufferKind::Host) }
}

pub(super) unsafe fn alloc_host(
    real: unsafe extern "C" fn(*mut Handle, usize) -> Answer,
    address: *mut Handle,
    bytes: usize,
) -> Answer {
    // SAFETY: as above.
    unsafe { got(real(address, bytes), address.cast(), bytes, BufferKind::Host) }
}

pub(super) unsafe fn host_register(
    real: unsafe extern "C" fn(Handle, usize, c_uint) -> Answer,
    address: Handle,
    bytes: usize,
    flags: c_uint,
) -> Answer {
    let own = address as u64;
    // SAFETY: the program's own call.
    unsafe { got(real(address, bytes, flags), &raw const own, bytes, BufferKind::Host) }
}

/// Memory of the host goes, or the device can reach it no more.
pub(super) unsafe fn host_goes(real: unsafe extern "C" fn(Handle) -> Answer, address: Handle) -> Answer {
    goes(address as u64);
    // SAFETY: the program's own call.
    unsafe { real(address) }
}

/// Where the device has another address for memory of the host, that is a buffer, too.
pub(super) unsafe fn device_pointer(
    real: unsafe extern "C" fn(*mut u64, Handle, c_uint) -> Answer,
    address: *mut u64,
    host: Handle,
    flags: c_uint,
) -> Answer {
    // SAFETY: the program's own call.
    let answer = unsafe { real(address, host, flags) };
    // SAFETY: the driver has written it if it succeeded.
    if answer == SUCCESS && unsafe { *address } != host as u64 {
        return lacks(answer);
    }
    answer
}

type Global = unsafe extern "C" fn(*mut u64, *mut usize, Handle, *const c_char) -> Answer;

/// Notes a variable whose address the program asks for. It need not ask for its size.
pub(super) unsafe fn global(
    real: Global,
    address: *mut u64,
    bytes: *mut usize,
    owner: Handle,
    name: *const c_char,
) -> Answer {
    // SAFETY: the program's own call; the driver has read the name, and written what was asked for.
    unsafe {
        let answer = real(address, bytes, owner, name);
        if answer == SUCCESS && !address.is_null() && !bytes.is_null() {
            let (address, bytes) = (*address, *bytes as u64);
            let name = CStr::from_ptr(name).to_string_lossy();
            let kind = BufferKind::Variable;
            tell(|| Some(MemoryChange::Got(Memory { address, bytes, kind, name: name.into_owned() })));
        }
        answer
    }
}

pub(super) unsafe fn map(
    real: unsafe extern "C" fn(u64, usize, usize, u64, u64) -> Answer,
    address: u64,
    bytes: usize,
    offset: usize,
    handle: u64,
    flags: u64,
) -> Answer {
    // SAFETY: the program's own call.
    unsafe { got(real(address, bytes, offset, handle, flags), &raw const address, bytes, BufferKind::Mapped) }
}

pub(super) unsafe fn unmap(
    real: unsafe extern "C" fn(u64, usize) -> Answer,
    address: u64,
    bytes: usize,
) -> Answer {
    guarded(|| {
        let state = state().filter(|state| state.records_accesses())?;
        lock(&state.traces).unmap_memory(address, bytes as u64);
        Some(())
    });
    // SAFETY: the program's own call.
    unsafe { real(address, bytes) }
}

pub(super) unsafe fn of_another_process(
    real: unsafe extern "C" fn(*mut u64, CUipcMemHandle, c_uint) -> Answer,
    address: *mut u64,
    handle: CUipcMemHandle,
    flags: c_uint,
) -> Answer {
    // SAFETY: the program's own call.
    lacks(unsafe { real(address, handle, flags) })
}

pub(super) unsafe fn external(
    real: unsafe extern "C" fn(*mut u64, Handle, *const c_void) -> Answer,
    address: *mut u64,
    memory: Handle,
    description: *const c_void,
) -> Answer {
    // SAFETY: the program's own call.
    lacks(unsafe { real(address, memory, description) })
}

pub(super) unsafe fn of_graphics(
    real: unsafe extern "C" fn(*mut u64, *mut usize, Handle) -> Answer,
    address: *mut u64,
    bytes: *mut usize,
    resource: Handle,
) -> Answer {
    // SAFETY: the program's own call.
    lacks(unsafe { real(address, bytes, resource) })
}
