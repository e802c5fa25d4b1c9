//! Serial encoding: one thread per stretch.

use warptrace_abi::pool::PoolDescriptor;
use warptrace_device::simt;
use warptrace_format::Memory;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;

use super::Encoder;
use super::stream::{HEADER_BYTES, StreamWriter, Stretch};
use crate::chunks::{self, ChunkName};
use crate::codec::{Codec, DEVICE_ECL, DEVICE_PREDICT};
use crate::launches::{Launches, account};
use crate::memory::SharedMemory;

/// Returns the bytes of a thread's memory before the codec's tables.
#[inline(always)]
pub(crate) const fn state_bytes<E: Encoder>() -> u32 {
    HEADER_BYTES + 4 * E::STATE_WORDS as u32
}

/// Returns the bytes of dynamic shared memory per thread for serial encoding on a GPU.
pub const fn serial_shared_bytes(codec: Codec) -> u32 {
    let (words, table_bytes) = match codec {
        Codec::Raw => (RawState::WORDS, 0),
        Codec::Ecl => (EclState::WORDS, DEVICE_ECL.work_bytes()),
        Codec::Predict => (PredictState::WORDS, DEVICE_PREDICT.work_bytes()),
    };
    // An odd multiple of 16, so that the same words of adjacent threads are in different banks.
    (HEADER_BYTES + 4 * words as u32 + table_bytes.div_ceil(16) * 16) | 16
}

/// Encodes the waiting stretches of this encoder in the first `count` chunks, one thread per stretch. Each
/// thread needs [`state_bytes`] of memory, and tables.
#[inline(always)]
pub(crate) fn encode_all<E: Encoder>(
    pool: &PoolDescriptor,
    launches: Launches,
    count: u32,
    params: E::Params,
    [state, mut tables]: [SharedMemory; 2],
) {
    E::prepare(params, &mut tables);
    let mut index = simt::global_thread_x();
    while index < count {
        encode_serially::<E>(pool, launches, index, params, [state, tables]);
        index += simt::grid_threads_x();
    }
}

/// Encodes the stretch in the chunk at `index`, if it waits for this encoder.
#[inline(always)]
fn encode_serially<E: Encoder>(
    pool: &PoolDescriptor,
    launches: Launches,
    index: u32,
    params: E::Params,
    [state, tables]: [SharedMemory; 2],
) {
    let header = chunks::chunk(pool, index);
    let [warp, sequence, runs, waiting] = header.get128(0);
    let [launch, track, low, high] = header.get128(16);
    if waiting != E::WAITING as u32 || launch >= launches.count {
        return;
    }
    let launch = launches.get(launch);
    let name = ChunkName { warp, launch: launch.launch, track };
    let stretch = Stretch { address: u64::from(low) | u64::from(high) << 32, runs };
    let payload = chunks::start_chunk(pool, index, name, sequence);
    let stream = StreamWriter { pool, state, tables, params, name };
    stream.open::<E>(payload, sequence);
    stream.record::<E>(stretch);
    stream.finish::<E>(account(&launch, track * launch.warps + warp), sequence);
}
