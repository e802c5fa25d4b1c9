//! Encoding a stretch of merged runs into the chunk that waits for it.

use warptrace_format::Memory;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::pool::PoolDescriptor;

use super::{ALONE, Launches, account};
use crate::pool;
use crate::recorder::{Codec, Tables};
use crate::space::SharedMemory;
use crate::state::{Plan, with_recorder};
use crate::stream::{Stretch, Track};

/// Encodes what was left for the chunk `index`, if anything was that one thread is to encode. From one thread, with [`TRACK_BYTES`] of `state` and tables of its own.
#[inline(always)]
pub(super) fn encode(
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
    if left != ALONE || launch >= launches.count {
        return;
    }
    let launch = launches.get(launch);
    let account = account(&launch, track, warp);
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
