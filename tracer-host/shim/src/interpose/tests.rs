//! Trampolines keep the program's registers and stack. `enter` sets each register to its own value and calls a
//! trampoline. The hook overwrites all registers that a callee may change. `real` stores the values that it finds.

use core::arch::naked_asm;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use super::*;

static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static NO_REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static SEEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Argument registers, vector registers (two words each), callee-saved registers, two words on the stack.
#[cfg(target_arch = "x86_64")]
const WORDS: usize = 6 + 16 + 6 + 2;
#[cfg(target_arch = "aarch64")]
const WORDS: usize = 8 + 16 + 11 + 8 + 2;

type Function = unsafe extern "C" fn() -> u64;

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn enter(words: *const u64, function: Function) -> u64 {
    naked_asm!(
        "push rbx; push rbp; push r12; push r13; push r14; push r15; sub rsp, 8",
        "mov rax, rdi; mov r10, rsi",
        "push [rax + 232]; push [rax + 224]",
        "mov rbx, [rax + 176]; mov rbp, [rax + 184]; mov r12, [rax + 192]",
        "mov r13, [rax + 200]; mov r14, [rax + 208]; mov r15, [rax + 216]",
        "movups xmm0, [rax + 48]; movups xmm1, [rax + 64]; movups xmm2, [rax + 80]; movups xmm3, [rax + 96]",
        "movups xmm4, [rax + 112]; movups xmm5, [rax + 128]; movups xmm6, [rax + 144]; movups xmm7, [rax + 160]",
        "mov rdi, [rax]; mov rsi, [rax + 8]; mov rdx, [rax + 16]",
        "mov rcx, [rax + 24]; mov r8, [rax + 32]; mov r9, [rax + 40]",
        "call r10",
        "add rsp, 24; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx",
        "ret",
    )
}

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn real() -> u64 {
    naked_asm!(
        "lea rax, [rip + {seen}]",
        "mov [rax], rdi; mov [rax + 8], rsi; mov [rax + 16], rdx",
        "mov [rax + 24], rcx; mov [rax + 32], r8; mov [rax + 40], r9",
        "movups [rax + 48], xmm0; movups [rax + 64], xmm1; movups [rax + 80], xmm2; movups [rax + 96], xmm3",
        "movups [rax + 112], xmm4; movups [rax + 128], xmm5; movups [rax + 144], xmm6; movups [rax + 160], xmm7",
        "mov [rax + 176], rbx; mov [rax + 184], rbp; mov [rax + 192], r12",
        "mov [rax + 200], r13; mov [rax + 208], r14; mov [rax + 216], r15",
        "mov rcx, [rsp + 8]; mov [rax + 224], rcx; mov rcx, [rsp + 16]; mov [rax + 232], rcx",
        "mov eax, 42",
        "ret",
        seen = sym SEEN,
    )
}

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn nothing() -> *mut c_void {
    naked_asm!(
        "mov rdi, -1; mov rsi, -1; mov rdx, -1; mov rcx, -1; mov r8, -1; mov r9, -1; mov r10, -1; mov r11, -1",
        "pcmpeqd xmm0, xmm0; pcmpeqd xmm1, xmm1; pcmpeqd xmm2, xmm2; pcmpeqd xmm3, xmm3",
        "pcmpeqd xmm4, xmm4; pcmpeqd xmm5, xmm5; pcmpeqd xmm6, xmm6; pcmpeqd xmm7, xmm7",
        "xor eax, eax",
        "ret",
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn enter(words: *const u64, function: Function) -> u64 {
    naked_asm!(
        "stp x29, x30, [sp, -160]!",
        "stp x19, x20, [sp, 16]; stp x21, x22, [sp, 32]; stp x23, x24, [sp, 48]; stp x25, x26, [sp, 64]",
        "stp x27, x28, [sp, 80]",
        "stp d8, d9, [sp, 96]; stp d10, d11, [sp, 112]; stp d12, d13, [sp, 128]; stp d14, d15, [sp, 144]",
        "mov x9, x0; mov x10, x1",
        "ldp x11, x12, [x9, 344]; stp x11, x12, [sp, -16]!",
        "ldp q0, q1, [x9, 64]; ldp q2, q3, [x9, 96]; ldp q4, q5, [x9, 128]; ldp q6, q7, [x9, 160]",
        "ldp x19, x20, [x9, 192]; ldp x21, x22, [x9, 208]; ldp x23, x24, [x9, 224]; ldp x25, x26, [x9, 240]",
        "ldp x27, x28, [x9, 256]; ldr x29, [x9, 272]",
        "ldp d8, d9, [x9, 280]; ldp d10, d11, [x9, 296]; ldp d12, d13, [x9, 312]; ldp d14, d15, [x9, 328]",
        "ldp x0, x1, [x9]; ldp x2, x3, [x9, 16]; ldp x4, x5, [x9, 32]; ldp x6, x7, [x9, 48]",
        "blr x10",
        "add sp, sp, 16",
        "ldp x19, x20, [sp, 16]; ldp x21, x22, [sp, 32]; ldp x23, x24, [sp, 48]; ldp x25, x26, [sp, 64]",
        "ldp x27, x28, [sp, 80]",
        "ldp d8, d9, [sp, 96]; ldp d10, d11, [sp, 112]; ldp d12, d13, [sp, 128]; ldp d14, d15, [sp, 144]",
        "ldp x29, x30, [sp], 160",
        "ret",
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn real() -> u64 {
    naked_asm!(
        "adrp x9, {seen}; add x9, x9, :lo12:{seen}",
        "stp x0, x1, [x9]; stp x2, x3, [x9, 16]; stp x4, x5, [x9, 32]; stp x6, x7, [x9, 48]",
        "stp q0, q1, [x9, 64]; stp q2, q3, [x9, 96]; stp q4, q5, [x9, 128]; stp q6, q7, [x9, 160]",
        "stp x19, x20, [x9, 192]; stp x21, x22, [x9, 208]; stp x23, x24, [x9, 224]; stp x25, x26, [x9, 240]",
        "stp x27, x28, [x9, 256]; str x29, [x9, 272]",
        "stp d8, d9, [x9, 280]; stp d10, d11, [x9, 296]; stp d12, d13, [x9, 312]; stp d14, d15, [x9, 328]",
        "ldp x10, x11, [sp]; stp x10, x11, [x9, 344]",
        "mov x0, 42",
        "ret",
        seen = sym SEEN,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn nothing() -> *mut c_void {
    naked_asm!(
        "mov x1, -1; mov x2, -1; mov x3, -1; mov x4, -1; mov x5, -1; mov x6, -1; mov x7, -1; mov x8, -1",
        "mov x9, -1; mov x10, -1; mov x11, -1; mov x12, -1; mov x13, -1; mov x14, -1; mov x15, -1",
        "mov x16, -1; mov x17, -1",
        "movi v0.16b, 255; movi v1.16b, 255; movi v2.16b, 255; movi v3.16b, 255",
        "movi v4.16b, 255; movi v5.16b, 255; movi v6.16b, 255; movi v7.16b, 255",
        "mov x0, 0",
        "ret",
    )
}

extern "C" fn found() -> *mut c_void {
    std::ptr::without_provenance_mut(7)
}

#[unsafe(naked)]
unsafe extern "C" fn to_real() -> u64 {
    forward!(nothing, REAL)
}

#[unsafe(naked)]
unsafe extern "C" fn to_found() -> u64 {
    forward!(found, REAL)
}

#[unsafe(naked)]
unsafe extern "C" fn to_nothing() -> u64 {
    forward!(nothing, NO_REAL)
}

#[test]
fn the_systems_function_sees_the_programs_registers_and_stack() {
    REAL.store(real as *mut c_void, Relaxed);
    let words: [u64; WORDS] = std::array::from_fn(|index| 0x0101_0101_0101_0101 * (index as u64 + 1));
    let call = |function: Function| {
        SEEN.iter().for_each(|word| word.store(0, Relaxed));
        // SAFETY: `enter` keeps the registers of its caller, and the functions use no argument as an address.
        let result = unsafe { enter(words.as_ptr(), function) };
        (result, SEEN.each_ref().map(|word| word.load(Relaxed)))
    };
    assert_eq!(call(to_real), (42, words));
    assert_eq!(call(to_found), (7, [0; WORDS]), "the hook's result");
    assert_eq!(call(to_nothing), (0, [0; WORDS]), "the system's function is missing");
}
