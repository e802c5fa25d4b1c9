//! Compiled code at a program's locations, from its PTX.

use std::borrow::Cow;
use std::collections::BTreeMap;

use warptrace_device::KernelModule;
use warptrace_format::Counting;
use warptrace_format::file::{DeviceKind, LocationCode, LocationInfo};
use warptrace_ptx::points::with_waits;
use warptrace_ptx::splice::{Recording, code_at};

use crate::Device;

/// Describes the code at each location of `modules`, from the module's own PTX, otherwise from `ptx`. Skips
/// PTX that cannot be parsed: a device that needs it reports the error.
pub(super) fn add_code(
    locations: &mut [LocationInfo],
    modules: &[&KernelModule],
    ptx: &str,
    recording: Recording,
    device: &dyn Device,
) {
    // The simulator proves no loops, because it counts none that way.
    let counting = match (device.facts().info.kind, recording.counted()) {
        (DeviceKind::Simulator, Counting::Proven) => Counting::Never,
        (_, counting) => counting,
    };
    let mut by_text: BTreeMap<&str, Vec<&KernelModule>> = BTreeMap::new();
    for module in modules {
        let text = if module.ptx.is_empty() { ptx } else { module.ptx };
        by_text.entry(text).or_default().push(module);
    }
    for (text, modules) in by_text.iter().filter(|(text, _)| !text.is_empty()) {
        let kernels: Vec<&str> = modules.iter().flat_map(|module| module.kernels).copied().collect();
        let text = if recording.waits { Cow::Owned(with_waits(text)) } else { Cow::Borrowed(*text) };
        let Ok(found) = code_at(&text, &kernels, counting) else { continue };
        let own = modules.iter().flat_map(|module| module.locations.iter().chain(module.waits));
        let ids: Vec<u16> = own.map(|location| location.id).collect();
        for location in locations.iter_mut().filter(|location| ids.contains(&location.id)) {
            let code = found.get(&location.id).copied().unwrap_or_default();
            location.code = Some(LocationCode { instructions: code.instructions, counted: code.is_counted });
        }
    }
}
