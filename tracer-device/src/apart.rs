//! Functions of the tracer that are called through their address.
//!
//! So the GPU's compiler does not look into them: it would save the kernel's registers around every trace point, loops included.
//! This way a function keeps what it uses, and saves what it must. What is left to do behind such a call costs saved registers
//! too, which are memory accesses: therefore the longer ways of a miss are calls at its end.
//!
//! On the simulator they are plain calls.

use crate::event;
use crate::lock::Entry;
#[cfg(target_arch = "nvptx64")]
use crate::simt;
use crate::space::SharedMemory;

/// Declares functions of 32-bit words for the assembler, and defines a call of each through its address.
#[cfg(target_arch = "nvptx64")]
macro_rules! apart {
    ($($(#[$doc:meta])* fn $call:ident = $name:ident($($parameter:ident),+) $body:block)+) => {
        $(
            core::arch::global_asm!(concat!(".visible .func ", stringify!($name), "(",
                apart!(@parameters $($parameter)+), ");"));

            #[unsafe(no_mangle)]
            extern "C" fn $name($($parameter: u32),+) $body

            $(#[$doc])*
            #[inline(always)]
            fn $call($($parameter: u32),+) {
                let address: u64;
                // SAFETY: the address of the function above, with its signature.
                let function = unsafe {
                    core::arch::asm!(concat!("mov.u64 {}, ", stringify!($name), ";"), out(reg64) address,
                        options(nomem, nostack, preserves_flags));
                    core::mem::transmute::<u64, extern "C" fn($(apart!(@word $parameter)),+)>(address)
                };
                function($($parameter),+);
            }
        )+
    };
    (@parameters $last:ident) => { concat!(".param .b32 ", stringify!($last)) };
    (@parameters $first:ident $($rest:ident)+) => {
        concat!(".param .b32 ", stringify!($first), ", ", apart!(@parameters $($rest)+))
    };
    (@word $parameter:ident) => { u32 };
}

/// This lane's view of the state at `address`, for a group.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn led(address: u32, group: u32) -> SharedMemory {
    SharedMemory::new(address, simt::is_leader(group))
}

#[cfg(target_arch = "nvptx64")]
apart! {
    fn call_miss = warptrace_miss(state, location, mask, count, group) {
        event::miss(SharedMemory::new(state, true), location, mask, count, group);
    }
    fn call_slow = warptrace_slow(state, location, mask, count, group, entry) {
        event::slow(led(state, group), location, mask, count, group, Entry(entry));
    }
    fn call_sort = warptrace_sort(state, location, mask, count, group) {
        event::sort(led(state, group), location, mask, count, group);
    }
    fn call_full = warptrace_full(state, group) {
        event::full(led(state, group), group);
    }
    fn call_drain = warptrace_drain(state) {
        event::encode(SharedMemory::new(state, true));
    }
    fn call_renew = warptrace_renew(state, group) {
        event::renew(led(state, group));
    }
}

/// Everything but the repetition of the last event.
#[inline(always)]
pub(crate) fn miss(state: SharedMemory, location: u16, mask: u32, count: u32, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    call_miss(state.address, u32::from(location), mask, count, group);
    #[cfg(not(target_arch = "nvptx64"))]
    event::miss(state, u32::from(location), mask, count, group);
}

/// The rest of a miss where the lock was not to be had at once.
#[inline(always)]
pub(crate) fn slow(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32, entry: Entry) {
    #[cfg(target_arch = "nvptx64")]
    call_slow(state.address, location, mask, count, group, entry.0);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (state, location, mask, count, group, entry);
        unreachable!("the simulator switches nowhere inside the tracer");
    }
}

/// The rest of a miss with events in the mailbox.
#[inline(always)]
pub(crate) fn sort(state: SharedMemory, location: u32, mask: u32, count: u32, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    call_sort(state.address, location, mask, count, group);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (state, location, mask, count, group);
        unreachable!("the simulator switches nowhere inside the tracer");
    }
}

/// The rest of a miss with which the queue has become full.
#[inline(always)]
pub(crate) fn full(state: SharedMemory, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    call_full(state.address, group);
    #[cfg(not(target_arch = "nvptx64"))]
    event::empty(state, group);
}

/// Hands the queue's runs to the encoder, as far as the chunk has room. From one lane.
#[inline(always)]
pub(crate) fn drain(state: SharedMemory) {
    #[cfg(target_arch = "nvptx64")]
    call_drain(state.address);
    #[cfg(not(target_arch = "nvptx64"))]
    event::encode(state);
}

/// Claims chunks for the tracks that want one. The lanes of `group` together.
#[inline(always)]
pub(crate) fn renew(state: SharedMemory, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    call_renew(state.address, group);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = group;
        event::renew(state);
    }
}
