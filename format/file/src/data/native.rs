//! CPU version of a traced kernel's site code: turns accesses of a warp into entries of a data track. The
//! simulator uses [`WarpRuns`]; tests and benchmarks compare with [`WarpRecorder`].

use std::collections::BTreeMap;

use super::{DataEntry, LaneRun, Owner, lane_base};

#[derive(Clone, Debug, Default)]
struct Log {
    entries: Vec<DataEntry>,
    has_stopped: bool,
}

/// Current runs of the lanes of a warp.
#[derive(Clone, Debug, Default)]
pub struct WarpRuns {
    runs: BTreeMap<(u16, u32), LaneRun>,
}

impl WarpRuns {
    /// Adds the accesses of lanes that execute a site together, in ascending lane order; `time` is in units
    /// of 16 cycles. Calls `append` with each new entry and the lane of its log.
    pub fn access(
        &mut self,
        (site, time): (u16, u32),
        accesses: &[(u32, u64)],
        append: &mut impl FnMut(u32, DataEntry),
    ) {
        let ended: Vec<(u32, LaneRun)> = accesses
            .iter()
            .filter_map(|(lane, access)| {
                let ended = self.runs.entry((site, *lane)).or_default().access(*access);
                Some((*lane, ended?))
            })
            .collect();
        end_runs(site, time, &ended, append);
    }

    /// Ends the runs of lanes that leave the kernel together. Calls `append` like [`access`](Self::access).
    pub fn leave(&mut self, time: u32, mask: u32, append: &mut impl FnMut(u32, DataEntry)) {
        let mut sites: Vec<u16> = self.runs.keys().map(|(site, _)| *site).collect();
        sites.dedup();
        for site in sites {
            let ended: Vec<(u32, LaneRun)> = (0..32u32)
                .filter(|lane| mask >> lane & 1 == 1)
                .filter_map(|lane| self.runs.remove(&(site, lane)).map(|run| (lane, run)))
                .filter(|(_, run)| run.count > 0)
                .collect();
            end_runs(site, time, &ended, append);
        }
    }
}

fn end_runs(site: u16, time: u32, ended: &[(u32, LaneRun)], append: &mut impl FnMut(u32, DataEntry)) {
    let Some(&(leader, LaneRun { base, step, count })) = ended.first() else { return };
    let mask = ended.iter().fold(0, |mask, (lane, _)| mask | 1 << lane);
    let spread = spread(ended);
    append(leader, DataEntry::Header { mask, site, time, spread });
    if spread.is_some() {
        let of = Owner::Group(mask.count_ones());
        return append(leader, DataEntry::Values { site, of, count, base, step });
    }
    for &(lane, LaneRun { base, step, count }) in ended {
        append(lane, DataEntry::Values { site, of: Owner::Lane(lane), count, base, step });
    }
}

/// Recorder of one warp's accesses.
#[derive(Clone, Debug)]
pub struct WarpRecorder {
    runs: WarpRuns,
    logs: Logs,
    /// Accesses so far.
    pub attempted: u64,
    /// Accesses lost because the logs were full.
    pub lost: u64,
}

#[derive(Clone, Debug)]
struct Logs {
    logs: [Log; 32],
    room: usize,
    cut: Option<u32>,
    lost: u64,
}

impl WarpRecorder {
    /// Creates a recorder whose logs hold `room` entries in total.
    #[must_use]
    pub fn new(room: usize) -> Self {
        let logs = std::array::from_fn(|_| Log::default());
        let logs = Logs { logs, room, cut: None, lost: 0 };
        Self { runs: WarpRuns::default(), logs, attempted: 0, lost: 0 }
    }

    /// Adds the accesses of lanes that execute a site together, like [`WarpRuns::access`].
    pub fn access(&mut self, site: u16, time: u32, accesses: &[(u32, u64)]) {
        self.attempted += accesses.len() as u64;
        self.runs.access((site, time), accesses, &mut |lane, entry| self.logs.append(lane, time, entry));
        self.lost = self.logs.lost;
    }

    /// Ends the runs of lanes that leave the kernel together.
    pub fn leave(&mut self, time: u32, mask: u32) {
        self.runs.leave(time, mask, &mut |lane, entry| self.logs.append(lane, time, entry));
        self.lost = self.logs.lost;
    }

    /// Returns the entries of all logs, lane after lane. Panics if a lane with accesses has not left.
    #[must_use]
    pub fn finish(self) -> Vec<[u32; 4]> {
        assert!(self.runs.runs.is_empty(), "all lanes have left");
        let Logs { logs, cut, .. } = self.logs;
        let entries = logs.into_iter().flat_map(|log| log.entries);
        entries.chain(cut.map(|time| DataEntry::Cut { time })).map(DataEntry::to_words).collect()
    }
}

impl Logs {
    fn append(&mut self, lane: u32, time: u32, entry: DataEntry) {
        let log = &mut self.logs[lane as usize];
        log.has_stopped |= self.room == 0;
        if !log.has_stopped {
            self.room -= 1;
            return log.entries.push(entry);
        }
        // Calls are in order of time: keep the first one.
        self.cut.get_or_insert(time);
        self.lost += u64::from(super::accesses(entry.to_words()[1]));
    }
}

/// Returns the last base minus the first one, if all bases lie on a line and the runs are otherwise equal.
fn spread(ended: &[(u32, LaneRun)]) -> Option<i32> {
    let ((_, first), (_, last)) = (*ended.first()?, *ended.last()?);
    let mask = ended.iter().fold(0, |mask, (lane, _)| mask | 1 << lane);
    let spread = i32::try_from(last.base.wrapping_sub(first.base).cast_signed()).ok()?;
    let fits = |(lane, run): &(u32, LaneRun)| {
        lane_base(mask, first.base, spread, *lane) == Some(run.base)
            && (run.step, run.count) == (first.step, first.count)
    };
    ended.iter().all(fits).then_some(spread)
}
