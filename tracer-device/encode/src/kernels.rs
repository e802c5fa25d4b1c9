//! The kernels. Each is given the pool, with device addresses, and the address of a table of
//! [`LoggedLaunch`](warptrace_abi::log::LoggedLaunch)es.
#![expect(unreachable_pub, reason = "the host finds them by their names in the PTX")]

use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;

use crate::codec::{Codec, DEVICE_ECL, DEVICE_PREDICT};
use crate::encode::cooperative::encode_cooperatively;
use crate::encode::{Encoder, encode_serially, serial_shared_bytes, state_bytes};
use crate::flatten::{FlattenJob, flatten_warps, link_segments};
use crate::launches::Launches;
use crate::memory::SharedMemory;
use crate::merge::merge_streams;

core::arch::global_asm!(".extern .shared .align 16 .b8 warptrace_dynamic[];");

/// The thread's part of dynamic shared memory: `bytes` for each of a block's.
#[inline(always)]
fn own_memory(bytes: u32) -> u32 {
    let base: u32;
    // SAFETY: reads an address.
    unsafe {
        core::arch::asm!("mov.u32 {}, warptrace_dynamic;", out(reg32) base,
            options(pure, nomem, nostack, preserves_flags));
    }
    base + simt::linear_thread() * bytes
}

/// Encodes the stretches that wait for the encoder in the first `count` chunks, a thread each.
#[inline(always)]
fn encode_all<E: Encoder>(
    pool: &PoolDescriptor,
    launches: Launches,
    count: u32,
    codec: Codec,
    params: E::Params,
) {
    let own = own_memory(serial_shared_bytes(codec));
    let (state, mut tables) = (SharedMemory::new(own), SharedMemory::new(own + state_bytes::<E>()));
    E::prepare(params, &mut tables);
    let mut index = simt::global_thread_x();
    while index < count {
        encode_serially::<E>(pool, launches, index, params, [state, tables]);
        index += simt::grid_threads_x();
    }
}

/// Merges the logs of `streams` streams of the launches in `table`, and cuts them for a codec given by its
/// number: a grid of any size along x, in blocks of up to 4 whole warps.
///
/// # Safety
/// Launched by the host, with a pool, log memory and accounts of the sizes that the descriptors imply.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_merge(
    pool: PoolDescriptor,
    table: u64,
    launches: u32,
    streams: u32,
    codec: u32,
) {
    merge_streams(&pool, Launches { table, count: launches }, streams, Codec::from_number(codec));
}

/// Encodes with `predict` what waits for half a warp each, for the first `count` chunks of the pool: a grid
/// of any size along x, in blocks of up to 4 whole warps.
///
/// # Safety
/// As for [`warptrace_merge`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_encode_predict(
    pool: PoolDescriptor,
    table: u64,
    launches: u32,
    count: u32,
) {
    encode_cooperatively(&pool, Launches { table, count: launches }, count, DEVICE_PREDICT);
}

/// Encodes with `raw` what waits for one thread each, for the first `count` chunks of the pool: a grid of any
/// size along x, with [`serial_shared_bytes`] of dynamic shared memory a thread.
///
/// # Safety
/// As for [`warptrace_merge`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_encode_raw_serial(
    pool: PoolDescriptor,
    table: u64,
    launches: u32,
    count: u32,
) {
    encode_all::<RawState>(&pool, Launches { table, count: launches }, count, Codec::Raw, ());
}

/// Encodes like [`warptrace_encode_raw_serial`], with `ecl`.
///
/// # Safety
/// As for [`warptrace_merge`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_encode_ecl_serial(
    pool: PoolDescriptor,
    table: u64,
    launches: u32,
    count: u32,
) {
    encode_all::<EclState>(&pool, Launches { table, count: launches }, count, Codec::Ecl, DEVICE_ECL);
}

/// Encodes like [`warptrace_encode_raw_serial`], with `predict`.
///
/// # Safety
/// As for [`warptrace_merge`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_encode_predict_serial(
    pool: PoolDescriptor,
    table: u64,
    launches: u32,
    count: u32,
) {
    let launches = Launches { table, count: launches };
    encode_all::<PredictState>(&pool, launches, count, Codec::Predict, DEVICE_PREDICT);
}

/// Links the segments of a round's lanes: a grid of any size along x.
///
/// # Safety
/// Launched by the host, with memory of the sizes that the job implies.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_link_segments(job: FlattenJob) {
    link_segments(&job);
}

/// Makes flat logs of the segments of a round's warps, behind [`warptrace_link_segments`]: a grid of any size
/// along x, in blocks of whole warps.
///
/// # Safety
/// As for [`warptrace_link_segments`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_flatten_warps(job: FlattenJob) {
    flatten_warps(&job);
}
