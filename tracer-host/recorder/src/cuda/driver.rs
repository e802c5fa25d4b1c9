//! Calls of the driver, with errors that name the call and the kernel.

use std::ffi::{CString, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use crate::DeviceError;

/// Adds the call's name, and the kernel's, to the driver's error.
pub(super) trait Called<T> {
    fn called(self, call: &'static str) -> Result<T, DeviceError>;
    fn called_for(self, call: &'static str, kernel: &str) -> Result<T, DeviceError>;
}

impl<T> Called<T> for Result<T, DriverError> {
    fn called(self, call: &'static str) -> Result<T, DeviceError> {
        self.map_err(|error| driver_error(error, call, None))
    }

    fn called_for(self, call: &'static str, kernel: &str) -> Result<T, DeviceError> {
        self.map_err(|error| driver_error(error, call, Some(kernel.to_owned())))
    }
}

fn driver_error(error: DriverError, call: &'static str, kernel: Option<String>) -> DeviceError {
    let (name, description) = words(error);
    DeviceError::Driver { call, kernel, name, description }
}

/// The driver's name and description of an error.
pub(super) fn words(error: DriverError) -> (String, String) {
    let text = |found: Result<&std::ffi::CStr, DriverError>| {
        found.map_or_else(|_| "unknown to the driver".to_owned(), |text| text.to_string_lossy().into_owned())
    };
    (text(error.error_name()), text(error.error_string()))
}

/// Compiling takes longer than this where the driver has not kept the result of an earlier time: worth a
/// word.
const WORTH_A_WORD: Duration = Duration::from_millis(700);

/// Whether standard error belongs to a program that knows nothing of this.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Says nothing on standard error any more, for the rest of the process.
pub(super) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Says on standard error that the driver compiles, if it has not ended after a while.
struct Compiling {
    ended: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Compiling {
    fn start(what: &str) -> Self {
        let (ended, end) = mpsc::channel();
        let text = format!(
            "note: the driver is compiling {what} for this GPU; it keeps the result for the next time"
        );
        let thread = std::thread::spawn(move || {
            let takes_long = end.recv_timeout(WORTH_A_WORD) == Err(mpsc::RecvTimeoutError::Timeout);
            if takes_long && !QUIET.load(Ordering::Relaxed) {
                let _ = writeln!(std::io::stderr(), "{text}");
            }
        });
        Self { ended: Some(ended), thread: Some(thread) }
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        self.ended = None;
        // The thread neither waits any more nor panics.
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Says something on standard error, unless that is to be quiet.
pub(super) fn note(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        let _ = writeln!(std::io::stderr(), "note: {text}");
    }
}

/// Loads PTX, which the driver compiles unless it has kept the result; the error carries the compiler's log.
pub(super) fn load_ptx(what: &str, ptx: &str) -> Result<sys::CUmodule, DeviceError> {
    let text = CString::new(ptx).map_err(|_| DeviceError::Unsupported {
        problem: format!("the GPU code for {what} contains a zero byte; build again"),
    })?;
    let _compiling = Compiling::start(what);
    // SAFETY: PTX that ends in zero.
    unsafe { load(what, text.as_bytes_with_nul()) }
}

/// How streams are waited for.
#[derive(Clone, Default)]
pub(super) struct Waits {
    /// If it is set, they are not. `None`: as long as it takes.
    pub(super) gives_up: Option<Arc<AtomicBool>>,
}

/// For so long a stream is asked without a pause, and so long a pause is.
const SPINS: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_micros(50);
/// What does not wait for a kernel of the program takes less.
const WORKS_WITHIN: Duration = Duration::from_millis(300);

impl Waits {
    /// Waits for what a stream was given.
    ///
    /// # Errors
    /// [`DeviceError::GivenUp`]; or the driver's.
    ///
    /// # Safety
    /// The stream is alive.
    pub(super) unsafe fn wait(&self, stream: sys::CUstream) -> Result<(), DeviceError> {
        let Some(gives_up) = &self.gives_up else {
            // SAFETY: the caller's promise.
            return unsafe { result::stream::synchronize(stream) }.called("cuStreamSynchronize");
        };
        let started = Instant::now();
        loop {
            // SAFETY: the caller's promise.
            match unsafe { sys::cuStreamQuery(stream) } {
                sys::CUresult::CUDA_ERROR_NOT_READY => {}
                answer => return answer.result().called("cuStreamQuery"),
            }
            if gives_up.load(Ordering::Relaxed) && started.elapsed() >= WORKS_WITHIN {
                return Err(DeviceError::GivenUp);
            }
            if started.elapsed() < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// A kernel in PTX, in a module of its own.
pub(super) struct PtxKernel {
    waits: Waits,
    name: &'static str,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

impl PtxKernel {
    pub(super) fn load(name: &'static str, ptx: &str, waits: &Waits) -> Result<Self, DeviceError> {
        let module = load_ptx(name, ptx)?;
        Ok(Self { waits: waits.clone(), name, module, function: super::code::function(module, name)? })
    }

    /// Runs blocks of threads, waits for them, and copies what is at `from` then.
    ///
    /// # Safety
    /// The arguments are those of the kernel, and name memory that is valid for what it does with it; `from`
    /// is memory of the device, as long as `to`.
    pub(super) unsafe fn run<T>(
        &self,
        [blocks, threads]: [u32; 2],
        stream: sys::CUstream,
        arguments: &mut [*mut c_void],
        to: &mut [T],
        from: u64,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise; the last call waits for all.
        unsafe {
            result::launch_kernel(self.function, (blocks, 1, 1), (threads, 1, 1), 0, stream, arguments)
                .called_for("cuLaunchKernel", self.name)?;
            result::memcpy_dtoh_async(to, from, stream).called_for("cuMemcpyDtoHAsync", self.name)?;
            self.waits.wait(stream)
        }
    }
}

impl Drop for PtxKernel {
    fn drop(&mut self) {
        // Errors have nowhere to go here; after a failed kernel this fails, harmlessly.
        // SAFETY: loaded in `load`, used by nothing else.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

/// Loads assembled code.
///
/// # Safety
/// The image is a cubin.
pub(super) unsafe fn load_cubin(what: &str, image: &[u8]) -> Result<sys::CUmodule, DeviceError> {
    // SAFETY: the caller's promise.
    unsafe { load(what, image) }
}

/// Loads an image.
///
/// # Safety
/// The image is PTX that ends in zero, or a cubin.
unsafe fn load(what: &str, image: &[u8]) -> Result<sys::CUmodule, DeviceError> {
    let mut log = vec![0u8; 16 << 10];
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    let mut module = std::ptr::null_mut();
    // SAFETY: the options and values are two each, the buffer is as long as said; the caller's promise for
    // the image.
    let result = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    }
    .result();
    match result {
        Ok(()) => Ok(module),
        Err(error) => {
            let (name, description) = words(error);
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(&log[..end]).into_owned();
            Err(DeviceError::Load { what: what.to_owned(), name, description, log })
        }
    }
}
