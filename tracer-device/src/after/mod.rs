//! What warps leave behind, merged and encoded after the kernel.
//!
//! A warp leaves its logs as they are: at the end of a kernel the lanes of a warp are rarely together, and one lane that encodes keeps a whole warp.
//! Before the host takes what is in the pool, two kernels of their own go over the logs of all launches since the last time:
//!
//! 1. `merge` brings each warp's logs into one sequence, in log memory; one warp for each warp and track, a lane for each log (see `logs`), and `sort` where
//!    several logs have runs. `cut` cuts the sequence into stretches that are sure to fit into a chunk, claims a chunk for each, and leaves its number of
//!    runs there.
//! 2. Others encode each stretch into its chunk: `together`, half a warp a stretch, with `predict`; `encode`, one thread a stretch, all else.
//!
//! A chunk that waits for its stretch:
//!
//! ```text
//! offset  size  field
//!      0     4  warp      as in a chunk
//!      4     4  sequence  as in a chunk
//!      8     4  runs
//!     12     4  0xffffffff if one thread is to encode it, 0xfffffffe if half a warp is
//!     16     4  launch    as in a chunk
//!     20     4  track     as in a chunk
//!     24     8  address of the runs
//! ```
//!
//! Where a run may be too long for a chunk, all runs of the warp are one stretch, and who encodes it claims further chunks.

mod board;
mod cut;
mod encode;
mod logs;
mod merge;
mod sort;
#[cfg(any(not(target_arch = "nvptx64"), feature = "codec-predict"))]
mod together;
mod warp_ops;

use warptrace_format::Memory;
#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::ecl::EclState;
#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::predict::PredictState;
#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::raw::RawState;
use warptrace_format::pool::LeftLaunch;

#[cfg(not(target_arch = "nvptx64"))]
use self::encode::encode;
#[cfg(not(target_arch = "nvptx64"))]
use self::merge::merge_all;
#[cfg(not(target_arch = "nvptx64"))]
use self::together::encode_together;
use crate::merge::RUN_BYTES;
use crate::pool::ACCOUNT_BYTES;
#[cfg(not(target_arch = "nvptx64"))]
use crate::recorder::{Codec, Recorder, TRACK_BYTES, Tables};
use crate::space::GlobalMemory;
#[cfg(not(target_arch = "nvptx64"))]
use crate::space::SharedMemory;
#[cfg(not(target_arch = "nvptx64"))]
use crate::state::{plan, with_recorder};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{pool, simt};

/// Stands where a chunk has its length, if one thread is to encode the stretch.
const ALONE: u32 = u32::MAX;
/// If half a warp is.
const TOGETHER: u32 = u32::MAX - 1;

/// Address of a warp's account for a track.
#[inline(always)]
fn account(launch: &LeftLaunch, track: u32, warp: u32) -> u64 {
    launch.accounts + u64::from(ACCOUNT_BYTES) * u64::from(track * launch.warps + warp)
}

/// A table of launches, in the device's memory.
#[derive(Clone, Copy)]
struct Launches {
    table: u64,
    count: u32,
}

impl Launches {
    #[inline(always)]
    fn get(self, index: u32) -> LeftLaunch {
        let at = GlobalMemory::new(self.table, false);
        let [low, high, slices, slice_units] = at.get128(32 * index);
        let [warps, launch, first_stream, tracks] = at.get128(32 * index + 16);
        let accounts = u64::from(low) | u64::from(high) << 32;
        LeftLaunch { accounts, slices, slice_units, warps, launch, first_stream, tracks }
    }

    /// The launch of a stream.
    #[inline(always)]
    fn of_stream(self, stream: u32) -> LeftLaunch {
        let (mut from, mut to) = (0, self.count - 1);
        while from < to {
            let middle = to - (to - from) / 2;
            let first = GlobalMemory::new(self.table, false).get32(32 * middle + 24);
            (from, to) = if first <= stream { (middle, to) } else { (from, middle - 1) };
        }
        self.get(from)
    }
}

const _: () = assert!(RUN_BYTES == 16);

#[cfg(target_arch = "nvptx64")]
mod kernels {
    use super::Launches;
    use super::encode::encode;
    use super::merge::merge_all;
    use crate::recorder::{TRACK_BYTES, Tables};
    use crate::space::SharedMemory;
    use warptrace_format::codec::ecl::EclState;
    use warptrace_format::codec::predict::PredictState;
    use warptrace_format::codec::raw::RawState;

    use crate::recorder::Codec;
    use crate::recorder::Recorder;
    use crate::state::{plan, with_recorder};
    use crate::{pool, simt};

    /// Where the thread's memory is: `bytes` for each of a block's.
    #[inline(always)]
    fn own(bytes: u32) -> u32 {
        let base: u32;
        // SAFETY: reads an address.
        unsafe {
            core::arch::asm!("mov.u32 {}, warptrace_dynamic;", out(reg32) base,
                options(pure, nomem, nostack, preserves_flags));
        }
        base + simt::linear_thread() * bytes
    }

    /// Merges the logs of `streams` streams of the launches in `table`, by a grid of any size along x, in blocks of up to 4 whole
    /// warps.
    ///
    /// # Safety
    /// Launched by the host, with a descriptor of the pool and log memory that the launches had.
    #[unsafe(no_mangle)]
    pub unsafe extern "ptx-kernel" fn warptrace_merge(table: u64, launches: u32, streams: u32) {
        merge_all(Launches { table, count: launches }, streams);
    }

    /// Encodes what was left for one thread each, for the first `count` chunks of the pool, by a grid of any size along x.
    ///
    /// # Safety
    /// Launched by the host, with [`encoding_bytes`](crate::encoding_bytes) of dynamic shared memory a thread, and a descriptor of the pool that the
    /// chunks are in.
    #[unsafe(no_mangle)]
    pub unsafe extern "ptx-kernel" fn warptrace_encode(table: u64, launches: u32, count: u32) {
        let (plan, pool) = (plan(), pool::descriptor());
        let own = own(crate::encoding_bytes(plan.codec));
        let tables = Tables::new(SharedMemory::new(own + TRACK_BYTES, true));
        with_recorder!(plan, R => R::ready(tables));
        let mut number = simt::global_thread_x();
        while number < count {
            let launches = Launches { table, count: launches };
            encode(&pool, plan, launches, number, SharedMemory::new(own, true), tables);
            number += simt::grid_threads_x();
        }
    }
}

#[cfg(all(target_arch = "nvptx64", feature = "codec-predict"))]
mod together_kernel {
    use super::Launches;
    use super::together::encode_together;
    use crate::recorder::DEVICE_PREDICT;

    /// Encodes what was left for half a warp each, for the first `count` chunks of the pool, by a grid of any size along x, in blocks of up to
    /// 4 whole warps.
    ///
    /// # Safety
    /// Launched by the host, with a descriptor of the pool that the chunks are in.
    #[unsafe(no_mangle)]
    pub unsafe extern "ptx-kernel" fn warptrace_encode_together(table: u64, launches: u32, count: u32) {
        encode_together(Launches { table, count: launches }, count, DEVICE_PREDICT);
    }
}

/// Memory of a thread that encodes on the simulator, in units that are aligned as the codecs want it.
#[cfg(not(target_arch = "nvptx64"))]
fn memory(bytes: u32) -> (Vec<u128>, SharedMemory) {
    // As on a GPU, with any content.
    let mut memory = vec![u128::from_ne_bytes([0xa5; 16]); bytes.div_ceil(16) as usize];
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    (memory, SharedMemory::new(address, true))
}

#[cfg(not(target_arch = "nvptx64"))]
fn arguments(table: u64, words: [u32; 2]) -> Vec<Vec<u8>> {
    vec![table.to_le_bytes().to_vec(), words[0].to_le_bytes().to_vec(), words[1].to_le_bytes().to_vec()]
}

/// The kernel that merges the logs of `streams` streams: those of the `launches` launches in the table of [`LeftLaunch`] at the address `table`. To be
/// launched as a grid along x, in blocks of up to 4 whole warps, with the descriptor of the pool and the log memory that they had.
#[cfg(not(target_arch = "nvptx64"))]
pub fn merge_call(table: u64, launches: u32, streams: u32) -> crate::KernelCall {
    let thread = move || merge_all(Launches { table, count: launches }, streams);
    crate::KernelCall::new("warptrace_merge", arguments(table, [launches, streams]), thread)
}

/// Lanes that encode a stretch together.
#[cfg(not(target_arch = "nvptx64"))]
pub const TOGETHER_LANES: u32 = together::GROUP_LANES;

/// Most threads of a block that encodes so.
#[cfg(not(target_arch = "nvptx64"))]
pub const TOGETHER_THREADS: u32 = together::MOST_GROUPS * TOGETHER_LANES;

/// The kernel that encodes what [`merge_call`] has left for the first `count` chunks of the pool, and for half a warp each, likewise: whole warps,
/// up to [`TOGETHER_THREADS`]. For the codec `predict`.
#[cfg(not(target_arch = "nvptx64"))]
pub fn encode_together_call(table: u64, launches: u32, count: u32) -> crate::KernelCall {
    let thread = move || {
        let params = Tables::new(()).predict();
        encode_together(Launches { table, count: launches }, count, params);
    };
    crate::KernelCall::new("warptrace_encode_together", arguments(table, [launches, count]), thread)
}

/// The kernel that encodes what is left for one thread each, with [`encoding_bytes`](crate::encoding_bytes) of dynamic shared memory a thread.
#[cfg(not(target_arch = "nvptx64"))]
pub fn encode_call(table: u64, launches: u32, count: u32) -> crate::KernelCall {
    let thread = move || {
        let (plan, pool) = (plan(), pool::descriptor());
        let codec = simt::host::with_lane(|lane| lane.recording().codec);
        let (_memory, state) = memory(TRACK_BYTES + codec.work_bytes());
        let tables = Tables::new(SharedMemory::new(state.address() + u64::from(TRACK_BYTES), true));
        with_recorder!(plan, R => R::ready(tables));
        let mut number = simt::global_thread_x();
        while number < count {
            encode(&pool, plan, Launches { table, count: launches }, number, state, tables);
            number += simt::grid_threads_x();
        }
    };
    crate::KernelCall::new("warptrace_encode", arguments(table, [launches, count]), thread)
}
