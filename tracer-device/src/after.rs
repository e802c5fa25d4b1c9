//! What warps leave behind, merged and encoded after the kernel.
//!
//! A warp leaves its logs as they are: at the end of a kernel the lanes of a warp are rarely together, and one lane that encodes keeps a whole warp.
//! Before the host takes what is in the pool, two kernels of their own go over the logs of all launches since the last time:
//!
//! 1. [`merge`] brings each warp's logs into one sequence, in log memory; one thread for each warp and track. It cuts the sequence into
//!    stretches that are sure to fit into a chunk, claims a chunk for each, and leaves its number of runs there.
//! 2. [`encode`] encodes each stretch into its chunk, one thread a stretch.
//!
//! A chunk that waits for its stretch:
//!
//! ```text
//! offset  size  field
//!      0     4  warp      as in a chunk
//!      4     4  sequence  as in a chunk
//!      8     4  runs
//!     12     4  0xffffffff
//!     16     4  launch    as in a chunk
//!     20     4  track     as in a chunk
//!     24     8  address of the runs
//! ```
//!
//! Where a run may be too long for a chunk, all runs of the warp are one stretch, and who encodes it claims further chunks.

use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::pool::{LeftLaunch, PoolDescriptor};

use crate::log::at_unit;
use crate::merge::{MERGE_BYTES, Merge, RUN_BYTES};
use crate::pool;
#[cfg(not(target_arch = "nvptx64"))]
use crate::recorder::TRACK_BYTES;
use crate::recorder::{Codec, Tables};
#[cfg(not(target_arch = "nvptx64"))]
use crate::simt;
use crate::space::{GlobalMemory, SharedMemory};
#[cfg(not(target_arch = "nvptx64"))]
use crate::state::plan;
use crate::state::{Plan, with_recorder};
use crate::stream::{Stretch, Track};

/// Stands where a chunk has its length.
const LEFT: u32 = u32::MAX;
/// Bytes of a chunk's payload that a stretch leaves free, for what an encoder keeps back.
const SLACK: u32 = 64;
/// Stands for the bytes of a run that may be too long for any chunk.
const ANY_LENGTH: u32 = u32::MAX;

/// Bytes that a run takes at most: 5 an event; 11, which is the most that an event can lengthen `ecl`; 12 a run with `predict`, if all counts of a chunk
/// together are less than 2^24.
#[inline(always)]
fn most_bytes(codec: Codec, count: u32) -> u32 {
    match codec {
        Codec::Raw if count < 1 << 20 => 5 * count,
        Codec::Ecl if count < 1 << 20 => 11 * count,
        Codec::Predict if count < 1 << 15 => 12,
        _ => ANY_LENGTH,
    }
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

/// Merges the logs of a stream, if its warp has left any, and leaves them to [`encode`]. From one thread, with [`MERGE_BYTES`] of `heads`.
#[inline(always)]
fn merge(pool: &PoolDescriptor, plan: Plan, launches: Launches, stream: u32, heads: SharedMemory) {
    let launch = launches.of_stream(stream);
    let index = stream - launch.first_stream;
    let (track, warp) = (index / launch.warps, index % launch.warps);
    let account = launch.accounts + u64::from(pool::ACCOUNT_BYTES) * u64::from(index);
    if !pool::finish_account(account) {
        return;
    }
    let slice = launch.slices + index * launch.slice_units;
    let mut merge = Merge::open(heads, pool.logs, pool.log_units, slice);
    let runs = merge.count();
    if runs == 0 {
        return;
    }
    let codec = if track == 0 { plan.codec } else { Codec::Raw };
    let to = pool::claim_merged(pool, runs);
    let (mut attempted, mut lost) = (0, 0);
    let (mut left, mut merged, mut fits) = (runs, 0, true);
    while left != 0 {
        left -= 1;
        let Some([mask, location, count, time]) = merge.next() else { break };
        attempted += u64::from(count);
        let late = merge.lost_from.is_some_and(|from| time.wrapping_sub(from) as i32 >= 0);
        if late || to == 0 {
            // What is recorded is a beginning.
            lost += u64::from(count);
        } else {
            at_unit(pool.logs, to + merged).set128(0, [mask, location & 0xffff, count, 0]);
            fits &= most_bytes(codec, count) <= pool.chunk_bytes - CHUNK_HEADER_BYTES - SLACK;
            merged += 1;
        }
    }
    let mut done = 0;
    let mut sequence = pool::account_chunks(account);
    while done < merged {
        let stretch = if fits { fitting(pool, codec, to + done, merged - done) } else { merged - done };
        let chunk = pool::claim(pool);
        if chunk >= pool.chunk_count {
            break;
        }
        let runs = at_unit(pool.logs, to + done).address();
        let mut header = pool::chunk(pool, chunk);
        header.set128(0, [warp, sequence, stretch, LEFT]);
        header.set128(16, [launch.launch, track, runs as u32, (runs >> 32) as u32]);
        done += stretch;
        sequence += 1;
    }
    while done < merged {
        lost += u64::from(at_unit(pool.logs, to + done).get32(8));
        done += 1;
    }
    pool::add_to_account(account, [attempted, 0, lost], 0);
}

/// How many of the `left` runs from a unit on are sure to fit into a chunk.
#[inline(always)]
fn fitting(pool: &PoolDescriptor, codec: Codec, unit: u32, left: u32) -> u32 {
    let room = pool.chunk_bytes - CHUNK_HEADER_BYTES - SLACK;
    let (mut runs, mut bytes) = (0, 0);
    while runs < left {
        bytes += most_bytes(codec, at_unit(pool.logs, unit + runs).get32(8));
        if bytes > room {
            break;
        }
        runs += 1;
    }
    runs
}

/// Encodes what was left for the chunk `index`, if anything was. From one thread, with [`TRACK_BYTES`] of `state` and tables of its own.
#[inline(always)]
fn encode(
    pool: &PoolDescriptor,
    plan: Plan,
    launches: Launches,
    index: u32,
    state: SharedMemory,
    tables: Tables<SharedMemory>,
) {
    let header = pool::chunk(pool, index);
    let [warp, sequence, runs, left] = header.get128(0);
    let [number, track, low, high] = header.get128(16);
    let launch = number.wrapping_sub(launches.get(0).launch);
    if left != LEFT || launch >= launches.count {
        return;
    }
    let launch = launches.get(launch);
    let account = launch.accounts + u64::from(pool::ACCOUNT_BYTES) * u64::from(track * launch.warps + warp);
    let stretch = Stretch { address: u64::from(low) | u64::from(high) << 32, runs };
    let payload = pool::start_chunk(pool, index, [warp, number, track]);
    let stream = Track::new(state, track, warp, number);
    if track == 0 {
        with_recorder!(plan, R => {
            stream.open::<R, _>(tables, payload, sequence, pool.chunk_bytes);
            stream.record::<R, _>(tables, stretch);
            stream.finish::<R, _>(tables, account, sequence);
        });
    } else {
        stream.open::<RawState, _>(tables, payload, sequence, pool.chunk_bytes);
        stream.record::<RawState, _>(tables, stretch);
        stream.finish::<RawState, _>(tables, account, sequence);
    }
}

const _: () = assert!(RUN_BYTES == 16);

#[cfg(target_arch = "nvptx64")]
mod kernels {
    use super::{Launches, encode, merge};
    use crate::merge::MERGE_BYTES;
    use crate::recorder::{TRACK_BYTES, Tables};
    use crate::space::SharedMemory;
    use crate::state::plan;
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

    /// Merges the logs of `streams` streams of the launches in `table`, by a grid of any size along x.
    ///
    /// # Safety
    /// Launched by the host, with [`merging_bytes`](crate::merging_bytes) of dynamic shared memory a thread, and a descriptor of the pool and log
    /// memory that the launches had.
    #[unsafe(no_mangle)]
    pub unsafe extern "ptx-kernel" fn warptrace_merge(table: u64, launches: u32, streams: u32) {
        let (plan, pool) = (plan(), pool::descriptor());
        let heads = SharedMemory::new(own(MERGE_BYTES + 16), true);
        let mut stream = simt::global_thread_x();
        while stream < streams {
            merge(&pool, plan, Launches { table, count: launches }, stream, heads);
            stream += simt::grid_threads_x();
        }
    }

    /// Encodes what was left for the first `count` chunks of the pool, by a grid of any size along x.
    ///
    /// # Safety
    /// Launched by the host, with [`encoding_bytes`](crate::encoding_bytes) of dynamic shared memory a thread, and a descriptor of the pool that the
    /// chunks are in.
    #[unsafe(no_mangle)]
    pub unsafe extern "ptx-kernel" fn warptrace_encode(table: u64, launches: u32, count: u32) {
        let (plan, pool) = (plan(), pool::descriptor());
        let own = own(crate::encoding_bytes(plan.codec));
        let tables = Tables::new(SharedMemory::new(own + TRACK_BYTES, true));
        let mut number = simt::global_thread_x();
        while number < count {
            let launches = Launches { table, count: launches };
            encode(&pool, plan, launches, number, SharedMemory::new(own, true), tables);
            number += simt::grid_threads_x();
        }
    }
}

/// Bytes that each thread needs in shared memory that merges logs.
pub const fn merging_bytes() -> u32 {
    // Of two neighbours the same words lie in different banks.
    MERGE_BYTES + 16
}

/// Memory of a thread that merges or encodes on the simulator, in units that are aligned as the codecs want it.
#[cfg(not(target_arch = "nvptx64"))]
fn memory(bytes: u32) -> (Vec<u128>, SharedMemory) {
    let mut memory = vec![0_u128; bytes.div_ceil(16) as usize];
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    (memory, SharedMemory::new(address, true))
}

#[cfg(not(target_arch = "nvptx64"))]
fn arguments(table: u64, words: [u32; 2]) -> Vec<Vec<u8>> {
    vec![table.to_le_bytes().to_vec(), words[0].to_le_bytes().to_vec(), words[1].to_le_bytes().to_vec()]
}

/// The kernel that merges the logs of `streams` streams: those of the `launches` launches in the table of [`LeftLaunch`] at the address `table`. To be
/// launched as a grid along x, with the descriptor of the pool and the log memory that they had.
#[cfg(not(target_arch = "nvptx64"))]
pub fn merge_call(table: u64, launches: u32, streams: u32) -> crate::KernelCall {
    let thread = move || {
        let (plan, pool) = (plan(), pool::descriptor());
        let (_memory, heads) = memory(MERGE_BYTES);
        let mut stream = simt::global_thread_x();
        while stream < streams {
            merge(&pool, plan, Launches { table, count: launches }, stream, heads);
            stream += simt::grid_threads_x();
        }
    };
    crate::KernelCall::new("warptrace_merge", arguments(table, [launches, streams]), thread)
}

/// The kernel that encodes what [`merge_call`] has left for the first `count` chunks of the pool, likewise.
#[cfg(not(target_arch = "nvptx64"))]
pub fn encode_call(table: u64, launches: u32, count: u32) -> crate::KernelCall {
    let thread = move || {
        let (plan, pool) = (plan(), pool::descriptor());
        let codec = simt::host::with_lane(|lane| lane.recording().codec);
        let (_memory, state) = memory(TRACK_BYTES + codec.work_bytes());
        let tables = Tables::new(SharedMemory::new(state.address() + u64::from(TRACK_BYTES), true));
        let mut number = simt::global_thread_x();
        while number < count {
            encode(&pool, plan, Launches { table, count: launches }, number, state, tables);
            number += simt::grid_threads_x();
        }
    };
    crate::KernelCall::new("warptrace_encode", arguments(table, [launches, count]), thread)
}
