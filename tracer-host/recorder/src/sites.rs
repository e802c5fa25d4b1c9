//! Sites as the file has them.

use warptrace_format::file::SiteInfo;
use warptrace_ptx::points::Site;

/// Describes a site for the file; where the source does not have it, `ptx_name` is the text that does.
#[must_use]
pub fn site_info(site: &Site, ptx_name: &str) -> SiteInfo {
    let clamped = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (file, line, column) = match &site.source {
        Some(source) => (source.file.to_string(), source.line, source.column),
        None => (ptx_name.to_owned(), clamped(site.ptx_line), clamped(site.ptx_column)),
    };
    SiteInfo {
        elements: site.elements,
        is_predicated: site.is_predicated,
        cache: site.cache.to_string(),
        column,
        derived: site.derived,
        ..SiteInfo::new(site.id, site.kind, site.space, site.bytes).at(site.location, file, line)
    }
}
