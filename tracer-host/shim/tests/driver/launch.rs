//! Launches. The driver interprets the program's kernels, and runs most kernels of the tracer natively.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};

use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::PoolDescriptor;
use warptrace_encode::native::{self, Schedule as Order};
use warptrace_encode::{AccountsJob, DEVICE_ECL, DEVICE_PREDICT, PackJob, pack_accounts_call, pack_call};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::span::WarpSpan;
use warptrace_ptx::interpret::{Access, InterpretError, Launch, Memory, Program, Schedule, run};

use crate::memory;
use crate::modules::{Function, say};

const INVALID: u32 = 1;
pub const FAILED: u32 = 719;
const MAX_STEPS: u64 = 50_000_000;

/// # Safety
/// The arguments are valid for the function.
unsafe fn arguments(
    function: &Function,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let (mut buffer, mut bytes) = (std::ptr::null::<u8>(), 0);
    // SAFETY: guaranteed by the caller.
    unsafe {
        if parameters.is_null() && !extra.is_null() {
            let mut at = 0;
            loop {
                match (*extra.add(at)).addr() {
                    1 => buffer = (*extra.add(at + 1)).cast(),
                    2 => bytes = *(*extra.add(at + 1)).cast::<usize>(),
                    _ => break,
                }
                at += 2;
            }
        }
        let mut offset: usize = 0;
        for (number, &(size, align)) in function.parameters.iter().enumerate() {
            offset = offset.next_multiple_of(align);
            let from = match (parameters.is_null(), buffer.is_null()) {
                (false, _) => (*parameters.add(number)).cast::<u8>().cast_const(),
                (true, false) if offset + size <= bytes => buffer.add(offset),
                _ => return None,
            };
            found.push(std::slice::from_raw_parts(from, size).to_vec());
            offset += size;
        }
        // The driver refuses a buffer with another length.
        (buffer.is_null() || offset == bytes).then_some(found)
    }
}

/// The tracer's kernel that reads clocks. It is interpreted.
const CLOCKS: &str = "warptrace_clocks";

static LAUNCHES: Mutex<u64> = Mutex::new(0);
static LAUNCHED: Condvar = Condvar::new();

/// Waits before encoding until the program has made as many launches as `TEST_DRIVER_HOLDS` says.
fn hold() {
    let Some(most) = std::env::var("TEST_DRIVER_HOLDS").ok().and_then(|text| text.parse().ok()) else {
        return;
    };
    let launches = LAUNCHES.lock().expect("nothing panics with it");
    drop(LAUNCHED.wait_while(launches, |launches| *launches < most));
}

/// Runs a kernel until it ends.
/// # Safety
/// The arguments are valid for the function, and name memory that it may use.
pub unsafe fn launch(
    function: &Function,
    grid: [u32; 3],
    block: [u32; 3],
    (shared, stream): (u32, usize),
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> u32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match function.name.as_str() {
            "warptrace_merge" => {
                // Warm-up launches have no table of launches.
                if argument::<u64>(parameters, 1) != 0 {
                    hold();
                }
                return merge(parameters);
            }
            "warptrace_find_classes" => return find_classes(parameters),
            "warptrace_gather" => return gather(parameters),
            "warptrace_place_chunks" | "warptrace_pack_data" => {
                return pack(&function.name, grid, block, parameters);
            }
            "warptrace_pack_accounts" => return pack_accounts(grid, block, parameters),
            CLOCKS => {}
            name if name.starts_with("warptrace_") => return 0,
            _ => {}
        }
    }
    if is_stuck(stream) {
        // The kernel would run after the kernel before it has ended.
        return 0;
    }
    if function.name != CLOCKS {
        *LAUNCHES.lock().expect("nothing panics with it") += 1;
        LAUNCHED.notify_all();
        say(&format!("launch {} {grid:?} {block:?} {shared}", function.name));
    }
    // SAFETY: guaranteed by the caller.
    let Some(parameters) = (unsafe { arguments(function, parameters, extra) }) else { return INVALID };
    let allowed = *function.max_dynamic_shared.lock().expect("nothing panics with it");
    // With this variable, kernels that cannot be interpreted do nothing instead of failing.
    let otherwise = if std::env::var_os("TEST_DRIVER_SKIPS").is_some() { 0 } else { FAILED };
    if i64::from(shared) > i64::from(allowed) {
        return INVALID;
    }
    let Some(program) = &function.image.program else { return otherwise };
    let mut known = Memory::new();
    // SAFETY: the allocations are not freed during the launch.
    let copied = |(address, bytes): (u64, usize)| unsafe {
        (address, std::slice::from_raw_parts(address as *const u8, bytes).to_vec())
    };
    let before: Vec<(u64, Vec<u8>)> = memory::all().into_iter().map(copied).collect();
    for (address, bytes) in &before {
        known.declare(*address, bytes.clone());
    }
    let launch = Launch {
        kernel: &function.name,
        grid,
        block,
        dynamic_shared: shared,
        parameters,
        clock: 1 << 20,
        multiprocessors: 1,
        max_steps: endless_after().unwrap_or(MAX_STEPS),
    };
    let outcome = run(program, &launch, &mut known, &mut Schedule::random(3));
    for (address, before) in before {
        // Writes back only changed bytes: the program may use the others during the launch.
        for (at, (new, old)) in known.region(address).into_iter().flatten().zip(&before).enumerate() {
            if new != old {
                // SAFETY: the allocations are not freed during the launch.
                unsafe { (address as *mut u8).add(at).write(*new) };
            }
        }
    }
    match outcome {
        Ok(observed) => {
            if std::env::var_os("TEST_DRIVER_ACCESSES").is_some() && function.name.ends_with("$traced") {
                say_accesses(&observed.accesses);
            }
            0
        }
        Err(InterpretError::Steps { .. } | InterpretError::Deadlock) if endless_after().is_some() => {
            stuck().insert(stream);
            0
        }
        Err(error) => {
            say(&format!("failed: {error}"));
            otherwise
        }
    }
}

/// Returns the number of instructions after which a kernel stops and never ends, from `TEST_DRIVER_ENDLESS`.
fn endless_after() -> Option<u64> {
    std::env::var("TEST_DRIVER_ENDLESS").ok()?.parse().ok()
}

fn stuck() -> MutexGuard<'static, BTreeSet<usize>> {
    static STUCK: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    STUCK.lock().expect("nothing panics with it")
}

pub fn is_stuck(stream: usize) -> bool {
    stuck().contains(&stream)
}

/// Waits for a stream, or for all with `None`. Waits forever if a kernel never ends.
pub fn wait_for_kernels(stream: Option<usize>) {
    while stream.map_or_else(|| !stuck().is_empty(), is_stuck) {
        std::thread::park();
    }
}

fn say_accesses(accesses: &[Access]) {
    static LAUNCHES: AtomicU32 = AtomicU32::new(0);
    let launch = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    let line = |access: &Access| {
        let Access { warp, lane, site, value } = access;
        format!("access {launch} {warp} {lane} {site} {value}")
    };
    say(&accesses.iter().map(line).collect::<Vec<_>>().join("\n"));
}

/// # Safety
/// The launch has an argument with this number and type.
unsafe fn argument<T: Copy>(parameters: *mut *mut c_void, number: usize) -> T {
    // SAFETY: guaranteed by the caller.
    unsafe { (*parameters.add(number)).cast::<T>().read_unaligned() }
}

/// Returns the pool, and the launches in the table; `None` without a table.
/// # Safety
/// `warptrace_encode::merge_call` or `find_classes_call` has made the arguments, with host addresses.
unsafe fn logged(parameters: *mut *mut c_void) -> Option<(PoolDescriptor, Vec<LoggedLaunch>)> {
    // SAFETY: guaranteed by the caller. All bit patterns are valid for a pool.
    let (pool, table, count) =
        unsafe { (argument(parameters, 0), argument::<u64>(parameters, 1), argument::<u32>(parameters, 2)) };
    if table == 0 {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let rows = unsafe { std::slice::from_raw_parts(table as *const [u32; 12], count as usize) };
    Some((pool, rows.iter().map(|row| LoggedLaunch::from_words(*row)).collect()))
}

/// # Safety
/// Same as [`logged`].
unsafe fn find_classes(parameters: *mut *mut c_void) -> u32 {
    // SAFETY: guaranteed by the caller.
    let done = unsafe { logged(parameters).map(|(pool, launches)| native::find_classes(&pool, &launches)) };
    said(done.unwrap_or(Ok(())))
}

/// Merges and encodes. The tracer's later kernels have nothing to do.
/// # Safety
/// Same as [`logged`].
unsafe fn merge(parameters: *mut *mut c_void) -> u32 {
    // SAFETY: guaranteed by the caller.
    let done = unsafe {
        let codec = match argument::<u32>(parameters, 4) {
            0 => CodecSpec::Raw,
            1 => CodecSpec::Ecl(DEVICE_ECL),
            _ => CodecSpec::Predict(DEVICE_PREDICT),
        };
        logged(parameters).map(|(pool, launches)| native::encode(&pool, &launches, codec, Order::Sequential))
    };
    said(done.transpose().map(drop))
}

fn said(done: Result<(), native::EncodeError>) -> u32 {
    match done {
        Ok(()) => 0,
        Err(error) => {
            say(&format!("failed: {error}"));
            FAILED
        }
    }
}

/// Packs the used chunks, like the kernel of that name.
unsafe fn gather(parameters: *mut *mut c_void) -> u32 {
    // SAFETY: the arguments are valid for the kernel, with host addresses.
    unsafe {
        let [from, cursor, target]: [u64; 3] =
            [argument(parameters, 0), argument(parameters, 1), argument(parameters, 2)];
        let [bytes, count, capacity, data_track]: [u32; 4] = [
            argument(parameters, 3),
            argument(parameters, 4),
            argument(parameters, 5),
            argument(parameters, 6),
        ];
        let cursor = cursor as *mut u32;
        for index in 0..u64::from(count) {
            let chunk = (from + index * u64::from(bytes)) as *const u32;
            let (events, length, track) = (*chunk.add(2), *chunk.add(3), *chunk.add(5));
            if events | length == 0 || (data_track != 0 && track == data_track) {
                continue;
            }
            let padded = (length.min(bytes - 32) + 47) & !15;
            let at = *cursor;
            *cursor += padded;
            if at + padded <= capacity {
                let to = (target + u64::from(at)) as *mut u8;
                to.copy_from(chunk.cast(), padded as usize);
            }
        }
    }
    0
}

/// Interprets the kernels that pack addresses and values.
unsafe fn pack(kernel: &str, grid: [u32; 3], block: [u32; 3], parameters: *mut *mut c_void) -> u32 {
    // SAFETY: the argument is the kernel's job, with host addresses.
    let job: PackJob = unsafe { argument(parameters, 0) };
    let regions = [
        (job.chunks, job.chunk_bytes as usize * job.count as usize),
        (job.cursor, size_of::<u32>()),
        (job.target, job.capacity as usize),
        (job.table, size_of::<u32>() * job.streams as usize),
    ];
    // SAFETY: the job's memory has these sizes.
    unsafe { interpret(kernel, [grid, block], pack_call(&job).arguments(), &regions, 1) }
}

/// Interprets the kernel that packs accounts and spans.
unsafe fn pack_accounts(grid: [u32; 3], block: [u32; 3], parameters: *mut *mut c_void) -> u32 {
    // SAFETY: the argument is the kernel's job, with host addresses.
    let job: AccountsJob = unsafe { argument(parameters, 0) };
    if job.launches == 0 {
        return 0;
    }
    let mut regions = vec![(job.table, size_of::<LoggedLaunch>() * job.launches as usize)];
    // SAFETY: the table has these launches.
    let launches =
        unsafe { std::slice::from_raw_parts(job.table as *const LoggedLaunch, job.launches as usize) };
    for launch in launches {
        let accounts = size_of::<WarpAccount>() as u32 * launch.tracks * launch.warps;
        let spans = size_of::<WarpSpan>() as u32 * job.spans * launch.warps;
        regions.push((launch.accounts, (accounts + spans) as usize));
    }
    if job.classes != 0 {
        regions.push((job.classes, size_of::<u32>() * job.streams as usize));
    }
    let read = regions.len();
    let tracks = launches.first().map_or(1, |launch| launch.tracks);
    regions.push((job.target, size_of::<u32>() * job.words(tracks) as usize));
    // SAFETY: the job's memory has these sizes.
    unsafe {
        interpret(
            "warptrace_pack_accounts",
            [grid, block],
            pack_accounts_call(&job).arguments(),
            &regions,
            read,
        )
    }
}

/// Interprets one of the tracer's kernels, which accesses `regions` and writes those from `read` on.
unsafe fn interpret(
    kernel: &str,
    [grid, block]: [[u32; 3]; 2],
    arguments: &[Vec<u8>],
    regions: &[(u64, usize)],
    read: usize,
) -> u32 {
    static PROGRAM: OnceLock<Option<Program>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| Program::parse(&warptrace_host::encoder_ptx()).ok());
    let Some(program) = program else { return FAILED };
    let mut known = Memory::new();
    for &(address, bytes) in regions {
        // SAFETY: guaranteed by the caller.
        let region = unsafe { std::slice::from_raw_parts(address as *const u8, bytes) };
        known.declare(address, region.to_vec());
    }
    let launch = Launch {
        kernel,
        grid,
        block,
        dynamic_shared: 0,
        parameters: arguments.to_vec(),
        clock: 0,
        multiprocessors: 1,
        max_steps: 1 << 32,
    };
    if let Err(error) = run(program, &launch, &mut known, &mut Schedule::random(3)) {
        say(&format!("failed: {error}"));
        return FAILED;
    }
    for (address, bytes) in &regions[read..] {
        let packed = known.region(*address).expect("it was declared");
        // SAFETY: guaranteed by the caller.
        unsafe { (*address as *mut u8).copy_from(packed.as_ptr(), *bytes) };
    }
    0
}
