//! Formats addresses as buffers and offsets.

use warptrace_analysis::words::buffer_name;
use warptrace_decoder::{AddressPlace, BufferMap, VectorRun};
use warptrace_format::file::data::lanes;
use warptrace_format::file::{BufferInfo, SiteInfo, SiteSpace};

/// Maps addresses of sites to buffers, if the trace has buffers.
pub(crate) struct Places<'t>(pub(crate) Option<BufferMap<'t>>);

impl<'t> Places<'t> {
    /// Moves to a launch, to which the following calls refer.
    pub(crate) fn go_to(&mut self, launch: u32) {
        if let Some(map) = &mut self.0 {
            map.go_to(launch);
        }
    }

    /// Returns the buffer that contains the first byte of an access, and the offset of that byte.
    pub(crate) fn at(&self, site: Option<&SiteInfo>, address: u64) -> Option<(&'t BufferInfo, u64)> {
        let is_global = site.is_some_and(|site| {
            site.kind.is_memory() && matches!(site.space, SiteSpace::Global | SiteSpace::Generic)
        });
        match self.0.as_ref().filter(|_| is_global)?.at(address) {
            AddressPlace::In(buffer, offset) => Some((buffer, offset)),
            AddressPlace::Outside | AddressPlace::Unknown => None,
        }
    }

    /// Formats an address as `#3+64 (4096 bytes)`, or in hexadecimal if it is in no known buffer.
    pub(crate) fn describe(&self, site: Option<&SiteInfo>, address: u64) -> String {
        match self.at(site, address) {
            Some((buffer, offset)) => format!("{}+{offset} ({} bytes)", buffer_name(buffer), buffer.bytes),
            None => format!("{address:#x}"),
        }
    }

    /// Returns a note if some or all accesses of a run are in no buffer, otherwise an empty text.
    pub(crate) fn warning(&self, site: Option<&SiteInfo>, run: &VectorRun<'_>) -> &'static str {
        let (Some(map), Some(site)) = (&self.0, site) else { return "" };
        if site.space != SiteSpace::Global || !site.kind.is_memory() {
            return "";
        }
        let runs = lanes(run.group.mask).filter_map(|lane| run.run(lane));
        let outside: u64 = runs.map(|run| u64::from(map.outside(run, u64::from(site.bytes)))).sum();
        match outside {
            0 => "",
            all if all == run.accesses() => ", in no buffer",
            _ => ", some in no buffer",
        }
    }
}
