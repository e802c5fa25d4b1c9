//! Where a warp's state is, and what lies where in it.
//!
//! ```text
//! offset  size  field
//!      0    16  pending run: mask if its lanes may count repeats of it by themselves, else 0; location; count, without what its
//!               lanes have counted since; then how many runs were put into the queue
//!     16    16  mask of the pending run; what its lowest lane had counted when `count` was right; two words on noted runs
//!               (see `late`)
//!     32    16  live mask: lanes that have not left the kernel; 0 while recording is on, else OFF; linear index of the warp in the
//!               launch; zero
//!     48    16  address of the encoder's work memory, in global memory; events that were taken out of the queue
//!     64    48  lock, held while a group smaller than the live mask is in the tracer; in its unused word at 72: 1 if the queue is full,
//!               as the leader tells its group
//!    112    16  events taken out of the mailbox, events that have a place there (see `mail`); runs taken out of the queue, if the chunk was
//!               full on the way; in a dual recording how many events were put into the twin's queue
//!    128   128  what each lane has counted: a word a lane
//!    256   128  entries of locations 0 to 31: mask of the pending run, if it is at this location and its lanes may count, else 0
//!    384   272  mailbox (see `mail`)
//!    656  1024  queue of runs
//!   1680   512  noted runs (see `late`)
//!   2192     …  track 0, then in a dual recording track 1 (see `stream`), how many events were taken out of the twin's queue, and
//!               that queue
//!      …     …  the encoder's tables, where they are in shared memory; the lanes' places at the end of a counted loop
//! ```

#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::CodecSpec;

use crate::late::LATE_TABLE_BYTES;
use crate::lock::LOCK_BYTES;
use crate::mail::MAIL_BYTES;
use crate::queue::QUEUE_BYTES;
use crate::recorder::{Codec, ENTRIES, Tables, WARP_HEADER_BYTES, warp_state_bytes};
use crate::simt;
use crate::space::SharedMemory;

pub(crate) const PENDING: u32 = 0;
pub(crate) const BEHIND: u32 = 16;
pub(crate) const LIVE: u32 = 32;
/// In the word behind the live mask: nothing is recorded.
pub(crate) const OFF: u32 = 1 << 31;
pub(crate) const WORK: u32 = 48;
pub(crate) const DRAINED: u32 = 56;
pub(crate) const LOCK: u32 = 64;
#[cfg(target_arch = "nvptx64")]
pub(crate) const IS_FULL: u32 = LOCK + 8;
pub(crate) const WAITING: u32 = LOCK + LOCK_BYTES;
pub(crate) const TAKEN: u32 = WAITING + 8;
pub(crate) const TWIN_PUT: u32 = WAITING + 12;
pub(crate) const COUNTED: u32 = WAITING + 16;
pub(crate) const ENTRIES_AT: u32 = COUNTED + 4 * simt::WARP_LANES;
pub(crate) const MAIL: u32 = ENTRIES_AT + 4 * ENTRIES;
pub(crate) const QUEUE: u32 = MAIL + MAIL_BYTES;
pub(crate) const LATE_TABLE: u32 = QUEUE + QUEUE_BYTES;
const _: () = assert!(LATE_TABLE + LATE_TABLE_BYTES == WARP_HEADER_BYTES);
/// What is zero when a warp starts.
#[cfg(target_arch = "nvptx64")]
pub(crate) const CLEARED_BYTES: u32 = QUEUE;

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

    // The second stands in for the states where a launch has no room for them: it stays switched off. Only
    // counted loops write behind its header.
    core::arch::global_asm!(
        ".extern .shared .align 16 .b8 warptrace_dynamic[];",
        ".shared .align 16 .b8 warptrace_none[{}];",
        const if cfg!(feature = "counted") { STATE_BYTES } else { super::CLEARED_BYTES }
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
        Tables { address: u64::from(tables_address(state)), leader: state.leader }
    }
    #[cfg(all(target_arch = "nvptx64", not(feature = "work-shared")))]
    {
        let _ = plan;
        Tables { address: work, leader: state.leader }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (state, plan);
        Tables { address: work, leader: true, codec: simt::host::with_lane(|lane| lane.recording().codec) }
    }
}

/// Where the lanes of this warp leave their counts of a loop for each other: 16 bytes a lane.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn counts() -> SharedMemory {
    let at = warp_state_bytes(PLAN.codec, PLAN.dual, cfg!(feature = "work-shared"), false);
    SharedMemory::new(place::state().0 + at, true)
}
