//! The simulator as a device.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use warptrace_device::KernelCall;
use warptrace_encode::native::{self, Schedule};
use warptrace_format::file::DeviceInfo;
use warptrace_format::log::{ENTRY_BYTES, LoggedLaunch};
use warptrace_format::pool::{Claims, PoolDescriptor, WarpAccount};
use warptrace_sim::{Interaction, Launch, Progress, Simulator};

use crate::{
    Allocation, Blocks, Device, DeviceError, Encoded, LaunchShape, LaunchTime, Placement, Recording, Tracing,
    packed,
};

/// Bytes of packed chunks after which no more are collected at once.
const COLLECTED_AT_ONCE: usize = 64 << 20;

/// Alignment of every allocation, as on a GPU.
const ALIGN: usize = 256;

/// Called as blocks of a launch end.
pub type ProgressHook = Arc<dyn Fn(Progress) + Send + Sync>;

/// How the simulator runs.
#[derive(Clone, Default)]
pub struct SimOptions {
    /// Chooses among the interleavings of communicating blocks.
    pub seed: u64,
    /// Most blocks at a time; `None`: one a core. With one thread, also the order in which warps take chunks
    /// from the pool is fixed, so that a pool too small loses the same events in each run.
    pub threads: Option<usize>,
    /// Called as blocks end.
    pub progress: Option<ProgressHook>,
}

impl fmt::Debug for SimOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimOptions")
            .field("seed", &self.seed)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// The simulator: device addresses are host addresses, device memory is zeroed host memory.
#[derive(Debug)]
pub struct SimDevice {
    simulator: Simulator,
    options: SimOptions,
    /// By address.
    allocations: BTreeMap<u64, Block>,
}

impl SimDevice {
    /// A simulator.
    pub fn new(options: SimOptions) -> Self {
        Self { simulator: Simulator::default(), options, allocations: BTreeMap::new() }
    }

    fn threads(&self) -> usize {
        self.options.threads.unwrap_or_else(rayon::current_num_threads)
    }

    /// The counters of claims at an address.
    fn claims(&mut self, address: u64) -> Result<Claims, DeviceError> {
        let mut bytes = [0; size_of::<Claims>()];
        self.read(address, &mut bytes)?;
        let (words, _) = bytes.as_chunks::<4>();
        let word = |at: usize| u32::from_le_bytes(words[at]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
        Ok(Claims { log_entries: long(0), merged_entries: long(2), chunks: word(4), serial: word(5) })
    }

    /// Checks that the memory that encoding uses lies inside of allocations.
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

    fn pointer(&self, address: u64, bytes: usize) -> Result<*mut u8, DeviceError> {
        let out_of_bounds = || DeviceError::OutOfBounds { address, bytes: bytes as u64 };
        let (&start, &Block { length, .. }) =
            self.allocations.range(..=address).next_back().ok_or_else(out_of_bounds)?;
        let offset = usize::try_from(address - start).map_err(|_| out_of_bounds())?;
        if offset > length || bytes > length - offset {
            return Err(out_of_bounds());
        }
        Ok(std::ptr::with_exposed_provenance_mut(address as usize))
    }
}

/// An allocation, and what of it the allocator knows: more than is asked for, with the alignment for which it knows pages that are zero already. (It
/// would write zeros to all others, which takes seconds for a large pool of which little is used.)
#[derive(Clone, Copy, Debug)]
struct Block {
    length: usize,
    allocated: u64,
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(ALIGN)?, size_of::<u64>()).ok()
}

impl Device for SimDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::simulator("warptrace simulator")
    }

    fn multiprocessors(&self) -> u32 {
        u32::try_from(self.threads()).unwrap_or(u32::MAX)
    }

    fn allocate(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        let out_of_memory = |reason: &str| DeviceError::OutOfMemory { bytes, reason: reason.to_owned() };
        let length =
            usize::try_from(bytes.max(1)).map_err(|_| out_of_memory("larger than the address space"))?;
        let layout = layout(length).ok_or_else(|| out_of_memory("larger than the address space"))?;
        // SAFETY: the layout has a size of at least 1.
        let pointer = unsafe { alloc_zeroed(layout) };
        if pointer.is_null() {
            return Err(out_of_memory("the host has no more memory"));
        }
        let allocated = pointer.expose_provenance() as u64;
        let address = allocated.next_multiple_of(ALIGN as u64);
        self.allocations.insert(address, Block { length, allocated });
        Ok(Allocation { address, bytes })
    }

    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError> {
        let block = self
            .allocations
            .remove(&allocation.address)
            .ok_or(DeviceError::OutOfBounds { address: allocation.address, bytes: allocation.bytes })?;
        free(block);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let target = self.pointer(address, bytes.len())?;
        // SAFETY: inside an allocation, which no slice of the host overlaps; no launch is under way.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let source = self.pointer(address, bytes.len())?;
        // SAFETY: as in `write`.
        unsafe { source.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn collect(
        &mut self,
        first: u64,
        chunk_bytes: u32,
        count: u32,
        to: &mut Vec<u8>,
    ) -> Result<u32, DeviceError> {
        let bytes = chunk_bytes as usize * count as usize;
        let source = self.pointer(first, bytes)?;
        // SAFETY: inside an allocation, which nothing writes while this borrow lasts: no launch is under way.
        let chunks = unsafe { std::slice::from_raw_parts(source, bytes) };
        let (mut taken, most) = (0, to.len() + COLLECTED_AT_ONCE);
        for chunk in chunks.chunks_exact(chunk_bytes as usize) {
            packed::push(to, chunk);
            taken += 1;
            if to.len() >= most {
                break;
            }
        }
        Ok(taken)
    }

    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        let length = usize::try_from(bytes).map_err(|_| DeviceError::OutOfBounds { address, bytes })?;
        let target = self.pointer(address, length)?;
        // SAFETY: as in `write`.
        unsafe { target.write_bytes(value, length) };
        Ok(())
    }

    fn prepare(
        &mut self,
        _: &[&str],
        _: Option<(Recording, Option<Placement>, bool)>,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    /// On the host's own threads: with one, streams are encoded in their order.
    fn encode(
        &mut self,
        recording: Recording,
        pool: &PoolDescriptor,
        launches: &[LoggedLaunch],
    ) -> Result<Encoded, DeviceError> {
        let started = Instant::now();
        self.check_encoding(pool, launches)?;
        let schedule = if self.threads() == 1 { Schedule::Sequential } else { Schedule::Parallel };
        // SAFETY: all of it lies inside of allocations, which were initialised when they were made; no launch is under way, and
        // nobody else uses this device meanwhile.
        let claims = unsafe { native::encode(pool, launches, recording.codec, schedule) };
        let claims = claims.map_err(|source| DeviceError::Encode { launches: launches.len(), source })?;
        Ok(Encoded { claims, time: started.elapsed() })
    }

    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        tracing: Option<&Tracing>,
    ) -> Result<LaunchTime, DeviceError> {
        let mut launch = Launch::new(shape.grid, shape.block)
            .dynamic_shared(shape.dynamic_shared as usize)
            .interaction(match shape.blocks {
                Blocks::Independent => Interaction::Independent,
                Blocks::Communicating => Interaction::Global,
            })
            .seed(self.options.seed)
            .threads(self.threads());
        if let Some(tracing) = tracing {
            // SAFETY: the caller's promise, and nobody else uses this device meanwhile.
            launch = unsafe { launch.traced(tracing.logs, tracing.recording) };
        }
        let progress = self.options.progress.clone();
        let report = move |done: Progress| {
            if let Some(progress) = &progress {
                progress(done);
            }
        };
        let started = Instant::now();
        self.simulator.launch(&launch.progress(&report), &|| call.thread()()).map_err(|source| {
            DeviceError::Simulator { kernel: call.name().to_owned(), source: Box::new(source) }
        })?;
        let kernel = started.elapsed();
        let mut claims = Claims::default();
        if let Some(tracing) = tracing {
            claims = self.claims(tracing.logs.claims)?;
        }
        Ok(LaunchTime { kernel, claims })
    }
}

fn free(Block { length, allocated }: Block) {
    let layout = layout(length).expect("it was allocated with this layout");
    // SAFETY: allocated in `allocate` with this layout, and taken out of the list before.
    unsafe { dealloc(std::ptr::with_exposed_provenance_mut(allocated as usize), layout) };
}

impl Drop for SimDevice {
    fn drop(&mut self) {
        std::mem::take(&mut self.allocations).into_values().for_each(free);
    }
}
