//! One trait for everything that can run a kernel.

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

use crate::{DeviceError, HostClock, LiveMemory, Recording, Serve};

/// Threads of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z; at most 1,024 in all.
    pub block: [u32; 3],
    /// The kernel's own dynamic shared memory, bytes a block.
    pub dynamic_shared: u32,
    /// Whether blocks communicate while the kernel runs.
    pub blocks: Blocks,
    /// What the simulator watches.
    pub simulated: Simulated,
}

/// What the simulator watches while a launch runs. A GPU does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Simulated {
    /// Steps after which the launch is an error; `None`: those of
    /// [`Watchdog::default`](warptrace_sim::Watchdog).
    pub steps: Option<u64>,
    /// Time after which it is one; `None`: never.
    pub time: Option<Duration>,
    /// Whether standard error tells how far the launch is, after 1, 2, 4 seconds and so on.
    pub progress: bool,
}

/// Whether the blocks of a launch communicate. On a GPU it makes no difference; the simulator runs
/// independent blocks in parallel and interleaves communicating ones, all resident, in an order that its seed
/// gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Blocks {
    /// No block reads what another writes in this launch (other than by atomics whose order does not matter
    /// to the control flow).
    #[default]
    Independent,
    /// Blocks communicate through global memory, or wait for each other.
    Communicating,
}

impl LaunchShape {
    /// A one-dimensional launch of at least `threads` threads in independent blocks of `block`.
    ///
    /// # Panics
    /// If `block` is 0 or more than 2^32 - 1 blocks would be needed.
    pub fn linear(threads: u64, block: u32) -> Self {
        let blocks = threads.div_ceil(u64::from(block)).max(1);
        let blocks = u32::try_from(blocks).expect("more than 2^32 - 1 blocks");
        Self::new([blocks, 1, 1], [block, 1, 1], Blocks::Independent)
    }

    /// A one-dimensional launch of exactly `blocks` blocks of `block` threads, which communicate.
    pub fn persistent(blocks: u32, block: u32) -> Self {
        Self::new([blocks, 1, 1], [block, 1, 1], Blocks::Communicating)
    }

    /// A launch of `grid` blocks of `block` threads, without dynamic shared memory.
    pub fn new(grid: [u32; 3], block: [u32; 3], blocks: Blocks) -> Self {
        Self { grid, block, dynamic_shared: 0, blocks, simulated: Simulated::default() }
    }

    /// Threads of a block.
    pub fn block_threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// Warps of a block, the last one possibly partial.
    pub fn warps_per_block(&self) -> u64 {
        self.block_threads().div_ceil(32)
    }

    /// Blocks of the grid.
    pub fn block_count(&self) -> u128 {
        self.grid.iter().map(|&n| u128::from(n)).product()
    }

    /// Warps of the launch.
    pub fn warps(&self) -> u128 {
        self.block_count() * u128::from(self.warps_per_block())
    }
}

/// Memory on a device. Given back by [`Device::free`], or all at once when the device is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Device address, at least 256-byte aligned.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryType {
    /// In the device's own memory.
    Device,
    /// In memory of the host that kernels can use. What a kernel has written there can still be read when it
    /// has failed and taken the device's own memory with it.
    Host,
}

/// What a device is, and has now.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    /// As a file's metadata records it.
    pub info: DeviceInfo,
    /// Its number within the process, from 0; `None` for a device that is none of the system's.
    pub ordinal: Option<u32>,
    /// Its own name, as `nvidia-smi -L` prints it: `GPU-…`, of a part of a GPU `MIG-…`; `None` if unknown.
    pub uuid: Option<String>,
    /// The clock of the host that times launches.
    pub clock: HostClock,
    /// Multiprocessors; of the simulator its number of worker threads.
    pub multiprocessors: u32,
    /// Threads that can be on the device at once; `u64::MAX` where it is not known.
    pub resident_threads: u64,
    /// Bytes of memory, used or not. For the simulator that is the host's, and 4 GiB where the system does
    /// not tell.
    pub memory_bytes: u64,
    /// Bytes of it that are free. The simulator offers the host's, but at most 8 GiB: others use that as
    /// well.
    pub free_bytes: u64,
}

/// What is prepared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prepare<'a> {
    /// Modules whose kernels the device may then run, if they have their PTX. Those that it has, and all of
    /// them on a device that needs no code, are ignored.
    pub code: &'a [&'a KernelModule],
    /// Kernels that will be launched, of whichever text has them.
    pub kernels: &'a [&'a str],
    /// A launch that will be made.
    pub launch: Option<(&'a KernelCall, &'a LaunchShape)>,
    /// What traced ones record, and how it is encoded; `None` if they are untraced.
    pub traced: Option<(Recording, CodecSpec)>,
}

/// What a traced launch records and where.
pub struct Traced<'a> {
    /// What is recorded.
    pub recording: Recording,
    /// The launch's logs, of the kind that [`recording`](Self::recording) asks for.
    pub logs: Logs<'a>,
    /// The launch appends sites, also if it fails: on a GPU of code that was loaded since the last traced
    /// launch; on the simulator of all sites that lanes came to. Without recorded accesses it appends none.
    pub sites: &'a mut Vec<SiteInfo>,
}

/// Logs of a launch.
pub enum Logs<'a> {
    /// They stay until it has ended.
    Kept(&'a LaunchLogs),
    /// The host empties them meanwhile.
    Streamed {
        /// Where they are.
        logs: &'a StreamLogs,
        /// Called again and again while the kernel runs.
        serve: &'a mut Serve<'a>,
    },
}

/// How long a launch took.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchTime {
    /// The kernel alone: device events on a GPU, wall clock on the simulator.
    pub kernel: Duration,
    /// What the pool's counters of claims said after the kernel; 0 if it did not trace into logs that are
    /// kept. Larger than the pool if that is exhausted.
    pub claims: Claims,
}

/// A step on the way from logs to chunks on the host.
#[derive(Debug)]
pub enum EncodeJob<'a> {
    /// Makes flat logs of streamed ones, of warps that have left their kernel, which may still run.
    Flatten(&'a FlattenJob),
    /// Finds the classes of the streams of launches that have left logs, before these are encoded; the table
    /// in which they are found is empty.
    Classes {
        /// Where logs and classes are.
        pool: &'a PoolDescriptor,
        /// The launches.
        launches: &'a [LoggedLaunch],
        /// Memory of this device that may be written, as large as these launches.
        table: Allocation,
    },
    /// Merges and encodes the logs that launches have left, into chunks of `pool`, and adds what they hold to
    /// the warps' counts.
    ///
    /// Where chunks or memory for merged runs are used up, [`Claims::waiting`] is not 0: when the chunks have
    /// been collected and all counters but the first are 0, the same job goes on.
    Logs {
        /// The codec of the first track; a second one is raw.
        codec: CodecSpec,
        /// Where logs, counters and chunks are.
        pool: &'a PoolDescriptor,
        /// The launches.
        launches: &'a [LoggedLaunch],
        /// Memory of this device that may be written, as large as these launches.
        table: Allocation,
    },
    /// Appends the used ones of `count` chunks to `to`, packed as `packed` (the module) says, in any order:
    /// at least of the first chunk, and of all unless they hold much.
    ///
    /// Copies little more than what is used, however empty the chunks are. A header's length is not trusted:
    /// no more than the chunk is read.
    Collect {
        /// Address of the first chunk, a multiple of 16; the others follow `chunk_bytes` apart.
        first: u64,
        /// Bytes of a chunk, a multiple of 16.
        chunk_bytes: u32,
        /// Chunks, all inside one allocation.
        count: u32,
        /// Memory of this device that may be written, of at least a chunk and 256 bytes.
        scratch: Allocation,
        /// Where the chunks go.
        to: &'a mut Vec<u8>,
    },
}

/// What an [`EncodeJob`] took and made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoded {
    /// After [`EncodeJob::Logs`] the counters of claims; `chunks` may be more than the pool has.
    pub claims: Claims,
    /// After [`EncodeJob::Collect`] how many chunks it has gone through.
    pub collected: u32,
    /// How long it took.
    pub time: Duration,
}

/// In what steps a device's clocks go: what all of their times are multiples of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSteps {
    /// The clock of a multiprocessor, in cycles.
    pub cycles: u64,
    /// The global timer, in nanoseconds.
    pub nanoseconds: u64,
}

/// A device's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceClocks {
    /// The steps, if they were measured; `None` if they are unknown.
    pub steps: Option<ClockSteps>,
    /// The global timer, in nanoseconds, never 0; `None` if the device has none that goes on with the host's
    /// clocks.
    pub timer: Option<u64>,
}

/// A device that runs kernels: a GPU through the CUDA driver, or the simulator.
pub trait Device {
    /// Returns what the device is, and has now.
    fn facts(&self) -> DeviceFacts;

    /// Returns what calls look at while they wait: once it is set, they fail with [`DeviceError::GivenUp`]
    /// instead. `None` if nothing of other programs can keep them waiting.
    fn gives_up(&self) -> Option<Arc<AtomicBool>> {
        None
    }

    /// Gives launches up from now on once `asked` is set: they fail with [`DeviceError::GivenUp`], and their
    /// kernels may go on. `None`: no longer.
    ///
    /// # Errors
    /// If the driver fails.
    fn give_up_by(&mut self, _asked: Option<&Arc<AtomicBool>>) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Reads from now on beside all that the device was given before.
    fn read_beside(&mut self) {}

    /// Waits for all that the device was given; reads no longer beside it.
    ///
    /// # Errors
    /// If a kernel or the driver fails.
    fn wait(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Allocates memory, all zeros.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when there is not enough; [`DeviceError::Unsupported`] if the device has
    /// no memory at this place.
    fn allocate(&mut self, bytes: u64, place: MemoryType) -> Result<Allocation, DeviceError>;

    /// Gives memory back.
    ///
    /// # Errors
    /// If it is not an allocation of this device.
    fn free(&mut self, allocation: Allocation) -> Result<(), DeviceError>;

    /// Copies to the device.
    ///
    /// # Errors
    /// If the target is not inside one allocation, or the driver fails.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies from the device.
    ///
    /// # Errors
    /// If the source is not inside one allocation, or the driver fails.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Sets `bytes` bytes to `value`.
    ///
    /// # Errors
    /// If the target is not inside one allocation, or the driver fails.
    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError>;

    /// Sets ranges, each by its address and bytes, to zeros.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    fn clear(&mut self, ranges: &[(u64, u64)]) -> Result<(), DeviceError> {
        ranges.iter().try_for_each(|&(address, bytes)| self.fill(address, bytes, 0))
    }

    /// Prepares launches: loads and compiles their code, and what encodes their logs, so that the first
    /// launch is not slower than the next. Returns how many threads of the [launch](Prepare::launch), or else
    /// of any, can be on the device at once.
    ///
    /// # Errors
    /// If the device has no code for them, or cannot record so.
    fn prepare(&mut self, prepare: &Prepare<'_>) -> Result<u64, DeviceError>;

    /// Runs a kernel and waits for it; with `traced` the variant that records.
    ///
    /// # Safety
    /// The call's arguments name memory of this device that is valid for what the kernel does with it. The
    /// logs are of the kind that the recording asks for, and the addresses in them are as [`LaunchLogs`] or
    /// [`StreamLogs`] says.
    ///
    /// # Errors
    /// If the device has no code for it, the kernel fails, or the function that serves its logs does.
    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        traced: Option<Traced<'_>>,
    ) -> Result<LaunchTime, DeviceError>;

    /// Does a step on the way from logs to chunks on the host.
    ///
    /// # Errors
    /// If what the job names is not inside of this device's memory, the device cannot encode so, or fails.
    fn encode(&mut self, job: EncodeJob<'_>) -> Result<Encoded, DeviceError>;

    /// Reads the device's clocks. Their steps are measured, which takes longer, if `with_steps`.
    ///
    /// # Errors
    /// If the device fails.
    fn clocks(&mut self, _with_steps: bool) -> Result<DeviceClocks, DeviceError> {
        Ok(DeviceClocks::default())
    }

    /// Returns the device's memory, as it is seen while kernels run. No kernel needs to run.
    ///
    /// # Errors
    /// If the device cannot stream logs.
    fn live(&mut self) -> Result<&mut dyn LiveMemory, DeviceError> {
        Err(not_streamed())
    }

    /// Makes a second handle of this device for another thread, whose calls do not wait for kernels that this
    /// one has launched; `None` if there is no such thing. It can use `memory`, and what encodes logs with
    /// `codec` is ready.
    ///
    /// # Safety
    /// `memory` stays this device's, and is not freed before the handle is dropped. What both use of it at
    /// once they use as a kernel and its host do.
    ///
    /// # Errors
    /// If `memory` is not inside of this device's, or the driver fails.
    unsafe fn second_handle(
        &mut self,
        _memory: Allocation,
        _codec: CodecSpec,
    ) -> Result<Option<Box<dyn Device + Send>>, DeviceError> {
        Ok(None)
    }
}

/// The error of devices that do not stream.
pub(crate) fn not_streamed() -> DeviceError {
    DeviceError::Unsupported {
        problem: "this device does not let logs be emptied while a kernel runs: record without streamed logs"
            .to_owned(),
    }
}
