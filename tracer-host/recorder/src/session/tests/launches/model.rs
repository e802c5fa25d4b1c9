//! Explores all orders of steps of launching threads and the drainer. A step is what one of them does in one
//! hold of the ledger's lock. Threads reserve, launch, and reserve again; launches end at any time; the
//! drainer reads counters, takes an arena, and returns it.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use warptrace_abi::log::{FirstSegments, LaunchLogs};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{DeviceInfo, Growing, LaunchInfo, Metadata};

use super::super::fake::FakeDevice;
use crate::session::Ticket;
use crate::session::drain::DrainCost;
use crate::session::ledger::{Job, Ledger};
use crate::session::memory::Division;
use crate::session::pool::{Effort, Pool, Short};
use crate::{LaunchShape, Window};

/// Logs are in use until they are drained.
#[derive(Clone, Debug)]
struct Made {
    ticket: Ticket,
    logs: LaunchLogs,
    thread: usize,
    is_launched: bool,
    has_ended: bool,
}

#[derive(Clone, Debug)]
struct World {
    ledger: Ledger,
    left: Vec<u32>,
    made: Vec<Made>,
    job: Option<Job>,
    written: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Kernel {
    warps: u64,
    claims: u64,
}

fn fixed(logs: &LaunchLogs) -> Range<u32> {
    logs.first_segments..logs.first_segment(0, logs.warps, 0)
}

fn apart<T: Ord>(a: &Range<T>, b: &Range<T>) -> bool {
    a.end <= b.start || b.end <= a.start
}

impl World {
    fn new(kib: u64, threads: usize, launches: u32) -> Self {
        let mut device = FakeDevice::new([]);
        let division =
            Division::new(kib << 10, 1024, Pool::arenas(true), FirstSegments::of_streams(8)).unwrap();
        let pool = Pool::new(&mut device, division, 1, false, true).unwrap();
        let metadata = Metadata::new("model", DeviceInfo::simulator("model"), vec![CodecSpec::Raw]);
        let tables = Growing::new(metadata.with_kernel("k", "")).unwrap();
        let ledger = Ledger::new(CodecSpec::Raw, Window::default(), tables, Some(pool), None);
        Self { ledger, left: vec![launches; threads], made: Vec::new(), job: None, written: Vec::new() }
    }

    fn key(&self) -> u64 {
        let Self { ledger, left, made, job, written } = self;
        let mut hasher = DefaultHasher::new();
        format!("{:?} {left:?} {made:?} {job:?} {written:?}", ledger.pool).hash(&mut hasher);
        hasher.finish()
    }

    fn next(&self, kernel: Kernel) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut next = self.clone();
            change(&mut next);
            all.push(next);
        };
        for thread in 0..self.left.len() {
            let is_between = self.made.iter().any(|made| made.thread == thread && !made.is_launched);
            if self.left[thread] > 0 && !is_between {
                add(&|world| world.reserve(thread, kernel));
            }
        }
        for at in 0..self.made.len() {
            if !self.made[at].is_launched {
                add(&|world| world.made[at].is_launched = true);
            } else if !self.made[at].has_ended {
                add(&|world| world.made[at].has_ended = true);
            }
        }
        match &self.job {
            Some(_) => add(&|world| world.drained()),
            None => {
                add(&|world| world.poll(kernel));
                for all in [false, true] {
                    add(&|world| world.job = world.ledger.next_job(all));
                }
            }
        }
        all
    }

    fn reserve(&mut self, thread: usize, kernel: Kernel) {
        let info = self.ledger.describe(&[], 0, &LaunchShape::linear(32 * kernel.warps, 32)).unwrap();
        match self.ledger.reserve(vec![info], Effort::Ample) {
            Ok(reserved) => {
                self.left[thread] -= 1;
                let (ticket, logs) = (reserved.ticket, reserved.logs[0].unwrap());
                self.made.push(Made { ticket, logs, thread, is_launched: false, has_ended: false });
            }
            Err(Short::Room | Short::Unknown) => {}
            Err(Short::Never) => panic!("alone it has room"),
        }
    }

    /// The drainer detects ended launches, and reads the counters of their arenas.
    fn poll(&mut self, kernel: Kernel) {
        for made in self.made.iter().filter(|made| made.has_ended) {
            self.ledger.ended(made.ticket);
        }
        let last = self.ledger.last();
        for (arena, counters) in self.ledger.unread() {
            let claimed = self.made.iter().filter(|made| made.is_launched && made.logs.claims == counters);
            self.ledger.settle(arena, claimed.count() as u64 * kernel.claims, last);
        }
    }

    fn drained(&mut self) {
        let Some(filled) = self.job.take().and_then(|job| job.filled) else { return };
        let numbers: Vec<u32> = filled.launches.iter().map(LaunchInfo::number).collect();
        assert!(numbers.is_sorted());
        self.made.retain(|made| !numbers.contains(&made.logs.launch));
        self.written.extend(numbers);
        self.ledger.drained(filled.arena, &DrainCost::default());
    }

    fn check(&self, kernel: Kernel) {
        for (at, one) in self.made.iter().enumerate() {
            let logs = &one.logs;
            for other in &self.made[at + 1..] {
                let accounts = |logs: &LaunchLogs| logs.accounts..logs.accounts + 32 * u64::from(logs.warps);
                assert!(apart(&fixed(logs), &fixed(&other.logs)), "{self:?}");
                assert!(apart(&accounts(logs), &accounts(&other.logs)), "{self:?}");
                assert_ne!(logs.launch, other.logs.launch);
                if logs.claims != other.logs.claims {
                    let [one, other] = [logs, &other.logs].map(|logs| self.claimed(logs, kernel));
                    assert!(apart(&one, &other), "{one:?} {other:?} {self:?}");
                }
            }
            for other in &self.made {
                assert!(apart(&self.claimed(logs, kernel), &fixed(&other.logs)), "{self:?}");
            }
            if let Some(filled) = self.job.as_ref().and_then(|job| job.filled.as_ref()) {
                let merged = filled.pool.merged_from..filled.pool.merged_end;
                assert!(!merged.is_empty() && apart(&merged, &fixed(logs)), "{self:?}");
                assert!(apart(&merged, &self.claimed(logs, kernel)), "{self:?}");
                let is_drained = filled.launches.iter().any(|info| info.number() == logs.launch);
                assert_eq!(is_drained, logs.claims == filled.pool.claims, "an arena is drained as one");
                assert!(!is_drained || one.has_ended, "{self:?}");
            }
        }
    }

    fn claimed(&self, logs: &LaunchLogs, kernel: Kernel) -> Range<u32> {
        let same_arena = self.made.iter().filter(|made| made.logs.claims == logs.claims);
        let all: Vec<&LaunchLogs> = same_arena.map(|made| &made.logs).collect();
        let from = all.iter().map(|logs| logs.claims_from).max().unwrap_or(0);
        let claimed = from + (all.len() as u64 * kernel.claims) as u32;
        let end = all.iter().map(|logs| logs.claims_end).max().unwrap_or(0);
        assert!(claimed <= end, "what is claimed finds room");
        from..claimed
    }
}

/// Visits all states. Returns their number, and in how many a launch runs while another arena is drained.
fn explore(first: World, kernel: Kernel, launches: usize) -> [usize; 2] {
    let (mut seen, mut overlapped, mut ends) = (HashSet::new(), 0, 0);
    let mut open = vec![first];
    while let Some(world) = open.pop() {
        world.check(kernel);
        overlapped += usize::from(world.job.is_some() && world.made.iter().any(|made| !made.has_ended));
        let mut moves = false;
        for next in world.next(kernel) {
            if seen.insert(next.key()) {
                moves = true;
                open.push(next);
            }
        }
        if !moves && world.written.len() == launches {
            ends += 1;
        }
        let is_done = world.left.iter().all(|left| *left == 0) && world.made.is_empty();
        if is_done && world.job.is_none() {
            let mut written = world.written.clone();
            written.sort_unstable();
            assert!(written.iter().copied().eq(0..launches as u32), "{written:?}");
        }
    }
    assert!(ends > 0, "all launches come to their end");
    [seen.len(), overlapped]
}

#[test]
fn in_all_orders_no_memory_has_two_users_and_every_launch_is_written_once() {
    let mut sum = [0; 2];
    for (kib, kernel, threads, launches) in [
        (1024, Kernel { warps: 20, claims: 0 }, 2, 2),
        (1024, Kernel { warps: 12, claims: 128 }, 1, 4),
        (1024, Kernel { warps: 60, claims: 128 }, 2, 2),
        (2048, Kernel { warps: 12, claims: 1024 }, 3, 1),
    ] {
        let found = explore(World::new(kib, threads, launches), kernel, threads * launches as usize);
        sum = [sum[0] + found[0], sum[1] + found[1]];
    }
    assert!(sum[0] > 1000 && sum[1] > 100, "{sum:?}");
}

#[test]
fn wherever_a_world_stands_all_launches_can_still_be_written() {
    // From each reachable state, ending all launches and draining writes them all: none waits forever.
    let kernel = Kernel { warps: 20, claims: 0 };
    let (mut seen, mut open) = (HashSet::new(), vec![World::new(1024, 2, 2)]);
    while let Some(world) = open.pop() {
        let mut rest = world.clone();
        for _ in 0..40 {
            rest.made.iter_mut().for_each(|made| (made.is_launched, made.has_ended) = (true, true));
            if rest.job.is_some() {
                rest.drained();
            }
            rest.poll(kernel);
            rest.job = rest.ledger.next_job(true);
            for thread in 0..rest.left.len() {
                if rest.left[thread] > 0 {
                    rest.reserve(thread, kernel);
                }
            }
        }
        assert!(rest.left == [0, 0] && rest.made.is_empty() && rest.written.len() == 4, "{rest:?}");
        for next in world.next(kernel) {
            if seen.insert(next.key()) {
                open.push(next);
            }
        }
    }
}
