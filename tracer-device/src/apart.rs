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
//! The kernel's barriers stay where they are, and what has a `YIELD` in it (`further`) uses none of those that it would have to
//! save. (`nvdisasm` shows it: no `BMOV` in it. `drain` may have some: there nobody waits, for all live lanes are in it.)
//!
//! On the simulator they are plain calls. (Inlined at every trace point, they took the host's compiler minutes.)

#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
use crate::counts;
use crate::event::{self, Next};
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

#[cfg(target_arch = "nvptx64")]
apart! {
    fn miss_address = warptrace_miss(state, location, mask, count, _group) {
        let next = event::miss(SharedMemory::new(state, true), location, mask, count, mask);
        address_of(next, further_address, drain_address)
    }
    fn further_address = warptrace_further(state, location, mask, count, group) {
        event::further(SharedMemory::new(state, true), location, mask, count, group);
        0
    }
    fn drain_address = warptrace_drain(state, location, mask, count, group) {
        event::drain(SharedMemory::new(state, true), location, mask, count, group);
        0
    }
    fn empty_address = warptrace_empty(state, _location, _mask, _count, group) {
        event::empty(SharedMemory::new(state, true), group);
        0
    }
}

#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
apart! {
    fn counts_address = warptrace_counts(state, location, iterations, _unused, group) {
        let next = counts::counts(SharedMemory::new(state, true), location, iterations, group);
        address_of(next, counts_further_address, counts_further_address)
    }
    fn counts_further_address = warptrace_counts_further(state, location, iterations, _unused, group) {
        let state = SharedMemory::new(state, true);
        counts::counts_further(state, crate::state::log(state), location, iterations, group);
        0
    }
}

#[cfg(all(target_arch = "nvptx64", feature = "counted", feature = "dual"))]
apart! {
    fn twin_counts_address = warptrace_twin_counts(state, location, iterations, _unused, group) {
        let state = SharedMemory::new(state, true);
        let next = counts::twin_counts(state, crate::state::twin_log(state), location, iterations, group);
        address_of(next, twin_counts_further_address, twin_counts_further_address)
    }
    fn twin_counts_further_address = warptrace_twin_counts_further(state, location, iterations, _unused, group) {
        let state = SharedMemory::new(state, true);
        counts::counts_further(state, crate::state::twin_log(state), location, iterations, group);
        0
    }
}

#[cfg(all(target_arch = "nvptx64", feature = "dual"))]
apart! {
    fn twin_address = warptrace_twin(state, location, mask, count, group) {
        let next = event::twin(SharedMemory::new(state, true), location, mask, count, group);
        address_of(next, twin_further_address, twin_drain_address)
    }
    fn twin_further_address = warptrace_twin_further(state, location, mask, count, group) {
        event::twin_further(SharedMemory::new(state, true), location, mask, count, group);
        0
    }
    fn twin_drain_address = warptrace_twin_drain(state, location, mask, count, group) {
        event::twin_drain(SharedMemory::new(state, true), location, mask, count, group);
        0
    }
}

/// Address of the function that comes next, or 0.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn address_of(next: Next, further: impl Fn() -> u64, drain: impl Fn() -> u64) -> u64 {
    match next {
        Next::Done => 0,
        Next::Further => further(),
        Next::Drain => drain(),
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

/// Calls the function at `first`, and the one that comes next.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn go(first: u64, with: Arguments) {
    let next = call(first, with);
    if next != 0 {
        call(next, with);
    }
}

/// Everything but the repetition of the last event.
#[inline(always)]
pub(crate) fn miss(state: SharedMemory, location: u16, mask: u32, count: u32) {
    #[cfg(target_arch = "nvptx64")]
    go(
        miss_address(),
        Arguments { state: state.address, location: u32::from(location), mask, count, group: mask },
    );
    #[cfg(not(target_arch = "nvptx64"))]
    run(state, location, mask, count, mask);
}

/// A run of some lanes of the group, at the end of a counted loop. (On the GPU that is `counts`.)
#[cfg(not(target_arch = "nvptx64"))]
#[inline(never)]
pub(crate) fn run(state: SharedMemory, location: u16, mask: u32, count: u32, group: u32) {
    let location = u32::from(location);
    match event::miss(state, location, mask, count, group) {
        Next::Done => (),
        Next::Further => event::further(state, location, mask, count, group),
        Next::Drain => event::drain(state, location, mask, count, group),
    }
}

/// The end of a counted loop.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn counts(state: SharedMemory, location: u16, iterations: u32, group: u32) {
    let (location, state) = (u32::from(location), state.address);
    go(counts_address(), Arguments { state, location, mask: iterations, count: 0, group });
}

/// The same for the raw twin of a dual recording.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn twin_counts(state: SharedMemory, location: u16, iterations: u32, group: u32) {
    let (location, state) = (u32::from(location), state.address);
    #[cfg(feature = "dual")]
    go(twin_counts_address(), Arguments { state, location, mask: iterations, count: 0, group });
    #[cfg(not(feature = "dual"))]
    let _ = (state, location, iterations, group);
}

/// The same event for the raw twin of a dual recording.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
pub(crate) fn twin(state: SharedMemory, location: u16, mask: u32, count: u32, group: u32) {
    let location = u32::from(location);
    #[cfg(all(target_arch = "nvptx64", feature = "dual"))]
    go(twin_address(), Arguments { state: state.address, location, mask, count, group });
    #[cfg(all(target_arch = "nvptx64", not(feature = "dual")))]
    let _ = (state, location, mask, count, group);
    #[cfg(not(target_arch = "nvptx64"))]
    match event::twin(state, location, mask, count, group) {
        Next::Done => (),
        Next::Further => event::twin_further(state, location, mask, count, group),
        Next::Drain => event::twin_drain(state, location, mask, count, group),
    }
}

/// Empties the logs. All live lanes of the warp, together: `group`.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
pub(crate) fn empty(state: SharedMemory, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    call(empty_address(), Arguments { state: state.address, location: 0, mask: 0, count: 0, group });
    #[cfg(not(target_arch = "nvptx64"))]
    event::empty(state, group);
}
