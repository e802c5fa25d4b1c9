//! Reading of when launches ran by the host's clocks.

use std::collections::BTreeMap;

use warptrace_format::file::limits::MAX_HOST_READINGS;
use warptrace_format::file::{FormatError, HostTimes, LaunchInfo, SectionHeader, SectionKind};

use super::{Bytes, body_offset};
use crate::error::OpenError;
use crate::host::Host;

/// Reads these sections of a file with these launches, up to the first one that is damaged.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read(
    bytes: &Bytes<'_>,
    sections: &[(SectionHeader, u64)],
    launches: &BTreeMap<u32, LaunchInfo>,
) -> Result<Host, OpenError> {
    let mut host = Host::default();
    for (header, at) in sections {
        match bytes.body(SectionKind::Host, header, *at).and_then(|body| {
            let times = HostTimes::decode(&body, body_offset(*at), launches.len())?;
            Ok(add(&mut host, times, launches, body_offset(*at))?)
        }) {
            Ok(()) => {}
            // What follows could ask for much work.
            Err(OpenError::Format(error)) => {
                host.damage = Some(error);
                break;
            }
            Err(other) => return Err(other),
        }
    }
    Ok(host)
}

fn add(
    host: &mut Host,
    times: HostTimes,
    launches: &BTreeMap<u32, LaunchInfo>,
    offset: u64,
) -> Result<(), FormatError> {
    let wrong = |message: String| Err(FormatError::Contents { section: "HOST", offset, message });
    for launch in times.launches {
        if !launches.contains_key(&launch.launch) {
            return wrong(format!("launch {} is not in the file", launch.launch));
        }
        if host.launches.contains_key(&launch.launch) {
            return wrong(format!("launch {} is told of a second time", launch.launch));
        }
        host.launches.insert(launch.launch, launch);
    }
    if host.readings.len() + times.readings.len() > MAX_HOST_READINGS as usize {
        return wrong(format!("more than {MAX_HOST_READINGS} readings of clocks"));
    }
    host.readings.extend(times.readings);
    Ok(())
}
