//! The figures of the page as JSON: rows as the commands print them with `--json`.

use serde_json::{Value, json};
use warptrace_analysis::words::{self, Names};
use warptrace_analysis::{Analysis, Edge};

use crate::changes::Changes;
use crate::limits::Limits;
use crate::strips::Strips;
use crate::{loops, warps};

/// The figures that the page shows; `limits` rows of each kind.
pub(crate) fn figures(
    analysis: &Analysis,
    names: &Names,
    strips: Option<&Strips>,
    changes: Option<&Changes>,
    limits: Limits,
) -> Value {
    let lines: Vec<_> = words::hottest(analysis).into_iter().take(limits.lines).collect();
    let loops: Vec<_> = loops::heads(analysis).into_iter().take(limits.loops).collect();
    let paths: Vec<_> = analysis.paths.iter().take(limits.paths).collect();
    let standing: Vec<_> = analysis.standing.iter().take(limits.standing).collect();
    let kernels: Vec<_> = analysis.kernels.iter().take(limits.standing).collect();
    let mut edges: Vec<&Edge> = analysis.edges.iter().collect();
    edges.sort_by_key(|edge| std::cmp::Reverse(edge.lanes));
    edges.truncate(limits.edges);
    let shown = strips.map_or(&[][..], |strips| &strips.strips);
    let mut locations: Vec<u16> = shown.iter().flat_map(|strip| strip.runs.iter().map(|run| run.0)).collect();
    locations.sort_unstable();
    locations.dedup();
    let locations: serde_json::Map<String, Value> =
        locations.into_iter().map(|id| (id.to_string(), json!(names.name(id)))).collect();
    let mut value = json!({
        "whole": analysis.losses.is_whole(),
        "losses": analysis.losses,
        "launches": analysis.launches,
        "totals": analysis.counts,
        "active": analysis.active,
        "finding": words::finding(analysis, names),
        "standing": standing,
        "kernels": kernels,
        "lines": lines,
        "loops": loops,
        "warp_events": analysis.warp_events,
        "warps": warps::curve(analysis, limits),
        "paths": { "number": analysis.paths.len(), "most_common": paths },
        "edges": edges,
        "strips": shown,
        "colours": strips.map(|strips| &strips.colours),
        "names": locations,
        "changes": changes.map(|changes| &changes.json),
        "limits": limits,
    });
    shorten(&mut value, limits.text);
    value
}

/// Cuts texts that are longer than `most` characters: a table of locations may hold any.
fn shorten(value: &mut Value, most: usize) {
    match value {
        Value::String(text) => *text = crate::page::cut(text, most),
        Value::Array(values) => values.iter_mut().for_each(|value| shorten(value, most)),
        Value::Object(values) => values.values_mut().for_each(|value| shorten(value, most)),
        _ => {}
    }
}

/// JSON that can stand in a `script` element: nothing in it ends the element or begins a comment.
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
