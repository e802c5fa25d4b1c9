//! Descriptions of the kernels, which the host launches in grids along x, on a GPU or on simulated lanes.

use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::KernelCall;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::codec::{CodecSpec, PredictParams};

use crate::accounts::{AccountsJob, pack_accounts};
use crate::classes::{self, find_classes};
use crate::codec::Codec;
use crate::encode::cooperative::{GROUP_LANES, MAX_GROUPS, encode_cooperatively};
use crate::encode::{Encoder, encode_all, state_bytes};
use crate::flatten::{FlattenJob, flatten_warps, link_segments};
use crate::launches::Launches;
use crate::memory::SharedMemory;
use crate::merge::{MAX_WARPS, merge_streams};
use crate::pack::{self, PackJob, pack_data, place_chunks};

/// Maximum threads per block of [`merge_call`]: four warps, one stream per warp.
pub const MERGE_THREADS: u32 = 32 * MAX_WARPS;
/// Maximum threads per block of [`find_classes_call`]: one stream per warp.
pub const CLASSES_THREADS: u32 = 32 * classes::MAX_WARPS;
/// Lanes per stretch in [`encode_predict_call`].
pub const PREDICT_LANES: u32 = GROUP_LANES;
/// Maximum threads per block of [`encode_predict_call`].
pub const PREDICT_THREADS: u32 = MAX_GROUPS * PREDICT_LANES;

/// Threads per block of [`pack_accounts_call`].
pub const ACCOUNTS_THREADS: u32 = 128;

/// Threads per block of [`link_call`] and [`flatten_call`].
pub const FLATTEN_THREADS: u32 = 128;

/// Maximum threads per block of [`pack_call`].
pub const PACK_THREADS: u32 = 32 * pack::MAX_WARPS;

/// Returns the kernel that finds the first chunk of each stream. It runs before [`pack_call`]. Launch it as a
/// grid of any size.
pub fn place_call(job: &PackJob) -> KernelCall {
    let (bytes, job) = (bytes_of(job), *job);
    KernelCall::new("warptrace_place_chunks", vec![bytes], move || place_chunks(&job))
}

/// Returns the kernel that packs chunks of addresses and values into tiles
/// ([`tile`](warptrace_format::data::tile)). Launch it with a block for each [`PackJob::each`] chunks and
/// streams, of whole warps, up to [`PACK_THREADS`].
pub fn pack_call(job: &PackJob) -> KernelCall {
    let (bytes, job) = (bytes_of(job), *job);
    KernelCall::new("warptrace_pack_data", vec![bytes], move || pack_data(&job))
}

/// Returns the kernel that packs accounts and spans. Launch it as a grid of any size.
pub fn pack_accounts_call(job: &AccountsJob) -> KernelCall {
    let (bytes, job) = (bytes_of(job), *job);
    KernelCall::new("warptrace_pack_accounts", vec![bytes], move || pack_accounts(&job))
}

/// Returns the kernel that links the segments of a round's lanes. Launch it as a grid of any size.
pub fn link_call(job: &FlattenJob) -> KernelCall {
    let (bytes, job) = (bytes_of(job), *job);
    KernelCall::new("warptrace_link_segments", vec![bytes], move || link_segments(&job))
}

/// Returns the kernel that builds flat logs from segments that [`link_call`] has linked, for whole warps.
pub fn flatten_call(job: &FlattenJob) -> KernelCall {
    let (bytes, job) = (bytes_of(job), *job);
    KernelCall::new("warptrace_flatten_warps", vec![bytes], move || flatten_warps(&job))
}

/// Returns the kernel that finds the classes of `streams` streams. It runs before [`merge_call`] of the same
/// launches. Launch it as a grid of any size, in blocks of whole warps, up to [`CLASSES_THREADS`].
pub fn find_classes_call(pool: &PoolDescriptor, table: u64, launches: u32, streams: u32) -> KernelCall {
    let (arguments, pool) = (arguments(pool, table, [launches, streams]), *pool);
    let thread = move || find_classes(&pool, Launches { table, count: launches }, streams);
    KernelCall::new("warptrace_find_classes", arguments, thread)
}

/// Returns the kernel that merges the logs of `streams` streams, for traces that are encoded with `codec`:
/// all streams of the `launches` [`LoggedLaunch`](warptrace_abi::log::LoggedLaunch)es at the address `table`.
/// Launch it as a grid of any size, in blocks of whole warps, up to [`MERGE_THREADS`].
pub fn merge_call(
    pool: &PoolDescriptor,
    table: u64,
    launches: u32,
    streams: u32,
    codec: Codec,
) -> KernelCall {
    let mut arguments = arguments(pool, table, [launches, streams]);
    arguments.push((codec as u32).to_le_bytes().to_vec());
    let pool = *pool;
    let thread = move || merge_streams(&pool, Launches { table, count: launches }, streams, codec);
    KernelCall::new("warptrace_merge", arguments, thread)
}

/// Returns the kernel that encodes with `predict` the stretches that wait for half a warp, in the first
/// `count` chunks of the pool (the reserved chunks that exist). Launch it as a grid of any size, in blocks of
/// whole warps, up to [`PREDICT_THREADS`]. A GPU uses [`DEVICE_PREDICT`](crate::DEVICE_PREDICT).
pub fn encode_predict_call(
    pool: &PoolDescriptor,
    table: u64,
    launches: u32,
    count: u32,
    params: PredictParams,
) -> KernelCall {
    let arguments = arguments(pool, table, [launches, count]);
    let pool = *pool;
    let thread = move || encode_cooperatively(&pool, Launches { table, count: launches }, count, params);
    KernelCall::new("warptrace_encode_predict", arguments, thread)
}

/// Returns the kernel that encodes with a codec the stretches that wait for one thread, in the first `count`
/// chunks of the pool. Launch it as a grid of any size, with
/// [`serial_shared_bytes`](crate::serial_shared_bytes) of dynamic shared memory per thread. A GPU ignores the
/// parameters in `codec` and uses [`DEVICE_ECL`](crate::DEVICE_ECL) and
/// [`DEVICE_PREDICT`](crate::DEVICE_PREDICT). A dual recording needs two calls: one with the codec of the
/// trace, and one with `raw` for the twin track.
pub fn encode_serial_call(
    pool: &PoolDescriptor,
    table: u64,
    launches: u32,
    count: u32,
    codec: CodecSpec,
) -> KernelCall {
    let arguments = arguments(pool, table, [launches, count]);
    let (pool, launches) = (*pool, Launches { table, count: launches });
    match codec {
        CodecSpec::Ecl(params) => KernelCall::new("warptrace_encode_ecl_serial", arguments, move || {
            encode_on_host::<EclState>(&pool, launches, count, params);
        }),
        CodecSpec::Predict(params) => {
            KernelCall::new("warptrace_encode_predict_serial", arguments, move || {
                encode_on_host::<PredictState>(&pool, launches, count, params);
            })
        }
        _ => KernelCall::new("warptrace_encode_raw_serial", arguments, move || {
            encode_on_host::<RawState>(&pool, launches, count, ());
        }),
    }
}

/// Encodes on simulated lanes, in host memory filled with 0xa5: memory on a GPU is not zeroed either.
fn encode_on_host<E: Encoder>(pool: &PoolDescriptor, launches: Launches, count: u32, params: E::Params) {
    let bytes = state_bytes::<E>() + E::table_bytes(params);
    let mut memory = vec![u128::from_ne_bytes([0xa5; 16]); bytes.div_ceil(16) as usize];
    let own = memory.as_mut_ptr().expose_provenance() as u64;
    let memory = [own, own + u64::from(state_bytes::<E>())].map(SharedMemory::new);
    encode_all::<E>(pool, launches, count, params, memory);
}

fn arguments(pool: &PoolDescriptor, table: u64, words: [u32; 2]) -> Vec<Vec<u8>> {
    let [first, second] = words.map(|word| word.to_le_bytes().to_vec());
    vec![bytes_of(pool), table.to_le_bytes().to_vec(), first, second]
}

/// A kernel argument with several fields.
///
/// # Safety
/// The type has C layout and no padding.
unsafe trait Argument: Copy {}

// SAFETY: an assertion next to the type's declaration checks its size.
unsafe impl Argument for PoolDescriptor {}
// SAFETY: an assertion next to the type's declaration checks its size.
unsafe impl Argument for FlattenJob {}
// SAFETY: an assertion next to the type's declaration checks its size.
unsafe impl Argument for PackJob {}
// SAFETY: an assertion next to the type's declaration checks its size.
unsafe impl Argument for AccountsJob {}

fn bytes_of<T: Argument>(argument: &T) -> Vec<u8> {
    let bytes = std::ptr::from_ref(argument).cast::<u8>();
    // SAFETY: the range is the argument itself. The type has no padding, so all bytes are initialized.
    unsafe { std::slice::from_raw_parts(bytes, size_of::<T>()) }.to_vec()
}
