//! Where a warp's state is, and what lies where in it.
//!
//! ```text
//! offset  size  field
//!      0    16  live mask: lanes that have not left the kernel; the log's cursor, first place and limit (see `log`)
//!     16    16  the twin's log in a dual recording, likewise; in its first word linear index of the warp in the launch
//!     32    16  where segments are: see `log::origin`
//!     48    16  address of the encoder's work memory, in global memory; events that were taken out of the log
//!     64    16  events that found no room in the log, and in the twin's
//!     80    48  lock, held while a group that is not alone moves a cursor
//!    128   128  where among the records that of the run is that each lane was in last
//!    256   512  records of runs (see `event`)
//!    768     …  track 0, then in a dual recording track 1 (see `stream`), and what belongs to its log
//!      …     …  the encoder's tables, where they are in shared memory; the lanes' places at the end of a counted loop
//! ```

#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::CodecSpec;

use crate::lock::LOCK_BYTES;
use crate::log::Log;
use crate::recorder::{Codec, Tables, WARP_HEADER_BYTES, warp_state_bytes};
use crate::simt;
use crate::space::SharedMemory;

/// Live mask, and the words of the log behind it.
pub(crate) const LIVE: u32 = 0;
/// Index of the warp, and the words of the twin's log behind it.
pub(crate) const WARP: u32 = 16;
pub(crate) const ORIGIN: u32 = 32;
pub(crate) const WORK: u32 = 48;
pub(crate) const TAKEN: u32 = 56;
pub(crate) const LOST: u32 = 64;
/// 1 if a run was longer than `after::most_count`. In a word of the lock that it does not use.
pub(crate) const LARGE: u32 = LOCK + 8;
pub(crate) const LOCK: u32 = 80;
const _: () = assert!(LOCK + LOCK_BYTES == KEEPERS);
pub(crate) const KEEPERS: u32 = 128;
pub(crate) const RECORDS: u32 = 256;
const _: () = assert!(RECORDS + 16 * simt::WARP_LANES == WARP_HEADER_BYTES);
/// What is zero when a warp starts: the header, and where track 0 says whether it is open.
pub(crate) const CLEARED_BYTES: u32 = WARP_HEADER_BYTES + 16;

/// The log of track 0.
#[inline(always)]
pub(crate) fn log(state: SharedMemory) -> Log {
    Log::new(state, LIVE, 0)
}

/// The log of the raw twin in a dual recording.
#[inline(always)]
pub(crate) fn twin_log(state: SharedMemory) -> Log {
    Log::new(state, WARP, 1)
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

/// Bytes of a warp's state, tables in shared memory included.
#[cfg(target_arch = "nvptx64")]
pub(crate) const STATE_BYTES: u32 =
    warp_state_bytes(PLAN.codec, PLAN.dual, cfg!(feature = "work-shared"), cfg!(feature = "counted"));
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const STATE_BYTES: u32 = warp_state_bytes(Codec::Ecl, true, false, false);

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

    // The second stands in for the states where a launch has no room for them: it stays switched off, and
    // nobody writes behind its header.
    core::arch::global_asm!(
        ".extern .shared .align 16 .b8 warptrace_dynamic[];",
        ".shared .align 16 .b8 warptrace_none[{}];",
        const super::CLEARED_BYTES
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

/// Where this warp's tables are in shared memory.
#[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
#[inline(always)]
pub(crate) fn tables_address(state: SharedMemory) -> u32 {
    state.address + warp_state_bytes(PLAN.codec, PLAN.dual, false, false)
}

#[inline(always)]
pub(crate) fn tables(state: SharedMemory, plan: Plan, work: u64) -> Tables {
    #[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
    {
        let _ = (plan, work);
        Tables { address: u64::from(tables_address(state)) }
    }
    #[cfg(all(target_arch = "nvptx64", not(feature = "work-shared")))]
    {
        let _ = (state, plan);
        Tables { address: work }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (state, plan);
        Tables { address: work, codec: simt::host::with_lane(|lane| lane.recording().codec) }
    }
}

/// Where the lanes of this warp leave their counts of a loop for each other: 8 bytes a lane.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn counts() -> SharedMemory {
    let at = warp_state_bytes(PLAN.codec, PLAN.dual, cfg!(feature = "work-shared"), false);
    SharedMemory::new(place::state().0 + at, true)
}
