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

/// What a file says of its rank and its device, in words.
type Known = (Option<String>, Option<String>);

/// What files are called: by their ranks, if no two have the same; else also by their devices, or by name.
pub(super) fn names(files: &[RankTimes]) -> Vec<String> {
    let of = |file: &RankTimes| {
        let origin = file.origin.as_deref();
        let rank = origin.and_then(|origin| origin.rank).map(|rank| format!("rank {rank}"));
        let device = origin.and_then(|origin| origin.device).map(|device| format!("device {device}"));
        (rank, device)
    };
    let all: Vec<_> = files.iter().map(of).collect();
    let is_one = |name: &dyn Fn(&Known) -> Option<String>, own: &String| {
        all.iter().filter(|other| name(other).as_ref() == Some(own)).count() == 1
    };
    let with_device = |(rank, device): &Known| Some(format!("{}, {}", rank.as_ref()?, device.as_ref()?));
    let rank_of = |known: &Known| known.0.clone();
    let name = |(file, known): (&RankTimes, &Known)| {
        let rank = rank_of(known).filter(|own| is_one(&rank_of, own));
        let device = || with_device(known).filter(|own| is_one(&with_device, own));
        rank.or_else(device).unwrap_or_else(|| file.file.clone())
    };
    files.iter().zip(&all).map(name).collect()
}
