//! What warps leave behind, merged and encoded after the kernel.
//!
//! A warp leaves its logs as they are: at the end of a kernel the lanes of a warp are rarely together, and one lane that encodes keeps a whole warp.
//! Before the host takes what is in the pool, two kernels of their own go over the logs of all launches since the last time:
//!
//! 1. [`merge`] brings each warp's logs into one sequence, in log memory; one warp for each warp and track, a lane for each log. It cuts the sequence
//!    into stretches that are sure to fit into a chunk, claims a chunk for each, and leaves its number of runs there.
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

use crate::log::{Extent, SEGMENT_UNITS, at_unit};
use crate::merge::RUN_BYTES;
use crate::pool;
#[cfg(not(target_arch = "nvptx64"))]
use crate::recorder::TRACK_BYTES;
use crate::recorder::{Codec, Recorder, Tables};
use crate::simt;
use crate::space::{GlobalMemory, SharedMemory};
use crate::state::{Plan, plan, with_recorder};
use crate::stream::{Stretch, Track};
use crate::unit::Run;

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

/// Merges the logs of a stream, if its warp has left any, and leaves them to [`encode`]. From all lanes of a warp, together.
///
/// Each lane has a log. Of the next runs of all logs those are taken that began before any log's next but one: nothing can come between them. Times
/// are compared from one that none is before, so that they may go round.
#[inline(always)]
fn merge(pool: &PoolDescriptor, plan: Plan, launches: Launches, stream: u32) {
    let lane = simt::lane();
    let launch = launches.of_stream(stream);
    let index = stream - launch.first_stream;
    let (track, warp) = (index / launch.warps, index % launch.warps);
    let account = launch.accounts + u64::from(pool::ACCOUNT_BYTES) * u64::from(index);
    let started = lane == 0 && pool::finish_account(account);
    if simt::shuffle(ALL, u32::from(started), 0) == 0 {
        return;
    }
    let slice = launch.slices + index * launch.slice_units;
    let log = Extent::read(pool.logs, slice, lane);
    let lost_from = earliest(log.lost_from);
    let mut log = Reader::new(pool, log);
    let runs = sum(log.left);
    if runs == 0 {
        return;
    }
    let codec = if track == 0 { plan.codec } else { Codec::Raw };
    let room = pool.chunk_bytes - CHUNK_HEADER_BYTES - SLACK;
    let to = by_first(|| pool::claim_merged(pool, runs));
    let (mut attempted, mut lost, mut merged, mut fits) = (0, 0, 0, true);
    let (mut next, mut after) = (log.take(), log.take());
    let mut base = next.map_or(0, |[_, _, _, time]| time);
    // Some time before all of them: it is that of the first log that has one.
    let owners = simt::ballot(ALL, next.is_some());
    base = simt::shuffle(ALL, base, owners.trailing_zeros()).wrapping_sub(1 << 31);
    loop {
        let owners = simt::ballot(ALL, next.is_some());
        if owners.count_ones() <= 1 {
            break;
        }
        let from_base = |run: Option<[u32; 4]>| run.map_or(NEVER, |[_, _, _, time]| time.wrapping_sub(base));
        let [mask, location, count, time] = next.unwrap_or([0; 4]);
        let (own, bound) = (from_base(next), least(from_base(after)));
        let taken = own < bound || (bound == NEVER && next.is_some());
        let (mut place, mut others) = (0, simt::ballot(ALL, taken));
        while others != 0 {
            let other = others.trailing_zeros();
            let their = simt::shuffle(ALL, own, other);
            place += u32::from(their < own || (their == own && other < lane));
            others &= others - 1;
        }
        // What is recorded is a beginning.
        let late = lost_from.is_some_and(|from| time.wrapping_sub(from) as i32 >= 0) || to == 0;
        let kept = simt::ballot(ALL, taken && !late);
        if taken {
            attempted += u64::from(count);
            if late {
                lost += u64::from(count);
            } else {
                at_unit(pool.logs, to + merged + place).set128(0, [mask, location, count, 0]);
                fits &= most_bytes(codec, count) <= room;
            }
            next = after;
            after = log.take();
        }
        merged += kept.count_ones();
        base = base.wrapping_add(if bound == NEVER { 0 } else { bound });
    }
    // One log is left, or none: all lanes together take what is in it.
    let owner = simt::ballot(ALL, next.is_some()).trailing_zeros() % simt::WARP_LANES;
    log = log.of_lane(owner);
    let mut put = |run: Option<[u32; 4]>| {
        let [mask, location, count, time] = run.unwrap_or([0; 4]);
        let late = lost_from.is_some_and(|from| time.wrapping_sub(from) as i32 >= 0) || to == 0;
        let kept = simt::ballot(ALL, run.is_some() && !late);
        attempted += u64::from(count);
        if late {
            lost += u64::from(count);
        } else if run.is_some() {
            at_unit(pool.logs, to + merged + lane).set128(0, [mask, location, count, 0]);
            fits &= most_bytes(codec, count) <= room;
        }
        merged += kept.count_ones();
    };
    // What its lane has taken already, by the first two.
    for run in [next, after] {
        put(from_lane(run, owner));
    }
    while log.left != 0 {
        put(log.take_together(lane));
    }
    let fits = simt::ballot(ALL, fits) == ALL;
    // What other lanes have written.
    simt::sync_warp(ALL);
    let mut done = 0;
    let mut sequence = by_first(|| pool::account_chunks(account));
    while done < merged {
        let stretch = if fits { fitting(pool, codec, to + done, merged - done) } else { merged - done };
        let chunk = by_first(|| pool::claim(pool));
        if chunk >= pool.chunk_count {
            break;
        }
        if lane == 0 {
            let runs = at_unit(pool.logs, to + done).address();
            let mut header = pool::chunk(pool, chunk);
            header.set128(0, [warp, sequence, stretch, LEFT]);
            header.set128(16, [launch.launch, track, runs as u32, (runs >> 32) as u32]);
        }
        done += stretch;
        sequence += 1;
    }
    let mut rest = done + lane;
    while rest < merged {
        lost += u64::from(at_unit(pool.logs, to + rest).get32(8));
        rest += simt::WARP_LANES;
    }
    let (attempted, lost) = (sum_of_events(attempted), sum_of_events(lost));
    if lane == 0 {
        pool::add_to_own_account(account, attempted, lost);
    }
}

/// All lanes of a warp.
const ALL: u32 = u32::MAX;
/// Later than any time.
const NEVER: u32 = u32::MAX;

/// A log, run by run.
struct Reader {
    logs: u64,
    units: u32,
    unit: u32,
    link: u32,
    left: u32,
}

impl Reader {
    #[inline(always)]
    fn new(pool: &PoolDescriptor, log: Extent) -> Self {
        let mut reader =
            Self { logs: pool.logs, units: pool.log_units, unit: log.first, link: log.link, left: 0 };
        // How many there are.
        let (mut from, mut link, mut left) = (log.first, log.link, 0);
        // Of a log that is longer than memory something is wrong.
        while (log.end < from || log.end > link) && left < pool.log_units {
            left += link - from;
            from = reader.follow(link);
            link = from + SEGMENT_UNITS - 1;
        }
        reader.left = left + (log.end - from);
        reader
    }

    /// First unit of the segment behind the one with this link.
    #[inline(always)]
    fn follow(&self, link: u32) -> u32 {
        let segment = at_unit(self.logs, link).get32(0);
        // No link of a log goes anywhere else.
        if segment > self.units - SEGMENT_UNITS { 0 } else { segment }
    }

    /// The log of a lane, to all.
    #[inline(always)]
    fn of_lane(&self, owner: u32) -> Self {
        Self {
            logs: self.logs,
            units: self.units,
            unit: simt::shuffle(ALL, self.unit, owner),
            link: simt::shuffle(ALL, self.link, owner),
            left: simt::shuffle(ALL, self.left, owner),
        }
    }

    /// The run in a unit: mask, location, count, time.
    #[inline(always)]
    fn run(&self, unit: u32) -> [u32; 4] {
        let Run { mask, location, count, time } = Run::of_unit(at_unit(self.logs, unit).get128(0));
        [mask, location, count, time]
    }

    /// The next runs, one to each of the lanes from the first on; none to others. From all lanes of the warp, which have the same log.
    ///
    /// A lane's segments mostly follow each other in memory. So the lanes look at the next four as if they did, and some look whether they do.
    #[inline(always)]
    fn take_together(&mut self, lane: u32) -> Option<[u32; 4]> {
        const RUNS: u32 = SEGMENT_UNITS - 1;
        const MOST: u32 = simt::WARP_LANES - 4;
        let (here, end) = (self.link - self.unit, self.units - SEGMENT_UNITS);
        // The number of the lane among those that look at links.
        let step = lane.wrapping_sub(MOST);
        let link = self.link + SEGMENT_UNITS * (step % 4);
        let follows = lane >= MOST && link < end && at_unit(self.logs, link).get32(0) == link + 1;
        let follows = (simt::ballot(ALL, follows) >> MOST).trailing_ones();
        let there = (here + RUNS * follows).min(MOST).min(self.left);
        if there == 0 {
            self.unit = self.follow(self.link);
            self.link = self.unit + RUNS;
            return None;
        }
        let beyond = lane.wrapping_sub(here);
        let unit = if lane < here {
            self.unit + lane
        } else {
            self.link + 1 + SEGMENT_UNITS * (beyond / RUNS) + beyond % RUNS
        };
        let run = if lane < there { Some(self.run(unit)) } else { None };
        self.left -= there;
        if there <= here {
            self.unit += there;
        } else {
            let last = there - here - 1;
            self.unit = self.link + 1 + SEGMENT_UNITS * (last / RUNS) + last % RUNS + 1;
            self.link += SEGMENT_UNITS * (last / RUNS + 1);
        }
        run
    }

    /// The next run.
    #[inline(always)]
    fn take(&mut self) -> Option<[u32; 4]> {
        if self.left == 0 {
            return None;
        }
        if self.unit == self.link {
            self.unit = self.follow(self.link);
            self.link = self.unit + SEGMENT_UNITS - 1;
        }
        let run = self.run(self.unit);
        self.left -= 1;
        self.unit += 1;
        Some(run)
    }
}

/// The run that a lane has, to the first one; none to others.
#[inline(always)]
fn from_lane(run: Option<[u32; 4]>, owner: u32) -> Option<[u32; 4]> {
    let has = simt::ballot(ALL, run.is_some()) >> owner & 1 != 0;
    let [a, b, c, d] = run.unwrap_or([0; 4]);
    let run = [
        simt::shuffle(ALL, a, owner),
        simt::shuffle(ALL, b, owner),
        simt::shuffle(ALL, c, owner),
        simt::shuffle(ALL, d, owner),
    ];
    if has && simt::lane() == 0 { Some(run) } else { None }
}

/// What the first lane does for all of the warp; its answer to all.
#[inline(always)]
fn by_first(act: impl FnOnce() -> u32) -> u32 {
    let mut value = 0;
    if simt::lane() == 0 {
        value = act();
    }
    simt::shuffle(ALL, value, 0)
}

/// Sum over the lanes of the warp.
#[inline(always)]
fn sum(mut value: u32) -> u32 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        value += simt::shuffle_xor(ALL, value, step);
        step *= 2;
    }
    value
}

/// Sum of numbers of 64 bits over the lanes of the warp.
#[inline(always)]
fn sum_of_events(mut value: u64) -> u64 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        let low = simt::shuffle_xor(ALL, value as u32, step);
        let high = simt::shuffle_xor(ALL, (value >> 32) as u32, step);
        value += u64::from(low) | u64::from(high) << 32;
        step *= 2;
    }
    value
}

/// Least over the lanes of the warp.
#[inline(always)]
fn least(mut value: u32) -> u32 {
    let mut step = 1;
    while step < simt::WARP_LANES {
        value = value.min(simt::shuffle_xor(ALL, value, step));
        step *= 2;
    }
    value
}

/// The earliest time of the lanes that have one.
#[inline(always)]
fn earliest(time: Option<u32>) -> Option<u32> {
    let owners = simt::ballot(ALL, time.is_some());
    if owners == 0 {
        return None;
    }
    let base = simt::shuffle(ALL, time.unwrap_or(0), owners.trailing_zeros()).wrapping_sub(1 << 31);
    let after = time.map_or(NEVER, |time| time.wrapping_sub(base));
    Some(base.wrapping_add(least(after)))
}

/// How many of the `left` runs from a unit on are sure to fit into a chunk. From all lanes of a warp, together.
#[inline(always)]
fn fitting(pool: &PoolDescriptor, codec: Codec, unit: u32, left: u32) -> u32 {
    let room = pool.chunk_bytes - CHUNK_HEADER_BYTES - SLACK;
    let lane = simt::lane();
    let (mut runs, mut bytes) = (0, 0);
    while runs < left {
        let own = runs + lane;
        let count = if own < left { at_unit(pool.logs, unit + own).get32(8) } else { 0 };
        let mut up_to = most_bytes(codec, count);
        let mut step = 1;
        while step < simt::WARP_LANES {
            let before = simt::shuffle_up(ALL, up_to, step);
            up_to += if lane >= step { before } else { 0 };
            step *= 2;
        }
        let fit = simt::ballot(ALL, own < left && bytes + up_to <= room).count_ones();
        runs += fit;
        if fit < simt::WARP_LANES {
            break;
        }
        bytes += simt::shuffle(ALL, up_to, simt::WARP_LANES - 1);
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
    use super::{Launches, encode, merge_all};
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

    /// Merges the logs of `streams` streams of the launches in `table`, by a grid of any size along x, in blocks of whole warps.
    ///
    /// # Safety
    /// Launched by the host, with a descriptor of the pool and log memory that the launches had.
    #[unsafe(no_mangle)]
    pub unsafe extern "ptx-kernel" fn warptrace_merge(table: u64, launches: u32, streams: u32) {
        merge_all(Launches { table, count: launches }, streams);
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
        with_recorder!(plan, R => R::ready(tables));
        let mut number = simt::global_thread_x();
        while number < count {
            let launches = Launches { table, count: launches };
            encode(&pool, plan, launches, number, SharedMemory::new(own, true), tables);
            number += simt::grid_threads_x();
        }
    }
}

/// Merges the logs of all streams, a warp for each at a time.
#[inline(always)]
fn merge_all(launches: Launches, streams: u32) {
    let (plan, pool) = (plan(), pool::descriptor());
    let mut stream = simt::global_thread_x() / simt::WARP_LANES;
    while stream < streams {
        merge(&pool, plan, launches, stream);
        stream += simt::grid_threads_x() / simt::WARP_LANES;
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
/// launched as a grid along x, in blocks of whole warps, with the descriptor of the pool and the log memory that they had.
#[cfg(not(target_arch = "nvptx64"))]
pub fn merge_call(table: u64, launches: u32, streams: u32) -> crate::KernelCall {
    let thread = move || merge_all(Launches { table, count: launches }, streams);
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
        with_recorder!(plan, R => R::ready(tables));
        let mut number = simt::global_thread_x();
        while number < count {
            encode(&pool, plan, Launches { table, count: launches }, number, state, tables);
            number += simt::grid_threads_x();
        }
    };
    crate::KernelCall::new("warptrace_encode", arguments(table, [launches, count]), thread)
}
