//! A recording from its first launch to its last byte.

mod drain;
mod error;
mod interrupt;
mod memory;
mod pool;
mod stream;
mod streamed;
mod worker;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use warptrace_device::{KernelCall, KernelModule, TracePoint, TracePoints};
use warptrace_format::chunk::DEFAULT_CHUNK_BYTES;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{
    EarlyEnd, LaunchInfo, LocationInfo, Metadata, POLICY_RING, POLICY_STOP, POLICY_STREAM,
};
use warptrace_format::log::{MIN_RING_ENTRIES, SEGMENT_MULTIPLE};

pub use self::error::SessionError;
use self::interrupt::Interrupt;
pub use self::interrupt::{Interrupted, OpenRun, Standing};
use self::memory::Division;
use self::pool::Pool;
use self::stream::Streams;
use self::worker::{Drained, Worker};
use crate::writer::{self, Compression, Summary, TraceWriter, WriterOptions};
use crate::{Device, DeviceError, LaunchShape, LaunchTime, Launcher, Placement, Recording, Tracing, Window};

/// Launches that the file is told of at once, if they leave nothing that asks for a drain.
const MAX_PENDING: usize = 1 << 12;

/// Names the property of a file that tells how much device memory the session might take, in bytes.
pub const MEMORY_LIMIT: &str = "memory_limit";
/// Names the property of a file that tells how much of it the session took at most, in bytes.
pub const MEMORY_PEAK: &str = "memory_peak";
/// Names the property of a file that tells which source a module of kernels had
/// ([`KernelModule::source_hash`]), 16 hexadecimal digits.
pub const SOURCE_HASH: &str = "source_hash";

/// The program that a session traces, for the file's metadata.
#[derive(Clone, Copy, Debug)]
pub struct TracedProgram<'a> {
    /// Each kernel's name and source file.
    pub kernels: &'a [(&'a str, &'a str)],
    /// The trace points of all kernels; ids are unique in the program.
    pub points: &'a [TracePoints],
}

/// What happens where events do not fit into device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// They are lost, and counted: of each warp a beginning is kept. Nobody waits.
    Stop,
    /// Each lane writes over its oldest ones, which are lost, and counted: of each warp an end is kept.
    /// Nobody waits.
    Ring,
    /// The host empties logs while kernels run, and warps wait for it: nothing is lost, however long the
    /// trace is. A warp that has waited for `stall` in vain counts what it would have recorded as lost, and
    /// goes on.
    Stream {
        /// How long a warp waits for memory.
        stall: Duration,
        /// Write runs into the logs when they begin, not only when they end: where a kernel hangs or fails,
        /// what its lanes are in is known then, and in the trace. Each run costs a store more, and a
        /// repetition some instructions.
        open_runs: bool,
    },
}

impl Policy {
    /// How long a warp waits for memory if nothing else is asked for.
    pub const STALL: Duration = Duration::from_secs(10);
}

/// In whose memory the logs of kernels are that [the host empties](Policy::Stream).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolMemory {
    /// The device's own.
    #[default]
    Device,
    /// The host's, which kernels write by way of the link between them. It stays when a kernel fails: all that
    /// was recorded up to then is in the trace. It is slower by far.
    Host,
}

/// What to record and how.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Codec of the trace.
    pub codec: CodecSpec,
    /// Record every event raw as well, on track 1.
    pub dual: bool,
    /// Count the iterations of loops, and record them where the loop ends.
    pub counted: bool,
    /// Where traced kernels keep each lane's record on a GPU; `None`: what suits each kernel.
    pub placement: Option<Placement>,
    /// Which part of the program is recorded.
    pub window: Window,
    /// Bytes of a chunk, header included: a power of two from 512 bytes to 1 MiB.
    pub chunk_bytes: u32,
    /// Bytes of device memory that the tracer takes at most, all together: for logs, chunks, accounts, tables
    /// and scratch. `None`: 1 GiB, or a quarter of the device's memory if that is less. (Not counted is what
    /// the driver takes: for code, and for records in local memory.)
    pub memory_bytes: Option<u64>,
    /// What happens where events do not fit into device memory.
    pub policy: Policy,
    /// Where logs that the host empties are; of [`memory_bytes`](Self::memory_bytes), too.
    pub pool: PoolMemory,
    /// Compression of the file's frames.
    pub compression: Compression,
    /// Name and version of the tool, for the file.
    pub tool: String,
    /// Free-form pairs for the file, such as the program's arguments.
    pub properties: Vec<(String, String)>,
}

impl SessionOptions {
    /// The defaults: everything, no raw twin, 4 KiB chunks, the usual memory, zstd.
    pub fn new(codec: CodecSpec) -> Self {
        Self {
            codec,
            dual: false,
            counted: false,
            placement: None,
            window: Window::default(),
            chunk_bytes: DEFAULT_CHUNK_BYTES,
            memory_bytes: None,
            policy: Policy::Stop,
            pool: PoolMemory::Device,
            compression: Compression::default(),
            tool: concat!("warptrace ", env!("CARGO_PKG_VERSION")).to_owned(),
            properties: Vec::new(),
        }
    }
}

/// What traced launches cost and yielded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchReport {
    /// Launches of the program.
    pub launches: u64,
    /// Of these, with warps that were chosen to be recorded.
    pub recorded_launches: u64,
    /// Events that reached a trace point.
    pub attempted: u64,
    /// Of these, in the trace.
    pub recorded: u64,
    /// Of these, without room in device memory.
    pub lost: u64,
    /// In a dual recording: events without room in device memory on the raw twin's track.
    pub twin_lost: u64,
    /// Chunks written, all tracks together.
    pub chunks: u64,
    /// Payload bytes of track 0: what the codec made of the events.
    pub payload_bytes: u64,
    /// The program's kernels alone.
    pub kernel: Duration,
    /// The kernels that bring what they have left into chunks, between them (see `warptrace_device`).
    pub encoding: Duration,
    /// Copying from the device, while the program waits.
    pub copy: Duration,
    /// Sorting, compressing and writing, on a thread of its own while the program goes on.
    pub write: Duration,
    /// Device memory of the session.
    pub memory: MemoryUse,
}

/// Device memory that a session may take, has taken, and has filled, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// What it may take: [`SessionOptions::memory_bytes`], or the default.
    pub limit: u64,
    /// The most that was allocated at once. A session allocates all that it will have when it starts.
    pub peak: u64,
    /// Of that, the most that held accounts, logs, merged runs and chunks at once. A first segment counts as
    /// filled.
    pub filled: u64,
}

impl LaunchReport {
    /// Takes over what the writer counts; launches, kernel, copy and memory are counted by the session.
    fn written(&mut self, writer: &Self) {
        let Self { launches, recorded_launches, kernel, encoding, copy, memory, .. } = *self;
        *self = Self { launches, recorded_launches, kernel, encoding, copy, memory, ..*writer };
    }
}

/// Device memory of a session.
enum Logs {
    /// Logs that are encoded on the device, between kernels.
    Kept(Box<Pool>),
    /// Logs that the host empties.
    Streamed(Box<Streams>),
}

impl Logs {
    fn memory_use(&self) -> MemoryUse {
        match self {
            Self::Kept(pool) => pool.memory_use(),
            Self::Streamed(streams) => streams.memory_use(),
        }
    }

    fn free(&mut self, device: &mut dyn Device) -> Result<(), SessionError> {
        match self {
            Self::Kept(pool) => pool.free(device),
            Self::Streamed(streams) => streams.free(device),
        }
    }
}

/// Records launches of one program on one device into one file.
///
/// All device memory that it uses is allocated when it starts, within [one
/// limit](SessionOptions::memory_bytes). What launches leave there is drained when it is worth it, or when
/// room is short, and written by a thread while the program goes on: a short launch costs no more than
/// itself. A launch that fails leaves the session unusable: what was recorded until then and the error are
/// written, and end the file. When a session is dropped, what was recorded is written, too, and can be read,
/// but the file has no index.
pub struct Session<'d, W: Write + Send + 'static> {
    device: &'d mut dyn Device,
    /// `None` after the end.
    worker: Option<Worker<W>>,
    logs: Logs,
    recording: Recording,
    placement: Option<Placement>,
    window: Window,
    kernels: Vec<String>,
    launches: u32,
    /// Launches since the last drain.
    pending: Vec<LaunchInfo>,
    failed: bool,
    interrupt: Option<Interrupt<'d>>,
    total: LaunchReport,
}

impl<W: Write + Send + 'static> std::fmt::Debug for Session<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("recording", &self.recording)
            .field("launches", &self.launches)
            .finish_non_exhaustive()
    }
}

impl<'d, W: Write + Send + 'static> Session<'d, W> {
    /// Allocates device memory and starts the file.
    ///
    /// # Errors
    /// If the options contradict the codec or the format, the window names a kernel that the program does not
    /// have, memory is short, or the file cannot be written.
    pub fn start(
        device: &'d mut dyn Device,
        program: &TracedProgram<'_>,
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        Self::start_with(device, program.kernels, locations(program.points), options, output)
    }

    /// Like [`start`](Self::start), for the kernels of a module that `#[warptrace::kernels]` made. The device
    /// takes the module's code.
    ///
    /// # Errors
    /// As `start`; also if the device cannot take the code.
    pub fn start_module(
        device: &'d mut dyn Device,
        module: &KernelModule,
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        device.add_code(module.ptx)?;
        let kernels: Vec<(&str, &str)> = module.kernels.iter().map(|name| (*name, module.file)).collect();
        let locations = module.locations.iter();
        let locations = locations.map(|location| LocationInfo::from_source(location, module.file)).collect();
        let mut options = options.clone();
        options.properties.push((SOURCE_HASH.to_owned(), format!("{:016x}", module.source_hash)));
        Self::start_with(device, &kernels, locations, &options, output)
    }

    fn start_with(
        device: &'d mut dyn Device,
        sources: &[(&str, &str)],
        locations: Vec<LocationInfo>,
        options: &SessionOptions,
        output: W,
    ) -> Result<Self, SessionError> {
        let recording = Recording { codec: options.codec, dual: options.dual, counted: options.counted };
        let kernels: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
        if let Some(name) = options.window.unknown_kernel(&kernels) {
            return Err(SessionError::NoSuchKernel { name: name.to_owned(), known: kernels.join(", ") });
        }
        let shortest = match options.policy {
            Policy::Ring => MIN_RING_ENTRIES,
            Policy::Stop | Policy::Stream { .. } => SEGMENT_MULTIPLE,
        };
        let division = Division::of(options.memory_bytes, options.chunk_bytes, shortest, &*device)?;
        let metadata = metadata(&*device, sources, locations, options, &division);
        metadata.check()?;
        let writer_options = WriterOptions::default().with_compression(options.compression);
        // While the device does its part.
        writer::get_ready(&metadata.tracks, &writer_options);
        let tracks = if options.dual { 2 } else { 1 };
        let chooses = options.window.looks_inside();
        let logs = match options.policy {
            Policy::Stop | Policy::Ring if options.pool == PoolMemory::Host => {
                return Err(SessionError::HostPool);
            }
            Policy::Stop => {
                device.prepare(&kernels, Some((recording, options.placement, chooses)))?;
                Logs::Kept(Box::new(Pool::new(device, division, tracks, false, kernels.len())?))
            }
            Policy::Ring => {
                device.prepare_ring(&kernels, recording, options.placement, chooses)?;
                Logs::Kept(Box::new(Pool::new(device, division, tracks, true, kernels.len())?))
            }
            Policy::Stream { stall, open_runs } => {
                device.prepare_streamed(&kernels, recording, options.placement, chooses, open_runs)?;
                Logs::Streamed(Box::new(Streams::new(
                    device,
                    recording,
                    division,
                    stall,
                    open_runs,
                    options.pool,
                )?))
            }
        };
        let writer = TraceWriter::create(output, &metadata, writer_options)?;
        Ok(Self {
            worker: Some(Worker::start(writer, options.chunk_bytes, tracks)?),
            device,
            total: LaunchReport { memory: logs.memory_use(), ..LaunchReport::default() },
            logs,
            recording,
            placement: options.placement,
            window: options.window.clone(),
            kernels: kernels.into_iter().map(str::to_owned).collect(),
            launches: 0,
            pending: Vec::new(),
            failed: false,
            interrupt: None,
        })
    }

    /// Lets the session end in the middle of a kernel whose logs are [streamed](Policy::Stream): when `asked`
    /// is set, what has come of the kernel is written, the file is ended, and `tell` is called.
    ///
    /// Nothing can end the kernel itself. So `tell` best ends the process; if it returns, the session waits
    /// for the kernel, and the launch fails with [`SessionError::Interrupted`].
    pub fn interrupt_by(&mut self, asked: Arc<AtomicBool>, tell: impl FnMut(&Interrupted) + 'd) {
        self.interrupt = Some(Interrupt { asked, tell: Box::new(tell) });
    }

    /// Runs a kernel and waits for it. What it recorded stays on the device, or is on its way to the file.
    ///
    /// # Safety
    /// The arguments name memory of the session's device that is valid for what the kernel does with it.
    ///
    /// # Errors
    /// If the kernel was not named in the program, the launch has a shape that cannot be traced, the kernel
    /// fails, or the file cannot be written (which may have been found out about an earlier launch).
    pub unsafe fn record(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchTime, SessionError> {
        self.guarded(|session| {
            // SAFETY: the caller's promise.
            unsafe { session.record_launch(call, shape) }
        })
    }

    /// Runs `run`; an error makes the session unusable.
    fn guarded<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        if self.failed {
            return Err(SessionError::Unusable);
        }
        self.failed = true;
        let value = run(self)?;
        self.failed = false;
        Ok(value)
    }

    unsafe fn record_launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
    ) -> Result<LaunchTime, SessionError> {
        let kernel = self.kernels.iter().position(|name| name == call.name()).ok_or_else(|| {
            SessionError::UnknownKernel { kernel: call.name().to_owned(), known: self.kernels.join(", ") }
        })?;
        let info =
            LaunchInfo::new(self.launches, kernel as u32, shape.grid, shape.block, shape.dynamic_shared)?;
        let info = info.with_chosen(self.window.choose(call.name(), &info, self.total.recorded))?;
        // SAFETY: the caller's promise.
        let time = unsafe {
            match self.logs {
                _ if !info.is_recorded() => self.plain_launch(call, shape, info),
                Logs::Kept(_) => self.log_launch(call, shape, info),
                Logs::Streamed(_) => self.stream_launch(call, shape, info),
            }
        };
        if let Err(error) = &time {
            self.end_failed(info, error);
        }
        let time = time?;
        self.launches += 1;
        self.total.launches += 1;
        self.total.kernel += time.kernel;
        let drains = if info.is_recorded() {
            self.total.recorded_launches += 1;
            self.window.max_events.is_some() || self.should_drain()?
        } else {
            // The file's part of a launch that leaves nothing behind.
            self.pending.len() >= MAX_PENDING
        };
        match drains {
            // The next launch asks how many events there are.
            true if self.window.max_events.is_some() => self.drain_and_count()?,
            true => self.drain()?,
            false => {}
        }
        Ok(time)
    }

    /// Writes why a launch failed, ends the file, and gives the memory back: nothing more can be recorded.
    ///
    /// Errors on the way have nowhere to go: the launch's error counts. After an interruption the file has
    /// ended already.
    fn end_failed(&mut self, info: LaunchInfo, error: &SessionError) {
        if let Some(mut worker) = self.worker.take() {
            let begin = std::mem::take(&mut self.pending);
            let early_end = Some(Box::new((info, EarlyEnd::failed(error.to_string()))));
            let written = worker.write(Drained { begin, early_end, ..Drained::default() });
            // Dropped, the output is written as far as the system is concerned.
            let _ = written.and_then(|()| worker.finish()).map(|(writer, _)| drop(writer.finish()));
        }
        let _ = self.logs.free(self.device);
    }

    /// Launches a kernel that is not recorded.
    unsafe fn plain_launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        info: LaunchInfo,
    ) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller's promise.
        let time = unsafe { self.device.launch(call, shape, None) };
        self.launched(time, info)
    }

    /// Launches a kernel whose logs stay until it has ended.
    unsafe fn log_launch(
        &mut self,
        call: &KernelCall,
        shape: &LaunchShape,
        info: LaunchInfo,
    ) -> Result<LaunchTime, SessionError> {
        let Logs::Kept(pool) = &self.logs else { return Err(SessionError::Unusable) };
        if !self.pending.is_empty() && !pool.has_room(&info) {
            self.drain()?;
        }
        let Logs::Kept(pool) = &mut self.logs else { return Err(SessionError::Unusable) };
        let logs = pool.prepare(&info)?;
        let Self { recording, placement, .. } = *self;
        let chooses = self.window.looks_inside();
        let tracing = Tracing { recording, placement, chooses, logs };
        // SAFETY: the caller's promise for the arguments; the pool is prepared for this launch.
        let time = unsafe { self.device.launch(call, shape, Some(&tracing)) };
        match &time {
            Ok(time) => pool.launched(&info, time.claims),
            Err(_) => pool.failed(),
        }
        self.launched(time, info)
    }

    /// Takes note of a launch that is over. If it has failed, drains what came before it.
    fn launched(
        &mut self,
        time: Result<LaunchTime, DeviceError>,
        info: LaunchInfo,
    ) -> Result<LaunchTime, SessionError> {
        if time.is_ok() {
            self.pending.push(info);
        } else {
            // It may still be there: on the simulator it is, on a GPU mostly not.
            let _ = self.drain();
        }
        Ok(time?)
    }

    /// Whether so much is on the device that it is worth a drain.
    fn should_drain(&mut self) -> Result<bool, SessionError> {
        Ok(match &mut self.logs {
            Logs::Kept(pool) => pool.should_drain(),
            Logs::Streamed(streams) => streams.should_look(self.device.live()?)?,
        })
    }

    /// Brings what is on the device to the writer.
    fn drain(&mut self) -> Result<(), SessionError> {
        if let Logs::Streamed(_) = self.logs {
            return self.drain_streams();
        }
        let pending = std::mem::take(&mut self.pending);
        if self.worker.is_none() || pending.is_empty() {
            return Ok(());
        }
        let (Logs::Kept(pool), Some(worker)) = (&mut self.logs, &mut self.worker) else { return Ok(()) };
        if pool.is_empty() {
            // None of them was recorded.
            return worker.write(Drained { begin: pending, ..worker.empty() });
        }
        let cost = drain::drain(self.device, pool, self.recording, pending, worker)?;
        self.total.encoding += cost.encoding;
        self.total.copy += cost.copy;
        self.total.memory = pool.memory_use();
        Ok(())
    }

    /// Waits until everything that was recorded so far is written: [`total`](Self::total) then counts all of
    /// it.
    ///
    /// # Errors
    /// If the device or the file fails.
    pub fn flush(&mut self) -> Result<(), SessionError> {
        self.guarded(Self::drain_and_count)
    }

    fn drain_and_count(&mut self) -> Result<(), SessionError> {
        self.drain()?;
        if let Some(worker) = &mut self.worker {
            let written = worker.flush()?;
            self.total.written(&written);
        }
        Ok(())
    }

    /// Sums over all launches: the times of kernels and copies up to now, the rest up to the last
    /// [`flush`](Self::flush).
    pub fn total(&self) -> &LaunchReport {
        &self.total
    }

    /// Writes what is left and the index, and ends the file.
    ///
    /// # Errors
    /// If the device fails, the file cannot be written, or an earlier call failed.
    pub fn finish(mut self) -> Result<(W, Summary, LaunchReport), SessionError> {
        self.guarded(|session| session.drain())?;
        let worker = self.worker.take().ok_or(SessionError::Unusable)?;
        // Before the thread's answer, so that no error of the file leaves memory behind.
        self.logs.free(self.device)?;
        let (writer, written) = worker.finish()?;
        self.total.written(&written);
        let started = Instant::now();
        let (output, summary) = writer.finish()?;
        self.total.write += started.elapsed();
        Ok((output, summary, self.total))
    }
}

impl<W: Write + Send + 'static> Drop for Session<'_, W> {
    fn drop(&mut self) {
        // Errors have nowhere to go here. After `finish` there is no worker, and the pool is free.
        if self.worker.is_some() {
            if !self.failed {
                let _ = self.drain();
            }
            self.worker = None;
            let _ = self.logs.free(self.device);
        }
    }
}

impl<W: Write + Send + 'static> Launcher for Session<'_, W> {
    fn device(&mut self) -> &mut dyn Device {
        self.device
    }

    unsafe fn launch(&mut self, call: &KernelCall, shape: &LaunchShape) -> Result<LaunchTime, SessionError> {
        // SAFETY: the caller's promise.
        unsafe { self.record(call, shape) }
    }
}

/// Describes hand-placed trace points for a file.
fn locations(points: &[TracePoints]) -> Vec<LocationInfo> {
    let describe = |points: &TracePoints, point: &TracePoint| {
        let (line, column) = points.position(point).unwrap_or((0, 0));
        let location = LocationInfo::new(point.id, point.name, point.what);
        LocationInfo { file: points.file.to_owned(), line, column, ..location }
    };
    points.iter().flat_map(|points| points.points.iter().map(|point| describe(points, point))).collect()
}

fn metadata(
    device: &dyn Device,
    kernels: &[(&str, &str)],
    locations: Vec<LocationInfo>,
    options: &SessionOptions,
    division: &Division,
) -> Metadata {
    let mut tracks = vec![options.codec];
    if options.dual {
        tracks.push(CodecSpec::Raw);
    }
    let mut metadata = Metadata::new(options.tool.clone(), device.info(), tracks)
        .with_pool(options.chunk_bytes, division.chunk_count);
    metadata.policy = match options.policy {
        Policy::Stop => POLICY_STOP,
        Policy::Ring => POLICY_RING,
        Policy::Stream { .. } => POLICY_STREAM,
    }
    .to_owned();
    for (name, source) in kernels {
        metadata = metadata.with_kernel(*name, *source);
    }
    metadata.locations = locations;
    metadata.properties = options.properties.clone();
    for (name, bytes) in [(MEMORY_LIMIT, division.limit), (MEMORY_PEAK, division.total())] {
        metadata.properties.push((name.to_owned(), bytes.to_string()));
    }
    metadata
}

#[cfg(test)]
mod tests;
