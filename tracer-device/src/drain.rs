//! From the logs to the encoder inside a kernel, where log memory gets short.
//!
//! It happens where all live lanes of a warp are together and all runs have ended: nobody else is there to wait for, or to be waited for.

use warptrace_format::Memory;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::pool::PoolDescriptor;

use crate::area::Area;
use crate::log::{SEGMENT_UNITS, at_unit};
use crate::merge::{MERGE_BYTES, Merge, RUN_BYTES};
use crate::pool;
use crate::recorder::{Codec, Recorder, TRACK_BYTES, Tables};
use crate::simt;
use crate::space::{GlobalMemory, StateMemory};
use crate::state::{DRAIN, LOGS, SLICE, WARP, WORK, log, plan, twin_log, with_recorder};
use crate::stream::{Stretch, Track, get64};
use crate::unit::Run;

/// Runs that are handed to an encoder at a time.
const BATCH: u32 = 64;
/// What emptying logs needs in log memory, in this order: heads of the logs, the batch, a track, the encoder's tables.
const BATCH_AT: u32 = MERGE_BYTES;
const TRACK_AT: u32 = BATCH_AT + BATCH * RUN_BYTES;
const TABLES_AT: u32 = TRACK_AT + TRACK_BYTES;

/// Hands all runs of the logs to the encoders. All live lanes of the warp, together: `group`.
#[inline(always)]
pub(crate) fn drain(state: StateMemory, group: u32) {
    // What other lanes have appended, some of which have left the kernel.
    simt::sync_group(group);
    simt::fence_block();
    if simt::leads(group) {
        encode(state);
    }
    simt::sync_group(group);
}

/// One lane encodes; the others wait.
#[inline(always)]
fn encode(mut state: StateMemory) {
    let plan = plan();
    let pool = pool::descriptor();
    let memory = at_unit(get64(&state, LOGS), state.get32(WORK));
    let tables = Tables::new(GlobalMemory::new(memory.address() + u64::from(TABLES_AT), true));
    with_recorder!(plan, R => {
        R::ready(tables);
        encode_track::<R>(&pool, state, memory, tables, 0);
    });
    log(state).empty();
    if plan.dual {
        encode_track::<RawState>(&pool, state, memory, tables, 1);
        twin_log(state).empty();
    }
    Area::of(state).rewind_in(state);
    state.set32(DRAIN, 0);
}

/// Units of log memory that emptying logs needs, beside them: as many as some segments have, so that those that follow are aligned.
#[inline(always)]
pub(crate) fn drain_units() -> u32 {
    (TABLES_AT + table_bytes(plan().codec)).div_ceil(RUN_BYTES * SEGMENT_UNITS) * SEGMENT_UNITS
}

#[inline(always)]
fn encode_track<R: Recorder>(
    pool: &PoolDescriptor,
    state: StateMemory,
    memory: GlobalMemory,
    tables: Tables<GlobalMemory>,
    track: u32,
) {
    let warp = state.get32(WARP);
    let account = pool.account(track, warp);
    let mut merge = Merge::open(memory, pool.logs, pool.log_units, state.get32(SLICE + 4 * track));
    let mut left = merge.count();
    if left == 0 {
        return;
    }
    let batch = GlobalMemory::new(memory.address() + u64::from(BATCH_AT), true);
    let own = GlobalMemory::new(memory.address() + u64::from(TRACK_AT), true);
    let stream = Track::new(own, track, warp, pool.launch);
    let sequence = pool::account_chunks(account);
    let payload = pool::start_chunk(pool, pool::claim(pool), [warp, pool.launch, track]);
    stream.open::<R, _>(tables, payload, sequence, pool.chunk_bytes);
    let (mut attempted, mut lost) = (0, 0);
    while left != 0 {
        let mut runs = 0;
        while left != 0 && runs < BATCH {
            left -= 1;
            let Some(Run { mask, location, count, time }) = merge.next() else { break };
            attempted += u64::from(count);
            if merge.lost_from.is_some_and(|from| time.wrapping_sub(from) as i32 >= 0) {
                lost += u64::from(count);
            } else {
                let mut batch = batch;
                batch.set128(RUN_BYTES * runs, [mask, location, count, 0]);
                runs += 1;
            }
        }
        stream.record::<R, _>(tables, Stretch { address: batch.address(), runs });
    }
    stream.finish::<R, _>(tables, account, sequence);
    pool::add_to_account(account, [attempted, 0, lost], 0);
}

/// Bytes of the encoder's tables.
#[inline(always)]
fn table_bytes(codec: Codec) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return codec.table_bytes();
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = codec;
        simt::host::with_lane(|lane| lane.recording().codec.work_bytes())
    }
}
