//! Where a warp's state is, and what lies where in it.
//!
//! ```text
//! offset  size  field
//!      0     4  mask of all live lanes, if they are to empty the logs when they come together; else 0
//!      4     4  index of the warp in the launch
//!      8     8  first unit of the warp's slice of log memory; in a dual recording of the twin's (see `log`)
//!     16     8  address of log memory
//!     24     4  units of a slice
//!     28     4  first unit of the memory for emptying logs inside the kernel; 0 before
//!     32     4  on the simulator: what stands for the clock
//!     36    92  unused
//!    128   256  for each lane its record: mask and key of the run that it is in (see `unit`)
//!    384   256  for each lane its place: the address of the next unit in its log; its high half is 0 while nothing is recorded
//!    640   256  for each lane the low half of the address of its segment's link, and the time at which its run began
//!    896   512  in a dual recording the same for the twin's logs
//!      …   256  with counted loops: for each lane the count of its run, if its key says so, and the time at a loop's end
//!      …   256  and its number of iterations, and whether it ends a run (see `counts`)
//! ```

#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::CodecSpec;

use crate::log::Log;
use crate::recorder::Codec;
use crate::simt;
use crate::space::StateMemory;

pub(crate) const DRAIN: u32 = 0;
pub(crate) const WARP: u32 = 4;
pub(crate) const SLICE: u32 = 8;
pub(crate) const LOGS: u32 = 16;
pub(crate) const SLICE_UNITS: u32 = 24;
pub(crate) const WORK: u32 = 28;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const CLOCK: u32 = 32;
pub(crate) const RECORDS: u32 = 128;
pub(crate) const PLACES: u32 = RECORDS + EACH_BYTES;
pub(crate) const LINKS: u32 = PLACES + EACH_BYTES;
pub(crate) const TWIN_PLACES: u32 = LINKS + EACH_BYTES;
/// Where the counts of runs are that are not in their keys.
#[cfg(any(not(target_arch = "nvptx64"), feature = "counted"))]
pub(crate) const MORES: u32 = counted_at(HAS_TWIN);
/// Bytes of an array of 8 bytes for each lane.
const EACH_BYTES: u32 = 8 * simt::WARP_LANES;
#[cfg(target_arch = "nvptx64")]
const HAS_TWIN: bool = cfg!(feature = "dual");
/// The simulator has room for all.
#[cfg(not(target_arch = "nvptx64"))]
const HAS_TWIN: bool = true;

/// Where that begins which only modules with counted loops have.
const fn counted_at(dual: bool) -> u32 {
    // The twin's places and links.
    TWIN_PLACES + if dual { 2 * EACH_BYTES } else { 0 }
}

/// Bytes of one warp's state. A traced launch needs so many for each warp: of a block at the end of its dynamic shared memory, or of all blocks in global
/// memory. A multiple of 128, so that states in global memory share no line of a cache.
///
/// `counted`: with room for the lanes' counts of a loop.
pub const fn warp_state_bytes(dual: bool, counted: bool) -> u32 {
    counted_at(dual) + if counted { 2 * EACH_BYTES } else { 0 }
}

/// The logs of track 0, in a warp's state.
#[inline(always)]
pub(crate) fn log(state: StateMemory) -> Log {
    Log::new(state, PLACES, 0)
}

/// The logs of the raw twin in a dual recording.
#[inline(always)]
pub(crate) fn twin_log(state: StateMemory) -> Log {
    Log::new(state, TWIN_PLACES, 1)
}

/// What this launch records: fixed at compile time on the device, chosen by the simulator on the host.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) codec: Codec,
    pub(crate) dual: bool,
}

#[cfg(target_arch = "nvptx64")]
const PLAN: Plan = Plan {
    codec: if cfg!(feature = "codec-predict") {
        Codec::Predict
    } else if cfg!(feature = "codec-ecl") {
        Codec::Ecl
    } else {
        Codec::Raw
    },
    dual: cfg!(feature = "dual"),
};

/// Bytes of a warp's state.
pub(crate) const STATE_BYTES: u32 =
    warp_state_bytes(HAS_TWIN, cfg!(any(not(target_arch = "nvptx64"), feature = "counted")));

#[inline(always)]
pub(crate) fn plan() -> Plan {
    #[cfg(target_arch = "nvptx64")]
    {
        PLAN
    }
    #[cfg(not(target_arch = "nvptx64"))]
    simt::host::with_lane(|lane| {
        let recording = lane.recording();
        let codec = match recording.codec {
            CodecSpec::Ecl(_) => Codec::Ecl,
            CodecSpec::Predict(_) => Codec::Predict,
            _ => Codec::Raw,
        };
        Plan { codec, dual: recording.dual }
    })
}

/// Runs `$body` with `$recorder` standing for the encoder of `$plan`'s codec.
macro_rules! with_recorder {
    ($plan:expr, $recorder:ident => $body:expr) => {
        match $plan.codec {
            Codec::Raw => {
                type $recorder = RawState;
                $body
            }
            Codec::Ecl => {
                type $recorder = EclState;
                $body
            }
            Codec::Predict => {
                type $recorder = PredictState;
                $body
            }
        }
    };
}
pub(crate) use with_recorder;

// The block's dynamic shared memory: all of it for the kernel that encodes; in others its end holds the states, if the module keeps them there.
#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(".extern .shared .align 16 .b8 warptrace_dynamic[];");

#[cfg(all(target_arch = "nvptx64", feature = "state-shared"))]
pub(crate) mod place {
    //! Where the states of a block's warps are: at the end of its dynamic shared memory, where the host has added room.

    use super::STATE_BYTES;
    use crate::simt;
    use crate::space::StateAddress;

    // Stands in for the states where a launch has no room for them: it stays switched off.
    core::arch::global_asm!(
        ".shared .align 16 .b8 warptrace_none[{}];",
        const STATE_BYTES
    );

    /// Address of this warp's state, and whether there is room for it.
    #[inline(always)]
    pub(crate) fn state() -> (StateAddress, bool) {
        let (base, bytes, none): (u32, u32, u32);
        // SAFETY: reads addresses and a special register.
        unsafe {
            core::arch::asm!("mov.u32 {}, warptrace_dynamic;", "mov.u32 {}, %dynamic_smem_size;",
                "mov.u32 {}, warptrace_none;", out(reg32) base, out(reg32) bytes, out(reg32) none,
                options(pure, nomem, nostack, preserves_flags));
        }
        let warps = simt::block_threads().div_ceil(simt::WARP_LANES);
        let room = bytes >= warps * STATE_BYTES;
        let address = base + bytes - (warps - simt::warp_in_block()) * STATE_BYTES;
        (if room { address } else { none }, room)
    }
}

#[cfg(all(target_arch = "nvptx64", not(feature = "state-shared")))]
pub(crate) mod place {
    //! Where the states of a launch's warps are: in an array in global memory, which the pool's descriptor names.

    use super::STATE_BYTES;
    use crate::pool;
    use crate::simt;
    use crate::space::StateAddress;

    // Stands in for the states where a launch has none, for all of its warps. It stays switched off: what they write to it says nothing to any of them.
    core::arch::global_asm!(
        ".global .align 16 .b8 warptrace_none[{}];",
        const STATE_BYTES
    );

    /// Address of this warp's state, and whether there is one.
    #[inline(always)]
    pub(crate) fn state() -> (StateAddress, bool) {
        let none: u64;
        // SAFETY: the address of the array above.
        unsafe {
            core::arch::asm!("mov.u64 {}, warptrace_none;", out(reg64) none,
                options(pure, nomem, nostack, preserves_flags));
        }
        let (states, warps) = pool::states();
        let warp = simt::warp_in_launch();
        let is_there = (states != 0) & (warp < warps);
        (if is_there { states + u64::from(warp) * u64::from(STATE_BYTES) } else { none }, is_there)
    }
}

/// This warp's state.
#[inline(always)]
pub(crate) fn state(leader: bool) -> StateMemory {
    #[cfg(target_arch = "nvptx64")]
    {
        StateMemory::new(place::state().0, leader)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        static KEY: u8 = 0;
        const MAX_WARPS_PER_BLOCK: u32 = 32;
        let bytes = (MAX_WARPS_PER_BLOCK * STATE_BYTES) as usize;
        let base = simt::host::with_lane(|lane| lane.shared(&raw const KEY as usize, bytes));
        let at = u64::from(simt::warp_in_block() * STATE_BYTES);
        StateMemory::new(base.expose_provenance() as u64 + at, leader)
    }
}

const _: () = assert!(STATE_BYTES.is_multiple_of(128));

/// Where in a state the lanes leave their numbers of iterations for each other, 8 bytes a lane.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
pub(crate) const NUMBERS: u32 = MORES + EACH_BYTES;
