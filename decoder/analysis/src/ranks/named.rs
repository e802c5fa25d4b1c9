//! Hosts and names of files.

use super::RankTimes;

/// Tolerance for a host's boot time in different files: its real-time clock may be adjusted in between.
const SAME_START_NANOSECONDS: u64 = 1_000_000_000;

/// Returns the number of each file's clock. Hosts with equal names and boot times share a clock.
pub(super) fn clocks_of(files: &[RankTimes]) -> Vec<u32> {
    let mut known: Vec<(Option<(&str, u64)>, u32)> = Vec::new();
    let mut clocks = Vec::new();
    for file in files {
        let host = file.origin.as_deref().and_then(|origin| {
            let began = origin.began?;
            Some((origin.host.as_deref()?, began.realtime_ns.saturating_sub(began.monotonic_ns)))
        });
        let is_it = |(other, _): &&(Option<(&str, u64)>, u32)| match (host, other) {
            (Some((host, start)), Some((other, other_start))) => {
                host == *other && start.abs_diff(*other_start) <= SAME_START_NANOSECONDS
            }
            _ => false,
        };
        let same = known.iter().find(is_it).map(|(_, number)| *number);
        let number = same.unwrap_or(known.len() as u32);
        if same.is_none() {
            known.push((host, number));
        }
        clocks.push(number);
    }
    clocks
}

/// Returns the names of files: the rank if it is unique, otherwise the rank and the device, or the file name.
pub(super) fn names(files: &[RankTimes]) -> Vec<String> {
    let rank = |file: &RankTimes| Some(format!("rank {}", file.origin.as_deref()?.rank?));
    let device =
        |file: &RankTimes| Some(format!("{}, device {}", rank(file)?, file.origin.as_deref()?.device?));
    let [ranks, devices]: [Vec<Option<String>>; 2] =
        [files.iter().map(rank).collect(), files.iter().map(device).collect()];
    let only = |names: &[Option<String>], at: usize| {
        let is_other = |other: &Option<String>| *other == names[at];
        names[at].clone().filter(|_| names.iter().filter(|other| is_other(other)).count() == 1)
    };
    let name = |(at, file): (usize, &RankTimes)| {
        only(&ranks, at).or_else(|| only(&devices, at)).unwrap_or_else(|| file.file.clone())
    };
    files.iter().enumerate().map(name).collect()
}
