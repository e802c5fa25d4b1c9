//! Sites and waits in the form of the file.

use std::collections::BTreeSet;

use warptrace_device::SourceValue;
use warptrace_format::file::{CopyPlace, SiteInfo, ValueType, WaitInfo};
use warptrace_ptx::points::{PointCopy, PointWait, Site, SourcePlace};

/// Returns the place in the source, or the place in the PTX text `ptx_name` if no source place is known.
fn place(source: Option<&SourcePlace>, (line, column): (usize, usize), ptx_name: &str) -> CopyPlace {
    let clamped = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    match source {
        Some(source) => CopyPlace { file: source.file.to_string(), line: source.line, column: source.column },
        None => CopyPlace { file: ptx_name.to_owned(), line: clamped(line), column: clamped(column) },
    }
}

/// Describes a site for the file. `ptx_name` names the PTX text, used if the site has no source place.
#[must_use]
pub fn site_info(site: &Site, ptx_name: &str) -> SiteInfo {
    let CopyPlace { file, line, column } =
        place(site.source.as_ref(), (site.ptx_line, site.ptx_column), ptx_name);
    if let Some(value) = &site.value {
        let info = SiteInfo::of_value(site.id, value.ty, value.name.to_string());
        return SiteInfo { column, ..info.at(site.location, file, line) };
    }
    SiteInfo {
        elements: site.elements,
        is_predicated: site.is_predicated,
        cache: site.cache.to_string(),
        column,
        derived: site.derived,
        ..SiteInfo::new(site.id, site.kind, site.space, site.bytes).at(site.location, file, line)
    }
}

/// Describes a site for a value of type `of` that a module declares in `file`.
pub(crate) fn value_info(number: u16, of: ValueType, value: &SourceValue, file: &str) -> SiteInfo {
    let info = SiteInfo::of_value(number, of, value.name);
    SiteInfo { column: value.column, ..info.at(value.location, file, value.line) }
}

/// Describes a wait for the file, and merges copies at one place. `ptx_name` replaces a missing source file.
#[must_use]
pub fn wait_info(wait: &PointWait, ptx_name: &str) -> WaitInfo {
    let place = |copy: &PointCopy| place(copy.source.as_ref(), (copy.ptx_line, copy.ptx_column), ptx_name);
    let at = wait.at.as_ref().map(place);
    let copies: BTreeSet<CopyPlace> = wait.copies.iter().map(place).collect();
    let (barrier, phase) = (wait.barrier.clone(), wait.phase.clone());
    WaitInfo { barrier, phase, copies: copies.into_iter().collect(), is_certain: wait.is_certain, at }
}
