//! Sites as the file has them.

use warptrace_format::file::{SiteInfo, SiteKind, SiteSpace};
use warptrace_ptx::points::{self, Site};

/// Describes a site for the file; where the source does not have it, `ptx_name` is the text that does.
#[must_use]
pub fn site_info(site: &Site, ptx_name: &str) -> SiteInfo {
    let kind = match site.kind {
        points::SiteKind::Store => SiteKind::Store,
        points::SiteKind::Atomic => SiteKind::Atomic,
        points::SiteKind::Reduction => SiteKind::Reduction,
        points::SiteKind::CopyFrom => SiteKind::CopyFrom,
        points::SiteKind::CopyTo => SiteKind::CopyTo,
        _ => SiteKind::Load,
    };
    let space = match site.space {
        points::SiteSpace::Global => SiteSpace::Global,
        points::SiteSpace::Shared => SiteSpace::Shared,
        points::SiteSpace::Cluster => SiteSpace::Cluster,
        points::SiteSpace::Local => SiteSpace::Local,
        _ => SiteSpace::Generic,
    };
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
        ..SiteInfo::new(site.id, kind, space, site.bytes).at(site.location, file, line)
    }
}
