//! Replaces `dlsym` and `dlvsym`, with which programs look up functions. Other names go to the system's
//! function by a jump, so that it sees the true caller: `RTLD_NEXT` depends on it.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

use crate::hooks;
use crate::inside::Inside;
use crate::real;

/// Prefixes of the functions of the driver, NVRTC and nvJitLink.
const PREFIXES: [&[u8]; 3] = [b"cu", b"nvrtc", b"nvJitLink"];

/// Returns the hook for a name; null to continue with the system's look-up.
extern "C" fn replacement(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    real::find();
    if name.is_null() || is_pseudo(handle) || Inside::is() {
        return null_mut();
    }
    // SAFETY: the program passes a C string.
    let name = unsafe { CStr::from_ptr(name) };
    if !PREFIXES.iter().any(|prefix| name.to_bytes().starts_with(prefix)) {
        return null_mut();
    }
    let Some(hook) = hooks::named(name.to_bytes()) else { return null_mut() };
    // SAFETY: the program's own handle and name.
    let found = unsafe { real::dlsym(handle, name) };
    if found.is_null() {
        // The system's look-up fails again, and sets the error.
        return found;
    }
    hook.replace(found)
}

/// Returns true if a handle denotes several libraries: such a look-up finds the exported hooks.
fn is_pseudo(handle: *mut c_void) -> bool {
    handle == libc::RTLD_DEFAULT || handle == libc::RTLD_NEXT
}

/// `dlsym(handle, name)` for the whole program.
///
/// # Safety
/// Same as the system's function.
#[cfg(not(test))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {replacement}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "ret",
        replacement = sym replacement,
        real = sym real::DLSYM,
    )
}

/// `dlvsym(handle, name, version)`. Symbols of the driver have no versions, but programs may use it.
///
/// # Safety
/// Same as the system's function.
#[cfg(not(test))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
) -> *mut c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "call {replacement}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "ret",
        replacement = sym replacement,
        real = sym real::DLVSYM,
    )
}
