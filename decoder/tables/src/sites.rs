//! Tables of sites, and of accesses that are not known.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, UInt16Array, UInt32Array};
use warptrace_analysis::{
    AccessCounts, Accesses, SiteFigures, ValueReading, access_losses, accesses, kernel_name,
};
use warptrace_format::file::{LaunchInfo, SiteInfo};

use crate::figures::{Figures, Result, known, known_u64s, texts, u16s, u32s, u64s};
use crate::schema;

/// The table of sites, and those that it does not have but were accessed. Accesses are counted only if a
/// column asks for that.
pub(crate) fn sites(named: &Figures<'_>, columns: &[usize]) -> Result<(usize, Vec<ArrayRef>)> {
    let is_counted = columns.iter().any(|&column| column >= schema::SITE_FIGURES);
    let counted = if is_counted { accesses(named.trace, named.selection)? } else { Accesses::default() };
    let of_table = named.trace.sites().map(|info| (info.number, (Some(info), None)));
    let mut rows: BTreeMap<u16, (Option<&SiteInfo>, Option<&SiteFigures>)> = of_table.collect();
    for site in &counted.sites {
        rows.entry(site.site).or_default().1 = Some(site);
    }
    let rows: Vec<_> = rows.into_iter().collect();
    let infos = || rows.iter().map(|(_, (info, _))| *info);
    let text = |of: fn(&SiteInfo) -> &str| known(infos().map(|info| info.map_or("", of)));
    let number = |of: fn(&SiteInfo) -> Option<u32>| -> ArrayRef {
        Arc::new(infos().map(|info| of(info?)).collect::<UInt32Array>())
    };
    let id = |of: fn(&SiteInfo) -> Option<u16>| -> ArrayRef {
        Arc::new(infos().map(|info| of(info?)).collect::<UInt16Array>())
    };
    let figures = || rows.iter().map(|(_, (_, figures))| *figures);
    let count = |of: fn(&AccessCounts) -> u64| {
        u64s(figures().map(|figures| figures.map_or(0, |figures| of(&figures.counts))))
    };
    let array = |&column: &usize| match column {
        0 => texts(rows.iter().map(|_| named.name)),
        1 => u16s(rows.iter().map(|(number, _)| *number)),
        2 => text(|info| info.kind.name()),
        3 => text(|info| info.space.name()),
        4 => number(|info| Some(info.bytes)),
        5 => number(|info| Some(info.elements)),
        6 => text(|info| &info.cache),
        7 => text(|info| &info.name),
        8 => text(|info| ValueReading::of(info).map_or("", ValueReading::kind)),
        9 => id(|info| Some(info.derived?.root)),
        10 => id(|info| Some(info.location).filter(|location| *location > 0)),
        11 => text(|info| &info.file),
        12 => number(|info| Some(info.line).filter(|line| *line > 0)),
        13 => number(|info| Some(info.column).filter(|column| *column > 0)),
        14 => count(|counts| counts.lanes),
        15 => count(|counts| counts.requests),
        16 => known_u64s(figures().map(|figures| figures?.events)),
        17 => count(|counts| counts.uniform),
        18 => count(|counts| counts.affine),
        19 => count(|counts| counts.generic),
        20 => Arc::new(figures().map(|figures| Some(figures?.stride?.0)).collect::<Int64Array>()),
        21 => count(|counts| counts.sectors),
        22 => count(|counts| counts.least_sectors),
        23 => count(|counts| counts.moved_bytes),
        24 => count(|counts| counts.used_bytes),
        25 => count(|counts| counts.passes),
        _ => count(|counts| counts.least_passes),
    };
    Ok((rows.len(), columns.iter().map(array).collect()))
}

/// A row for each launch of which accesses are not known.
pub(crate) fn losses(named: &Figures<'_>, columns: &[usize]) -> Result<(usize, Vec<ArrayRef>)> {
    let rows: Vec<(LaunchInfo, Accesses)> = access_losses(named.trace, named.selection)?;
    let count = |of: fn(&Accesses) -> u64| u64s(rows.iter().map(|(_, found)| of(found)));
    let array = |&column: &usize| match column {
        0 => texts(rows.iter().map(|_| named.name)),
        1 => u32s(rows.iter().map(|(info, _)| info.number())),
        2 => texts(rows.iter().map(|(info, _)| kernel_name(named.trace, info))),
        3 => count(|found| found.accesses),
        4 => count(|found| found.lost),
        5 => count(|found| found.left_out),
        6 => count(|found| found.unmatched),
        _ => count(|found| found.damaged),
    };
    Ok((rows.len(), columns.iter().map(array).collect()))
}
