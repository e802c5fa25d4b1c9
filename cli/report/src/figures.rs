//! Figures of the page as JSON, in the form that the commands print with `--json`.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use warptrace_analysis::words;
use warptrace_analysis::{Edge, OrderItems};

use crate::blocks::Blocks;
use crate::changes::Changes;
use crate::guide::{Guide, by_heat};
use crate::parts::Parts;
use crate::strips::Strips;
use crate::timeline::Timeline;
use crate::{loops, warps};

pub(crate) fn figures(
    guide: &Guide<'_>,
    parts: &Parts,
    strips: Option<&Strips>,
    timelines: &[Timeline],
    blocks: Option<&Blocks>,
    changes: Option<&Changes>,
) -> Value {
    let Guide { analysis, names, limits, .. } = *guide;
    let lines: Vec<_> = by_heat(analysis).into_iter().take(limits.lines).collect();
    let causes: Vec<_> = analysis.causes.iter().take(limits.changes).collect();
    let loops: Vec<_> = loops::heads(analysis).into_iter().take(limits.loops).collect();
    let paths: Vec<_> = analysis.paths.iter().take(limits.paths).collect();
    let kernels: Vec<_> = analysis.kernels.iter().take(limits.kernels).collect();
    let mut edges: Vec<&Edge> = analysis.edges.iter().collect();
    edges.order_by_key(|edge| std::cmp::Reverse(edge.lanes));
    edges.truncate(limits.edges);
    let coloured = || strips.into_iter().flat_map(|strips| strips.colours.keys());
    let columns = timelines.iter().flat_map(|timeline| &timeline.rows).flat_map(|row| &row.columns);
    let of_columns: BTreeSet<u16> = columns.map(|(id, _)| *id).filter(|id| *id > 0).collect();
    let of_blocks: BTreeSet<u16> = blocks.into_iter().flat_map(Blocks::locations).collect();
    let of_parts = parts.rows.iter().filter_map(|row| row.part.location.as_ref());
    let locations: BTreeMap<u16, String> = coloured()
        .chain(of_parts)
        .chain(&of_columns)
        .chain(&of_blocks)
        .map(|&id| (id, names.full(id)))
        .collect();
    let colours: BTreeMap<u16, usize> =
        coloured().chain(&of_columns).chain(&of_blocks).map(|&id| (id, guide.colour(id))).collect();
    let mut value = json!({
        "whole": analysis.losses.is_whole(),
        "losses": analysis.losses,
        "launches": analysis.launches,
        "totals": analysis.totals(),
        "active": analysis.active,
        "finding": words::finding(analysis, names),
        "time_finding": words::time(guide.trace, analysis, names),
        "findings": words::findings(guide.trace, analysis, names),
        "kernels": kernels,
        "causes": causes,
        "lines": lines,
        "loops": loops,
        "warp_events": analysis.warp_events,
        "warps": warps::curve(&guide.warps, limits),
        "paths": { "number": analysis.paths.len(), "most_common": paths },
        "edges": edges,
        "parts": parts.rows,
        "colours": colours,
        "names": locations,
        "changes": changes.map(|changes| &changes.json),
        "limits": limits,
    });
    let findings = words::schedule(guide.trace, analysis);
    if !findings.is_empty() {
        value["schedule_findings"] = json!(findings);
    }
    if let Some(schedule) = &analysis.schedule {
        value["schedule"] = json!(schedule.longest_waits(limits.kernels));
    }
    shorten(&mut value, limits.text);
    value
}

/// Returns the strips, timelines and blocks as JSON, compressed with DEFLATE, in base64. They are most of the
/// page and are unpacked when they are first drawn.
pub(crate) fn packed(
    strips: Option<&Strips>,
    timelines: &[Timeline],
    blocks: Option<&Blocks>,
    most: usize,
) -> Result<String, serde_json::Error> {
    let Some(strips) = strips else { return Ok(String::new()) };
    let mut value = json!({
        "strips": strips.strips,
        "paths": strips.paths,
        "events": strips.events,
        "timelines": timelines,
        "blocks": blocks.map(|blocks| &blocks.drawn),
    });
    shorten(&mut value, most);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut encoder, &value)?;
    Ok(BASE64.encode(encoder.finish().map_err(serde_json::Error::io)?))
}

/// Cuts all texts to `most` characters. A table of locations may contain texts of any length.
pub(crate) fn shorten(value: &mut Value, most: usize) {
    match value {
        Value::String(text) => *text = crate::page::cut(text, most),
        Value::Array(values) => values.iter_mut().for_each(|value| shorten(value, most)),
        Value::Object(values) => values.values_mut().for_each(|value| shorten(value, most)),
        _ => {}
    }
}

/// Returns JSON that is safe inside a `script` element: it cannot end the element or begin a comment.
pub(crate) fn in_html(value: &Value) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    Ok(text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_leave_its_element() {
        let value = json!({ "name": "</script><!-- & \u{2028}" });
        let text = in_html(&value).expect("JSON");
        assert!(!text.contains(['<', '>', '&']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }

    #[test]
    fn long_texts_are_cut() {
        let mut value = json!({ "a": ["x".repeat(500)] });
        shorten(&mut value, 40);
        assert_eq!(value["a"][0].as_str().map(|text| text.chars().count()), Some(40));
    }
}
