use warptrace_device::KernelModule;

/// A device cannot do what was requested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The CUDA driver is not installed.
    #[error(
        "no CUDA driver on this machine (libcuda.so was not found): install NVIDIA's driver, or use the simulator"
    )]
    NoDriver,
    /// A driver call failed.
    #[error("the CUDA driver's {call} failed{}: {name} ({description})", .kernel.as_deref().map(|k| format!(" for kernel `{k}`")).unwrap_or_default())]
    Driver {
        /// The driver function.
        call: &'static str,
        /// The kernel concerned, if any.
        kernel: Option<String>,
        /// The driver's name of the error.
        name: String,
        /// The driver's description.
        description: String,
    },
    /// No device has this number.
    #[error("there is no CUDA device {ordinal}: this machine has {count}")]
    NoSuchDevice {
        /// The requested number.
        ordinal: u32,
        /// Number of devices present.
        count: u32,
    },
    /// A wait was given up (see [`Device::gives_up`](crate::Device::gives_up)) before the kernel ended.
    #[error("a kernel that was waited for had not ended")]
    GivenUp,
    /// The binary contains no PTX: at build time the device compiler was missing or no build script ran it.
    #[error("this binary carries no GPU code for {what}: {reason}; or use the simulator")]
    NoDeviceCode {
        /// The kernels.
        what: String,
        /// Why the code is missing, and how to add it.
        reason: String,
    },
    /// Recording sequences could not be spliced into the kernels.
    #[error("cannot make traced copies of {kernels}: {source}")]
    Splice {
        /// The kernels.
        kernels: String,
        /// The reason.
        source: warptrace_ptx::splice::SpliceError,
    },
    /// The driver is too old.
    #[error(
        "the driver supports CUDA {found}, and this program needs {needed} or later: update NVIDIA's driver, or use the simulator"
    )]
    OldDriver {
        /// The driver's version.
        found: String,
        /// The oldest supported version.
        needed: String,
    },
    /// The driver's JIT compiler refused the PTX.
    #[error("the CUDA driver could not load the GPU code for {what}: {name} ({description})\n{log}")]
    Load {
        /// The kernels.
        what: String,
        /// The driver's name of the error.
        name: String,
        /// The driver's description.
        description: String,
        /// The driver's log.
        log: String,
    },
    /// The simulator aborted the launch.
    #[error("kernel `{kernel}` failed on the simulator: {source}")]
    Simulator {
        /// The kernel.
        kernel: String,
        /// The failure and its place. Boxed because it is far larger than the other variants.
        source: Box<warptrace_sim::SimError>,
    },
    /// Logs could not be merged and encoded.
    #[error("the logs of {launches} launches could not be encoded: {source}")]
    Encode {
        /// Number of launches.
        launches: usize,
        /// The reason.
        source: warptrace_encode::native::EncodeError,
    },
    /// A launch that no device can run, or whose warps the tracer cannot number.
    #[error("kernel `{kernel}`: {problem}")]
    Shape {
        /// The kernel.
        kernel: String,
        /// The problem, and the allowed values.
        problem: String,
    },
    /// The driver refused a launch that another program makes itself. Nothing has run.
    #[error("the CUDA driver refused to launch kernel `{kernel}` with its logs (error {code})")]
    NotLaunched {
        /// The kernel.
        kernel: String,
        /// The driver's error code.
        code: u32,
    },
    /// An operation or parameter that the device or its compiled kernels do not support.
    #[error("{problem}")]
    Unsupported {
        /// The unsupported operation, and the alternatives.
        problem: String,
    },
    /// An access outside an allocation.
    #[error("{bytes} bytes at {address:#x} are not inside one allocation of this device")]
    OutOfBounds {
        /// Start address of the access.
        address: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// The device has too little memory.
    #[error("the device could not allocate {bytes} bytes: {reason}")]
    OutOfMemory {
        /// Requested bytes.
        bytes: u64,
        /// The device's error text.
        reason: String,
    },
}

impl DeviceError {
    /// Returns true if the wait for a kernel was given up, or the simulator found that it would not end.
    pub(crate) fn is_hang(&self) -> bool {
        use warptrace_sim::SimError::{Deadlock, Livelock, TooLong, TooManySteps};
        match self {
            Self::GivenUp => true,
            Self::Simulator { source, .. } => {
                matches!(**source, Deadlock { .. } | Livelock { .. } | TooLong { .. } | TooManySteps { .. })
            }
            _ => false,
        }
    }

    /// Returns the error for the kernels of `module`, or of an unknown module, without device code.
    pub(crate) fn no_device_code(module: Option<&KernelModule>) -> Self {
        let told = module.filter(|module| !module.without_ptx.is_empty());
        Self::NoDeviceCode {
            what: module.map_or_else(|| "these kernels".to_owned(), |module| format!("module `{}`", module.name)),
            reason: told.map_or_else(
                || {
                    "it was built without a device compiler (add one with `rustup component add rust-src` to Rust 1.96 \
                     or later, or run `cargo xtask setup` in warptrace's sources, and build again), or its build script \
                     does not compile them (`warptrace_build::compile`)"
                        .to_owned()
                },
                |module| module.without_ptx.to_owned(),
            ),
        }
    }
}
