//! Which files are of one host, and what files are called.

use super::RankTimes;

/// How far apart the moments at which a host was started may seem in files of that host: its real-time clock
/// is set meanwhile.
const SAME_START_NANOSECONDS: u64 = 1_000_000_000;

/// The number of the clock of each file's host. Hosts of one name that were started at other moments are
/// others; of a file that does not say it the clock is its own.
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

/// What files are called: by their ranks, if no two have the same; else also by their devices, or by name.
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
