//! A jump table, markers and a function that is not inlined, for rustc: see README.md beside this file.
#![no_std]
#![feature(abi_ptx, stdarch_nvptx, asm_experimental_arch)]
use core::arch::{asm, nvptx::_thread_idx_x};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

macro_rules! mark {
    ($id:literal) => {
        unsafe { asm!(concat!("// warptrace.loc ", $id), options(nomem, nostack, preserves_flags)) }
    };
}

#[inline(never)]
fn mix(mut x: u32, rounds: u32) -> u32 {
    for _ in 0..rounds {
        mark!(1);
        x ^= x << 13;
        x ^= x >> 17;
    }
    x
}

/// # Safety
///
/// `out` must hold as many words as the block has threads.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn table(out: *mut u32, kind: u32) {
    let lane = unsafe { _thread_idx_x() } as u32;
    let out = unsafe { &mut *out.add(lane as usize) };
    mark!(2);
    match (kind + lane) % 8 {
        0 => {
            mark!(3);
            *out = mix(*out, lane)
        }
        1 => {
            mark!(4);
            *out = *out * 3 + lane
        }
        2 => {
            mark!(5);
            *out = out.rotate_left(7)
        }
        3 => {
            mark!(6);
            *out = out.count_ones()
        }
        4 => {
            mark!(7);
            *out ^= 0x5555
        }
        5 => {
            mark!(8);
            *out = out.swap_bytes()
        }
        6 => {
            mark!(9);
            *out = mix(lane, *out)
        }
        _ => return,
    }
    mark!(10);
}
