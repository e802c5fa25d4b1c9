//! Escapes the texts of a [`TraceFile`](crate::TraceFile) at opening, so that no view shows them unescaped.

use std::borrow::Cow;

use warptrace_format::file::{
    BufferInfo, DeviceInfo, EarlyEnd, KernelInfo, KnownLabels, KnownStacks, LocationInfo, Metadata,
    RecordedPolicy, SiteInfo, Unrecorded, WaitInfo,
};
use warptrace_format::{on_one_line, shown};

fn escape(text: &mut String) {
    if let Cow::Owned(shown) = shown(text) {
        *text = shown;
    }
}

pub(crate) fn metadata(found: &mut Metadata) {
    let Metadata { tool, device, kernels, policy, locations, properties, origin, .. } = found;
    let DeviceInfo { name, driver_version, .. } = device;
    let policy = if let RecordedPolicy::Other(name) = policy { Some(name) } else { None };
    [tool, name].into_iter().chain(policy).chain(driver_version).for_each(escape);
    origin.iter_mut().flat_map(|origin| origin.texts_mut()).for_each(escape);
    for KernelInfo { name, source_file, .. } in kernels {
        [name, source_file].into_iter().for_each(escape);
    }
    for LocationInfo { name, description, file, function, wait, .. } in locations {
        [name, description, file, function].into_iter().for_each(escape);
        if let Some(WaitInfo { barrier, phase, copies, at, .. }) = wait.as_deref_mut() {
            let files = copies.iter_mut().chain(at).map(|copy| &mut copy.file);
            [barrier, phase].into_iter().chain(files).for_each(escape);
        }
    }
    for (key, value) in properties {
        [key, value].into_iter().for_each(escape);
    }
}

pub(crate) fn site(found: &mut SiteInfo) {
    let SiteInfo { cache, file, name, .. } = found;
    [cache, file, name].into_iter().for_each(escape);
}

pub(crate) fn buffer(found: &mut BufferInfo) {
    found.name = on_one_line(&found.name);
}

pub(crate) fn labels(found: &mut KnownLabels) {
    found.texts_mut().for_each(escape);
}

pub(crate) fn stacks(found: &mut KnownStacks) {
    found.texts_mut().for_each(escape);
}

pub(crate) fn unrecorded(found: &mut Unrecorded) {
    found.texts_mut().for_each(escape);
}

pub(crate) fn early_end(end: &mut EarlyEnd) {
    if let EarlyEnd::Failed { message, .. } = end {
        *message = on_one_line(message);
    }
}
