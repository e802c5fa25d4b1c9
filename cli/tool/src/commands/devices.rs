//! `warptrace devices`.

use warptrace_host::CudaDevice;

use crate::demo;
use crate::output::say;

pub(crate) fn run() -> anyhow::Result<()> {
    match CudaDevice::list() {
        Ok(devices) if devices.is_empty() => say!("no GPU: the CUDA driver is installed but finds none")?,
        Ok(devices) => {
            for (number, device) in devices.iter().enumerate() {
                let (major, minor) = device.compute_capability.unwrap_or_default();
                say!(
                    "cuda:{number}  {}, compute capability {major}.{minor}, driver for {}",
                    device.name,
                    device.driver_version.as_deref().unwrap_or("unknown")
                )?;
            }
        }
        Err(error) => say!("no GPU: {error}")?,
    }
    say!("sim     the simulator, on {} threads of this machine", std::thread::available_parallelism()?)?;
    if demo::PTX.is_empty() {
        say!("\nThis binary carries no GPU code: run `cargo xtask setup` and build again.")?;
    }
    Ok(())
}
