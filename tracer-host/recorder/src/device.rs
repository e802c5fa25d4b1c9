//! The trait of devices that run kernels.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warptrace_abi::log::{LaunchLogs, LoggedLaunch};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_abi::stream::StreamLogs;
use warptrace_device::{KernelCall, KernelModule};
use warptrace_encode::FlattenJob;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{DeviceInfo, SiteInfo};

use crate::{DeviceError, HostClock, HostMemory, LiveMemory, Recording, Serve};

/// Grid and blocks of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads per block along x, y, z; at most 1,024 in total.
    pub block: [u32; 3],
    /// The kernel's dynamic shared memory, in bytes per block.
    pub dynamic_shared: u32,
    /// Whether blocks communicate while the kernel runs.
    pub blocks: Blocks,
    /// Limits and progress reports on the simulator.
    pub simulated: Simulated,
}

/// Limits and progress reports of a launch on the simulator. A GPU ignores them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Simulated {
    /// Maximum steps before the launch fails, per block if blocks are independent, otherwise in total; `None`
    pub steps: Option<u64>,
    /// Maximum run time, after which the launch fails; `None` for no limit.
    pub time: Option<Duration>,
    /// Whether to report progress on standard error, after 1, 2, 4 seconds and so on.
    pub progress: bool,
}

/// Whether the blocks of a launch communicate. A GPU ignores this. The simulator runs independent blocks in
/// parallel. It interleaves communicating blocks, all of them resident, in an order that depends on its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Blocks {
    /// No block reads another block's writes, except by atomics that do not affect control flow.
    #[default]
    Independent,
    /// Blocks communicate through global memory or wait for each other.
    Communicating,
}

impl LaunchShape {
    /// Returns a one-dimensional launch of at least `threads` threads, in independent blocks of `block`
    /// threads. Panics if `block` is 0 or more than 2^32 - 1 blocks would be needed.
    pub fn linear(threads: u64, block: u32) -> Self {
        let blocks = threads.div_ceil(u64::from(block)).max(1);
        let blocks = u32::try_from(blocks).expect("more than 2^32 - 1 blocks");
        Self::new([blocks, 1, 1], [block, 1, 1], Blocks::Independent)
    }

    /// Returns a one-dimensional launch of exactly `blocks` communicating blocks of `block` threads.
    pub fn persistent(blocks: u32, block: u32) -> Self {
        Self::new([blocks, 1, 1], [block, 1, 1], Blocks::Communicating)
    }

    /// Returns a launch of `grid` blocks of `block` threads, without dynamic shared memory.
    pub fn new(grid: [u32; 3], block: [u32; 3], blocks: Blocks) -> Self {
        Self { grid, block, dynamic_shared: 0, blocks, simulated: Simulated::default() }
    }

    /// Returns the threads per block.
    pub fn block_threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// Returns the warps per block; the last one may be partial.
    pub fn warps_per_block(&self) -> u64 {
        self.block_threads().div_ceil(32)
    }

    /// Returns the number of blocks in the grid.
    pub fn block_count(&self) -> u128 {
        self.grid.iter().map(|&n| u128::from(n)).product()
    }

    /// Returns the number of warps of the launch.
    pub fn warps(&self) -> u128 {
        self.block_count() * u128::from(self.warps_per_block())
    }
}

/// Device memory. Freed by [`Device::free`], or when the device is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Device address, at least 256-byte aligned.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Location of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryType {
    /// Device memory.
    Device,
    /// Host memory that kernels can access. It stays readable after a kernel has failed.
    Host,
}

/// Properties and current state of a device.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    /// The description for a file's metadata.
    pub info: DeviceInfo,
    /// Device number within the process, from 0; `None` for the simulator.
    pub ordinal: Option<u32>,
    /// The UUID as printed by `nvidia-smi -L`: `GPU-…`, or `MIG-…` for a MIG instance; `None` if unknown.
    pub uuid: Option<String>,
    /// The host clock that times launches.
    pub clock: HostClock,
    /// Number of multiprocessors. On the simulator: as in its options, or the number of its worker threads.
    pub multiprocessors: u32,
    /// Maximum resident threads of the device; `u64::MAX` if unknown.
    pub resident_threads: u64,
    /// Total memory in bytes. For the simulator, the host's total memory, or 4 GiB if that is unknown.
    pub memory_bytes: u64,
    /// Free memory in bytes, or the total if that is unknown. On the simulator, at most 8 GiB of the total.
    pub free_bytes: u64,
}

/// The argument of [`Device::prepare`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Prepare<'a> {
    /// Modules whose kernels may run later. The device uses their PTX and their named values; the simulator
    /// only the values. Modules that the device already has are ignored.
    pub code: &'a [&'a KernelModule],
    /// Kernels that will be launched, in any of the PTX texts.
    pub kernels: &'a [&'a str],
    /// A launch that will be made; see the result of [`Device::prepare`].
    pub launch: Option<(&'a KernelCall, &'a LaunchShape)>,
    /// The recording and codec of traced kernels; `None` for untraced ones.
    pub traced: Option<(Recording, CodecSpec)>,
}

/// Recording and logs of a traced launch.
pub struct Traced<'a> {
    /// The data to record.
    pub recording: Recording,
    /// The launch's logs, of the kind that [`recording`](Self::recording) requires.
    pub logs: Logs<'a>,
    /// Output: the launch appends sites, also if it fails: on a GPU the sites of code loaded since the last
    /// traced launch, on the simulator all sites that lanes reached. Without accesses, appends nothing.
    pub sites: &'a mut Vec<SiteInfo>,
}

/// Logs of a launch.
pub enum Logs<'a> {
    /// Logs that stay in place until the launch has ended.
    Kept(&'a LaunchLogs),
    /// Logs that the host empties while the launch runs.
    Streamed {
        /// The logs.
        logs: &'a StreamLogs,
        /// Called repeatedly while the kernel runs.
        serve: &'a mut Serve<'a>,
    },
}

/// Times and counters of a launch.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchTime {
    /// Time of the kernel alone: from device events on a GPU, from the wall clock on the simulator.
    pub kernel: Duration,
    /// The pool's reservation counters after a launch with kept logs, otherwise 0. May exceed the pool.
    pub claims: Claims,
}

/// A step from logs on the device to chunks on the host.
#[derive(Debug)]
pub enum EncodeJob<'a> {
    /// Flattens streamed logs of warps that have left their kernel, which may still run.
    Flatten(&'a FlattenJob),
    /// Finds the classes of streams, before encoding. The hash table of classes in `pool` must be empty.
    Classes {
        /// Addresses of logs and classes.
        pool: &'a PoolDescriptor,
        /// The launches.
        launches: &'a [LoggedLaunch],
        /// Writable device memory, as large as the launches.
        table: Allocation,
    },
    /// Merges and encodes the logs of launches into chunks of `pool`, and adds the results to the counts of
    /// the warps. If chunks or memory for merged runs are exhausted, [`Claims::waiting`] is not 0. To
    /// continue, collect the chunks, reset all counters but the first, and run the same job again.
    Logs {
        /// The codec of the first track. A second track is raw.
        codec: CodecSpec,
        /// Addresses of logs, counters and chunks.
        pool: &'a PoolDescriptor,
        /// The launches.
        launches: &'a [LoggedLaunch],
        /// Writable device memory, as large as the launches.
        table: Allocation,
    },
    /// Appends the used chunks to `to`, in any order and packed as module `packed` describes. Chunks of the data
    /// track become tiles. Examines at least the first of `count` chunks, and all of them unless they hold too
    /// much data. Copies little more than the used bytes, and never reads past a chunk, whatever its header
    /// says.
    Collect {
        /// Address of the first chunk, a multiple of 16. Chunks are `chunk_bytes` apart.
        first: u64,
        /// Size of a chunk in bytes, a multiple of 16.
        chunk_bytes: u32,
        /// Number of chunks, all inside one allocation.
        count: u32,
        /// The track of addresses and values, if there is one, and the number of streams of all launches.
        data: Option<(u32, u32)>,
        /// Writable device memory of at least a packed chunk (`packed::most_bytes`), 256 bytes, and with `data`
        /// 4 bytes for each stream.
        scratch: Allocation,
        /// The output.
        to: &'a mut HostMemory<u8>,
    },
    /// Packs accounts, and spans if they follow, into words at `scratch`, as `AccountsJob` of `warptrace_encode`
    /// describes. [`Encoded::collected`] is the number of words; 0 if the device does not pack, or `scratch` is
    /// too small.
    Accounts {
        /// The launches, after their logs were encoded.
        launches: &'a [LoggedLaunch],
        /// Writable device memory, as large as the launches.
        table: Allocation,
        /// Address of the classes of streams; 0 without classes.
        classes: u64,
        /// Whether spans follow the accounts of each launch.
        spans: bool,
        /// Writable device memory.
        scratch: Allocation,
    },
}

/// Results of an [`EncodeJob`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoded {
    /// After [`EncodeJob::Logs`], the reservation counters; `chunks` may exceed the chunks of the pool.
    pub claims: Claims,
    /// After [`EncodeJob::Collect`], the number of chunks examined.
    pub collected: u32,
    /// Time of the kernels of [`EncodeJob::Classes`] or [`EncodeJob::Logs`]; on the simulator, of the job.
    pub time: Duration,
}

/// Resolution of a device's clocks: all of their times are multiples of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSteps {
    /// The multiprocessor clock, in cycles.
    pub cycles: u64,
    /// The global timer, in nanoseconds.
    pub nanoseconds: u64,
}

/// Readings of a device's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceClocks {
    /// The resolution, if it was measured and found.
    pub steps: Option<ClockSteps>,
    /// The global timer in nanoseconds, never 0; `None` if it cannot be compared with the host clocks.
    pub timer: Option<u64>,
}

/// A device that runs kernels: a GPU through the CUDA driver, or the simulator. Every call fails if the
/// driver fails, and a call on memory fails if a range is not inside one allocation of the device.
pub trait Device {
    /// Returns properties and current state of the device.
    fn facts(&self) -> DeviceFacts;

    /// Returns the flag that ends waits: once it is set, waiting calls fail with [`DeviceError::GivenUp`].
    /// `None` if no other program can keep calls waiting.
    fn gives_up(&self) -> Option<Arc<AtomicBool>> {
        None
    }

    /// Makes launches without streamed logs fail with [`DeviceError::GivenUp`] once `asked` is set. Their
    /// kernels may continue to run. `None` removes the flag.
    fn give_up_by(&mut self, _asked: Option<&Arc<AtomicBool>>) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Makes later reads not wait for work submitted before, if [`give_up_by`](Self::give_up_by) set a flag.
    fn read_beside(&mut self) {}

    /// Waits for all submitted work, and undoes [`read_beside`](Self::read_beside). Fails if a kernel failed.
    fn wait(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Allocates memory and sets it to zero. Fails with [`DeviceError::OutOfMemory`], or with
    /// [`DeviceError::Unsupported`] if the device has no memory at this place.
    fn allocate(&mut self, bytes: u64, place: MemoryType) -> Result<Allocation, DeviceError>;

    /// Frees an allocation of this device.
    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError>;

    /// Copies to the device.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies from the device.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Appends `count` values at a device address to `to`, in page-locked memory if the device has it.
    fn read_to(&mut self, address: u64, count: usize, to: &mut HostMemory<u32>) -> Result<(), DeviceError> {
        self.read(address, bytemuck::cast_slice_mut(to.append_zeros(count)))
    }

    /// Sets `bytes` bytes to `value`.
    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError>;

    /// Sets ranges, each an address and a number of bytes, to zero.
    fn clear(&mut self, ranges: &[(u64, u64)]) -> Result<(), DeviceError> {
        ranges.iter().try_for_each(|&(address, bytes)| self.fill(address, bytes, 0))
    }

    /// Loads and compiles the code of launches and of the kernels that encode their logs, so that the first
    /// launch is not slower than later ones. Returns the maximum number of resident threads of a traced
    /// [launch](Prepare::launch), otherwise of the device; `u64::MAX` on the simulator. Fails if the device
    /// has no code for the kernels or does not support the recording.
    fn prepare(&mut self, prepare: &Prepare<'_>) -> Result<u64, DeviceError>;

    /// Runs a kernel, or its traced copy if `traced` is `Some`, and waits for it. Fails if the device has no
    /// code for the kernel, the shape is invalid, the kernel fails or is given up, or `serve` fails.
    ///
    /// # Safety
    /// The call's arguments refer to memory of this device that is valid for the kernel's accesses. The logs
    /// are of the recording's kind, and their addresses satisfy [`LaunchLogs`] or [`StreamLogs`].
    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        traced: Option<Traced<'_>>,
    ) -> Result<LaunchTime, DeviceError>;

    /// Runs a step from logs to chunks. Fails if the encoding is unsupported or fails.
    fn encode(&mut self, job: EncodeJob<'_>) -> Result<Encoded, DeviceError>;

    /// Reads the device's clocks. With `with_steps`, also measures their resolution, which takes longer.
    fn clocks(&mut self, _with_steps: bool) -> Result<DeviceClocks, DeviceError> {
        Ok(DeviceClocks::default())
    }

    /// Returns access to the device's memory while kernels run. Fails if the device cannot stream logs.
    fn live(&mut self) -> Result<&mut dyn LiveMemory, DeviceError> {
        Err(not_streamed())
    }

    /// Makes a second handle of this device for another thread. Its calls do not wait for kernels launched by
    /// this handle. It can use `memory`, and its kernels that encode with `codec` are loaded. Returns `None`
    /// if the device does not support this or does not benefit from it.
    ///
    /// # Safety
    /// `memory` belongs to this device and is not freed before the handle is dropped. Both handles access it
    /// concurrently only as a kernel and its host do.
    unsafe fn second_handle(
        &mut self,
        _memory: Allocation,
        _codec: CodecSpec,
    ) -> Result<Option<Box<dyn Device + Send>>, DeviceError> {
        Ok(None)
    }
}

pub(crate) fn not_streamed() -> DeviceError {
    DeviceError::Unsupported {
        problem: "this device does not let logs be emptied while a kernel runs: record without streamed logs"
            .to_owned(),
    }
}
