//! Cost of requests: 32-byte sectors of global memory, and passes through the banks of shared memory.

use warptrace_decoder::VectorRun;
use warptrace_format::data::LaneRun;
use warptrace_format::file::data::lanes;

/// Bytes of a sector of global memory.
pub const SECTOR_BYTES: u64 = 32;
const BANKS: u64 = 32;
const WORD_BYTES: u64 = 4;

pub(super) type Request = [(u32, u64)];

/// Counts the sectors that a request with `bytes` bytes per lane touches, and the distinct bytes used.
#[must_use]
pub fn sectors(request: &Request, bytes: u64) -> (u64, u64) {
    let mut parts: Vec<(u64, u64)> =
        request.iter().map(|(_, address)| (*address, address.saturating_add(bytes))).collect();
    parts.sort_unstable();
    let (mut sectors, mut used, mut next_sector, mut used_to) = (0, 0, 0, 0);
    for (from, to) in parts {
        if to <= from {
            continue;
        }
        let (first, last) = ((from / SECTOR_BYTES).max(next_sector), (to - 1) / SECTOR_BYTES);
        sectors += (last + 1).saturating_sub(first);
        next_sector = next_sector.max(last + 1);
        used += to.saturating_sub(from.max(used_to));
        used_to = used_to.max(to);
    }
    (sectors, used)
}

/// Counts the passes of a request with `bytes` bytes per lane through the banks of shared memory, and their
/// minimum. Requests of 8 bytes are processed in halves of a warp, of 16 bytes in quarters. Each part takes
/// as many passes as the greatest number of distinct words in a bank.
#[must_use]
pub fn passes(request: &Request, bytes: u64) -> (u64, u64) {
    let lanes = match bytes {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let (mut passes, mut phases) = (0, 0);
    for phase in request.chunk_by(|a, b| a.0 / lanes == b.0 / lanes) {
        let words = |(_, address): &(u32, u64)| {
            address / WORD_BYTES..address.saturating_add(bytes).div_ceil(WORD_BYTES)
        };
        let mut words: Vec<u64> = phase.iter().flat_map(words).collect();
        words.sort_unstable();
        words.dedup();
        let mut of_banks = [0u64; BANKS as usize];
        words.iter().for_each(|word| of_banks[(word % BANKS) as usize] += 1);
        passes += of_banks.into_iter().max().unwrap_or(0).max(1);
        phases += 1;
    }
    (passes, phases)
}

/// Calls `each` with the distinct requests of a run of vectors, and how many cost the same. If all lanes have
/// one step, the cost repeats after moves by multiples of `period` bytes, a power of two.
pub(super) fn each_request(vector: &VectorRun<'_>, period: u64, mut each: impl FnMut(&Request, u64)) {
    let runs: Vec<(u32, LaneRun)> =
        lanes(vector.group.mask).filter_map(|lane| Some((lane, vector.run(lane)?))).collect();
    let mut ends: Vec<u32> = runs.iter().map(|(_, run)| run.count).collect();
    ends.sort_unstable();
    ends.dedup();
    let (mut from, mut request) = (0, Vec::with_capacity(runs.len()));
    // Between two ends of runs, the lanes do not change.
    for end in ends {
        let active = || runs.iter().filter(|(_, run)| run.count >= end);
        let mut steps = active().map(|(_, run)| run.step);
        let first = steps.next().unwrap_or(0);
        let turns = match steps.all(|step| step == first) {
            true => {
                u64::from(end - from).min(period >> (first.unsigned_abs() as u64 | period).trailing_zeros())
            }
            false => u64::from(end - from),
        };
        for turn in 0..turns {
            let number = from + turn as u32;
            request.clear();
            request.extend(active().map(|(lane, run)| (*lane, run.nth(number))));
            each(&request, (u64::from(end - number)).div_ceil(turns));
        }
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use warptrace_format::file::data::Group;

    use super::*;

    fn request(address: impl Fn(u64) -> u64) -> Vec<(u32, u64)> {
        (0..32).map(|lane| (lane, address(u64::from(lane)))).collect()
    }

    #[test]
    fn sectors_of_a_transpose() {
        // Rows of 512 floats: a read along a row, a write along a column.
        assert_eq!(sectors(&request(|lane| 0x1000 + 4 * lane), 4), (4, 128));
        assert_eq!(sectors(&request(|lane| 0x1000 + 4 * 512 * lane), 4), (32, 128));
        // Not aligned; one word for all; every second word; doubles; four floats.
        assert_eq!(sectors(&request(|lane| 0x1004 + 4 * lane), 4), (5, 128));
        assert_eq!(sectors(&request(|_| 0x1004), 4), (1, 4));
        assert_eq!(sectors(&request(|lane| 8 * lane), 4), (8, 128));
        assert_eq!(sectors(&request(|lane| 8 * lane), 8), (8, 256));
        assert_eq!(sectors(&request(|lane| 16 * lane), 16), (16, 512));
        // Across the end of a sector, downwards, and at the end of the address space.
        assert_eq!(sectors(&[(0, 30)], 4), (2, 4));
        assert_eq!(sectors(&request(|lane| 0x1000 - 4 * lane), 4), (5, 128));
        assert_eq!(sectors(&[(3, u64::MAX - 1)], 4).1, 1);
    }

    #[test]
    fn passes_of_tiles() {
        let of = |address: &dyn Fn(u64) -> u64, bytes| passes(&request(address), bytes);
        // A column of a tile of 32 floats, and of a tile with one more column.
        assert_eq!(of(&|lane| 128 * lane, 4), (32, 1));
        assert_eq!(of(&|lane| 132 * lane, 4), (1, 1));
        assert_eq!(of(&|lane| 8 * lane, 4), (2, 1));
        assert_eq!(of(&|_| 64, 4), (1, 1), "one word for all");
        assert_eq!(of(&|lane| lane, 1), (1, 1), "bytes of one word");
        assert_eq!(of(&|lane| 8 * lane, 8), (2, 2));
        assert_eq!(of(&|lane| 16 * lane, 16), (4, 4));
        assert_eq!(of(&|lane| 16 * lane, 8), (4, 2));
        assert_eq!(passes(&[(0, 0), (31, 128)], 4), (2, 1));
    }

    #[test]
    fn requests_that_cost_the_same_are_looked_at_once() {
        let group = |spread| Group { mask: u32::MAX, time: 0, spread, missing: 0 };
        let count = |group: &Group, runs: &[LaneRun], period| {
            let (mut looked_at, mut all, mut sum) = (0, 0, 0);
            each_request(&VectorRun { site: 1, time: 0, group, runs }, period, |request, times| {
                looked_at += 1;
                all += times;
                sum += sectors(request, 4).0 * times;
            });
            (looked_at, all, sum)
        };
        let run = |base, step, count| LaneRun { base, step, count };
        let line = group(Some(124));
        assert_eq!(count(&line, &[run(0, 128, 100)], 32), (1, 100, 400));
        // Each eighth request is aligned, the others touch one more sector.
        assert_eq!(count(&line, &[run(0, 4, 100)], 32), (8, 100, 13 * 4 + 87 * 5));
        assert_eq!(count(&line, &[run(0, 0, 9)], 32), (1, 9, 36));
        assert_eq!(count(&line, &[run(0, -12, 3)], 32), (3, 3, 14));
        let runs: Vec<LaneRun> = (0..32).map(|lane| run(1000 * lane, 4, 1 + lane as u32)).collect();
        let (looked_at, all, _) = count(&group(None), &runs, 32);
        assert_eq!((looked_at, all), (32, 32));
        let runs: Vec<LaneRun> = (0..32).map(|lane| run(0, lane, 40)).collect();
        assert_eq!(count(&group(None), &runs, 32).0, 40);
    }
}
