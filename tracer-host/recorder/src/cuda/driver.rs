//! Driver calls whose errors name the call and the kernel.

use std::ffi::{CString, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use crate::DeviceError;

/// Adds the names of the call and the kernel to a driver error.
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

pub(super) fn words(error: DriverError) -> (String, String) {
    let text = |found: Result<&std::ffi::CStr, DriverError>| {
        found.map_or_else(|_| "unknown to the driver".to_owned(), |text| text.to_string_lossy().into_owned())
    };
    (text(error.error_name()), text(error.error_string()))
}

/// Loading takes longer than this only if the driver compiles without a cached result.
const WORTH_A_WORD: Duration = Duration::from_millis(700);

/// Whether standard error belongs to a traced program, so that nothing may be printed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Stops all messages on standard error, for the rest of the process.
pub(super) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Prints a message if the driver takes long to compile.
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
        // The thread ends without panic, because its channel is closed.
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Prints a note on standard error, unless [`be_quiet`] was called.
pub(super) fn note(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        let _ = writeln!(std::io::stderr(), "note: {text}");
    }
}

/// Loads PTX, which the driver compiles or takes from its cache. The error contains the compiler's log.
pub(super) fn load_ptx(what: &str, ptx: &str) -> Result<sys::CUmodule, DeviceError> {
    let text = CString::new(ptx).map_err(|_| DeviceError::Unsupported {
        problem: format!("the GPU code for {what} contains a zero byte; build again"),
    })?;
    let _compiling = Compiling::start(what);
    // SAFETY: PTX text with a terminating zero.
    unsafe { load(what, text.as_bytes_with_nul()) }
}

#[derive(Clone, Default)]
pub(super) struct Waits {
    /// Ends waits once it is set. `None` waits without limit.
    pub(super) gives_up: Option<Arc<AtomicBool>>,
}

/// Time of polling a stream without pauses, and the pause afterwards.
const SPINS: Duration = Duration::from_millis(1);
const PAUSE: Duration = Duration::from_micros(50);
/// Minimum wait before giving up. Work that does not wait for the program's kernels takes less.
const WORKS_WITHIN: Duration = Duration::from_millis(300);

impl Waits {
    /// Waits for the work in a stream. Fails with [`DeviceError::GivenUp`], or with the driver's error.
    ///
    /// # Safety
    /// The stream is alive.
    pub(super) unsafe fn wait(&self, stream: sys::CUstream) -> Result<(), DeviceError> {
        let Some(gives_up) = &self.gives_up else {
            // SAFETY: the caller guarantees the stream.
            return unsafe { result::stream::synchronize(stream) }.called("cuStreamSynchronize");
        };
        let started = Instant::now();
        loop {
            // SAFETY: the caller guarantees the stream.
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

/// A kernel loaded from PTX into a separate module.
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

    /// Runs `blocks` blocks of `threads` threads, waits for them, and copies memory at `from` to `to`.
    ///
    /// # Safety
    /// The arguments match the kernel and refer to memory that is valid for its accesses. `from` is device
    /// memory of at least the size of `to`.
    pub(super) unsafe fn run<T>(
        &self,
        [blocks, threads]: [u32; 2],
        stream: sys::CUstream,
        arguments: &mut [*mut c_void],
        to: &mut [T],
        from: u64,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller guarantees arguments and memory; the last call waits for the copy.
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
        // Errors are ignored. After a failed kernel this call fails, without harm.
        // SAFETY: loaded in `load`, and not used by anything else.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

/// # Safety
/// The image is a cubin.
pub(super) unsafe fn load_cubin(what: &str, image: &[u8]) -> Result<sys::CUmodule, DeviceError> {
    // SAFETY: the caller guarantees the image.
    unsafe { load(what, image) }
}

/// # Safety
/// The image is PTX with a terminating zero, or a cubin.
unsafe fn load(what: &str, image: &[u8]) -> Result<sys::CUmodule, DeviceError> {
    let mut log = vec![0u8; 16 << 10];
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    let mut module = std::ptr::null_mut();
    // SAFETY: two options with two values, and a buffer of the given length; the caller guarantees the image.
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
