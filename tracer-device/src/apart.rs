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
//! The kernel's barriers stay where they are, and what has a `YIELD` in it (`claim`, see `area`) uses none of those that it would have to
//! save. (`nvdisasm` shows it: no `BMOV` in it. `drain` may have some: there nobody waits, for all live lanes are in it.)
//!
//! # Groups stay together
//! All lanes of a group call a function, though perhaps only one has something to do there: whether any has is voted on, so that there is no branch at which
//! the others would wait.
//!
//! On the simulator they are plain calls. (Inlined at every trace point, they took the host's compiler minutes.)

#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
use crate::counts;
use crate::event;
use crate::log::Log;
use crate::simt;
#[cfg(target_arch = "nvptx64")]
use crate::space::StateAddress;
use crate::space::StateMemory;
use crate::state::{log, twin_log};
use crate::unit::Run;

/// The first parameter of each function: the address of the state.
#[cfg(all(target_arch = "nvptx64", feature = "state-shared"))]
macro_rules! state_parameter {
    () => {
        ".param .b32 state"
    };
}
#[cfg(all(target_arch = "nvptx64", not(feature = "state-shared")))]
macro_rules! state_parameter {
    () => {
        ".param .b64 state"
    };
}

/// Declares functions of the state's address and 32-bit words for the assembler, and defines for each how its address is got. They answer the address of what
/// comes next, or 0.
#[cfg(target_arch = "nvptx64")]
macro_rules! apart {
    ($($(#[$doc:meta])* fn $call:ident = $name:ident($state:ident, $($parameter:ident),+) $body:block)+) => {
        $(
            core::arch::global_asm!(concat!(".visible .func (.param .b64 next) ", stringify!($name), "(",
                state_parameter!(), ", ", apart!(@parameters $($parameter)+), ");"));

            #[unsafe(no_mangle)]
            extern "C" fn $name($state: StateAddress, $($parameter: u32),+) -> u64 $body

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
    fn due_address = warptrace_due(state, _location, mask, _count, _time) {
        let state = StateMemory::new(state, true);
        after_event(log(state), state, mask, claim_address)
    }
    fn claim_address = warptrace_claim(state, _location, _mask, _count, _time) {
        log(StateMemory::new(state, true)).claim(simt::own_lane());
        0
    }
    fn lose_address = warptrace_lose(state, _location, _mask, _count, _time) {
        log(StateMemory::new(state, true)).lose(simt::own_lane());
        0
    }
    fn drain_address = warptrace_drain(state, _location, mask, _count, _time) {
        event::drain(StateMemory::new(state, true), mask);
        0
    }
}

#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
apart! {
    fn counts_address = warptrace_counts(state, location, group, iterations, _unused) {
        let state = StateMemory::new(state, true);
        counts::counts(state, location, iterations, group);
        after_full(log(state), claim_address)
    }
}

#[cfg(all(target_arch = "nvptx64", feature = "counted", feature = "dual"))]
apart! {
    fn twin_counts_address = warptrace_twin_counts(state, location, group, iterations, _unused) {
        let state = StateMemory::new(state, true);
        counts::twin_counts(state, location, iterations, group);
        after_full(twin_log(state), twin_claim_address)
    }
}

#[cfg(all(target_arch = "nvptx64", feature = "dual"))]
apart! {
    fn twin_address = warptrace_twin(state, location, mask, count, time) {
        let state = StateMemory::new(state, true);
        if event::twin(state, Run { mask, location, count, time }) {
            after_event(twin_log(state), state, mask, twin_claim_address)
        } else {
            0
        }
    }
    fn twin_claim_address = warptrace_twin_claim(state, _location, _mask, _count, _time) {
        twin_log(StateMemory::new(state, true)).claim(simt::own_lane());
        0
    }
}

/// Does what is due after an event of `mask`, or answers the address of the function that does it; else 0.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn after_event(log: Log, state: StateMemory, mask: u32, claim: impl Fn() -> u64) -> u64 {
    if event::is_to_drain(state, mask) { drain_address() } else { after_full(log, claim) }
}

/// Gives full logs another segment; address of the function that comes next, or 0.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn after_full(log: Log, claim: impl Fn() -> u64) -> u64 {
    if log.extend(simt::own_lane()) { 0 } else { claim() }
}

/// The arguments of the functions, which those that come next get too.
#[cfg(target_arch = "nvptx64")]
#[derive(Clone, Copy)]
struct Arguments {
    state: StateAddress,
    location: u32,
    /// Mask of the group.
    mask: u32,
    /// How often; of a counted loop the lane's iterations.
    count: u32,
    /// When, where that is known already.
    time: u32,
}

/// Calls the function at `address`; answers which comes next.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn call(address: u64, with: Arguments) -> u64 {
    // SAFETY: the address of one of the functions above, which have the same signature.
    let function = unsafe {
        core::mem::transmute::<u64, extern "C" fn(StateAddress, u32, u32, u32, u32) -> u64>(address)
    };
    function(with.state, with.location, with.mask, with.count, with.time)
}

/// Calls the function at `first`, and the one that comes next. (None answers more than that: with each further call ptxas would need one more convergence
/// barrier, and where it has none left it saves those of the kernel.)
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn go(first: u64, with: Arguments) {
    let second = call(first, with);
    // Lanes that are together have the same answer; but those that come here may have been apart in between. So each by its own answer, not by a vote.
    if second != 0 {
        call(second, with);
    }
}

/// Goes on after an event of `mask`. On the simulator one lane stands for all of it.
#[cfg(not(target_arch = "nvptx64"))]
fn go_on(state: StateMemory, log: Log, mask: u32) {
    if event::is_to_drain(state, mask) {
        return event::drain(state, mask);
    }
    simt::for_own_lanes(mask, |lane| {
        if !log.extend(lane) {
            log.claim(lane);
        }
    });
}

/// Everything but the repetition of the last event; see [`event::miss`].
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
pub(crate) fn miss(state: StateMemory, old: [u32; 2], mask: u32, key: u32) {
    if event::miss(state, old, mask, key) {
        #[cfg(target_arch = "nvptx64")]
        go(due_address(), Arguments { state: state.address, location: 0, mask, count: 0, time: 0 });
        #[cfg(not(target_arch = "nvptx64"))]
        go_on(state, log(state), mask);
    }
}

/// The same event for the raw twin of a dual recording.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
pub(crate) fn twin(state: StateMemory, run: Run) {
    #[cfg(all(target_arch = "nvptx64", feature = "dual"))]
    {
        let Run { mask, location, count, time } = run;
        go(twin_address(), Arguments { state: state.address, location, mask, count, time });
    }
    #[cfg(all(target_arch = "nvptx64", not(feature = "dual")))]
    let _ = (state, run);
    #[cfg(not(target_arch = "nvptx64"))]
    if event::twin(state, run) {
        go_on(state, twin_log(state), run.mask);
    }
}

/// The end of a counted loop.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn counts(state: StateMemory, location: u32, iterations: u32, group: u32) {
    let state = state.address;
    go(counts_address(), Arguments { state, location, mask: group, count: iterations, time: 0 });
}

/// The same for the raw twin of a dual recording.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn twin_counts(state: StateMemory, location: u32, iterations: u32, group: u32) {
    #[cfg(feature = "dual")]
    {
        let state = state.address;
        go(twin_counts_address(), Arguments { state, location, mask: group, count: iterations, time: 0 });
    }
    #[cfg(not(feature = "dual"))]
    let _ = (state, location, iterations, group);
}

/// Counts the run as lost that the lane has appended last.
#[inline(always)]
pub(crate) fn lose(state: StateMemory) {
    #[cfg(target_arch = "nvptx64")]
    call(lose_address(), Arguments { state: state.address, location: 0, mask: 0, count: 0, time: 0 });
    #[cfg(not(target_arch = "nvptx64"))]
    log(state).lose(simt::own_lane());
}
