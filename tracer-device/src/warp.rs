//! A warp's state while its kernel runs, in block shared memory.
//!
//! ```text
//! offset  size  field
//!      0    16  pending run: mask if it was the live mask, else 0; location; count (from location 32 on); then how many
//!               runs were put into the queue
//!     16    16  mask of the pending run; in a dual recording how many events were put into the twin's queue; zero, zero
//!     32     4  live mask: lanes that have not left the kernel
//!     36     4  linear index of the warp in the launch
//!     40     4  1 while recording is on
//!     44     4  zero
//!     48     8  address of the encoder's work memory, in global memory
//!     56     8  events that were taken out of the queue
//!     64    48  lock, held while a group smaller than the live mask is in the tracer
//!    112  1040  queue of runs
//!   1152   256  entries of locations 0 to 31: mask, if the pending run is at this location and its mask was the live mask,
//!               else 0; its count
//!   1408   528  mailbox (see `mail`)
//!   1936     …  track 0, then in a dual recording track 1 (see `stream`) and the twin's queue
//!      …     …  the encoder's tables, where they are in shared memory; the lanes' counts of a loop
//! ```
//!
//! # From an event to the encoder
//! An event that repeats the last one, with all live lanes, only counts the *pending run*: one load, one comparison, one store. The
//! load is of the location's own entry, eight bytes, because loops with memory accesses of their own wait for the same pipe: 16
//! bytes for mask, location and count cost N-body more. Any other event, a *miss*, enters the tracer, puts the pending run into the
//! queue (or adds to it) and becomes the pending run itself. A group that leaves 16 runs or more in the queue hands them to the
//! encoder first, each in one step however often its event repeats.
//!
//! # Groups that interleave
//! Two groups of a warp may be switched at any instruction (on an H200 it is rare away from branches and barriers, but a kernel
//! that diverges for long sees it). What has all live lanes is alone. Any other group takes the lock first; if it is taken, the group
//! leaves its event in the mailbox and goes on. In the tracer all lanes of the group go the same way, so that it stays together, and
//! only what the leader writes counts, so that nothing is done twice should it come apart.
//!
//! ptxas must not move the load of a hit either. To it a hit is a load and a store of one thread, which it may move up over a
//! loop of the program, where groups change: seen on an H200. Therefore the address depends on the mask
//! ([`SharedMemory::after`]). A miss is a function, and ptxas moves nothing over a call.

use warptrace_format::Memory;
#[cfg(not(target_arch = "nvptx64"))]
use warptrace_format::codec::CodecSpec;
use warptrace_format::codec::ecl::EclState;
use warptrace_format::codec::predict::PredictState;
use warptrace_format::codec::raw::RawState;
use warptrace_format::pool::PoolDescriptor;

use crate::lock::{LOCK_BYTES, Lock};
use crate::mail::{MAIL_BYTES, Mail};
use crate::pool;
use crate::queue::{FULL, QUEUE_BYTES, Queue};
use crate::recorder::{
    Codec, DUAL_QUEUE_AT, ENTRIES, ENTRIES_BYTES, Tables, WARP_HEADER_BYTES, warp_state_bytes,
};
use crate::simt;
use crate::space::{SharedMemory, WarpWords};
use crate::stream::{Track, set64};

const PENDING: u32 = 0;
const PENDING_COUNT: u32 = 8;
const PUT: u32 = 12;
const PENDING_MASK: u32 = 16;
const TWIN_PUT: u32 = 20;
const LIVE: u32 = 32;
const WORK: u32 = 48;
const DRAINED: u32 = 56;
const LOCK: u32 = 64;
const QUEUE: u32 = LOCK + LOCK_BYTES;
const ENTRIES_AT: u32 = QUEUE + QUEUE_BYTES;
const MAIL: u32 = ENTRIES_AT + ENTRIES_BYTES;
const _: () = assert!(MAIL + MAIL_BYTES == WARP_HEADER_BYTES);

/// Stands in the work address of a warp that found no work slot.
const NO_WORK: u64 = 1;

/// What this launch records: fixed at compile time on the device, chosen by the simulator on the host.
#[derive(Clone, Copy)]
struct Plan {
    codec: Codec,
    dual: bool,
}

#[cfg(target_arch = "nvptx64")]
const PLAN: Plan = Plan {
    codec: if cfg!(feature = "codec-predict") {
        Codec::Predict
    } else if cfg!(feature = "codec-ecl") {
        Codec::Ecl
    } else {
        Codec::Raw
    },
    dual: cfg!(feature = "dual"),
};

/// Bytes of a warp's state, tables in shared memory included.
#[cfg(target_arch = "nvptx64")]
const STATE_BYTES: u32 =
    warp_state_bytes(PLAN.codec, PLAN.dual, cfg!(feature = "work-shared"), cfg!(feature = "counted"));
#[cfg(not(target_arch = "nvptx64"))]
const STATE_BYTES: u32 = warp_state_bytes(Codec::Ecl, true, false, false);

#[inline(always)]
fn plan() -> Plan {
    #[cfg(target_arch = "nvptx64")]
    {
        PLAN
    }
    #[cfg(not(target_arch = "nvptx64"))]
    simt::host::with_lane(|lane| {
        let recording = lane.recording();
        let codec = match recording.codec {
            CodecSpec::Ecl(_) => Codec::Ecl,
            CodecSpec::Predict(_) => Codec::Predict,
            _ => Codec::Raw,
        };
        Plan { codec, dual: recording.dual }
    })
}

/// Runs `$body` with `$recorder` standing for the encoder of `$plan`'s codec.
macro_rules! with_recorder {
    ($plan:expr, $recorder:ident => $body:expr) => {
        match $plan.codec {
            Codec::Raw => {
                type $recorder = RawState;
                $body
            }
            Codec::Ecl => {
                type $recorder = EclState;
                $body
            }
            Codec::Predict => {
                type $recorder = PredictState;
                $body
            }
        }
    };
}

#[cfg(target_arch = "nvptx64")]
mod place {
    //! Where the states of a block's warps are: at the end of its dynamic shared memory, where the host has added room.

    use super::STATE_BYTES;
    use crate::simt;

    // The second stands in for the states where a launch has no room for them: it stays switched off. Only
    // counted loops write behind its header.
    core::arch::global_asm!(
        ".extern .shared .align 16 .b8 warptrace_dynamic[];",
        ".shared .align 16 .b8 warptrace_none[{}];",
        const if cfg!(feature = "counted") { STATE_BYTES } else { super::WARP_HEADER_BYTES }
    );

    /// Address of this warp's state, and whether there is room for it.
    #[inline(always)]
    pub(super) fn state() -> (u32, bool) {
        let (base, bytes, none): (u32, u32, u32);
        // SAFETY: reads addresses and a special register.
        unsafe {
            core::arch::asm!("mov.u32 {}, warptrace_dynamic;", "mov.u32 {}, %dynamic_smem_size;",
                "mov.u32 {}, warptrace_none;", out(reg32) base, out(reg32) bytes, out(reg32) none,
                options(pure, nomem, nostack, preserves_flags));
        }
        let warps = simt::block_threads().div_ceil(simt::WARP_LANES);
        let room = bytes >= warps * STATE_BYTES;
        let address = base + bytes - (warps - simt::warp_in_block()) * STATE_BYTES;
        (if room { address } else { none }, room)
    }
}

/// This warp's state.
#[inline(always)]
fn state(leader: bool) -> SharedMemory {
    #[cfg(target_arch = "nvptx64")]
    {
        SharedMemory::new(place::state().0, leader)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        static KEY: u8 = 0;
        const MAX_WARPS_PER_BLOCK: u32 = 32;
        let bytes = (MAX_WARPS_PER_BLOCK * STATE_BYTES) as usize;
        let base = simt::host::with_lane(|lane| lane.shared(&raw const KEY as usize, bytes));
        let at = u64::from(simt::warp_in_block() * STATE_BYTES);
        SharedMemory::new(base.expose_provenance() as u64 + at, leader)
    }
}

/// Prepares the warp's state. Every lane of the warp calls it at the start of the kernel.
#[inline(always)]
pub(crate) fn open() {
    let live = simt::starting_lanes();
    // On the simulator lanes come one after another, and the first does it for all.
    if cfg!(target_arch = "nvptx64") || simt::lane() == 0 {
        initialise(live, simt::lane() == 0);
    }
    // A real barrier, once: what follows reads what was written here.
    if live == u32::MAX {
        simt::sync_warp(u32::MAX);
    } else {
        simt::sync_warp(live);
    }
}

#[inline(always)]
fn initialise(live: u32, leader: bool) {
    let pool = pool::descriptor();
    let plan = plan();
    let mut state = state(leader);
    let warps_per_block = simt::block_threads().div_ceil(simt::WARP_LANES);
    let warp = simt::linear_block().wrapping_mul(warps_per_block).wrapping_add(simt::warp_in_block());
    // A launch whose shape differs from what the host prepared has no place for this warp's account.
    let on = pool.enabled != 0 && warp < pool.warps;
    #[cfg(target_arch = "nvptx64")]
    let on = on && place::state().1;
    // All lanes together: shared memory starts as it was left.
    #[cfg(target_arch = "nvptx64")]
    clear(state.address, if on { STATE_BYTES } else { WARP_HEADER_BYTES }, live);
    #[cfg(not(target_arch = "nvptx64"))]
    for at in (0..STATE_BYTES).step_by(16) {
        state.set128(at, [0; 4]);
    }
    state.set128(LIVE, [live, warp, u32::from(on), 0]);
    if !on {
        return;
    }
    let work = claim_work(&pool, plan, warp, leader);
    state.set128(WORK, [work as u32, (work >> 32) as u32, 0, 0]);
    let tables = tables(state, plan, work);
    let stopped = work == NO_WORK;
    let zeroed = cfg!(all(target_arch = "nvptx64", feature = "work-shared"));
    with_recorder!(plan, R => Track::new(state, 0, warp).open::<R>(tables, &pool, stopped, zeroed));
    if plan.dual {
        Track::new(state, 1, warp).open::<RawState>(Tables::none(leader), &pool, false, false);
    }
}

/// Zeroes `bytes` bytes of shared memory, the `live` lanes together.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn clear(address: u32, bytes: u32, live: u32) {
    let mut memory = SharedMemory::new(address, true);
    let mut at = simt::lane() * 16;
    while at < bytes {
        memory.set128(at, [0; 4]);
        at += live.count_ones() * 16;
    }
    if live == u32::MAX {
        simt::sync_warp(u32::MAX);
    } else {
        simt::sync_warp(live);
    }
}

/// The address of the encoder's tables in global memory, to the leader; [`NO_WORK`] if there are none left, 0 where they are
/// elsewhere.
#[inline(always)]
fn claim_work(pool: &PoolDescriptor, plan: Plan, warp: u32, leader: bool) -> u64 {
    #[cfg(global_work)]
    if let bytes @ 1.. = work_bytes(plan) {
        return match pool::claim_work_slot(pool, simt::resident_slot(warp), leader) {
            u32::MAX => NO_WORK,
            slot => pool.work + u64::from(slot) * u64::from(bytes),
        };
    }
    let _ = (pool, plan, warp, leader);
    0
}

fn release_work(pool: &PoolDescriptor, plan: Plan, work: u64) {
    #[cfg(global_work)]
    if let bytes @ 1.. = work_bytes(plan)
        && work != NO_WORK
    {
        pool::release_work_slot(pool, ((work - pool.work) / u64::from(bytes)) as u32);
    }
    #[cfg(not(global_work))]
    let _ = (pool, plan, work);
}

/// Bytes of the encoder's tables.
#[cfg(global_work)]
#[inline(always)]
fn work_bytes(plan: Plan) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return match plan.codec {
        Codec::Raw => 0,
        Codec::Ecl => crate::DEVICE_ECL.work_bytes(),
        Codec::Predict => crate::DEVICE_PREDICT.work_bytes(),
    };
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = plan;
        simt::host::with_lane(|lane| lane.recording().codec.work_bytes())
    }
}

/// Where this warp's tables are in shared memory.
#[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
#[inline(always)]
fn tables_address(state: SharedMemory) -> u32 {
    state.address + warp_state_bytes(PLAN.codec, PLAN.dual, false, false)
}

#[inline(always)]
fn tables(state: SharedMemory, plan: Plan, work: u64) -> Tables {
    #[cfg(all(target_arch = "nvptx64", feature = "work-shared"))]
    {
        let _ = (plan, work);
        Tables { address: u64::from(tables_address(state)), leader: state.leader }
    }
    #[cfg(all(target_arch = "nvptx64", not(feature = "work-shared")))]
    {
        let _ = plan;
        Tables { address: work, leader: state.leader }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (state, plan);
        Tables { address: work, leader: true, codec: simt::host::with_lane(|lane| lane.recording().codec) }
    }
}

/// Records that the lanes of `mask` came to `location`. On the GPU every lane of the mask calls it. On the simulator only the
/// leader does.
#[inline(always)]
pub(crate) fn record(location: u16, mask: u32) {
    let state = state(true).after(mask);
    // In a dual recording each event goes to the raw twin one by one, past the counting that is to be proved.
    if !plan().dual {
        let location = u32::from(location);
        if location < ENTRIES {
            let at = ENTRIES_AT + 8 * location;
            let [pending, count] = state.get64(at);
            let hit = pending == mask;
            state.set32_if(hit, at + 4, count.wrapping_add(1));
            if hit {
                return;
            }
        } else {
            let [pending, at, count, _] = state.get128(PENDING);
            let hit = (pending == mask) & (at == location);
            state.set32_if(hit, PENDING_COUNT, count.wrapping_add(1));
            if hit {
                return;
            }
        }
    }
    #[cfg(target_arch = "nvptx64")]
    if !plan().dual && repeats(state, location, mask) {
        return;
    }
    miss_apart(state, location, mask, 1, mask);
}

/// For an event of some of the live lanes: counts it if it repeats the pending run; answers whether. The shortest way that takes
/// the lock, for loops that lanes leave one by one.
#[cfg(target_arch = "nvptx64")]
#[inline(never)]
fn repeats(state: SharedMemory, location: u16, mask: u32) -> bool {
    let head = state.led_by(simt::is_leader(mask));
    let [_, at, _, _] = head.get128(PENDING);
    if (head.get32(PENDING_MASK) != mask) | (at != u32::from(location)) | (u32::from(location) >= ENTRIES) {
        return false;
    }
    let [_, _, _, zero] = head.get128(LIVE);
    let mut state = head.displaced(zero);
    let lock = Lock::new(head, state, LOCK, mask);
    if !lock.enter() {
        return false;
    }
    // Nobody else can have made a run of these lanes; but it may have been taken out.
    let still = (state.get32(PENDING_MASK) == mask) & (state.get32(PENDING + 4) == u32::from(location));
    let entry = entry_at(u32::from(location)) + 4;
    let count = state.get32(entry);
    let counts = still & (count != u32::MAX) & !(Mail { state, at: MAIL }).has_events();
    if counts {
        state.set32(entry, count + 1);
    }
    lock.leave();
    simt::settle(mask);
    counts
}

/// Records a run: the lanes of `mask` came to `location` `count` times in a row, at least once. On the GPU all lanes of `group`,
/// which holds `mask`, call it; on the simulator only the mask's leader.
#[inline(always)]
pub(crate) fn record_run(location: u16, mask: u32, count: u32, group: u32) {
    miss_apart(state(true), location, mask, count, group);
}

/// [`miss`], called so that the GPU's compiler does not look into it: otherwise it would save the kernel's registers around every
/// trace point, loops included. This way the function keeps what it uses.
#[inline(always)]
fn miss_apart(state: SharedMemory, location: u16, mask: u32, count: u32, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    {
        let address: u64;
        // SAFETY: the address of the function below, with its signature.
        let miss = unsafe {
            core::arch::asm!("mov.u64 {}, warptrace_miss;", out(reg64) address, options(nomem, nostack, preserves_flags));
            core::mem::transmute::<u64, extern "C" fn(u32, u32, u32, u32, u32)>(address)
        };
        miss(state.address, u32::from(location), mask, count, group);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    miss(state, location, mask, count, group);
}

#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(
    ".visible .func warptrace_miss(.param .b32 state, .param .b32 location, .param .b32 mask, .param .b32 count, .param .b32 group);"
);

/// The entrance of [`miss_apart`].
#[cfg(target_arch = "nvptx64")]
#[unsafe(no_mangle)]
extern "C" fn warptrace_miss(state: u32, location: u32, mask: u32, count: u32, group: u32) {
    miss(SharedMemory::new(state, true), location as u16, mask, count, group);
}

/// Where the lanes of this warp leave their counts of a loop for each other: a word a lane.
#[cfg(all(target_arch = "nvptx64", feature = "counted"))]
#[inline(always)]
pub(crate) fn counts() -> SharedMemory {
    let at = warp_state_bytes(PLAN.codec, PLAN.dual, cfg!(feature = "work-shared"), false);
    SharedMemory::new(place::state().0 + at, true)
}

/// Everything but the repetition of the last event.
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
fn miss(state: SharedMemory, location: u16, mask: u32, count: u32, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    let leader = simt::is_leader(group);
    #[cfg(not(target_arch = "nvptx64"))]
    let leader = true;
    let head = state.led_by(leader);
    let [live, warp, on, zero] = head.get128(LIVE);
    if on == 0 {
        return;
    }
    // The same place. To ptxas it is another one that may or may not overlap `head`, which keeps the accesses below
    // between those of the lock, and those of the lock in order.
    let state = head.displaced(zero);
    // See the crate's documentation for why the whole live mask needs no lock.
    let shared = cfg!(target_arch = "nvptx64") && group != live;
    let lock = Lock::new(head, state, LOCK, group);
    if shared && !lock.enter() {
        post(state, location, mask, count, group);
        return;
    }
    if (Mail { state, at: MAIL }).has_events() {
        sort_mail(state, live);
    }
    put(state, live, u32::from(location), mask, count);
    if queued(state) >= FULL {
        drain_apart(state, warp, group);
    }
    if shared {
        lock.leave();
        // No lane runs ahead of its event.
        simt::settle(group);
    }
}

/// Leaves the event of a group that found another one in the tracer.
#[cold]
#[inline(never)]
fn post(state: SharedMemory, location: u16, mask: u32, count: u32, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    {
        if simt::is_leader(group) {
            Mail { state, at: MAIL }.post(mask, u32::from(location), count);
        }
        // No lane runs ahead of its event.
        simt::sync_warp(group);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (state, location, mask, count, group);
        unreachable!("the simulator switches nowhere inside the tracer");
    }
}

/// Puts what lies in the mailbox into the queue.
#[cold]
#[inline(never)]
fn sort_mail(state: SharedMemory, live: u32) {
    Mail { state, at: MAIL }.take_out(|mask, location, count| put(state, live, location, mask, count));
}

/// Runs in the queue, or in the twin's if that has more.
#[inline(always)]
fn queued(state: SharedMemory) -> u32 {
    let queued = state.get32(PUT).wrapping_sub(Queue::new(state, QUEUE).taken());
    if !plan().dual {
        return queued;
    }
    queued.max(state.get32(TWIN_PUT).wrapping_sub(Queue::new(state, DUAL_QUEUE_AT).taken()))
}

/// [`encode`], called as [`miss`] is: so that a miss that does not come here saves few registers.
#[inline(always)]
fn drain_apart(state: SharedMemory, warp: u32, group: u32) {
    #[cfg(target_arch = "nvptx64")]
    {
        let address: u64;
        // SAFETY: the address of the function below, with its signature.
        let drain = unsafe {
            core::arch::asm!("mov.u64 {}, warptrace_drain;", out(reg64) address, options(nomem, nostack, preserves_flags));
            core::mem::transmute::<u64, extern "C" fn(u32, u32, u32)>(address)
        };
        drain(state.address, warp, group);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    encode(state, warp, group);
}

#[cfg(target_arch = "nvptx64")]
core::arch::global_asm!(
    ".visible .func warptrace_drain(.param .b32 state, .param .b32 warp, .param .b32 group);"
);

/// The entrance of [`drain_apart`].
#[cfg(target_arch = "nvptx64")]
#[unsafe(no_mangle)]
extern "C" fn warptrace_drain(state: u32, warp: u32, group: u32) {
    encode(SharedMemory::new(state, simt::is_leader(group)), warp, group);
}

/// The run that is pending, and how many were put into the queue before it.
struct Pending {
    mask: u32,
    location: u32,
    count: u32,
    put: u32,
}

#[inline(always)]
fn pending(state: SharedMemory) -> Pending {
    let [_, location, count, put] = state.get128(PENDING);
    let mask = state.get32(PENDING_MASK);
    let [_, counted] = state.get64(entry_at(location));
    Pending { mask, location, count: if location < ENTRIES { counted } else { count }, put }
}

/// Where the location's entry is. Those without one share the entry of 0, which is no location.
#[inline(always)]
fn entry_at(location: u32) -> u32 {
    ENTRIES_AT + if location < ENTRIES { 8 * location } else { 0 }
}

/// Puts the pending run into the queue and makes the event the pending run, or adds to it if it is the same.
#[inline(always)]
fn put(mut state: SharedMemory, live: u32, location: u32, mask: u32, count: u32) {
    let Pending { mask: before, location: at, count: repeats, put: number } = pending(state);
    let sum = repeats.wrapping_add(count);
    // A longer run, as far as the counter goes. Before the first event there is no run to put away either.
    let longer = (before == mask) & (at == location) & (sum >= repeats);
    let stays = longer | (before == 0);
    let next = number.wrapping_add(u32::from(!stays));
    let count_now = if longer { sum } else { count };
    // Who has all live lanes is alone, and may count without entering.
    let alone = if mask == live { mask } else { 0 };
    // Where the pending run stays, the place is free, and is written again later.
    Queue::new(state, QUEUE).put(number, before, at, repeats);
    state.set128(PENDING, [alone, location, count_now, next]);
    state.set32(PENDING_MASK, mask);
    state.set64(entry_at(at), [0; 2]);
    state.set64(entry_at(location), [if location < ENTRIES { alone } else { 0 }, count_now]);
    if plan().dual {
        let number = state.get32(TWIN_PUT);
        Queue::new(state, DUAL_QUEUE_AT).put(number, mask, location, count);
        state.set32(TWIN_PUT, number.wrapping_add(1));
    }
}

/// Hands the queue's runs to the encoder, and the twin's to the twin. All lanes of `group` do the same, and what the leader
/// writes counts. Lanes that were separated from it (see [`Track::drain`]) go no further.
#[inline(always)]
fn encode(mut state: SharedMemory, warp: u32, group: u32) {
    let plan = plan();
    let [low, high, drained_low, drained_high] = state.get128(WORK);
    let tables = tables(state, plan, u64::from(low) | u64::from(high) << 32);
    let (queue, put) = (Queue::new(state, QUEUE), state.get32(PUT));
    let drained = with_recorder!(plan, R => {
        Track::new(state, 0, warp).drain::<R>(tables, group, queue, put)
    });
    let Some(drained) = drained else { return };
    set64(&mut state, DRAINED, (u64::from(drained_low) | u64::from(drained_high) << 32) + drained);
    if plan.dual {
        let (queue, put) = (Queue::new(state, DUAL_QUEUE_AT), state.get32(TWIN_PUT));
        let twin = Track::new(state, 1, warp);
        let _ = twin.drain::<RawState>(Tables::none(tables.leader), group, queue, put);
    }
}

/// Takes these lanes out of the live mask; the last ones flush the stream.
#[inline(always)]
pub(crate) fn leave() {
    // On the GPU one lane for all that leave together. Nobody waits for it: the others have left.
    #[cfg(target_arch = "nvptx64")]
    let leaving = simt::active_mask();
    #[cfg(not(target_arch = "nvptx64"))]
    let leaving = 1 << simt::lane();
    if simt::is_leader(leaving) {
        let mut state = state(true);
        if state.fetch_clear(LIVE, leaving) == leaving {
            finish(state);
        }
    }
}

#[cold]
#[inline(never)]
fn finish(mut state: SharedMemory) {
    let [_, warp, on, _] = state.get128(LIVE);
    if on == 0 {
        return;
    }
    let plan = plan();
    let pool = pool::descriptor();
    // Nobody else is left, so everything that has a place in the mailbox is there.
    sort_mail(state, 0);
    let last = pending(state);
    if last.mask != 0 {
        Queue::new(state, QUEUE).put(last.put, last.mask, last.location, last.count);
        state.set32(PUT, last.put.wrapping_add(1));
    }
    encode(state, warp, 1 << simt::lane());
    let [low, high, drained_low, drained_high] = state.get128(WORK);
    let drained = u64::from(drained_low) | u64::from(drained_high) << 32;
    let work = u64::from(low) | u64::from(high) << 32;
    let tables = tables(state, plan, work);
    let skipped = Mail { state, at: MAIL }.skipped();
    with_recorder!(plan, R => Track::new(state, 0, warp).finish::<R>(tables, &pool, drained, skipped));
    if plan.dual {
        Track::new(state, 1, warp).finish::<RawState>(Tables::none(true), &pool, drained, skipped);
    }
    release_work(&pool, plan, work);
}
