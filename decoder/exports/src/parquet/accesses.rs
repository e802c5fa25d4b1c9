//! Tables of addresses and values, of their sites, and of accesses that are not known.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;

use warptrace_analysis::{
    AccessCounts, AccessLacks, AccessRow, AccessTable, SiteFigures, ValueReading,
    access_losses as launches_lacking, access_rows, accesses as count_accesses,
};
use warptrace_format::file::{LaunchInfo, SiteInfo};

use super::known;
use super::table::{Column, Kind, Table, TextId, Value, column, optional};
use crate::error::ExportError;
use crate::source::Source;

/// Columns that all four tables begin with.
const COMMON: [Column; 17] = [
    column("launch", Kind::LargeSigned),
    column("kernel", Kind::Text),
    column("block_x", Kind::Small(32)),
    column("block_y", Kind::Small(32)),
    column("block_z", Kind::Small(32)),
    column("warp", Kind::Small(32)),
    column("warp_index", Kind::Small(32)),
    column("site", Kind::Small(16)),
    optional("kind", Kind::Text),
    optional("space", Kind::Text),
    optional("bytes", Kind::Small(32)),
    optional("name", Kind::Text),
    optional("file", Kind::Text),
    optional("line", Kind::Small(32)),
    optional("location", Kind::Small(16)),
    optional("time", Kind::Large),
    column("request", Kind::Large),
];

const RUNS: [Column; 8] = [
    column("mask", Kind::Small(32)),
    column("lanes", Kind::Small(8)),
    column("form", Kind::Text),
    optional("lane", Kind::Small(8)),
    column("base", Kind::Large),
    optional("spread", Kind::Signed),
    column("step", Kind::Signed),
    column("count", Kind::Small(32)),
];

const ADDRESSES: [Column; 2] = [column("lane", Kind::Small(8)), column("address", Kind::Large)];

const VALUES: [Column; 3] =
    [column("lane", Kind::Small(8)), column("bits", Kind::Large), optional("number", Kind::Float)];

const SITES: [Column; 26] = [
    column("site", Kind::Small(16)),
    optional("kind", Kind::Text),
    optional("space", Kind::Text),
    optional("bytes", Kind::Small(32)),
    optional("elements", Kind::Small(32)),
    optional("cache", Kind::Text),
    optional("name", Kind::Text),
    optional("number", Kind::Text),
    optional("root", Kind::Small(16)),
    optional("location", Kind::Small(16)),
    optional("file", Kind::Text),
    optional("line", Kind::Small(32)),
    optional("column", Kind::Small(32)),
    column("accesses", Kind::Large),
    column("requests", Kind::Large),
    optional("events", Kind::Large),
    column("uniform", Kind::Large),
    column("affine", Kind::Large),
    column("generic", Kind::Large),
    optional("stride", Kind::LargeSigned),
    column("sectors", Kind::Large),
    column("least_sectors", Kind::Large),
    column("moved_bytes", Kind::Large),
    column("used_bytes", Kind::Large),
    column("passes", Kind::Large),
    column("least_passes", Kind::Large),
];

const LOSSES: [Column; 7] = [
    column("launch", Kind::LargeSigned),
    column("kernel", Kind::Text),
    column("accesses", Kind::Large),
    column("lost", Kind::Large),
    column("left_out", Kind::Large),
    column("unmatched", Kind::Large),
    column("damaged_entries", Kind::Large),
];

fn columns(table: AccessTable) -> Vec<Column> {
    let own = match table {
        AccessTable::Accesses | AccessTable::Values => &RUNS[..],
        AccessTable::LaneAccesses => &ADDRESSES,
        AccessTable::LaneValues => &VALUES,
    };
    COMMON.iter().chain(own).copied().collect()
}

/// Writes the addresses or values of the selected warps; none if the trace has none. What of them is not
/// known is in the facts `accesses_lost`, `accesses_left_out` and `accesses_unmatched`. Returns how many rows
/// were written.
///
/// Memory: that of [`TraceFile::accesses_in_order`](warptrace_decoder::TraceFile::accesses_in_order), and
/// 2^18 rows.
///
/// # Errors
/// The trace is damaged, or `out` cannot be written.
pub fn accesses(source: &Source<'_>, out: impl Write + Send, which: AccessTable) -> Result<u64, ExportError> {
    let trace = source.trace();
    let mut table = Table::new(
        trace.limited(out),
        which.name(),
        &columns(which),
        &["launch", "warp_index"],
        &source.facts(),
    )?;
    let texts: BTreeMap<u16, SiteTexts> =
        trace.sites().map(|site| (site.number, SiteTexts::new(site, &mut table))).collect();
    let forms = ["uniform", "affine", "generic"].map(|form| (form, table.text(form)));
    let (mut lost, mut lacks) = (0, AccessLacks::default());
    // Of many launches asking each would take long.
    let launches = if trace.has_accesses() { source.launches_with_warps() } else { &[] };
    for (info, filter) in launches {
        let kernel = table.text(source.kernel(info));
        let mut result = Ok(());
        let of = (filter, source.selection());
        let (_, lacking) = access_rows(trace, info, of, which, &mut |row| {
            let mut values = common(info, row, kernel, texts.get(&row.site).copied().unwrap_or_default());
            match which {
                AccessTable::Accesses | AccessTable::Values => {
                    let form = forms.iter().find(|(form, _)| *form == row.form()).map(|(_, text)| *text);
                    values.extend_from_slice(&[
                        row.mask.into(),
                        row.mask.count_ones().into(),
                        form.into(),
                        row.lane.into(),
                        row.base.into(),
                        row.spread.into(),
                        row.step.into(),
                        row.count.into(),
                    ]);
                }
                AccessTable::LaneAccesses => values.extend_from_slice(&[row.lane.into(), row.base.into()]),
                AccessTable::LaneValues => {
                    let number = trace.site(row.site).and_then(ValueReading::of);
                    let number = number.and_then(|reading| reading.exact(row.base));
                    values.extend_from_slice(&[row.lane.into(), row.base.into(), number.into()]);
                }
            }
            result = table.push(&values);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result?;
        table.end_launch()?;
        lacks.left_out += lacking.left_out;
        lacks.unmatched += lacking.unmatched;
        lost += source.selection().lost_accesses(trace, info)?;
    }
    table.fact("accesses_lost", lost.to_string());
    table.fact("accesses_left_out", lacks.left_out.to_string());
    table.fact("accesses_unmatched", lacks.unmatched.to_string());
    Ok(table.finish()?)
}

/// Writes a row for each site, with what was accessed there in the selected warps. Returns how many rows were
/// written.
///
/// # Errors
/// The trace is damaged, or `out` cannot be written.
pub fn sites(source: &Source<'_>, out: impl Write + Send) -> Result<u64, ExportError> {
    let trace = source.trace();
    let mut table = Table::new(trace.limited(out), "sites", &SITES, &["site"], &source.facts())?;
    let counted = count_accesses(trace, source.selection())?;
    let of_table = trace.sites().map(|info| (info.number, (Some(info), None)));
    let mut rows: BTreeMap<u16, (Option<&SiteInfo>, Option<&SiteFigures>)> = of_table.collect();
    for site in &counted.sites {
        rows.entry(site.site).or_default().1 = Some(site);
    }
    let none = AccessCounts::default();
    for (number, (info, figures)) in rows {
        let mut text = |of: fn(&SiteInfo) -> &str| table.text_if_known(info.map_or("", of));
        let texts: [fn(&SiteInfo) -> &str; 4] =
            [|info| info.kind.name(), |info| info.space.name(), |info| &info.cache, |info| &info.name];
        let [kind, space, cache, name] = texts.map(&mut text);
        let [value, file] =
            [text(|info| ValueReading::of(info).map_or("", ValueReading::kind)), text(|info| &info.file)];
        let counts = figures.map_or(&none, |figures| &figures.counts);
        let row = [
            u32::from(number).into(),
            kind.into(),
            space.into(),
            info.map(|info| info.bytes).into(),
            info.map(|info| info.elements).into(),
            cache.into(),
            name.into(),
            value.into(),
            info.and_then(|info| Some(u32::from(info.derived?.root))).into(),
            info.and_then(|info| known(info.location.into())).into(),
            file.into(),
            info.and_then(|info| known(info.line)).into(),
            info.and_then(|info| known(info.column)).into(),
            counts.lanes.into(),
            counts.requests.into(),
            figures.and_then(|figures| figures.events).into(),
            counts.uniform.into(),
            counts.affine.into(),
            counts.generic.into(),
            figures.and_then(|figures| Some(figures.stride?.0)).into(),
            counts.sectors.into(),
            counts.least_sectors.into(),
            counts.moved_bytes.into(),
            counts.used_bytes.into(),
            counts.passes.into(),
            counts.least_passes.into(),
        ];
        table.push(&row)?;
    }
    Ok(table.finish()?)
}

/// Writes a row for each selected launch of which accesses are not known. Returns how many rows were written.
///
/// # Errors
/// The trace is damaged, or `out` cannot be written.
pub fn access_losses(source: &Source<'_>, out: impl Write + Send) -> Result<u64, ExportError> {
    let trace = source.trace();
    let mut table = Table::new(trace.limited(out), "access_losses", &LOSSES, &["launch"], &source.facts())?;
    for (info, found) in launches_lacking(trace, source.selection())? {
        let row = [
            i64::from(info.number()).into(),
            table.text(source.kernel(&info)).into(),
            found.accesses.into(),
            found.lost.into(),
            found.left_out.into(),
            found.unmatched.into(),
            found.damaged.into(),
        ];
        table.push(&row)?;
    }
    Ok(table.finish()?)
}

/// What rows say of their site.
#[derive(Clone, Copy, Debug, Default)]
struct SiteTexts {
    kind: Option<TextId>,
    space: Option<TextId>,
    bytes: Option<u32>,
    name: Option<TextId>,
    file: Option<TextId>,
    line: Option<u32>,
    location: Option<u32>,
}

impl SiteTexts {
    fn new<W: Write + Send>(site: &SiteInfo, table: &mut Table<W>) -> Self {
        Self {
            kind: table.text_if_known(site.kind.name()),
            space: table.text_if_known(site.space.name()),
            bytes: Some(site.bytes),
            name: table.text_if_known(&site.name),
            file: table.text_if_known(&site.file),
            line: known(site.line),
            location: known(site.location.into()),
        }
    }
}

/// The values of [`COMMON`].
fn common(info: &LaunchInfo, row: &AccessRow, kernel: TextId, site: SiteTexts) -> Vec<Value> {
    let id = info.stream_id(row.warp).expect("the decoder gives warps of this launch");
    vec![
        i64::from(info.number()).into(),
        kernel.into(),
        id.block[0].into(),
        id.block[1].into(),
        id.block[2].into(),
        id.warp_in_block.into(),
        row.warp.into(),
        u32::from(row.site).into(),
        site.kind.into(),
        site.space.into(),
        site.bytes.into(),
        site.name.into(),
        site.file.into(),
        site.line.into(),
        site.location.into(),
        row.time.into(),
        row.request.into(),
    ]
}
