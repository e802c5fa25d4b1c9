//! Choosing a device.

use std::str::FromStr;

use anyhow::Context;
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
                .ok_or_else(|| {
                    "a device is `auto`, `sim`, `cuda` or `cuda:N`; `warptrace devices` lists them".to_owned()
                }),
        }
    }
}

/// Opens the device; `auto` says on stderr why it takes the simulator.
pub(crate) fn open(choice: DeviceChoice, simulator: SimOptions) -> anyhow::Result<Box<dyn Device>> {
    match choice {
        DeviceChoice::Simulator => Ok(Box::new(SimDevice::new(simulator))),
        DeviceChoice::Cuda(ordinal) => {
            let device = CudaDevice::open(ordinal, ptx_table()?)
                .with_context(|| format!("cannot use GPU {ordinal}"))?;
            Ok(Box::new(device))
        }
        DeviceChoice::Auto => match CudaDevice::open(0, ptx_table()?) {
            Ok(device) => Ok(Box::new(device)),
            Err(error) => {
                eprintln!("note: running on the simulator: {error}");
                Ok(Box::new(SimDevice::new(simulator)))
            }
        },
    }
}
