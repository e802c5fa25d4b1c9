//! Functions of the tracer that are called through their address.
//!
//! So the GPU's compiler does not look into them: it would save the kernel's registers around every trace point, loops included.
//! This way a function keeps what it uses, and saves what it must.
//!
//! # None of them calls another
//! A function that calls another where its lanes may have parted saves the kernel's convergence barriers at its entry, in registers, and puts
//! them back at its end. If lanes of the kernel that wait at such a barrier stop waiting in between, because of a `YIELD`, they are
//! put back with it, and the group waits for them at the end of its branch; and they may wait for it. (So it was on an H200: MIS, whose
//! lanes wait for each other, stood still.) Therefore a function *answers* what is to be done next, and the trace point calls that.
//! The kernel's barriers stay where they are, and what has a `YIELD` in it (`meet`, `renew`) uses none of those that it would have to
//! save. (`nvdisasm` shows it: no `BMOV` in them.)
//!
//! On the simulator they are plain calls.

use crate::event::{self, Next};
#[cfg(target_arch = "nvptx64")]
use crate::simt;
use crate::space::SharedMemory;

/// Declares functions of 32-bit words for the assembler, and defines for each how its address is got. They answer what comes [`next`].
#[cfg(target_arch = "nvptx64")]
macro_rules! apart {
    ($($(#[$doc:meta])* fn $call:ident = $name:ident($($parameter:ident),+) $body:block)+) => {
        $(
            core::arch::global_asm!(concat!(".visible .func (.param .b64 next) ", stringify!($name), "(",
                apart!(@parameters $($parameter)+), ");"));

            #[unsafe(no_mangle)]
            extern "C" fn $name($($parameter: u32),+) -> u64 $body

            $(#[$doc])*
            #[inline(always)]
            fn $call() -> u64 {
                let address: u64;
                // SAFETY: the address of the function above.
                unsafe {
                    core::arch::asm!(concat!("mov.u64 {}, ", stringify!($name), ";"), out(reg64) address,
                        options(pure, nomem, nostack, preserves_flags));
                }
                address
            }
        )+
    };
    (@parameters $last:ident) => { concat!(".param .b32 ", stringify!($last)) };
    (@parameters $first:ident $($rest:ident)+) => {
        concat!(".param .b32 ", stringify!($first), ", ", apart!(@parameters $($rest)+))
    };
}

/// This lane's view of the state at `address`, for a group.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn led(address: u32, group: u32) -> SharedMemory {
    SharedMemory::new(address, simt::is_leader(group))
}

#[cfg(target_arch = "nvptx64")]
apart! {
    fn miss_address = warptrace_miss(state, location, mask, count, group) {
        next(event::miss(SharedMemory::new(state, true), location, mask, count, group))
    }
    fn meet_address = warptrace_meet(state, location, mask, count, group) {
        next(event::meet(led(state, group), location, mask, count, group))
    }
    fn sort_address = warptrace_sort(state, location, mask, count, group) {
        next(event::sort(led(state, group), location, mask, count, group))
    }
    fn drain_address = warptrace_drain(state, _location, _mask, _count, group) {
        next(event::drain(led(state, group), group))
    }
    fn renew_address = warptrace_renew(state, _location, _mask, _count, group) {
        next(event::renew(led(state, group), group))
    }
}

/// Address of the function that comes next, or 0.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn next(next: Next) -> u64 {
    match next {
        Next::Done => 0,
        Next::Meet => meet_address(),
        Next::Sort => sort_address(),
        Next::Drain => drain_address(),
        Next::Renew => renew_address(),
    }
}

/// The arguments of the functions.
#[cfg(target_arch = "nvptx64")]
#[derive(Clone, Copy)]
struct Arguments {
    state: u32,
    location: u32,
    mask: u32,
    count: u32,
    group: u32,
}

/// Calls the function at `address`; answers which comes next.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn call(address: u64, with: Arguments) -> u64 {
    // SAFETY: the address of one of the functions above, which have the same signature.
    let function =
        unsafe { core::mem::transmute::<u64, extern "C" fn(u32, u32, u32, u32, u32) -> u64>(address) };
    function(with.state, with.location, with.mask, with.count, with.group)
}

/// Calls the function at `address`, if it is not 0, and those that come next.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn go(address: u64, with: Arguments) {
    let mut address = address;
    while address != 0 {
        address = call(address, with);
    }
}

/// Everything but the repetition of the last event.
#[inline(always)]
pub(crate) fn miss(state: SharedMemory, location: u16, mask: u32, count: u32, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    {
        let with = Arguments { state: state.address, location: u32::from(location), mask, count, group };
        let mut next = call(miss_address(), with);
        if next != 0 {
            // On its own, because the lanes come apart there, and find together again at the end of this branch.
            if next == meet_address() {
                next = call(next, with);
            }
            go(next, with);
        }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    go_on(state, event::miss(state, u32::from(location), mask, count, group));
}

/// Empties the queue. All lanes of `group`.
#[inline(always)]
pub(crate) fn drain(state: SharedMemory, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    go(drain_address(), Arguments { state: state.address, location: 0, mask: 0, count: 0, group });
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = group;
        go_on(state, Next::Drain);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
fn go_on(state: SharedMemory, next: Next) {
    // The simulator's leader is alone.
    let group = 1;
    let mut next = next;
    loop {
        next = match next {
            Next::Done => return,
            Next::Drain => event::drain(state, group),
            Next::Renew => event::renew(state, group),
        };
    }
}
