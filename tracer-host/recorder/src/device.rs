//! One trait for everything that can run a kernel.

use std::time::Duration;

use warptrace_abi::log::{LaunchLogs, LoggedLaunch};
use warptrace_abi::pool::{Claims, PoolDescriptor};
use warptrace_device::simt::host::Recording;
use warptrace_device::{KernelCall, KernelModule};
use warptrace_encode::FlattenJob;
use warptrace_format::chosen::After;
use warptrace_format::file::DeviceInfo;
pub use warptrace_ptx::splice::Placement;

use crate::{DeviceError, LiveMemory, Serve, Streaming};

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
    /// Steps after which the launch is an error; `None`: those of [`Watchdog::default`](warptrace_sim::Watchdog).
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
        Self::of([blocks, 1, 1], [block, 1, 1], Blocks::Independent)
    }

    /// A one-dimensional launch of exactly `blocks` blocks of `block` threads, which communicate.
    pub fn persistent(blocks: u32, block: u32) -> Self {
        Self::of([blocks, 1, 1], [block, 1, 1], Blocks::Communicating)
    }

    /// A launch of `grid` blocks of `block` threads, without dynamic shared memory.
    pub fn of(grid: [u32; 3], block: [u32; 3], blocks: Blocks) -> Self {
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

/// Memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// What it has, whoever uses it. For the simulator that is the host's, and 4 GiB where the system does
    /// not tell.
    pub total: u64,
    /// What of it is free. The simulator offers the host's, but at most 8 GiB: others use that as well.
    pub free: u64,
}

/// What a traced kernel asks, to record only what is chosen. Nothing, by default: then all of it is recorded.
/// The code of a kernel depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Choosing {
    /// Whether the kernel looks which of its warps were chosen; else all of them are. The simulator always
    /// looks.
    pub warps: bool,
    /// From where on lanes are recorded; `None`: from their start on.
    pub after: Option<After>,
}

/// What a launch records and where.
#[derive(Clone, Copy, Debug)]
pub struct Tracing {
    /// What is recorded.
    pub recording: Recording,
    /// Where lanes keep their records on a GPU; `None`: what suits the kernel. The simulator ignores it.
    pub placement: Option<Placement>,
    /// What the kernel asks.
    pub chooses: Choosing,
    /// The launch's logs.
    pub logs: LaunchLogs,
}

/// How long a launch took.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchTime {
    /// The kernel alone: device events on a GPU, wall clock on the simulator.
    pub kernel: Duration,
    /// What the pool's counters of claims said after the kernel; 0 if it did not trace. Larger than the pool
    /// if that is exhausted.
    pub claims: Claims,
}

/// What merging and encoding took and made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoded {
    /// The counters of claims afterwards; `chunks` may be more than the pool has.
    pub claims: Claims,
    /// How long it took.
    pub time: Duration,
}

/// A device that runs kernels: a GPU through the CUDA driver, or the simulator.
pub trait Device {
    /// What the device is, as a file's metadata records it.
    fn info(&self) -> DeviceInfo;

    /// Multiprocessors (the simulator answers its number of worker threads).
    fn multiprocessors(&self) -> u32;

    /// Threads that can be on the device at once; those of a launch may all be, where it is not known.
    fn resident_threads(&self) -> u64 {
        u64::MAX
    }

    /// Threads of a launch whose logs are streamed that can be on the device at once, as
    /// [`launch_streamed`](Self::launch_streamed) runs it: at most
    /// [`resident_threads`](Self::resident_threads). Of the fields of `streaming` the logs mean nothing.
    ///
    /// # Errors
    /// If the device has no code for it.
    fn resident_of(
        &mut self,
        _call: &KernelCall,
        _shape: &LaunchShape,
        _streaming: &Streaming,
    ) -> Result<u64, DeviceError> {
        Ok(self.resident_threads())
    }

    /// Returns how much memory the device has, and how much of it is free.
    fn memory(&self) -> DeviceMemory;

    /// Allocates memory. Its contents are undefined on a GPU.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when there is not enough.
    fn allocate(&mut self, bytes: u64) -> Result<Allocation, DeviceError>;

    /// Allocates memory of the host that kernels can use, for what [`live`](Self::live) reads and writes.
    /// What a kernel has written there can still be read by way of that when the kernel has failed and taken
    /// the device's own memory with it.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] when there is not enough, or if the device has none.
    fn allocate_on_host(&mut self, _bytes: u64) -> Result<Allocation, DeviceError> {
        let problem = "this device cannot keep logs in the host's memory".to_owned();
        Err(DeviceError::Unsupported { problem })
    }

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

    /// Appends the used ones of the first of `count` chunks to `to`, packed as `packed` (the module) says, in
    /// any order, and answers how many it has gone through: at least one, and all unless they hold much. The
    /// chunks lie `chunk_bytes` apart from address `first` on, which is a multiple of 16, as is
    /// `chunk_bytes`.
    ///
    /// Copies little more than what is used, however empty the chunks are. A header's length is not trusted:
    /// no more than the chunk is read. `scratch` is memory of this device that may be written, of at least a
    /// chunk and 256 bytes.
    ///
    /// # Errors
    /// If the chunks are not inside one allocation, or the driver fails.
    fn collect(
        &mut self,
        first: u64,
        chunk_bytes: u32,
        count: u32,
        scratch: Allocation,
        to: &mut Vec<u8>,
    ) -> Result<u32, DeviceError>;

    /// Sets `bytes` bytes to `value`.
    ///
    /// # Errors
    /// If the target is not inside one allocation, or the driver fails.
    fn fill(&mut self, address: u64, bytes: u64, value: u8) -> Result<(), DeviceError>;

    /// Adds the kernels of a module, which this device may then run, if the module has their PTX. Devices that need
    /// no code ignore it, and code that is there already.
    ///
    /// # Errors
    /// If the device cannot take it.
    fn add_code(&mut self, _module: &KernelModule) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Prepares what launches of these kernels will need (loads and compiles their code), so that the first
    /// launch is not slower than the next; with `tracing` traced ones, and what merges and encodes their
    /// logs. `tracing` is the first three fields of [`Tracing`].
    ///
    /// # Errors
    /// If the device has no code for them, or cannot record so.
    fn prepare(
        &mut self,
        kernels: &[&str],
        tracing: Option<(Recording, Option<Placement>, Choosing)>,
    ) -> Result<(), DeviceError>;

    /// As [`prepare`](Self::prepare), for launches whose logs are rings
    /// ([`LaunchLogs::ring`](warptrace_abi::log::LaunchLogs::ring)): each lane keeps its latest runs.
    ///
    /// # Errors
    /// If the device has no code for them, or cannot record so.
    fn prepare_ring(
        &mut self,
        _kernels: &[&str],
        _recording: Recording,
        _placement: Option<Placement>,
        _chooses: Choosing,
    ) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported {
            problem: "this device does not keep the latest events: record with another policy".to_owned(),
        })
    }

    /// As [`prepare`](Self::prepare), for launches whose logs are streamed; with `open_runs` those that write
    /// runs when they begin, too.
    ///
    /// # Errors
    /// If the device has no code for them, or cannot record so.
    fn prepare_streamed(
        &mut self,
        _kernels: &[&str],
        _recording: Recording,
        _placement: Option<Placement>,
        _chooses: Choosing,
        _open_runs: bool,
    ) -> Result<(), DeviceError> {
        Err(not_streamed())
    }

    /// Merges and encodes the logs that `launches` have left, into chunks of `pool`, and adds what they hold
    /// to the warps' accounts. `table` is memory of this device that may be written, as large as these
    /// launches.
    ///
    /// Where chunks or memory for merged runs are used up, [`Claims::waiting`] is not 0: when the chunks have
    /// been collected and all counters but the first are 0, another call goes on.
    ///
    /// # Errors
    /// If the device cannot encode so, or fails.
    fn encode(
        &mut self,
        recording: Recording,
        pool: &PoolDescriptor,
        launches: &[LoggedLaunch],
        table: Allocation,
    ) -> Result<Encoded, DeviceError>;

    /// Runs a kernel and waits for it; with `tracing` the variant that records.
    ///
    /// # Safety
    /// The call's arguments name memory of this device that is valid for what the kernel does with it, and
    /// the addresses of the launch's logs are as [`LaunchLogs`] says.
    ///
    /// # Errors
    /// If the device has no code for it, or the kernel fails.
    unsafe fn launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        tracing: Option<&Tracing>,
    ) -> Result<LaunchTime, DeviceError>;

    /// The device's memory, as it is seen while kernels run. No kernel needs to run.
    ///
    /// # Errors
    /// If the device cannot stream logs.
    fn live(&mut self) -> Result<&mut dyn LiveMemory, DeviceError> {
        Err(not_streamed())
    }

    /// The same device for another thread, whose calls do not wait for kernels that this one has launched:
    /// `None` if there is no such thing. It can use `memory`, which stays this device's and outlives it, and
    /// what merges and encodes logs that are recorded so is ready.
    ///
    /// # Errors
    /// If the driver fails.
    fn beside(
        &mut self,
        _memory: Allocation,
        _recording: Recording,
    ) -> Result<Option<Box<dyn Device + Send>>, DeviceError> {
        Ok(None)
    }

    /// Makes flat logs of streamed ones, of warps that have left their kernel, which may still run.
    ///
    /// # Errors
    /// If what the job names is not inside of this device's memory, or the device fails.
    fn flatten(&mut self, _job: &FlattenJob) -> Result<(), DeviceError> {
        Err(not_streamed())
    }

    /// Runs a kernel whose logs are streamed, and waits for it. Calls `serve` again and again while it runs.
    ///
    /// # Safety
    /// The call's arguments name memory of this device that is valid for what the kernel does with it, and
    /// the addresses of the launch's logs are as [`StreamLogs`](warptrace_abi::stream::StreamLogs) says.
    ///
    /// # Errors
    /// If the device has no code for it, the kernel fails, or `serve` does.
    unsafe fn launch_streamed(
        &mut self,
        _call: &KernelCall,
        _shape: &LaunchShape,
        _streaming: &Streaming,
        _serve: &mut Serve<'_>,
    ) -> Result<LaunchTime, DeviceError> {
        Err(not_streamed())
    }
}

/// The answer of devices that do not stream.
fn not_streamed() -> DeviceError {
    DeviceError::Unsupported {
        problem: "this device does not let logs be emptied while a kernel runs: record without streamed logs"
            .to_owned(),
    }
}
