//! The kernels. Most take the pool, with device addresses, and the address of a table of
//! [`LoggedLaunch`](warptrace_abi::log::LoggedLaunch)es.
#![expect(unreachable_pub, reason = "the host finds them by their names in the PTX")]

use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;

use crate::accounts::{AccountsJob, pack_accounts};
use crate::classes::find_classes;
use crate::codec::{Codec, DEVICE_ECL, DEVICE_PREDICT};
use crate::encode::cooperative::encode_cooperatively;
use crate::encode::{Encoder, encode_all, serial_shared_bytes, state_bytes};
use crate::flatten::{FlattenJob, flatten_warps, link_segments};
use crate::launches::Launches;
use crate::memory::SharedMemory;
use crate::merge::merge_streams;
use crate::pack::{PackJob, pack_data, place_chunks};

core::arch::global_asm!(".extern .shared .align 16 .b8 warptrace_dynamic[];");

/// Returns the thread's part of dynamic shared memory: the encoder's state, and its tables after it.
#[inline(always)]
fn own_memory<E: Encoder>(codec: Codec) -> [SharedMemory; 2] {
    let base: u32;
    // SAFETY: reads the address of a declared symbol.
    unsafe {
        core::arch::asm!("mov.u32 {}, warptrace_dynamic;", out(reg32) base,
            options(pure, nomem, nostack, preserves_flags));
    }
    let own = base + simt::linear_thread() * serial_shared_bytes(codec);
    [SharedMemory::new(own), SharedMemory::new(own + state_bytes::<E>())]
}

/// Merges the logs of `streams` streams of the launches in `table`, and cuts them for the codec with the
/// number `codec`. The grid has any size along x, in blocks of up to 4 whole warps.
///
/// # Safety
/// The host launches it with a pool, log memory and accounts of the sizes that the descriptors imply.
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

/// Finds the classes of `streams` streams of the launches in `table`. The grid has any size along x, in
/// blocks of up to 8 whole warps.
///
/// # Safety
/// As for [`warptrace_merge`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_find_classes(
    pool: PoolDescriptor,
    table: u64,
    launches: u32,
    streams: u32,
) {
    find_classes(&pool, Launches { table, count: launches }, streams);
}

/// Encodes with `predict` the stretches that wait for half a warp, in the first `count` chunks of the pool.
/// The grid has any size along x, in blocks of up to 4 whole warps.
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

/// Encodes with `raw` the stretches that wait for one thread, in the first `count` chunks of the pool. The
/// grid has any size along x, with [`serial_shared_bytes`] of dynamic shared memory per thread.
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
    encode_all::<RawState>(
        &pool,
        Launches { table, count: launches },
        count,
        (),
        own_memory::<RawState>(Codec::Raw),
    );
}

/// Like [`warptrace_encode_raw_serial`], with `ecl`.
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
    encode_all::<EclState>(
        &pool,
        Launches { table, count: launches },
        count,
        DEVICE_ECL,
        own_memory::<EclState>(Codec::Ecl),
    );
}

/// Like [`warptrace_encode_raw_serial`], with `predict`.
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
    encode_all::<PredictState>(
        &pool,
        launches,
        count,
        DEVICE_PREDICT,
        own_memory::<PredictState>(Codec::Predict),
    );
}

/// Links the segments of a round's lanes. The grid has any size along x.
///
/// # Safety
/// The host launches it with memory of the sizes that the job implies.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_link_segments(job: FlattenJob) {
    link_segments(&job);
}

/// Builds flat logs from the segments of a round's warps, after [`warptrace_link_segments`]. The grid has any
/// size along x, in blocks of whole warps.
///
/// # Safety
/// As for [`warptrace_link_segments`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_flatten_warps(job: FlattenJob) {
    flatten_warps(&job);
}

/// Finds the first chunk of each stream, before [`warptrace_pack_data`]. The grid has any size along x.
///
/// # Safety
/// As for [`warptrace_link_segments`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_place_chunks(job: PackJob) {
    place_chunks(&job);
}

/// Packs chunks of the data track into tiles. The grid has any size along x, in blocks of up to 8 whole warps.
///
/// # Safety
/// As for [`warptrace_link_segments`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_pack_data(job: PackJob) {
    pack_data(&job);
}

/// Packs accounts and spans. The grid has any size along x.
///
/// # Safety
/// As for [`warptrace_link_segments`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn warptrace_pack_accounts(job: AccountsJob) {
    pack_accounts(&job);
}
