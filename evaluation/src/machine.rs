//! The device to run on, and the machine around it.

use std::str::FromStr;

use anyhow::Context;
use warptrace_format::file::DeviceKind;
use warptrace_host::{CudaDevice, Device, SimDevice, SimOptions};
use warptrace_workloads::ptx_table;

/// What `--device` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    /// The first GPU, or the simulator.
    Auto,
    /// A GPU by number.
    Cuda(u32),
    /// The simulator.
    Simulator,
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "sim" => Ok(Self::Simulator),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|number| number.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| "a device is `auto`, `sim`, `cuda` or `cuda:N`".to_owned()),
        }
    }
}

impl DeviceChoice {
    /// Opens the device; `auto` says on stderr why it takes the simulator.
    pub(crate) fn open(self) -> anyhow::Result<Box<dyn Device>> {
        let cuda = |ordinal| -> anyhow::Result<Box<dyn Device>> {
            let table = ptx_table().context("cannot read the GPU code")?;
            Ok(Box::new(
                CudaDevice::open(ordinal, table).with_context(|| format!("cannot use GPU {ordinal}"))?,
            ))
        };
        match self {
            Self::Simulator => Ok(simulator()),
            Self::Cuda(ordinal) => cuda(ordinal),
            Self::Auto => cuda(0).or_else(|error| {
                eprintln!("note: running on the simulator: {error:#}");
                Ok(simulator())
            }),
        }
    }
}

/// A simulator with its defaults.
pub(crate) fn simulator() -> Box<dyn Device> {
    Box::new(SimDevice::new(SimOptions::default()))
}

/// Whether times on this device are performance.
pub(crate) fn is_gpu(device: &dyn Device) -> bool {
    device.info().kind == DeviceKind::Cuda
}

/// What a table says about where it was made.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Device and host.
    pub(crate) name: String,
    /// Driver of the device.
    pub(crate) driver: String,
    /// `cuda` or `simulator`.
    pub(crate) kind: &'static str,
}

impl Machine {
    /// Describes the device and the host it is in.
    pub(crate) fn of(device: &dyn Device) -> Self {
        let info = device.info();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let name = format!("{}; {cores} cores of {}", info.name, processor());
        let version = std::fs::read_to_string("/proc/driver/nvidia/version")
            .ok()
            .and_then(|text| module_version(&text));
        let driver = match (info.driver_version, version) {
            (Some(cuda), Some(version)) => format!("{version} ({cuda})"),
            (Some(cuda), None) => cuda,
            (None, _) => "none".to_owned(),
        };
        Self { name, driver, kind: if is_gpu(device) { "cuda" } else { "simulator" } }
    }
}

/// The host's processor, where Linux tells.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "an unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

/// The driver's number, as in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  …`.
fn module_version(text: &str) -> Option<String> {
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.split_whitespace().find(is_version).map(str::to_owned)
}

/// This machine's memory in bytes, where Linux tells.
pub(crate) fn host_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        assert_eq!("auto".parse(), Ok(DeviceChoice::Auto));
        assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(3)));
        assert!("cuda:x".parse::<DeviceChoice>().is_err());
        assert!("gpu".parse::<DeviceChoice>().is_err());
    }

    #[test]
    fn the_drivers_number_is_found() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build\nGCC version:  gcc";
        assert_eq!(module_version(text).as_deref(), Some("570.86.10"));
        assert_eq!(module_version(""), None);
    }
}
