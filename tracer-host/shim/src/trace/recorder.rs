//! The recording of one context.

use std::ffi::c_void;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use warptrace_format::file::limits::MAX_KERNELS;
use warptrace_format::file::{POINTS, PROGRAM, SourceText, Unrecorded};
use warptrace_host::{
    CudaDevice, Device, DeviceError, Drainer, Earlier, EndEvent, EndEvents, Ended, HostMessage, LaunchName,
    LaunchReport, LaunchShape, Launches, MemorySize, Patience, Reserved, SessionError, TraceOutput,
    command_line,
};

use super::{PATIENCE, Request};
use crate::driver::{self, Relaxed};
use crate::inside::Inside;
use crate::ranges;
use crate::settings::Settings;
use crate::state::{Code, State, lock};
use crate::summary::MAX_NAME_CHARS;

/// Maximum wait of a launch for a kernel in another stream whose need for memory is still unknown.
const OTHER_STREAM: Duration = Duration::from_millis(200);

/// Limit on kernels that the file names for untraced launches.
const MAX_NOTED_KERNELS: usize = MAX_KERNELS / 2;
static SERIAL: AtomicU32 = AtomicU32::new(1);

type Output = BufWriter<TraceOutput>;

/// The tracer's view of a context. Closed before the context is destroyed, or kept until the process ends.
pub(super) struct ForeignDevice {
    device: CudaDevice,
    events: EndEvents,
}

impl ForeignDevice {
    pub(super) fn open(context: *mut c_void) -> Result<Self, String> {
        // SAFETY: the program's context. The device is closed before the context is destroyed.
        let device = unsafe { CudaDevice::adopt_foreign(context) }.map_err(|error| error.to_string())?;
        Ok(Self { device, events: EndEvents::default() })
    }

    pub(super) fn ordinal(&self) -> u32 {
        self.device.facts().ordinal.unwrap_or(0)
    }

    /// Destroys the driver's objects in this view.
    pub(super) fn close(self) {
        let Self { device, events } = self;
        // SAFETY: the context exists, since the device does.
        unsafe { events.destroy() };
        drop(device);
    }
}

/// Kernels that the file knows, and streams in use. One lock guards all of it.
#[derive(Default)]
struct ContextRecords {
    modules: FxHashSet<usize>,
    /// Numbers of the file's kernels, by module and kernel name.
    numbers: FxHashMap<(usize, &'static str), u32>,
    /// Numbers of kernels with untraced launches, by name.
    noted: FxHashMap<Arc<str>, u32>,
    recorded: FxHashSet<&'static str>,
    /// Streams of launches that may still run.
    streams: FxHashSet<usize>,
}

/// The recording of a context, shared by all threads of the program.
pub(super) struct Recorder {
    launches: Launches<EndEvent>,
    events: EndEvents,
    serial: u32,
    context: usize,
    /// The device's number in the process.
    pub(super) device: u32,
    pub(super) path: PathBuf,
    /// The earlier file of this name.
    earlier: Earlier,
    told: Mutex<ContextRecords>,
    is_sync: bool,
    /// True if the summary already has the reason for the trace's end.
    is_said: Arc<AtomicBool>,
    /// True if the trace has ended or failed.
    is_over: AtomicBool,
    /// Drains records, and ends the trace.
    thread: Mutex<Option<JoinHandle<Ended<CudaDevice, Output>>>>,
}

impl Recorder {
    /// Running time after which the summary names a launch, and the interval of this check.
    pub(super) const LONG: Duration = Duration::from_secs(1);

    pub(super) fn start(
        state: &'static State,
        (device, context): (ForeignDevice, usize),
        path: PathBuf,
        memory: Option<MemorySize>,
    ) -> Result<Arc<Self>, String> {
        let settings = &state.settings;
        let (number, ForeignDevice { device, events }) = (device.ordinal(), device);
        let mut spec = settings.spec.recording.clone();
        spec.memory = memory.or(spec.memory);
        // Kernels that the user excluded have no traced copy, so the session need not filter by name.
        spec.window.kernels.clear();
        spec.properties.push((PROGRAM.to_owned(), command_line()));
        spec.properties.push((POINTS.to_owned(), settings.spec.points.to_string()));
        let file =
            TraceOutput::open(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        let earlier = file.earlier();
        let file = BufWriter::with_capacity(1 << 20, file);
        let started = Launches::start(device, &spec, file);
        let (launches, drainer) = started.map_err(|(error, device)| {
            ForeignDevice { device, events: events.clone() }.close();
            error.to_string()
        })?;
        if memory.is_some() {
            launches.keep_memory();
        }
        let recorder = Arc::new(Self {
            launches,
            events,
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            context,
            device: number,
            path,
            earlier,
            told: Mutex::default(),
            is_sync: settings.waits(),
            is_said: Arc::default(),
            is_over: AtomicBool::new(false),
            thread: Mutex::default(),
        });
        let drains = recorder.drains(state, drainer);
        let thread = std::thread::Builder::new().name("warptrace".to_owned()).spawn(drains);
        *lock(&recorder.thread) = Some(thread.map_err(|error| format!("there is no thread left: {error}"))?);
        lock(&state.summary).trace(&recorder.path, recorder.unfinished());
        super::hang::watch(state);
        Ok(recorder)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Writes the longest running launch to the summary, in case the process is killed. Not called by the
    /// recorder's thread, which may wait for that launch.
    pub(super) fn say_unfinished(&self, state: &State) {
        let line = self.unfinished();
        let mut summary = lock(&state.summary);
        if !self.is_over() {
            summary.trace(&self.path, line);
        }
    }

    /// Returns the trace's line in the summary for the case that the process ends now.
    fn unfinished(&self) -> String {
        let mut line = "the process ended before its trace did".to_owned();
        if let Some(oldest) = self.launches.oldest().filter(|oldest| oldest.since.elapsed() >= Self::LONG) {
            let kernel: String = oldest.kernel.chars().take(MAX_NAME_CHARS).collect();
            let seconds = oldest.since.elapsed().as_secs();
            line.push_str(&format!(": launch {} of {kernel} had not ended after {seconds} s", oldest.launch));
            if oldest.others > 0 {
                line.push_str(&format!(", and {} behind it", oldest.others));
            }
        }
        line
    }

    /// Returns the main function of the recorder's thread.
    fn drains(
        self: &Arc<Self>,
        state: &'static State,
        drainer: Drainer<CudaDevice, Output, EndEvent>,
    ) -> impl FnOnce() -> Ended<CudaDevice, Output> + Send + 'static {
        let recorder = Arc::clone(self);
        move || {
            let _inside = Inside::enter();
            let _relaxed = Relaxed::enter();
            let last = || {
                let unrecorded = lock(&state.summary).take_unrecorded(recorder.context);
                (unrecorded != Unrecorded::default()).then_some(HostMessage::Unrecorded(unrecorded))
            };
            drainer.run(last, |error, report| {
                let line = recorder.described(report);
                let line = format!("{line}; it ends early: {}{}", reason_of(error), hint(recorder.is_sync));
                recorder.is_said.store(true, Ordering::Release);
                recorder.is_over.store(true, Ordering::Release);
                lock(&state.summary).trace(&recorder.path, line);
            })
        }
    }

    /// Makes a launch, or a graph launch, with logs. Fails with the reason why it was not recorded, or why
    /// the trace has ended after it.
    pub(super) fn record<L>(&self, request: Request<'_, L>, settings: &Settings) -> Result<(), SessionError>
    where
        L: FnOnce(&[Option<warptrace_abi::log::LaunchLogs>]) -> driver::Answer,
    {
        let Request { stream, items, launch, .. } = request;
        let Some(first) = items.first().map(|item| item.kernel.readable) else { return Ok(()) };
        let wait = settings.spec.wait;
        let (launches, unknown) = {
            let mut told = lock(&self.told);
            let mut launches: Vec<(u32, LaunchShape)> = Vec::with_capacity(items.len());
            for item in &items {
                launches.push((self.tell(&mut told, item.code, item.kernel.readable)?, item.shape));
            }
            if self.launches.is_idle() {
                told.streams.clear();
            }
            // A kernel in another stream may wait for this launch, so the wait for its end is shorter.
            let is_behind = told.streams.iter().all(|other| *other == stream as usize);
            told.streams.insert(stream as usize);
            (launches, if is_behind { wait } else { wait.min(OTHER_STREAM) })
        };
        let patience = Patience { short: wait, unknown };
        let Reserved { ticket, logs } = self.launches.reserve(&launches, &ranges::name(), patience)?;
        // SAFETY: the program's own launch, in its current context, with copies made for this recording.
        match unsafe { self.events.after(stream, first, || launch(&logs)) } {
            Ok(end) => self.launches.launched(ticket, end),
            Err(code) => {
                self.launches.cancel(ticket);
                return Err(DeviceError::NotLaunched { kernel: first.to_owned(), code }.into());
            }
        }
        lock(&self.told).recorded.extend(items.iter().map(|item| item.kernel.readable));
        if self.is_sync { self.launches.flush() } else { Ok(()) }
    }

    /// Adds an untraced launch. If the file has no room, it is only counted. `known` caches the kernel's
    /// number, with this recorder's serial number in the upper half.
    pub(super) fn note(
        &self,
        kernel: &Arc<str>,
        shape: &LaunchShape,
        name: &LaunchName,
        known: Option<&AtomicU64>,
    ) {
        let of_this = u64::from(self.serial) << 32;
        let found =
            known.map(|known| known.load(Ordering::Relaxed)).filter(|found| found >> 32 == of_this >> 32);
        let number = found.map(|found| found as u32).or_else(|| self.number_of(kernel));
        let Some(number) = number else { return };
        if let Some(known) = known {
            known.store(of_this | u64::from(number), Ordering::Relaxed);
        }
        let _ = self.launches.note(number, shape, name, true);
    }

    /// Like [`Self::note`], for a launch before the start of the trace.
    pub(super) fn note_late(&self, kernel: &Arc<str>, shape: &LaunchShape, name: &LaunchName) {
        if let Some(number) = self.number_of(kernel) {
            let _ = self.launches.note(number, shape, name, false);
        }
    }

    /// Returns the number of an untraced kernel, by name; `None` if the file has no room for it.
    fn number_of(&self, kernel: &Arc<str>) -> Option<u32> {
        let mut told = lock(&self.told);
        if let Some(number) = told.noted.get(kernel) {
            return Some(*number);
        }
        if told.noted.len() >= MAX_NOTED_KERNELS {
            return None;
        }
        let known = told.numbers.iter().find(|((_, name), _)| **name == **kernel).map(|(_, number)| *number);
        let number = known.or_else(|| self.launches.add_kernels(&[(kernel, "")], Vec::new()).ok())?;
        told.noted.insert(Arc::clone(kernel), number);
        Some(number)
    }

    /// Returns the number of a kernel in a module. Adds the module to the file at first use.
    fn tell(
        &self,
        told: &mut ContextRecords,
        code: &Code,
        kernel: &'static str,
    ) -> Result<u32, SessionError> {
        let key = |kernel: &'static str| (code.number, kernel);
        if let Ok(module) = &code.traced
            && !told.modules.contains(&code.number)
        {
            let kernels: Vec<(&str, &str)> =
                module.kernels().iter().map(|kernel| (kernel.readable, &*kernel.file)).collect();
            let first = self.launches.add_kernels(&kernels, module.locations.clone())?;
            self.launches.send(HostMessage::Sites(module.sites.clone()));
            if let Some((name, ptx)) = &module.kept {
                let text = SourceText { name: name.clone(), text: ptx.clone() };
                self.launches.send(HostMessage::Text(text));
            }
            let notes: Vec<String> = module.remarks().collect();
            if !notes.is_empty() {
                self.launches.send(HostMessage::Unrecorded(Unrecorded { notes, ..Unrecorded::default() }));
            }
            told.modules.insert(code.number);
            told.numbers.extend((first..).zip(module.kernels()).map(|(at, found)| (key(found.readable), at)));
        }
        told.numbers.get(&key(kernel)).copied().ok_or_else(|| SessionError::UnknownKernel {
            kernel: kernel.to_owned(),
            known: "those of its module".to_owned(),
        })
    }

    pub(super) const fn launches(&self) -> &Launches<EndEvent> {
        &self.launches
    }

    /// Abandons the trace. Does not free its memory, to which kernels may still write.
    pub(super) fn abandon(&self, why: &str) {
        self.launches.abandon(why);
    }

    /// Asks the recorder's thread to end the trace.
    pub(super) fn end(&self) {
        self.launches.end(PATIENCE);
    }

    /// Ends the trace. Returns the device, unless launches still run.
    pub(super) fn finish(&self, state: &State) -> Option<ForeignDevice> {
        self.end();
        let thread = lock(&self.thread).take()?;
        let joined = thread.join();
        self.is_over.store(true, Ordering::Release);
        if let Some(words) = self.earlier.set_aside() {
            lock(&state.summary).note(words);
        }
        let Ok(Ended { device, outcome }) = joined else {
            lock(&state.summary).trace(&self.path, "it ends early: the tracer failed".to_owned());
            return None;
        };
        let line = match outcome {
            Ok((file, ..)) => match file.into_inner() {
                Ok(_) => self.described(&self.launches.total()),
                Err(error) => format!("cannot be finished: {}", error.error()),
            },
            Err(SessionError::Running { running }) => {
                lock(&state.summary).hangs(&self.path);
                let launches = if running == 1 { "launch" } else { "launches" };
                format!("{}; {running} {launches} had not ended", self.described(&self.launches.total()))
            }
            Err(error) => format!("it ends early: {error}{}", hint(state.settings.waits())),
        };
        if !self.is_said.load(Ordering::Acquire) {
            lock(&state.summary).trace(&self.path, line);
        }
        device.map(|device| ForeignDevice { device, events: self.events.clone() })
    }

    fn described(&self, report: &LaunchReport) -> String {
        described(report, lock(&self.told).recorded.len())
    }
}

pub(super) const fn hint(sync: bool) -> &'static str {
    if sync { "" } else { "; with --sync more of what came before is kept" }
}

pub(super) fn reason_of(error: &SessionError) -> String {
    match error {
        SessionError::Memory { streams, needed: Some(needed), .. } => {
            format!(
                "{streams} warps need more memory: --memory {}",
                MemorySize(needed.next_multiple_of(1 << 20))
            )
        }
        SessionError::Busy { .. } => format!("{error}: --memory; --wait says how long"),
        _ => error.to_string(),
    }
}

fn described(report: &LaunchReport, kernels: usize) -> String {
    let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let of_launches = |count| counted(count, "launch").replace("launchs", "launches");
    if report.recorded_launches == 0 && report.recorded == 0 && report.launches > 0 {
        return format!("{}, not traced", of_launches(report.launches));
    }
    let launches = of_launches(report.recorded_launches);
    let mut words =
        format!("{} of {launches}, {}", counted(report.recorded, "event"), counted(kernels as u64, "kernel"));
    if report.accesses + report.lost_accesses > 0 {
        let accesses = counted(report.accesses, "access").replace("accesss", "accesses");
        words.push_str(&format!(", {accesses} recorded"));
    }
    let waits = report.waits;
    if waits.for_room + waits.for_first > 0 {
        words.push_str(&format!(
            "; {} waited {:.4} ms in all, {} for room in memory and {} for the first of a kernel",
            of_launches(waits.for_room + waits.for_first),
            waits.time.as_secs_f64() * 1e3,
            waits.for_room,
            waits.for_first
        ));
    }
    if report.lost_accesses > 0 {
        let lost = counted(report.lost_accesses, "access").replace("accesss", "accesses");
        words.push_str(&format!(
            "; {lost} lost for want of memory: --memory, now {}",
            MemorySize(report.memory.limit)
        ));
    }
    if report.lost > 0 {
        words.push_str(&format!(
            "; {} lost for want of memory: --memory, now {}",
            counted(report.lost, "event"),
            MemorySize(report.memory.limit)
        ));
    }
    words
}
