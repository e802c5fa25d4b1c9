//! Sentences about launches that failed or had not ended.

use warptrace_decoder::TraceFile;
use warptrace_format::file::WaitInfo;

use super::sentences::KERNEL_WIDTH;
use super::{Names, barrier, block, count, cut, many};
use crate::hangs::{Doing, Hang, HangGroup, HangPlace};

const GROUPS: usize = 4;

/// Describes in one sentence where the warps of a launch were that failed or had not ended.
pub fn hang(trace: &TraceFile, names: &Names, hang: &Hang) -> String {
    let (launch, kernel) = (super::launch(trace, hang.launch), cut(&hang.kernel, KERNEL_WIDTH));
    let verb = if hang.failed { "failed" } else { "had not ended" };
    format!("{launch} of kernel `{kernel}` {verb}: {}", where_warps_were(trace, names, hang))
}

pub(super) fn where_warps_were(trace: &TraceFile, names: &Names, hang: &Hang) -> String {
    if hang.unknown == hang.warps {
        return "where its warps were is not known".to_owned();
    }
    let mut parts: Vec<String> =
        hang.groups.iter().take(GROUPS).map(|found| group(trace, names, hang, found)).collect();
    if let Some(more) = hang.groups.get(GROUPS..).filter(|more| !more.is_empty()) {
        let warps = more.iter().map(|group| group.warps).sum();
        parts.push(format!("{} are at {}", many(warps, "warp"), many(more.len() as u64, "other place")));
    }
    for (warps, what) in
        [(hang.unknown, "are at places that are not known"), (hang.not_started, "have not begun")]
    {
        if warps > 0 {
            parts.push(format!("{} {}", many(warps, "warp"), verb(warps, what)));
        }
    }
    parts.push(match hang.ended {
        0 => format!("none of {} has ended", many(hang.warps, "warp")),
        ended => format!("{} of {} {}", count(ended), many(hang.warps, "warp"), verb(ended, "have ended")),
    });
    parts.join("; ")
}

/// Returns the form of a verb for a number: "are", "have", "go", and verbs that take an "s".
fn verb(number: u64, words: &str) -> String {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    let one = match verb {
        "are" => "is".to_owned(),
        "have" => "has".to_owned(),
        "go" => "goes".to_owned(),
        verb => format!("{verb}s"),
    };
    format!("{} {rest}", if number == 1 { &one } else { verb })
}

fn group(trace: &TraceFile, names: &Names, hang: &Hang, group: &HangGroup) -> String {
    let first = trace.launch(hang.launch).and_then(|info| {
        let id = info.stream_id(group.first)?;
        Some(format!("block {} warp {}", block(info, id.block), id.warp_in_block))
    });
    let which = if group.warps == 1 { "" } else { "first: " };
    let first = first.map_or_else(String::new, |first| format!(" ({which}{first})"));
    let mut said = match &group.places[..] {
        [place] => {
            let what = verb(group.warps, &doing(names, place));
            format!("{} {what}{first}", many(group.warps, "warp"))
        }
        places => {
            let parts = places.iter().map(|place| {
                let lanes = place.lanes.div_ceil(group.warps);
                let about = if place.lanes.is_multiple_of(group.warps) { "" } else { "up to " };
                format!("{about}{} {}", many(lanes, "lane"), verb(lanes, &doing(names, place)))
            });
            let each = if group.warps == 1 { "" } else { " each" };
            format!("{}{first}{each}: {}", many(group.warps, "warp"), parts.collect::<Vec<_>>().join(", "))
        }
    };
    let missing: Vec<String> = [(group.not_arrived, "have not come"), (group.ended, "have ended")]
        .into_iter()
        .filter(|(warps, _)| *warps > 0)
        .map(|(warps, what)| {
            let of = if group.warps == 1 { "its block" } else { "their blocks" };
            format!("{} of {of} {}", many(warps, "warp"), verb(warps, what))
        })
        .collect();
    if !missing.is_empty() {
        said = format!("{said}, where {}", missing.join(" and "));
    }
    said
}

fn doing(names: &Names, place: &HangPlace) -> String {
    let at = match names.line(&place.file, place.line).as_str() {
        "-" => names.said(place.location),
        line => line.to_owned(),
    };
    match place.doing {
        Doing::Loop => format!("go round the loop at {at}"),
        Doing::Barrier => {
            let info = WaitInfo { barrier: place.barrier.clone(), ..WaitInfo::default() };
            let name = match place.barrier.as_str() {
                "warp" => "the other lanes of the warp".to_owned(),
                _ => barrier(&info).unwrap_or_else(|| "a barrier".to_owned()),
            };
            let word = if place.barrier == "warp" { "for" } else { "at" };
            format!("wait {word} {name} at {at}")
        }
        Doing::At => format!("are at {at}"),
        Doing::Behind => format!("wait behind {at} for other lanes of the warp"),
        Doing::Begun => "have come to no point yet".to_owned(),
    }
}
