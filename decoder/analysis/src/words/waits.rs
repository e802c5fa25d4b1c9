//! Sentences about waits: the barrier, and the copies that are waited for.

use warptrace_format::file::{CopyPlace, WaitInfo};

use super::{Names, count};

const COPIES: usize = 4;

/// Returns the barrier where lanes wait, and its phase; `None` if it is unknown, or there is no barrier.
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

/// Describes the copies that a wait is for; `None` if the code has no information about copies.
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
