//! Where a warp's state is, and what lies where in it.
//!
//! ```text
//! offset  size  field
//!      0     4  mask of all live lanes, if they are to empty the logs when they come together; else 0
//!      4     4  index of the warp in the launch
//!      8     8  first unit of the warp's slice of log memory; in a dual recording of the twin's (see `log`)
//!     16     8  address of log memory
//!     24     8  the warp's area: first unit that is free, and the unit behind the last
//!     32    48  lock, held while a lane takes a segment out of the area
//!     80     4  first unit of the area
//!     84     4  units of a slice
//!     88     4  first unit of the memory for emptying logs inside the kernel; 0 before
//!     92     4  on the simulator: what stands for the clock
//!     96    32  unused
//!    128   512  records: the run that each lane keeps (see `event`)
//!    640   512  cursors: where each lane's log goes on (see `log`)
//!   1152   512  in a dual recording the cursors of the twin's logs
//!      …     …  with counted loops the lanes' places at the end of a loop (see `counts`)
//! ```

#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::CodecSpec;

use crate::lock::LOCK_BYTES;
use crate::log::Log;
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
use crate::recorder::COUNTS_AT;
use crate::recorder::{Codec, warp_state_bytes};
use crate::simt;
use crate::space::SharedMemory;

pub(crate) const DRAIN: u32 = 0;
pub(crate) const WARP: u32 = 4;
pub(crate) const SLICE: u32 = 8;
pub(crate) const LOGS: u32 = 16;
pub(crate) const AREA_NEXT: u32 = 24;
pub(crate) const AREA_END: u32 = 28;
pub(crate) const LOCK: u32 = 32;
pub(crate) const AREA: u32 = 80;
pub(crate) const SLICE_UNITS: u32 = 84;
pub(crate) const WORK: u32 = 88;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const CLOCK: u32 = 92;
const _: () = assert!(LOCK + LOCK_BYTES == AREA);
pub(crate) const RECORDS: u32 = 128;
pub(crate) const CURSORS: u32 = RECORDS + 16 * simt::WARP_LANES;
pub(crate) const TWIN_CURSORS: u32 = CURSORS + 16 * simt::WARP_LANES;
/// What a module without room for states has in their place.
#[cfg(target_arch = "nvptx64")]
const NO_STATE_BYTES: u32 = TWIN_CURSORS + if cfg!(feature = "dual") { 16 * simt::WARP_LANES } else { 0 };

/// The logs of track 0, in a warp's state.
#[inline(always)]
pub(crate) fn log(state: SharedMemory) -> Log {
    Log::new(state, CURSORS, 0)
}

/// The logs of the raw twin in a dual recording.
#[inline(always)]
pub(crate) fn twin_log(state: SharedMemory) -> Log {
    Log::new(state, TWIN_CURSORS, 1)
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
#[cfg(target_arch = "nvptx64")]
pub(crate) const STATE_BYTES: u32 = warp_state_bytes(PLAN.dual, cfg!(feature = "counted"));
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const STATE_BYTES: u32 = warp_state_bytes(true, false);

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

#[cfg(target_arch = "nvptx64")]
pub(crate) mod place {
    //! Where the states of a block's warps are: at the end of its dynamic shared memory, where the host has added room.

    use super::STATE_BYTES;
    use crate::simt;

    // The second stands in for the states where a launch has no room for them: it stays switched off.
    core::arch::global_asm!(
        ".extern .shared .align 16 .b8 warptrace_dynamic[];",
        ".shared .align 16 .b8 warptrace_none[{}];",
        const super::NO_STATE_BYTES
    );

    /// Address of this warp's state, and whether there is room for it.
    #[inline(always)]
    pub(crate) fn state() -> (u32, bool) {
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

/// This warp's state.
#[inline(always)]
pub(crate) fn state(leader: bool) -> SharedMemory {
    #[cfg(target_arch = "nvptx64")]
    {
        SharedMemory::new(place::state().0, leader)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        static KEY: u8 = 0;
        const MAX_WARPS_PER_BLOCK: u32 = 32;
        let bytes = (MAX_WARPS_PER_BLOCK * STATE_BYTES) as usize;
        let base = simt::host::with_lane(|lane| lane.shared(&raw const KEY as usize, bytes));
        let at = u64::from(simt::warp_in_block() * STATE_BYTES);
        SharedMemory::new(base.expose_provenance() as u64 + at, leader)
    }
}

/// Where the lanes of this warp leave their counts of a loop for each other: 8 bytes a lane, and behind them 4 a lane.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn counts() -> SharedMemory {
    SharedMemory::new(
        place::state().0 + if PLAN.dual { COUNTS_AT + 16 * simt::WARP_LANES } else { COUNTS_AT },
        true,
    )
}
