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

/// The body of a naked function that calls `$hook` with the first two arguments. It returns the result; if the
/// result is null, it jumps to the function in the static `$real`, which gets the program's registers and stack.
#[cfg(target_arch = "x86_64")]
macro_rules! forward {
    ($hook:path, $real:path) => {
        core::arch::naked_asm!(
            "push rdi; push rsi; push rdx; push rcx; push r8; push r9",
            "sub rsp, 136",
            "movups [rsp], xmm0; movups [rsp + 16], xmm1; movups [rsp + 32], xmm2; movups [rsp + 48], xmm3",
            "movups [rsp + 64], xmm4; movups [rsp + 80], xmm5; movups [rsp + 96], xmm6; movups [rsp + 112], xmm7",
            "call {hook}",
            "mov r11, rax",
            "movups xmm0, [rsp]; movups xmm1, [rsp + 16]; movups xmm2, [rsp + 32]; movups xmm3, [rsp + 48]",
            "movups xmm4, [rsp + 64]; movups xmm5, [rsp + 80]; movups xmm6, [rsp + 96]; movups xmm7, [rsp + 112]",
            "add rsp, 136",
            "pop r9; pop r8; pop rcx; pop rdx; pop rsi; pop rdi",
            "test r11, r11",
            "jnz 2f",
            "mov r11, qword ptr [rip + {real}]",
            "test r11, r11",
            "jz 2f",
            "jmp r11",
            "2: mov rax, r11",
            "ret",
            hook = sym $hook,
            real = sym $real,
        )
    };
}

/// See above. `hint 34` is `bti c`, and a branch through x16 may go to one.
#[cfg(target_arch = "aarch64")]
macro_rules! forward {
    ($hook:path, $real:path) => {
        core::arch::naked_asm!(
            "hint 34",
            "stp x29, x30, [sp, -208]!",
            "mov x29, sp",
            "stp x0, x1, [sp, 16]; stp x2, x3, [sp, 32]; stp x4, x5, [sp, 48]; stp x6, x7, [sp, 64]",
            "stp q0, q1, [sp, 80]; stp q2, q3, [sp, 112]; stp q4, q5, [sp, 144]; stp q6, q7, [sp, 176]",
            "bl {hook}",
            "mov x16, x0",
            "ldp x0, x1, [sp, 16]; ldp x2, x3, [sp, 32]; ldp x4, x5, [sp, 48]; ldp x6, x7, [sp, 64]",
            "ldp q0, q1, [sp, 80]; ldp q2, q3, [sp, 112]; ldp q4, q5, [sp, 144]; ldp q6, q7, [sp, 176]",
            "ldp x29, x30, [sp], 208",
            "cbnz x16, 2f",
            "adrp x16, {real}",
            "ldr x16, [x16, :lo12:{real}]",
            "cbz x16, 2f",
            "br x16",
            "2: mov x0, x16",
            "ret",
            hook = sym $hook,
            real = sym $real,
        )
    };
}

/// `dlsym(handle, name)` for the whole program.
///
/// # Safety
/// Same as the system's function.
#[cfg(not(test))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    forward!(replacement, real::DLSYM)
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
    forward!(replacement, real::DLVSYM)
}

#[cfg(test)]
mod tests;
