//! From the log to the encoder.
//!
//! It happens where all live lanes of a warp are together and all runs have ended: nobody else is there to wait for, or to be waited for.

use warptrace_format::Memory;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;

use crate::pool;
use crate::recorder::{Codec, TWIN_TAKEN, Tables, track_at};
use crate::simt;
use crate::space::SharedMemory;
use crate::state::{LOST, TAKEN, WARP, WORK, log, plan, tables, twin_log, with_recorder};
use crate::stream::{Track, get64, set64};

/// Stands for the address of the encoder's tables where a warp found no slot for them.
pub(crate) const NO_WORK: u64 = 1;

/// Hands all runs of the logs to the encoders. All live lanes of the warp, together: `group`.
#[inline(always)]
pub(crate) fn drain(state: SharedMemory, group: u32) {
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
fn encode(mut state: SharedMemory) {
    let plan = plan();
    let pool = pool::descriptor();
    let warp = state.get32(WARP);
    let tables = tables(state, plan, get64(&state, WORK));
    let mut taken = get64(&state, TAKEN);
    with_recorder!(plan, R => {
        let track = Track::new(state, track_at(0), 0, warp, pool.launch);
        if !track.is_open() {
            let payload = if tables.address == NO_WORK { 0 } else { pool::first_chunk(&pool, warp, 0) };
            track.open::<R>(tables, payload, 0, pool.chunk_bytes);
        }
        log(state).for_each_segment(|_, stretch| taken += track.record::<R>(tables, stretch));
    });
    set64(&mut state, TAKEN, taken);
    log(state).clear();
    if plan.dual {
        let track = Track::new(state, track_at(1), 1, warp, pool.launch);
        if !track.is_open() {
            track.open::<RawState>(Tables::none(), pool::first_chunk(&pool, warp, 1), 0, pool.chunk_bytes);
        }
        let mut taken = get64(&state, TWIN_TAKEN);
        twin_log(state)
            .for_each_segment(|_, stretch| taken += track.record::<RawState>(Tables::none(), stretch));
        set64(&mut state, TWIN_TAKEN, taken);
        twin_log(state).clear();
    }
}

/// Flushes the streams and writes the warp's accounts. From one lane, when the logs are empty.
#[cold]
#[inline(never)]
pub(crate) fn account(state: SharedMemory) {
    let plan = plan();
    let pool = pool::descriptor();
    let warp = state.get32(WARP);
    let tables = tables(state, plan, get64(&state, WORK));
    with_recorder!(plan, R => {
        let (taken, lost) = (get64(&state, TAKEN), get64(&state, LOST));
        let track = Track::new(state, track_at(0), 0, warp, pool.launch);
        track.finish::<R>(tables, pool.account(0, warp), 0, taken + lost, lost);
    });
    if plan.dual {
        let (taken, lost) = (get64(&state, TWIN_TAKEN), get64(&state, LOST + 8));
        let track = Track::new(state, track_at(1), 1, warp, pool.launch);
        track.finish::<RawState>(Tables::none(), pool.account(1, warp), 0, taken + lost, lost);
    }
}
