//! Launches of the program's kernels or of their traced copies.

use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::{CUlaunchAttributeID, CUlaunchConfig};
use warptrace_abi::log::LaunchLogs;

use super::{Handle, List};
use crate::driver::{Answer, INVALID};
use crate::exchange::Kernel;

/// Marks in the list of a launch with buffered arguments: the buffer's address or size follows. 0 ends it.
const BUFFER: usize = 1;
const BUFFER_SIZE: usize = 2;
const MAX_ARGUMENT_BYTES: usize = 1 << 16;

#[derive(Clone, Copy)]
pub(super) enum DriverCall {
    Plain(PlainLaunch),
    Cooperative(CooperativeLaunch),
    Attributes(AttributesLaunch, *const CUlaunchConfig),
}

pub(super) type PlainLaunch = unsafe extern "C" fn(
    Handle,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    Handle,
    List,
    List,
) -> Answer;
pub(super) type CooperativeLaunch = unsafe extern "C" fn(
    Handle,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    Handle,
    List,
) -> Answer;
pub(super) type AttributesLaunch = unsafe extern "C" fn(*const CUlaunchConfig, Handle, List, List) -> Answer;

#[derive(Clone, Copy)]
pub(super) struct Launch {
    pub(super) call: DriverCall,
    pub(super) function: Handle,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) stream: Handle,
    /// The stream that the handle denotes: a null handle may denote the per-thread default stream.
    pub(super) true_stream: Handle,
    pub(super) parameters: List,
    pub(super) extra: List,
}

impl Launch {
    /// Calls the driver with another function, other arguments, and another amount of shared memory.
    ///
    /// # Safety
    /// The arguments are valid for the function.
    unsafe fn call(&self, function: Handle, shared: c_uint, parameters: List, extra: List) -> Answer {
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid, self.block);
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.call {
                DriverCall::Plain(real) => {
                    real(function, gx, gy, gz, bx, by, bz, shared, self.stream, parameters, extra)
                }
                DriverCall::Cooperative(real) => {
                    real(function, gx, gy, gz, bx, by, bz, shared, self.stream, parameters)
                }
                DriverCall::Attributes(real, config) => {
                    let config = CUlaunchConfig { sharedMemBytes: shared, ..*config };
                    real(&raw const config, function, parameters, extra)
                }
            }
        }
    }

    /// # Safety
    /// It is the program's own launch.
    pub(super) unsafe fn own(&self) -> Answer {
        // SAFETY: guaranteed by the caller. The configuration is the program's own, unchanged.
        unsafe {
            match self.call {
                DriverCall::Attributes(real, config) => {
                    real(config, self.function, self.parameters, self.extra)
                }
                _ => self.call(self.function, self.shared, self.parameters, self.extra),
            }
        }
    }

    /// # Safety
    /// `traced` is the copy of the function that the program launches.
    pub(super) unsafe fn traced(
        &self,
        traced: Handle,
        kernel: &Kernel,
        logs: &LaunchLogs,
        shared: u64,
    ) -> Answer {
        let Ok(shared) = c_uint::try_from(shared) else { return INVALID };
        let logs: *mut c_void = (&raw const *logs).cast_mut().cast();
        if !self.parameters.is_null() || kernel.parameters.is_empty() {
            let mut parameters = Vec::with_capacity(kernel.parameters.len() + 1);
            // SAFETY: the program passes an address for each parameter of the kernel.
            unsafe {
                for at in 0..kernel.parameters.len() {
                    parameters.push(*self.parameters.add(at));
                }
                parameters.push(logs);
                return self.call(traced, shared, parameters.as_mut_ptr(), null_mut());
            }
        }
        // SAFETY: the program's own list.
        let Some(mut bytes) = (unsafe { buffer_of(self.extra) }) else { return INVALID };
        bytes.resize(kernel.logs_offset, 0);
        // SAFETY: the bytes of a `LaunchLogs`. The kernel takes only the first `logs_bytes`.
        bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts(logs.cast::<u8>(), size_of::<LaunchLogs>())
        });
        let mut size = kernel.logs_offset + kernel.logs_bytes;
        let mut extra: [*mut c_void; 5] = [
            std::ptr::without_provenance_mut(BUFFER),
            bytes.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(BUFFER_SIZE),
            (&raw mut size).cast(),
            null_mut(),
        ];
        // SAFETY: the buffer holds the kernel's arguments at their offsets, and the logs after them.
        unsafe { self.call(traced, shared, null_mut(), extra.as_mut_ptr()) }
    }

    pub(super) fn is_cooperative(&self) -> bool {
        match self.call {
            DriverCall::Plain(_) => false,
            DriverCall::Cooperative(_) => true,
            DriverCall::Attributes(_, config) => {
                self.has_attribute(config, CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            }
        }
    }

    /// Returns true if the launch may begin before the kernel before it in the stream has ended.
    pub(super) fn is_programmatic(&self) -> bool {
        use CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION as PROGRAMMATIC;
        matches!(self.call, DriverCall::Attributes(_, config) if self.has_attribute(config, PROGRAMMATIC))
    }

    /// Returns true if the launch has an attribute whose value, a number, is not 0.
    fn has_attribute(&self, config: *const CUlaunchConfig, wanted: CUlaunchAttributeID) -> bool {
        // SAFETY: the program's configuration with its attributes. The id is read as a number: a driver may
        // have others. The values of the requested attributes begin with an integer.
        unsafe {
            let CUlaunchConfig { attrs, numAttrs: count, .. } = *config;
            (0..count as usize).filter(|_| !attrs.is_null()).any(|at| {
                let attribute = attrs.add(at);
                (&raw const (*attribute).id).cast::<u32>().read() == wanted as u32
                    && (&raw const (*attribute).value).cast::<i32>().read() != 0
            })
        }
    }
}

/// Copies the arguments of a launch that passes them in a buffer.
///
/// # Safety
/// The list is null, or valid for the driver.
pub(crate) unsafe fn buffer_of(extra: List) -> Option<Vec<u8>> {
    if extra.is_null() {
        return None;
    }
    let (mut buffer, mut bytes, mut at) = (null_mut::<c_void>(), 0, 0);
    // SAFETY: the list has pairs of a mark and an address, and ends with the end mark.
    unsafe {
        loop {
            match (*extra.add(at)).addr() {
                0 => break,
                BUFFER => buffer = *extra.add(at + 1),
                BUFFER_SIZE => bytes = *(*extra.add(at + 1)).cast::<usize>(),
                _ => return None,
            }
            at += 2;
        }
        if buffer.is_null() || bytes > MAX_ARGUMENT_BYTES {
            return None;
        }
        Some(std::slice::from_raw_parts(buffer.cast::<u8>(), bytes).to_vec())
    }
}
