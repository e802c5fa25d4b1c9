//! Calls of the driver, with errors that name the call and the kernel.

use std::ffi::{CString, c_void};

use cudarc::driver::result::DriverError;
use cudarc::driver::sys;

use crate::DeviceError;

/// Adds the call's name, and the kernel's, to the driver's answer.
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

/// Loads PTX; the error carries the compiler's log.
pub(super) fn load_module(variant: &str, ptx: &str) -> Result<sys::CUmodule, DeviceError> {
    let text = CString::new(ptx).map_err(|_| DeviceError::Unsupported {
        problem: format!("the GPU code for `{variant}` contains a zero byte; build again"),
    })?;
    let mut log = vec![0u8; 16 << 10];
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    let mut module = std::ptr::null_mut();
    // SAFETY: the options and values are two each, the buffer is as long as said, the text ends in zero.
    let result = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
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
            Err(DeviceError::Load { variant: variant.to_owned(), name, description, log })
        }
    }
}
