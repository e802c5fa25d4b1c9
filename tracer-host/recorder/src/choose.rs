use std::fmt;
use std::io;
use std::str::FromStr;

use crate::{CudaDevice, Device, DeviceError, SimDevice, SimOptions};

/// A device by name: `auto`, `cuda`, `cuda:N` or `sim`.
///
/// ```
/// use warptrace_host::DeviceChoice;
/// assert_eq!("cuda:1".parse(), Ok(DeviceChoice::Cuda(1)));
/// assert_eq!(DeviceChoice::Cuda(1).to_string(), "cuda:1");
/// assert!("gpu".parse::<DeviceChoice>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// The first GPU, or the simulator where no GPU can be used.
    #[default]
    Auto,
    /// A GPU by the driver's number.
    Cuda(u32),
    /// The simulator.
    Simulator,
}

/// A text that is not the name of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceChoiceError {
    /// Not one of the names.
    #[error("a device is `auto`, `sim`, `cuda` or `cuda:N`")]
    Name {
        /// The text.
        found: String,
    },
    /// The text after `cuda:` is not a number.
    #[error(
        "`{found}` is not the number of a GPU: the first is `cuda:0`, and a device is `auto`, `sim`, `cuda` or `cuda:N`"
    )]
    Number {
        /// The text after `cuda:`.
        found: String,
    },
}

/// The chosen device could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The GPU code could not be read.
    #[error("cannot read the GPU code: {0}")]
    Code(#[source] io::Error),
    /// The GPU cannot be used.
    #[error("cannot use GPU {ordinal}: {source}")]
    Gpu {
        /// The driver's number.
        ordinal: u32,
        /// The reason.
        source: DeviceError,
    },
}

/// An open device.
#[non_exhaustive]
pub struct Opened {
    /// The device.
    pub device: Box<dyn Device>,
    /// Why [`DeviceChoice::Auto`] chose the simulator, whose times say nothing about a GPU.
    pub no_gpu: Option<DeviceError>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("device", &self.device.facts().info)
            .field("no_gpu", &self.no_gpu)
            .finish()
    }
}

impl FromStr for DeviceChoice {
    type Err = DeviceChoiceError;

    fn from_str(text: &str) -> Result<Self, DeviceChoiceError> {
        match text {
            "auto" => Ok(Self::Auto),
            "sim" => Ok(Self::Simulator),
            "cuda" => Ok(Self::Cuda(0)),
            _ => match text.strip_prefix("cuda:") {
                Some(number) => (number.parse().map(Self::Cuda))
                    .map_err(|_| DeviceChoiceError::Number { found: number.to_owned() }),
                None => Err(DeviceChoiceError::Name { found: text.to_owned() }),
            },
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            Self::Simulator => f.pad("sim"),
        }
    }
}

impl DeviceChoice {
    /// Opens the device. `code` returns the PTX of the kernels; it is called only if a GPU is tried.
    /// `simulator` configures the simulator, if it is chosen. Fails with [`OpenError::Code`] if `code` fails,
    /// also for [`Auto`](Self::Auto): a named file that cannot be read is a mistake to fix. Fails with
    /// [`OpenError::Gpu`] if a GPU was requested by name and cannot be used.
    pub fn open(
        self,
        code: impl FnOnce() -> io::Result<&'static str>,
        simulator: SimOptions,
    ) -> Result<Opened, OpenError> {
        let gpu = |ordinal, table| -> Result<Box<dyn Device>, DeviceError> {
            Ok(Box::new(CudaDevice::open(ordinal, table)?))
        };
        self.open_with(code, gpu, simulator)
    }

    fn open_with(
        self,
        code: impl FnOnce() -> io::Result<&'static str>,
        gpu: impl FnOnce(u32, &'static str) -> Result<Box<dyn Device>, DeviceError>,
        simulator: SimOptions,
    ) -> Result<Opened, OpenError> {
        let simulated =
            |no_gpu| Opened { device: Box::new(SimDevice::new(simulator)) as Box<dyn Device>, no_gpu };
        let ordinal = match self {
            Self::Simulator => return Ok(simulated(None)),
            Self::Auto => 0,
            Self::Cuda(ordinal) => ordinal,
        };
        match (gpu(ordinal, code().map_err(OpenError::Code)?), self) {
            (Ok(device), _) => Ok(Opened { device, no_gpu: None }),
            (Err(error), Self::Auto) => Ok(simulated(Some(error))),
            (Err(source), _) => Err(OpenError::Gpu { ordinal, source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use warptrace_format::file::DeviceKind;

    use super::*;

    #[test]
    fn a_choice_reads_back_as_it_is_written() {
        for choice in
            [DeviceChoice::Auto, DeviceChoice::Cuda(0), DeviceChoice::Cuda(7), DeviceChoice::Simulator]
        {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        assert_eq!(DeviceChoice::default(), DeviceChoice::Auto);
    }

    #[test]
    fn what_is_no_device_says_what_is() {
        let message = |text: &str| text.parse::<DeviceChoice>().unwrap_err().to_string();
        for text in
            ["", "gpu", "CUDA", "sim:1", "auto ", "cuda0", "cuda:", "cuda:x", "cuda:-1", "cuda:4294967296"]
        {
            assert!(message(text).contains("`auto`, `sim`, `cuda` or `cuda:N`"), "{text}: {}", message(text));
        }
        assert!(message("cuda:first").starts_with("`first` is not the number of a GPU"));
    }

    type OpenGpu = fn(u32, &'static str) -> Result<Box<dyn Device>, DeviceError>;

    fn one_gpu(ordinal: u32, _: &'static str) -> Result<Box<dyn Device>, DeviceError> {
        match ordinal {
            0 => Ok(Box::new(SimDevice::new(SimOptions { threads: Some(7), ..SimOptions::default() }))),
            _ => Err(DeviceError::NoSuchDevice { ordinal, count: 1 }),
        }
    }

    fn no_driver(_: u32, _: &'static str) -> Result<Box<dyn Device>, DeviceError> {
        Err(DeviceError::NoDriver)
    }

    fn open(choice: DeviceChoice, gpu: OpenGpu) -> Result<Opened, OpenError> {
        let simulator = SimOptions { threads: Some(2), ..SimOptions::default() };
        choice.open_with(|| Ok(""), gpu, simulator)
    }

    #[test]
    fn a_gpu_is_taken_where_there_is_one() {
        for choice in [DeviceChoice::Auto, DeviceChoice::Cuda(0)] {
            let opened = open(choice, one_gpu).unwrap();
            assert_eq!(
                (opened.device.facts().multiprocessors, opened.no_gpu.is_none()),
                (7, true),
                "{choice}"
            );
        }
    }

    #[test]
    fn auto_takes_the_simulator_and_tells_why() {
        let opened = open(DeviceChoice::Auto, no_driver).unwrap();
        assert_eq!(
            (opened.device.facts().info.kind, opened.device.facts().multiprocessors),
            (DeviceKind::Simulator, 2)
        );
        assert!(matches!(opened.no_gpu, Some(DeviceError::NoDriver)));
    }

    #[test]
    fn a_gpu_that_was_named_is_an_error_where_it_is_not() {
        let error = open(DeviceChoice::Cuda(0), no_driver).unwrap_err().to_string();
        assert!(error.starts_with("cannot use GPU 0: no CUDA driver"), "{error}");
        let error = open(DeviceChoice::Cuda(3), one_gpu).unwrap_err().to_string();
        assert_eq!(error, "cannot use GPU 3: there is no CUDA device 3: this machine has 1");
    }

    #[test]
    fn only_a_gpu_needs_the_code() {
        let broken = || Err(io::Error::other("no such folder"));
        let opened = DeviceChoice::Simulator.open_with(broken, one_gpu, SimOptions::default()).unwrap();
        assert_eq!(opened.device.facts().info.kind, DeviceKind::Simulator);
        for choice in [DeviceChoice::Auto, DeviceChoice::Cuda(0)] {
            let error = choice.open_with(broken, one_gpu, SimOptions::default()).unwrap_err();
            assert_eq!(error.to_string(), "cannot read the GPU code: no such folder", "{choice}");
        }
    }
}
