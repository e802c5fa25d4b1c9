//! What is known of a recording's launches on the host: their numbers, where their logs are, what is to be
//! drained and written next. Nothing here waits or asks the device.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use warptrace_abi::log::LaunchLogs;
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{Additions, Growing, HostLaunch, LaunchInfo, LocationInfo};

use super::buffers::KnownBuffers;
use super::drain::DrainCost;
use super::pool::{Effort, Filled, Pool, Short, Stay};
use super::running::Left;
use super::{LaunchReport, SessionError};
use crate::{HostClock, HostMessage, LaunchName, LaunchShape, MemoryChange, Moment, Window};

/// Launches that the file is told of at once, if they leave nothing that asks for a drain.
pub(super) const MAX_PENDING: usize = 1 << 12;

/// Launches that are noted in a file without being recorded; each takes some 90 bytes there.
const MAX_NOTED: usize = 1 << 20;

/// Names launches that were reserved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Launches that may be made: those of one call, or of a graph.
#[derive(Clone, Debug)]
pub struct Reserved {
    /// Names them.
    pub ticket: Ticket,
    /// For each launch the logs that its traced kernel has as its last parameter, of which a kernel takes as
    /// many bytes as it declares; `None` where the untraced kernel runs.
    pub logs: Vec<Option<LaunchLogs>>,
}

/// Launches that were reserved and have not settled.
#[derive(Clone, Debug)]
struct Open {
    infos: Vec<LaunchInfo>,
    name: LaunchName,
    /// `None` if none of them is recorded.
    stay: Option<Stay>,
    /// Whether they have ended, and only their arena's counters were not read since.
    has_ended: bool,
    /// When they were reserved.
    since: Instant,
    /// When they were given to the device, if that is noted.
    begin: Option<Moment>,
}

/// The oldest launch that has not ended.
#[derive(Clone, Debug)]
pub struct OldestLaunch {
    /// Its number in the file.
    pub launch: u32,
    /// Its kernel, as people write the name.
    pub kernel: String,
    /// When room was reserved for it.
    pub since: Instant,
    /// Launches after it that have not ended either.
    pub others: usize,
}

/// What is to be brought to the file.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) codec: CodecSpec,
    /// What the host says before launches.
    pub(super) news: Vec<HostMessage>,
    /// Launches that have ended and left no logs, in the order of their numbers.
    pub(super) plain: Vec<LaunchInfo>,
    pub(super) filled: Option<Filled>,
    /// When launches ran by the host's clocks.
    pub(super) host: Vec<HostLaunch>,
}

/// What is known of launches.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) codec: CodecSpec,
    pub(super) window: Window,
    /// Name of the launches that are reserved next.
    pub(super) name: LaunchName,
    /// What the file knows of kernels and locations, or will when it is told of the news.
    pub(super) tables: Growing,
    pub(super) total: LaunchReport,
    /// `None` if logs are streamed.
    pub(super) pool: Option<Pool>,
    /// What the host says, and the file was not told yet.
    news: Vec<HostMessage>,
    /// Numbers of the sites that the file has, or will have.
    known_sites: HashSet<u16>,
    /// Memory that kernels can reach.
    buffers: KnownBuffers,
    /// Launches that were noted.
    noted: usize,
    /// The number of the next launch, and how many of each kernel are recorded.
    launches: u32,
    recorded_of: Vec<u64>,
    tickets: u64,
    open: BTreeMap<Ticket, Open>,
    /// Launches that have ended and left no logs, or whose logs are streamed.
    pub(super) plain: Vec<LaunchInfo>,
    /// The clock by which it is noted when launches run; `None` if it is not.
    pub(super) clock: Option<HostClock>,
    /// Launches that have ended, or failed, and of which the file does not know when.
    host: Vec<HostLaunch>,
}

impl Ledger {
    pub(super) fn new(
        codec: CodecSpec,
        window: Window,
        tables: Growing,
        pool: Option<Pool>,
        clock: Option<HostClock>,
    ) -> Self {
        let memory = pool.as_ref().map(Pool::memory_use).unwrap_or_default();
        Self {
            codec,
            window,
            name: LaunchName::default(),
            tables,
            total: LaunchReport { memory, ..LaunchReport::default() },
            pool,
            news: Vec::new(),
            known_sites: HashSet::new(),
            buffers: KnownBuffers::default(),
            noted: 0,
            launches: 0,
            recorded_of: Vec::new(),
            tickets: 0,
            open: BTreeMap::new(),
            plain: Vec::new(),
            clock,
            host: Vec::new(),
        }
    }

    /// Adds kernels and locations; returns the first kernel's index.
    ///
    /// # Errors
    /// If they contradict what is there; nothing is added then.
    pub(super) fn add_kernels(
        &mut self,
        kernels: &[(&str, &str)],
        locations: Vec<LocationInfo>,
    ) -> Result<u32, SessionError> {
        let first = self.tables.metadata().kernels.len() as u32;
        let kernels = kernels.iter().map(|&kernel| kernel.into()).collect();
        let additions = Additions { kernels, locations };
        if !additions.is_empty() {
            self.tables.add(additions.clone())?;
            self.send(HostMessage::Additions(additions));
        }
        Ok(first)
    }

    /// Keeps what the host says for the file; each site once.
    pub(super) fn send(&mut self, mut message: HostMessage) {
        if let HostMessage::Sites(sites) = &mut message {
            sites.retain(|site| self.known_sites.insert(site.number));
            if sites.is_empty() {
                return;
            }
        }
        message.add_to(&mut self.news);
    }

    /// Notes a change of memory that launches can reach from the next one on.
    pub(super) fn change_memory(&mut self, change: MemoryChange) {
        self.buffers.change(change, self.launches);
    }

    /// Describes a launch for the file, and which of its warps are recorded. Launches `before` it will begin
    /// with it.
    ///
    /// # Errors
    /// If the file cannot name its warps.
    pub(super) fn describe(
        &self,
        before: &[LaunchInfo],
        kernel: u32,
        shape: &LaunchShape,
    ) -> Result<LaunchInfo, SessionError> {
        let number = self.launches + before.len() as u32;
        let info = LaunchInfo::new(number, kernel, shape.grid, shape.block, shape.dynamic_shared)?;
        let name = self.tables.metadata().kernels.get(kernel as usize).map_or("", |kernel| &kernel.name);
        let is_alike = |other: &&LaunchInfo| other.kernel() == kernel && other.is_recorded();
        let launches = self.recorded_of.get(kernel as usize).copied().unwrap_or_default()
            + before.iter().filter(is_alike).count() as u64;
        if !self.window.is_within(self.name.label.as_deref()) {
            return Ok(info.with_chosen(ChosenWarps::NONE)?);
        }
        Ok(info.with_chosen(self.window.choose(name, &info, self.total.recorded, launches))?)
    }

    /// Gives launches that begin at once numbers and room for their logs.
    ///
    /// # Errors
    /// If there is no room now.
    pub(super) fn reserve(&mut self, infos: Vec<LaunchInfo>, effort: Effort) -> Result<Reserved, Short> {
        let recorded: Vec<LaunchInfo> = infos.iter().filter(|info| info.is_recorded()).copied().collect();
        let (stay, logs) = match &mut self.pool {
            Some(pool) if !recorded.is_empty() => {
                let (stay, logs) = pool.reserve(&recorded, effort)?;
                (Some(stay), logs)
            }
            _ => (None, Vec::new()),
        };
        let mut logs = logs.into_iter();
        let logs = infos.iter().map(|info| if info.is_recorded() { logs.next() } else { None }).collect();
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.launches += infos.len() as u32;
        self.count_recorded(&recorded, 1);
        let (name, begin) = (self.name.clone(), self.now());
        let since = Instant::now();
        self.open.insert(ticket, Open { infos, name, stay, has_ended: false, since, begin });
        Ok(Reserved { ticket, logs })
    }

    /// Notes a launch that is not recorded.
    ///
    /// # Errors
    /// If the file cannot name its warps, or many launches were noted.
    pub(super) fn note(
        &mut self,
        kernel: u32,
        shape: &LaunchShape,
        name: &LaunchName,
        begins_now: bool,
    ) -> Result<(), SessionError> {
        if self.noted >= MAX_NOTED {
            return Err(SessionError::Ended { reason: format!("the file has {MAX_NOTED} of them") });
        }
        let info = LaunchInfo::new(self.launches, kernel, shape.grid, shape.block, shape.dynamic_shared)?;
        let info = info.with_chosen(ChosenWarps::NONE)?;
        self.noted += 1;
        self.launches += 1;
        self.total.launches += 1;
        self.send_name(&[info], name);
        let begin = self.now().filter(|_| begins_now).map(|moment| moment.realtime);
        let launch = info.number();
        self.host.extend(begin.map(|begin| HostLaunch { launch, begin, nanoseconds: None }));
        self.plain.push(info);
        Ok(())
    }

    /// Tells whether so many launches without logs wait that it is worth to write them.
    pub(super) fn is_full(&self) -> bool {
        self.plain.len() >= MAX_PENDING
    }

    /// Takes back what was reserved: the launches have not begun. Their numbers are used again, unless others
    /// were given meanwhile.
    pub(super) fn cancel(&mut self, ticket: Ticket) {
        let Some(Open { infos, stay, .. }) = self.open.remove(&ticket) else { return };
        if infos.last().is_some_and(|info| info.number() + 1 == self.launches) {
            self.launches -= infos.len() as u32;
        }
        self.count_recorded(&infos, -1);
        self.pass_over(stay, &infos);
    }

    /// Counts launches that are recorded, or are not after all.
    fn count_recorded(&mut self, infos: &[LaunchInfo], change: i64) {
        for info in infos.iter().filter(|info| info.is_recorded()) {
            let kernel = info.kernel() as usize;
            self.recorded_of.resize(self.recorded_of.len().max(kernel + 1), 0);
            self.recorded_of[kernel] = self.recorded_of[kernel].saturating_add_signed(change);
        }
    }

    /// Passes over the logs of launches that failed; returns the first of them.
    pub(super) fn failed(&mut self, ticket: Ticket) -> Option<LaunchInfo> {
        let Open { infos, name, stay, begin, .. } = self.open.remove(&ticket)?;
        self.send_name(&infos, &name);
        self.note_ran(&infos, begin);
        self.pass_over(stay, &infos);
        infos.first().copied()
    }

    /// Reads the host's clock, if it is noted when launches run.
    pub(super) fn now(&self) -> Option<Moment> {
        self.clock.as_ref().map(HostClock::now)
    }

    /// Notes that launches are seen to have ended, which began then.
    pub(super) fn note_ran(&mut self, infos: &[LaunchInfo], begin: Option<Moment>) {
        let end = self.now();
        self.host.extend(ran(infos, begin, end));
    }

    /// Keeps launches, and when launches ran, for a later job.
    pub(super) fn put_back(&mut self, plain: Vec<LaunchInfo>, host: Vec<HostLaunch>) {
        self.plain.extend(plain);
        self.host.extend(host);
    }

    /// Sends label and call stack of launches to the file. Their numbers must not change afterwards.
    pub(super) fn send_name(&mut self, infos: &[LaunchInfo], name: &LaunchName) {
        if let Some(label) = &name.label {
            let labels = infos.iter().map(|info| (info.number(), Arc::clone(label)));
            self.send(HostMessage::Labels(labels.collect()));
        }
        if let Some(stack) = &name.stack {
            let stacks = infos.iter().map(|info| (info.number(), Arc::clone(stack)));
            self.send(HostMessage::Stacks(stacks.collect()));
        }
    }

    fn pass_over(&mut self, stay: Option<Stay>, infos: &[LaunchInfo]) {
        if let (Some(pool), Some(stay)) = (&mut self.pool, stay) {
            pool.pass_over(&stay, infos);
        }
    }

    /// Notes that launches have ended, which took so long.
    pub(super) fn ended(&mut self, ticket: Ticket, time: Duration) {
        let end = self.now();
        let Some(open) = self.open.get_mut(&ticket) else { return };
        self.host.extend(ran(&open.infos, open.begin, end));
        open.has_ended = true;
        self.total.kernel += time;
        self.total.launches += open.infos.len() as u64;
        self.total.recorded_launches += open.infos.iter().filter(|info| info.is_recorded()).count() as u64;
        if open.stay.is_none()
            && let Some(open) = self.open.remove(&ticket)
        {
            self.send_name(&open.infos, &open.name);
            self.plain.extend(open.infos);
        }
    }

    /// Counts a launch that was made without being reserved, since its logs are elsewhere.
    pub(super) fn launched(&mut self, info: &LaunchInfo, time: Duration, begin: Option<Moment>) {
        self.note_ran(&[*info], begin);
        self.launches = self.launches.max(info.number() + 1);
        self.count_recorded(&[*info], 1);
        self.total.kernel += time;
        self.total.launches += 1;
        self.total.recorded_launches += 1;
    }

    /// Returns the arenas whose counters of claims are to be read, since launches have ended in them.
    pub(super) fn unread(&self) -> Vec<(usize, u64)> {
        let Some(pool) = &self.pool else { return Vec::new() };
        let ended = self.open.values().filter(|open| open.has_ended);
        let mut arenas: Vec<usize> = ended.filter_map(|open| open.stay.map(|stay| stay.at)).collect();
        arenas.sort_unstable();
        arenas.dedup();
        arenas.into_iter().map(|at| (at, pool.claims(at))).collect()
    }

    /// Notes how many entries of an arena were claimed, by launches up to `last`, as far as they have ended.
    pub(super) fn settle(&mut self, at: usize, claimed: u64, last: Ticket) {
        let is_it = |ticket: &Ticket, open: &mut Open| {
            *ticket <= last && open.has_ended && open.stay.is_some_and(|stay| stay.at == at)
        };
        let settled = self.open.extract_if(.., is_it);
        let settled: Vec<Open> = settled.map(|(_, open)| open).collect();
        settled.iter().for_each(|open| self.send_name(&open.infos, &open.name));
        let settled: Vec<_> = settled.into_iter().filter_map(|open| Some((open.stay?, open.infos))).collect();
        if let Some(pool) = &mut self.pool {
            pool.settle(at, claimed, &settled);
        }
    }

    /// Returns the last ticket.
    pub(super) fn last(&self) -> Ticket {
        Ticket(self.tickets)
    }

    /// Tells whether all launches have ended and settled.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns how many launches were reserved that have not ended.
    pub(super) fn running(&self) -> usize {
        self.open.values().filter(|open| !open.has_ended).map(|open| open.infos.len()).sum()
    }

    /// Returns the oldest launch that has not ended.
    pub(super) fn oldest(&self) -> Option<OldestLaunch> {
        let Open { infos, since, .. } = self.open.values().find(|open| !open.has_ended)?;
        let info = infos.first()?;
        let kernel = self.tables.metadata().kernels.get(info.kernel() as usize)?.name.clone();
        Some(OldestLaunch { launch: info.number(), kernel, since: *since, others: self.running() - 1 })
    }

    /// Notes that launches have failed, of which the logs may still be there; returns them.
    pub(super) fn fail(&mut self, ticket: Ticket) -> Vec<LaunchInfo> {
        let Some(Open { infos, begin, .. }) = self.open.get(&ticket) else { return Vec::new() };
        let (infos, begin) = (infos.clone(), *begin);
        self.note_ran(&infos, begin);
        infos
    }

    /// Returns how many launches were reserved that have not ended, apart from those of a ticket.
    pub(super) fn running_beside(&self, ticket: Option<Ticket>) -> usize {
        let own = ticket.and_then(|ticket| self.open.get(&ticket)).map_or(0, |open| open.infos.len());
        self.running() - own
    }

    /// Takes out all that was not drained: what arenas hold, of which `claimed` entries were claimed, and
    /// which of their launches have not ended; and launches without logs that have not ended.
    pub(super) fn left(&mut self, claimed: &[(usize, u64)]) -> (Vec<Left>, Vec<LaunchInfo>) {
        let (mut running, mut outside) = (HashMap::<usize, Vec<LaunchInfo>>::new(), Vec::new());
        for Open { infos, name, stay, has_ended, .. } in std::mem::take(&mut self.open).into_values() {
            self.send_name(&infos, &name);
            match (stay, &mut self.pool) {
                (Some(stay), Some(pool)) => {
                    pool.ends(&stay, &infos);
                    if !has_ended {
                        running.entry(stay.at).or_default().extend(infos);
                    }
                }
                _ => {
                    if !has_ended {
                        outside.extend_from_slice(&infos);
                    }
                    self.plain.extend(infos);
                }
            }
        }
        let Some(pool) = &mut self.pool else { return (Vec::new(), outside) };
        let all = pool.take_all(claimed).into_iter().map(|(filled, is_drained)| Left {
            running: running.remove(&filled.arena).unwrap_or_default(),
            filled,
            plain: Vec::new(),
            is_drained,
        });
        (all.collect(), outside)
    }

    /// Returns where the counters of claims of all arenas are.
    pub(super) fn counters(&self) -> Vec<(usize, u64)> {
        self.pool.as_ref().map(Pool::counters).unwrap_or_default()
    }

    /// Returns what can be brought to the file. With `all` that is all that has ended; else what is worth it.
    /// One job is done at a time.
    pub(super) fn next_job(&mut self, all: bool) -> Option<Job> {
        if all && let Some(pool) = &mut self.pool {
            pool.close_filling();
        }
        let filled = self.pool.as_mut().and_then(Pool::next_filled);
        let is_worth_it = match all {
            true => {
                !self.plain.is_empty()
                    || !self.host.is_empty()
                    || !self.news.is_empty()
                    || self.buffers.is_changed()
            }
            false => self.is_full(),
        };
        (filled.is_some() || is_worth_it).then(|| self.job(filled))
    }

    /// Returns what the host says, and when launches ran, of which the file was not told.
    pub(super) fn take_news(&mut self) -> (Vec<HostMessage>, Vec<HostLaunch>) {
        if let Some(buffers) = self.buffers.take() {
            self.send(HostMessage::Buffers(buffers));
        }
        (std::mem::take(&mut self.news), std::mem::take(&mut self.host))
    }

    /// Returns what else is to be written.
    pub(super) fn job(&mut self, filled: Option<Filled>) -> Job {
        let ((news, host), mut plain) = (self.take_news(), std::mem::take(&mut self.plain));
        plain.sort_unstable_by_key(LaunchInfo::number);
        Job { codec: self.codec, news, plain, filled, host }
    }

    /// Notes what the job before has drained, and returns the [next](Self::next_job).
    pub(super) fn go_on(&mut self, drained: Option<(usize, DrainCost)>, all: bool) -> Option<Job> {
        if let Some((arena, cost)) = drained {
            self.drained(arena, &cost);
        }
        self.next_job(all)
    }

    /// Says what launches need that there never is room for.
    pub(super) fn refusal(&self, infos: &[LaunchInfo]) -> SessionError {
        self.pool.as_ref().map_or(SessionError::Unusable, |pool| pool.refusal(infos))
    }

    /// Notes that an arena is empty: how long encoding and copying took, and how much memory merged runs and
    /// chunks.
    pub(super) fn drained(&mut self, arena: usize, cost: &DrainCost) {
        self.total.encoding += cost.encoding;
        self.total.copy += cost.copy;
        if let Some(pool) = &mut self.pool {
            pool.emptied(arena, cost.filled);
            cost.parted.iter().for_each(|&(kernel, parted)| pool.note_parted(kernel, parted));
            self.total.memory = pool.memory_use();
        }
    }
}

/// Returns when launches ran that were made and seen to have ended at these moments, if they were noted.
fn ran(infos: &[LaunchInfo], begin: Option<Moment>, end: Option<Moment>) -> impl Iterator<Item = HostLaunch> {
    let both = begin.zip(end);
    both.into_iter().flat_map(move |(Moment { realtime: begin, monotonic }, end)| {
        let nanoseconds = Some(end.monotonic.saturating_sub(monotonic));
        infos.iter().map(move |info| HostLaunch { launch: info.number(), begin, nanoseconds })
    })
}
