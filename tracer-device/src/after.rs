//! What warps leave behind, encoded after the kernel.
//!
//! A warp leaves its log as it is: at the end of a kernel the lanes of a warp are rarely together, and one lane that encodes keeps a whole warp.
//! Before the host takes what is in the pool, a kernel of its own encodes the logs, one lane a segment: a warp encodes 32 of them at a time. (See
//! `docs/device.md` for what that is worth.) Each segment becomes a chunk. Logs that were encoded in part already because the pool got short, or in
//! whose segments may be more than fits into a chunk, the warp encodes itself.
//!
//! The header of a segment that was left:
//!
//! ```text
//! offset  size  field
//!      0     4  warp      as in a chunk
//!      4     4  runs      in the segment; above the lowest 8 bits its place in the log, from 0
//!      8     4  output    number of the chunk for the output
//!     12     4  0xffffffff
//!     16     4  launch    as in a chunk
//!     20     4  track     as in a chunk
//!     24     8  address of the warp's account
//! ```
//!
//! When it is encoded, it is a chunk in which nothing lies.

use warptrace_format::Memory;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::pool::PoolDescriptor;

use crate::log::{Log, Stretch};
use crate::pool;
use crate::recorder::{Codec, ENCODING_TABLES, Tables};
use crate::simt;
use crate::space::SharedMemory;
use crate::state::{LARGE, LOST, Plan, TAKEN, WARP, log, plan, twin_log, with_recorder};
use crate::stream::{Track, get64};

/// Stands where a chunk has its length.
const LEFT: u32 = u32::MAX;

/// Leaves the logs to the encoder that comes later, if they are complete; answers whether. From the last lanes of the warp, together.
#[inline(always)]
pub(crate) fn leave_logs(state: SharedMemory, leads: bool) -> bool {
    if !LEAVES {
        return false;
    }
    let plan = plan();
    let lost = get64(&state, LOST) | get64(&state, LOST + 8);
    let fits = state.get32(LARGE) == 0;
    let mut leaves = get64(&state, TAKEN) | lost == 0;
    leaves &= log(state).has_segment() & (fits | log(state).is_short());
    if plan.dual {
        leaves &= twin_log(state).has_segment() & (fits | twin_log(state).is_short());
    }
    if leaves & leads {
        let pool = pool::descriptor();
        leave_log(&pool, log(state), state.get32(WARP), 0);
        if plan.dual {
            leave_log(&pool, twin_log(state), state.get32(WARP), 1);
        }
    }
    leaves
}

/// Largest count of a run with which a segment always fits into its chunk: 255 runs of 5 bytes an event; of 11, which is the most that an event can
/// lengthen `ecl`; of 12 a run, if all counts together are less than 2^24. (Smaller chunks have segments with as much less.)
#[inline(always)]
pub(crate) fn most_count(plan: Plan) -> u32 {
    match plan.codec {
        Codec::Ecl => 1,
        Codec::Raw => 3,
        // Beside it the raw twin.
        Codec::Predict if plan.dual => 3,
        Codec::Predict => 65_535,
    }
}

/// Whether the module has an encoder for logs that are left: its tables have to be in shared memory.
const LEAVES: bool = cfg!(not(target_arch = "nvptx64"))
    || cfg!(any(feature = "work-shared", not(any(feature = "codec-ecl", feature = "codec-predict"))));

#[inline(always)]
fn leave_log(pool: &PoolDescriptor, log: Log, warp: u32, track: u32) {
    let account = pool.account(track, warp);
    let mut place = 0;
    log.for_each_segment(|segment, stretch| {
        // Where segments are claimed, each has the chunk before it.
        let output = match pool.first_chunk(track, warp) {
            Some(first) if place == 0 => first,
            _ => segment - 1,
        };
        let mut header = pool::chunk(pool, segment, true);
        header.set128(0, [warp, stretch.runs | place << 8, output, LEFT]);
        header.set128(16, [pool.launch, track, account as u32, (account >> 32) as u32]);
        place += 1;
    });
}

/// Encodes what was left in chunk `index`, if anything was. From one thread, with memory of its own for it.
#[inline(always)]
fn encode(pool: &PoolDescriptor, plan: Plan, index: u32, state: SharedMemory, tables: Tables) {
    let mut header = pool::chunk(pool, index, true);
    let [warp, runs, output, left] = header.get128(0);
    if left != LEFT {
        return;
    }
    let [launch, track, low, high] = header.get128(16);
    let account = u64::from(low) | u64::from(high) << 32;
    let (runs, sequence) = (runs & 0xff, runs >> 8);
    let stretch = Stretch { address: header.address() + u64::from(CHUNK_HEADER_BYTES), runs };
    let payload = pool::start_chunk(pool, output, [warp, launch, track]);
    let stream = Track::new(state, 0, track, warp, launch);
    if track == 0 {
        with_recorder!(plan, R => {
            stream.open::<R>(tables, payload, sequence, pool.chunk_bytes);
            let taken = stream.record::<R>(tables, stretch);
            stream.finish::<R>(tables, account, sequence, taken, 0);
        });
    } else {
        stream.open::<RawState>(Tables::none(), payload, sequence, pool.chunk_bytes);
        let taken = stream.record::<RawState>(Tables::none(), stretch);
        stream.finish::<RawState>(Tables::none(), account, sequence, taken, 0);
    }
    header.set128(0, [0; 4]);
}

/// Encodes what was left in chunks `first` to `first + count - 1`, by a grid of any size along x.
///
/// # Safety
/// Launched by the host, with [`encoding_bytes`](crate::encoding_bytes) of dynamic shared memory a thread, and a descriptor of the pool that the
/// chunks are in.
#[cfg(all(
    target_arch = "nvptx64",
    any(feature = "work-shared", not(any(feature = "codec-ecl", feature = "codec-predict")))
))]
#[expect(unreachable_pub, reason = "the host finds it by its name in the PTX")]
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_encode(first: u32, count: u32) {
    let plan = plan();
    let pool = pool::descriptor();
    let base: u32;
    // SAFETY: reads an address.
    unsafe {
        core::arch::asm!("mov.u32 {}, warptrace_dynamic;", out(reg32) base,
            options(pure, nomem, nostack, preserves_flags));
    }
    let own = base + simt::linear_thread() * crate::encoding_bytes(plan.codec);
    let tables = Tables { address: u64::from(own + ENCODING_TABLES) };
    let mut number = simt::global_thread_x();
    while number < count {
        encode(&pool, plan, first + number, SharedMemory::new(own, true), tables);
        number += simt::grid_threads_x();
    }
}

/// The kernel that encodes what was left in chunks `first` to `first + count - 1`.
#[cfg(not(target_arch = "nvptx64"))]
pub fn encode_call(first: u32, count: u32) -> crate::KernelCall {
    let thread = move || {
        let plan = plan();
        let pool = pool::descriptor();
        let codec = simt::host::with_lane(|lane| lane.recording().codec);
        let bytes = ENCODING_TABLES + codec.work_bytes();
        // In units that are aligned as the codecs want it.
        let mut memory = vec![0_u128; bytes.div_ceil(16) as usize];
        let own = memory.as_mut_ptr().expose_provenance() as u64;
        let tables = Tables { address: own + u64::from(ENCODING_TABLES), codec };
        let mut number = simt::global_thread_x();
        while number < count {
            encode(&pool, plan, first + number, SharedMemory::new(own, true), tables);
            number += simt::grid_threads_x();
        }
    };
    crate::KernelCall::new(
        "warptrace_encode",
        vec![first.to_le_bytes().to_vec(), count.to_le_bytes().to_vec()],
        thread,
    )
}
