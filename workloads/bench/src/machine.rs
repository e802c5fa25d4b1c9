//! The device for the runs, and a description of the machine.

use std::io::Write;

use warptrace_format::file::DeviceKind;
use warptrace_host::{Device, DeviceChoice, MemorySize, SimDevice, SimOptions};
use warptrace_workloads::ptx;

/// Opens the device. If `auto` chooses the simulator, prints the reason to stderr.
pub(crate) fn open(choice: DeviceChoice) -> anyhow::Result<Box<dyn Device>> {
    // The error's text already contains its cause.
    let opened = choice.open(ptx, SimOptions::default()).map_err(|error| anyhow::anyhow!("{error}"))?;
    if let Some(reason) = &opened.no_gpu {
        let _ = writeln!(std::io::stderr(), "note: running on the simulator: {reason}");
    }
    Ok(opened.device)
}

/// Creates a simulator that runs blocks and warps in an order derived from `seed`.
pub(crate) fn simulator(seed: u64) -> Box<dyn Device> {
    Box::new(SimDevice::new(SimOptions { seed, ..SimOptions::default() }))
}

pub(crate) fn is_gpu(device: &dyn Device) -> bool {
    device.facts().info.kind == DeviceKind::Cuda
}

/// Returns the device memory limit of a recording in bytes; by default, three quarters of a GPU's free
/// memory, or a quarter of this machine's memory on the simulator.
pub(crate) fn most_memory(asked: Option<MemorySize>, device: &dyn Device) -> u64 {
    let facts = device.facts();
    let usual = if is_gpu(device) { facts.free_bytes / 4 * 3 } else { facts.memory_bytes / 4 };
    asked.map_or(usual, |MemorySize(bytes)| bytes)
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Device and host.
    pub(crate) name: String,
    pub(crate) driver: String,
    /// `cuda` or `simulator`.
    pub(crate) kind: &'static str,
}

impl Machine {
    pub(crate) fn new(device: &dyn Device) -> Self {
        let info = device.facts().info;
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

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| "an unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Returns the version of the driver, as in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  …`.
fn module_version(text: &str) -> Option<String> {
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.split_whitespace().find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_number_is_found() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build\nGCC version:  gcc";
        assert_eq!(module_version(text).as_deref(), Some("570.86.10"));
        assert_eq!(module_version(""), None);
    }
}
