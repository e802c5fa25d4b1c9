mod memory;
mod streamed;
mod values;

use std::collections::HashSet;
use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use warptrace_abi::log::{ENTRY_BYTES, LoggedLaunch};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_device::KernelCall;
use warptrace_encode::native::{self, Schedule};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::DeviceInfo;
use warptrace_sim::{Interaction, Launch, Progress, SimError, Simulator, ValueSites, Watchdog};

use self::memory::Memory;
use self::streamed::run_served;
use self::values::Values;
use crate::{
    Allocation, Blocks, ClockSteps, Device, DeviceClocks, DeviceError, DeviceFacts, EncodeJob, Encoded,
    HostClock, LaunchShape, LaunchTime, LiveMemory, LogKind, Logs, MemoryType, Prepare, Recording, Simulated,
    Traced, packed,
};

/// Default multiprocessors in the spans of warps, constant so that recordings do not depend on the host.
const MULTIPROCESSORS: u32 = 4;
/// Packed bytes at which one collection stops.
const COLLECTED_AT_ONCE: usize = 64 << 20;

/// Assumed memory of a host that does not report it.
const UNKNOWN_MEMORY: u64 = 4 << 30;
/// Maximum memory that the simulator reports as free.
const MAX_OFFERED: u64 = 8 << 30;

const NO_ACCESSES: &str = "the simulator runs compiled Rust, whose loads and stores it does not see: record them on a GPU, or `values` alone";

/// Called when blocks of a launch end, and every second.
pub type ProgressHook = Arc<dyn Fn(Progress) + Send + Sync>;

/// Options of the simulator.
#[derive(Clone, Default)]
pub struct SimOptions {
    /// Seed that selects an interleaving of communicating blocks.
    pub seed: u64,
    /// Maximum concurrent blocks; `None` for one per core. One thread also fixes the order in which warps
    /// take chunks from the pool, so that with a small pool every run loses the same events.
    pub threads: Option<usize>,
    /// Called when blocks end.
    pub progress: Option<ProgressHook>,
    /// Reported number of multiprocessors, by which programs choose grids; `None` for one per thread.
    pub multiprocessors: Option<u32>,
    /// The clock for the times of launches.
    pub clock: HostClock,
}

impl fmt::Debug for SimOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimOptions")
            .field("seed", &self.seed)
            .field("threads", &self.threads)
            .field("multiprocessors", &self.multiprocessors)
            .finish_non_exhaustive()
    }
}

/// The simulator. Device addresses are host addresses, and device memory is zeroed host memory.
#[derive(Debug)]
pub struct SimDevice {
    simulator: Simulator,
    options: SimOptions,
    memory: Memory,
    /// Threads of launches with streamed logs, created on first use.
    kernel_threads: Option<ThreadPool>,
    notes: Arc<Notes>,
    values: Values,
    /// Ends launches whose logs are not streamed.
    interrupt: Option<Arc<AtomicBool>>,
}

impl SimDevice {
    /// Creates a simulator.
    pub fn new(options: SimOptions) -> Self {
        Self {
            simulator: Simulator::default(),
            options,
            memory: Memory::default(),
            kernel_threads: None,
            notes: Arc::default(),
            values: Values::default(),
            interrupt: None,
        }
    }

    /// Returns the number of allocated bytes.
    pub fn allocated_bytes(&self) -> u64 {
        self.memory.allocated
    }

    /// Returns the maximum number of bytes that were allocated at once.
    pub fn peak_bytes(&self) -> u64 {
        self.memory.peak
    }

    fn threads(&self) -> usize {
        self.options.threads.unwrap_or_else(rayon::current_num_threads)
    }

    fn claims(&mut self, address: u64) -> Result<Claims, DeviceError> {
        let mut bytes = [0; size_of::<Claims>()];
        self.read(address, &mut bytes)?;
        let (words, _) = bytes.as_chunks::<4>();
        let word = |at: usize| u32::from_le_bytes(words[at]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
        let (log_entries, merged_entries) = (long(0), long(2));
        let [chunks, serial, waiting, reserved] = [4, 5, 6, 7].map(word);
        Ok(Claims { log_entries, merged_entries, chunks, serial, waiting, reserved })
    }

    fn check_encoding(&self, pool: &PoolDescriptor, launches: &[LoggedLaunch]) -> Result<(), DeviceError> {
        let chunks = u64::from(pool.chunk_count) * u64::from(pool.chunk_bytes);
        let logs = u64::from(pool.merged_end) * u64::from(ENTRY_BYTES);
        let accounts = launches.iter().map(|launch| {
            let streams = u64::from(launch.warps) * u64::from(launch.tracks);
            (launch.accounts, streams.saturating_mul(size_of::<WarpAccount>() as u64))
        });
        let pool = [(pool.chunks, chunks), (pool.logs, logs), (pool.claims, size_of::<Claims>() as u64)];
        for (address, bytes) in pool.into_iter().chain(accounts) {
            let length = usize::try_from(bytes).map_err(|_| DeviceError::OutOfBounds { address, bytes })?;
            self.pointer(address, length)?;
        }
        Ok(())
    }

    /// Returns the memory at an address. Fails if it is not inside one allocation.
    pub(crate) fn memory_at(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], DeviceError> {
        let start = self.pointer(address, bytes)?;
        // SAFETY: inside an allocation, zero-initialized, and unused by launches or others during the borrow.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, bytes) })
    }

    fn pointer(&self, address: u64, bytes: usize) -> Result<*mut u8, DeviceError> {
        self.memory.pointer(address, bytes)
    }

    /// Starts the threads of launches with streamed logs. They are a separate pool: the kernel may wait for
    /// `serve`, which may itself wait for pool threads.
    fn start_kernel_threads(&mut self) -> Result<(), DeviceError> {
        if self.kernel_threads.is_none() {
            let builder = ThreadPoolBuilder::new().num_threads(self.threads());
            let pool = builder.thread_name(|number| format!("simulator {number}")).build();
            self.kernel_threads = Some(pool.map_err(|error| DeviceError::Unsupported {
                problem: format!("a kernel whose logs are streamed needs threads of its own: {error}"),
            })?);
        }
        Ok(())
    }

    fn runner(&self) -> Runner<'_> {
        Runner { simulator: &self.simulator, hook: self.options.progress.as_ref(), notes: &self.notes }
    }

    fn untraced<'a>(&self, shape: &LaunchShape) -> Launch<'a> {
        Launch::new(shape.grid, shape.block)
            .dynamic_shared(shape.dynamic_shared as usize)
            .interaction(match shape.blocks {
                Blocks::Independent => Interaction::Independent,
                Blocks::Communicating => Interaction::Global,
            })
            .seed(self.options.seed)
            .threads(self.threads())
            .multiprocessors(self.traced_multiprocessors())
    }

    fn traced_multiprocessors(&self) -> u32 {
        self.options.multiprocessors.unwrap_or(MULTIPROCESSORS)
    }
}

#[derive(Clone, Copy)]
struct Runner<'d> {
    simulator: &'d Simulator,
    hook: Option<&'d ProgressHook>,
    notes: &'d Notes,
}

/// Kernels and barriers with a printed note; each note is printed once.
type Notes = Mutex<HashSet<(String, String)>>;

impl Runner<'_> {
    /// Runs a launch; returns its duration. Prints progress on standard error if requested, and a note if
    /// lanes left the kernel before others of their warp reached a barrier.
    ///
    /// # Safety
    /// The call's arguments refer to memory that is valid for the kernel's accesses.
    unsafe fn run(
        self,
        launch: Launch<'_>,
        watches: Simulated,
        call: &KernelCall,
    ) -> Result<Duration, DeviceError> {
        let Simulated { steps, time, progress } = watches;
        let kernel = call.name();
        let next = AtomicU64::new(1);
        let report = |done: Progress| {
            if let Some(hook) = self.hook {
                hook(done);
            }
            if progress && is_due(&next, done.elapsed) {
                let Progress { blocks_done, blocks, elapsed } = done;
                let seconds = elapsed.as_secs();
                let _ = writeln!(
                    std::io::stderr(),
                    "simulating `{kernel}`: {blocks_done} of {blocks} blocks after {seconds} s"
                );
            }
        };
        let usual = Watchdog::default();
        let launch = launch.watchdog(Watchdog { steps: steps.or(usual.steps), time, ..usual });
        let launch = if progress || self.hook.is_some() { launch.progress(&report) } else { launch };
        // SAFETY: the caller guarantees the arguments.
        let thread = unsafe { call.thread() };
        let started = Instant::now();
        let ran = self.simulator.launch(&launch, &|| thread()).map_err(|source| match source {
            SimError::Interrupted => DeviceError::GivenUp,
            source => DeviceError::Simulator { kernel: kernel.to_owned(), source: Box::new(source) },
        })?;
        let elapsed = started.elapsed();
        if let Some(left) = ran.left_before {
            let mut said = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            if said.insert((kernel.to_owned(), left.barrier.to_string())) {
                let _ = writeln!(std::io::stderr(), "note: kernel `{kernel}`, {left}");
            }
        }
        Ok(elapsed)
    }
}

/// Returns true if `elapsed` has reached `next` seconds, and then sets `next` to the next power of two.
fn is_due(next: &AtomicU64, elapsed: Duration) -> bool {
    let (seconds, due) = (elapsed.as_secs(), next.load(Ordering::Relaxed));
    let after = seconds.saturating_add(1).next_power_of_two();
    seconds >= due && next.compare_exchange(due, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

impl Device for SimDevice {
    fn facts(&self) -> DeviceFacts {
        let threads = || u32::try_from(self.threads()).unwrap_or(u32::MAX);
        let memory_bytes = warptrace_sim::host_memory().unwrap_or(UNKNOWN_MEMORY);
        DeviceFacts {
            info: DeviceInfo::simulator("warptrace simulator"),
            ordinal: None,
            uuid: None,
            clock: self.options.clock.clone(),
            multiprocessors: self.options.multiprocessors.unwrap_or_else(threads),
            resident_threads: u64::MAX,
            memory_bytes,
            free_bytes: memory_bytes.min(MAX_OFFERED),
        }
    }

    fn allocate(&mut self, bytes: u64, _: MemoryType) -> Result<Allocation, DeviceError> {
        self.memory.allocate(bytes)
    }

    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError> {
        self.memory.free(allocation)
    }

    fn give_up_by(&mut self, asked: Option<&Arc<AtomicBool>>) -> Result<(), DeviceError> {
        self.interrupt = asked.cloned();
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let target = self.pointer(address, bytes.len())?;
        // SAFETY: inside an allocation, which no host slice overlaps; no launch is running.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let source = self.pointer(address, bytes.len())?;
        // SAFETY: see `write`.
        unsafe { source.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        let length = usize::try_from(bytes).map_err(|_| DeviceError::OutOfBounds { address, bytes })?;
        let target = self.pointer(address, length)?;
        // SAFETY: see `write`.
        unsafe { target.write_bytes(value, length) };
        Ok(())
    }

    fn prepare(&mut self, prepare: &Prepare<'_>) -> Result<u64, DeviceError> {
        if prepare.traced.is_some_and(|(recording, _)| recording.data.has_memory()) {
            return Err(DeviceError::Unsupported { problem: NO_ACCESSES.to_owned() });
        }
        prepare.code.iter().for_each(|module| self.values.add(module));
        if prepare.traced.is_some_and(|(recording, _)| recording.data.values) {
            self.values.check()?;
        }
        if let Some((Recording { logs: LogKind::Streamed, .. }, _)) = prepare.traced {
            self.start_kernel_threads()?;
        }
        Ok(u64::MAX)
    }

    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        traced: Option<Traced<'_>>,
    ) -> Result<LaunchTime, DeviceError> {
        let (launch, watches) = (self.untraced(shape), shape.simulated);
        let interrupt = self.interrupt.clone();
        let Some(Traced { recording, logs, sites: taken }) = traced else {
            // SAFETY: the caller guarantees the arguments.
            let kernel = unsafe { self.runner().run(launch.interrupt(interrupt.as_deref()), watches, call)? };
            return Ok(LaunchTime { kernel, claims: Claims::default() });
        };
        match logs {
            Logs::Kept(logs) => {
                let sites = if recording.data.values {
                    call.module().into_iter().for_each(|module| self.values.add(module));
                    self.values.check()?;
                    self.values.of_launch(call.module())
                } else {
                    ValueSites::default()
                };
                // SAFETY: the caller guarantees the logs. While the kernel runs, nothing else uses this
                // device.
                let launch = unsafe { launch.traced(*logs, recording) }.interrupt(interrupt.as_deref());
                // SAFETY: the caller guarantees the arguments.
                let kernel = unsafe { self.runner().run(launch.values(&sites), watches, call) };
                self.values.describe(&sites, taken);
                Ok(LaunchTime { kernel: kernel?, claims: self.claims(logs.claims)? })
            }
            Logs::Streamed { logs, serve } => {
                // SAFETY: the caller guarantees the logs. While the kernel runs, only `serve` also accesses
                // this device's memory, and it uses atomics.
                let launch = unsafe { launch.streamed(*logs, recording) };
                self.start_kernel_threads()?;
                self.memory.placing = (self.traced_multiprocessors(), self.simulator.next_start());
                let Self { simulator, options, memory, kernel_threads, notes, .. } = self;
                let runner = Runner { simulator, hook: options.progress.as_ref(), notes };
                let threads = kernel_threads.as_ref().expect("they were started");
                // SAFETY: the caller guarantees the arguments.
                let kernel = || unsafe { runner.run(launch, watches, call) };
                let (kernel, served) = run_served(threads, kernel, memory, serve);
                let kernel = kernel?;
                served?;
                Ok(LaunchTime { kernel, claims: Claims::default() })
            }
        }
    }

    /// Runs on host threads. If there is only one, it encodes logs in order.
    fn encode(&mut self, job: EncodeJob<'_>) -> Result<Encoded, DeviceError> {
        let started = Instant::now();
        let (codec, pool, launches) = match job {
            // No link is between this memory and the host.
            EncodeJob::Accounts { .. } => return Ok(Encoded::default()),
            EncodeJob::Logs { codec, pool, launches, table: _ } => (codec, pool, launches),
            EncodeJob::Classes { pool, launches, table: _ } => {
                self.check_encoding(pool, launches)?;
                // SAFETY: as for `native::encode` below.
                let found = unsafe { native::find_classes(pool, launches) };
                found.map_err(|source| DeviceError::Encode { launches: launches.len(), source })?;
                return Ok(Encoded { time: started.elapsed(), ..Encoded::default() });
            }
            EncodeJob::Flatten(job) => {
                for (address, bytes) in job.parts() {
                    let length =
                        usize::try_from(bytes).map_err(|_| DeviceError::OutOfBounds { address, bytes })?;
                    self.pointer(address, length)?;
                }
                // SAFETY: all memory lies inside allocations, which are zero-initialized. Lanes use atomics,
                // and nothing else accesses the job's output.
                unsafe { native::flatten(job) };
                return Ok(Encoded { time: started.elapsed(), ..Encoded::default() });
            }
            EncodeJob::Collect { first, chunk_bytes, count, data: of_data, scratch: _, to } => {
                let bytes = chunk_bytes as usize * count as usize;
                let source = self.pointer(first, bytes)?;
                // SAFETY: inside an allocation, which nothing writes meanwhile: no launch is running.
                let chunks = unsafe { std::slice::from_raw_parts(source, bytes) };
                let (mut collected, mut data, mut bytes) = (0, Vec::new(), 0);
                for chunk in chunks.chunks_exact(chunk_bytes as usize) {
                    match packed::of_data(chunk, of_data.map_or(0, |(track, _)| track)) {
                        Some(found) => data.push(found),
                        None => packed::push(to.vec(), chunk),
                    }
                    collected += 1;
                    bytes += chunk.len();
                    if bytes >= COLLECTED_AT_ONCE {
                        break;
                    }
                }
                packed::push_tiles(to.vec(), data);
                return Ok(Encoded { collected, ..Encoded::default() });
            }
        };
        self.check_encoding(pool, launches)?;
        let schedule = if self.threads() == 1 { Schedule::Sequential } else { Schedule::Parallel };
        // SAFETY: all memory lies inside zero-initialized allocations, and nothing else uses this device.
        let claims = unsafe { native::encode(pool, launches, codec, schedule) };
        let claims = claims.map_err(|source| DeviceError::Encode { launches: launches.len(), source })?;
        Ok(Encoded { claims, time: started.elapsed(), collected: 0 })
    }

    fn clocks(&mut self, _: bool) -> Result<DeviceClocks, DeviceError> {
        Ok(DeviceClocks { steps: Some(ClockSteps { cycles: 1, nanoseconds: 1 }), timer: None })
    }

    fn live(&mut self) -> Result<&mut dyn LiveMemory, DeviceError> {
        Ok(&mut self.memory)
    }

    unsafe fn second_handle(
        &mut self,
        memory: Allocation,
        _: CodecSpec,
    ) -> Result<Option<Box<dyn Device + Send>>, DeviceError> {
        let memory = self.memory.sharing(memory)?;
        let mut device = Self::new(self.options.clone());
        device.memory = memory;
        Ok(Some(Box::new(device)))
    }
}

#[cfg(test)]
mod tests;
