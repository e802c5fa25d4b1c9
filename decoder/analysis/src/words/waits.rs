//! Sentences about waits: at which barrier, for which copies, and who has not come.

use warptrace_decoder::TraceFile;
use warptrace_format::file::{CopyPlace, WaitInfo};

use super::{Names, count, many, warp};
use crate::figures::{NotCome, Standing};

/// Copies that a sentence names.
const COPIES: usize = 4;
/// Places that a sentence names at which warps are that have not come.
const PLACES: usize = 3;

/// Says at which barrier, and for which of its phases, lanes wait; `None` if that is not known, or they wait
/// at none.
pub fn barrier(info: &WaitInfo) -> Option<String> {
    let name = match info.barrier.strip_prefix("bar ") {
        _ if info.barrier.is_empty() => return None,
        Some(number) => format!("barrier {number}"),
        None if info.barrier == "cluster" => "barrier of the cluster".to_owned(),
        None => info.barrier.clone(),
    };
    let phase = if info.phase.is_empty() { String::new() } else { format!(", parity {}", info.phase) };
    Some(name + &phase)
}

/// Says which copies a wait is for; `None` if the code tells of none.
pub fn copies(names: &Names, info: &WaitInfo) -> Option<String> {
    let mut places: Vec<String> = Vec::new();
    for CopyPlace { file, line, .. } in &info.copies {
        let place = names.line(file, *line);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let more = places.len().saturating_sub(COPIES);
    places.truncate(COPIES);
    let (last, first) = places.split_last()?;
    let word = if info.is_certain { " and " } else { " or " };
    let list = if first.is_empty() { last.clone() } else { format!("{}{word}{last}", first.join(", ")) };
    let list = if more > 0 { format!("{list}, and {} more", count(more as u64)) } else { list };
    Some(match info.is_certain {
        true => format!("waits for copies issued at {list}"),
        false => format!("may wait for copies issued at {list}: which ones is known at run time only"),
    })
}

/// Says at which barrier warps stand that did not finish, and who has not come there.
pub fn not_come(trace: &TraceFile, names: &Names, group: &Standing) -> Vec<String> {
    let Some(place) = group.waits_at else { return Vec::new() };
    let info = trace.metadata().locations.iter().find(|info| info.id == place);
    let known = info.and_then(|info| info.wait.as_deref()).and_then(barrier);
    let mut said = Vec::new();
    said.extend(known.map(|barrier| format!("they wait at {barrier}")));
    if let Some(first) = group.not_come.iter().map(|at| at.first).min() {
        let warps = group.not_come.iter().map(|at| at.warps).sum();
        let place = |at: &NotCome| format!("{} after {}", count(at.warps), names.full(at.location));
        let places: Vec<String> = group.not_come.iter().take(PLACES).map(place).collect();
        let more = if group.not_come.len() > PLACES { ", and elsewhere" } else { "" };
        said.push(format!(
            "{} of their blocks {} not come there: {}{more}; first: {}",
            many(warps, "warp"),
            if warps == 1 { "has" } else { "have" },
            places.join(", "),
            warp(trace, first.launch, first.warp)
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(barrier: &str, phase: &str) -> WaitInfo {
        WaitInfo { barrier: barrier.to_owned(), phase: phase.to_owned(), ..WaitInfo::default() }
    }

    #[test]
    fn barriers_are_said_as_far_as_they_are_known() {
        for (name, phase, said) in [
            ("bar 0", "", "barrier 0"),
            ("bar ?", "", "barrier ?"),
            ("cluster", "", "barrier of the cluster"),
            ("mbarrier full+8", "1", "mbarrier full+8, parity 1"),
            ("mbarrier ?", "?", "mbarrier ?, parity ?"),
        ] {
            assert_eq!(barrier(&info(name, phase)).as_deref(), Some(said));
        }
        assert_eq!(barrier(&info("", "")), None);
    }

    #[test]
    fn copies_are_said_to_be_certain_or_not() {
        let (points, short) = Default::default();
        let names = Names { points, short, width: 24 };
        let place = |line| CopyPlace { file: "a.cu".to_owned(), line, column: 0 };
        let with = |lines: &[u32], is_certain| {
            let copies = lines.iter().map(|line| place(*line)).collect();
            super::copies(&names, &WaitInfo { copies, is_certain, ..WaitInfo::default() })
        };
        assert_eq!(with(&[], true), None);
        assert_eq!(with(&[3, 3], true).as_deref(), Some("waits for copies issued at a.cu:3"));
        assert_eq!(
            with(&[3, 4, 5], true).as_deref(),
            Some("waits for copies issued at a.cu:3, a.cu:4 and a.cu:5")
        );
        let said = with(&[3, 4, 5, 6, 7], false).unwrap();
        assert!(
            said.starts_with("may wait for copies issued at a.cu:3, a.cu:4, a.cu:5 or a.cu:6, and 1 more")
        );
    }
}
