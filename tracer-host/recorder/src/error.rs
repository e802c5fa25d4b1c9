//! What can go wrong between a session and its device.

use warptrace_device::KernelModule;

/// A device cannot do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The CUDA driver is not installed.
    #[error(
        "no CUDA driver on this machine (libcuda.so was not found): install NVIDIA's driver, or use the simulator"
    )]
    NoDriver,
    /// The driver is there but refused a call.
    #[error("the CUDA driver's {call} failed{}: {name} ({description})", .kernel.as_deref().map(|k| format!(" for kernel `{k}`")).unwrap_or_default())]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// The kernel concerned, if any.
        kernel: Option<String>,
        /// The driver's name for the error.
        name: String,
        /// The driver's description.
        description: String,
    },
    /// There is no device of that number.
    #[error("there is no CUDA device {ordinal}: this machine has {count}")]
    NoSuchDevice {
        /// The number asked for.
        ordinal: u32,
        /// Devices present.
        count: u32,
    },
    /// Nothing is waited for any more ([`Device::gives_up`](crate::Device::gives_up)).
    #[error("a kernel that was waited for had not ended")]
    GivenUp,
    /// The binary carries no PTX: no device compiler was there when it was built, or no build script asked
    /// one.
    #[error("this binary carries no GPU code for {what}: {reason}; or use the simulator")]
    NoDeviceCode {
        /// The kernels.
        what: String,
        /// Why there is none, and what to do.
        reason: String,
    },
    /// Recording sequences could not be put into the kernels.
    #[error("cannot make traced copies of {kernels}: {source}")]
    Splice {
        /// The kernels.
        kernels: String,
        /// Why not.
        source: warptrace_ptx::splice::SpliceError,
    },
    /// The driver is too old.
    #[error(
        "the driver supports CUDA {found}, and this program needs {needed} or later: update NVIDIA's driver, or use the simulator"
    )]
    OldDriver {
        /// Its version.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// The driver's compiler refused the PTX.
    #[error("the CUDA driver could not load the GPU code for {what}: {name} ({description})\n{log}")]
    Load {
        /// The kernels.
        what: String,
        /// The driver's name for the error.
        name: String,
        /// The driver's description.
        description: String,
        /// The driver's log.
        log: String,
    },
    /// The simulator ended the launch.
    #[error("kernel `{kernel}` failed on the simulator: {source}")]
    Simulator {
        /// The kernel.
        kernel: String,
        /// What it did wrong, and where. Boxed, because it is far larger than any other variant.
        source: Box<warptrace_sim::SimError>,
    },
    /// Logs could not be merged and encoded.
    #[error("the logs of {launches} launches could not be encoded: {source}")]
    Encode {
        /// How many launches.
        launches: usize,
        /// What is wrong.
        source: warptrace_encode::native::EncodeError,
    },
    /// A launch that no device can run or that the tracer cannot name the warps of.
    #[error("kernel `{kernel}`: {problem}")]
    Shape {
        /// The kernel.
        kernel: String,
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// The driver refused a launch that another program makes itself; nothing has run.
    #[error("the CUDA driver refused to launch kernel `{kernel}` with its logs (error {code})")]
    NotLaunched {
        /// The kernel.
        kernel: String,
        /// The driver's number of the error.
        code: u32,
    },
    /// Parameters that compiled kernels do not have.
    #[error("{problem}")]
    Unsupported {
        /// What is not possible, and what is.
        problem: String,
    },
    /// An access outside of what was allocated.
    #[error("{bytes} bytes at {address:#x} are not inside one allocation of this device")]
    OutOfBounds {
        /// Start of the access.
        address: u64,
        /// Its length.
        bytes: u64,
    },
    /// The device has too little memory.
    #[error("the device could not allocate {bytes} bytes: {reason}")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
        /// The device's words.
        reason: String,
    },
}

impl DeviceError {
    /// Whether a kernel had not ended, and would not have for as long as somebody waits.
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

    /// Says that there is no code for the kernels of a module, or for some of which no module tells anything.
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
