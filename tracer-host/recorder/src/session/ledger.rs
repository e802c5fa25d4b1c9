//! Host-side state of launches: numbers, places of logs, pending data. Never waits or uses the device.

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

/// Pending launches without logs at which they are written.
pub(super) const MAX_PENDING: usize = 1 << 12;

/// Maximum launches that a file lists without recording them; each takes about 90 bytes.
const MAX_NOTED: usize = 1 << 20;

/// Identifies launches that were reserved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Reserved launches of one call or of a graph.
#[derive(Clone, Debug)]
pub struct Reserved {
    /// The ticket of the launches.
    pub ticket: Ticket,
    /// For each launch, the logs that its traced kernel takes as its last parameter; a kernel reads only the
    /// part that it declares. `None` if the untraced kernel is to run.
    pub logs: Vec<Option<LaunchLogs>>,
}

/// Reserved launches that have not settled.
#[derive(Clone, Debug)]
struct Open {
    infos: Vec<LaunchInfo>,
    name: LaunchName,
    /// `None` if no launch is recorded.
    stay: Option<Stay>,
    /// Whether they have ended, but the counters of their arena were not read since.
    has_ended: bool,
    /// Time of the reservation.
    since: Instant,
    /// Time of submission to the device, if times are recorded.
    begin: Option<Moment>,
}

/// The oldest launch that has not ended.
#[derive(Clone, Debug)]
pub struct OldestLaunch {
    /// The launch number in the file.
    pub launch: u32,
    /// The kernel's name as stored in the file.
    pub kernel: String,
    /// Time of the reservation.
    pub since: Instant,
    /// Number of later launches that have not ended either.
    pub others: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) codec: CodecSpec,
    pub(super) news: Vec<HostMessage>,
    /// Launches that have ended without logs, ordered by number.
    pub(super) plain: Vec<LaunchInfo>,
    pub(super) filled: Option<Filled>,
    pub(super) host: Vec<HostLaunch>,
}

#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) codec: CodecSpec,
    pub(super) window: Window,
    /// Name of the launches that are reserved next.
    pub(super) name: LaunchName,
    /// Kernels and locations of the file, including pending additions.
    pub(super) tables: Growing,
    pub(super) total: LaunchReport,
    /// `None` if logs are streamed.
    pub(super) pool: Option<Pool>,
    news: Vec<HostMessage>,
    /// Numbers of the sites in the file or in pending messages.
    known_sites: HashSet<u16>,
    buffers: KnownBuffers,
    /// Number of launches registered without recording.
    noted: usize,
    /// Number of the next launch, and recorded launches of each kernel.
    launches: u32,
    recorded_of: Vec<u64>,
    tickets: u64,
    open: BTreeMap<Ticket, Open>,
    /// Launches that have ended without logs, or whose logs are streamed.
    pub(super) plain: Vec<LaunchInfo>,
    /// The clock for launch times; `None` if they are not recorded.
    pub(super) clock: Option<HostClock>,
    /// Times of ended or failed launches that were not written yet.
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

    /// Adds kernels and locations; returns the first kernel's index. Adds nothing if they contradict others.
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

    /// Queues a message for the file. Drops sites that were queued before.
    pub(super) fn send(&mut self, mut message: HostMessage) {
        if let HostMessage::Sites(sites) = &mut message {
            sites.retain(|site| self.known_sites.insert(site.number));
            if sites.is_empty() {
                return;
            }
        }
        message.add_to(&mut self.news);
    }

    pub(super) fn change_memory(&mut self, change: MemoryChange) {
        self.buffers.change(change, self.launches);
    }

    /// Describes a launch for the file, including its recorded warps. The launches of `before` begin together
    /// with it. Fails if the file format does not support the launch's shape.
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

    /// Assigns numbers and log memory to launches that begin together. Fails if no memory is available now.
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

    /// Registers an unrecorded launch. Fails if its shape is unsupported, or too many were registered.
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

    pub(super) fn is_full(&self) -> bool {
        self.plain.len() >= MAX_PENDING
    }

    /// Cancels a reservation. Its launch numbers are reused, unless later ones were assigned meanwhile.
    pub(super) fn cancel(&mut self, ticket: Ticket) {
        let Some(Open { infos, stay, .. }) = self.open.remove(&ticket) else { return };
        if infos.last().is_some_and(|info| info.number() + 1 == self.launches) {
            self.launches -= infos.len() as u32;
        }
        self.count_recorded(&infos, -1);
        self.pass_over(stay, &infos);
    }

    /// Adds `change` to the recorded launches of each kernel.
    fn count_recorded(&mut self, infos: &[LaunchInfo], change: i64) {
        for info in infos.iter().filter(|info| info.is_recorded()) {
            let kernel = info.kernel() as usize;
            self.recorded_of.resize(self.recorded_of.len().max(kernel + 1), 0);
            self.recorded_of[kernel] = self.recorded_of[kernel].saturating_add_signed(change);
        }
    }

    /// Discards the logs of failed launches; returns the first of these launches.
    pub(super) fn failed(&mut self, ticket: Ticket) -> Option<LaunchInfo> {
        let Open { infos, name, stay, begin, .. } = self.open.remove(&ticket)?;
        self.send_name(&infos, &name);
        self.note_ran(&infos, begin);
        self.pass_over(stay, &infos);
        infos.first().copied()
    }

    pub(super) fn now(&self) -> Option<Moment> {
        self.clock.as_ref().map(HostClock::now)
    }

    /// Stores the times of launches that began at `begin` and have ended now.
    pub(super) fn note_ran(&mut self, infos: &[LaunchInfo], begin: Option<Moment>) {
        let end = self.now();
        self.host.extend(ran(infos, begin, end));
    }

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

    /// Registers that launches have ended.
    pub(super) fn ended(&mut self, ticket: Ticket) {
        let end = self.now();
        let Some(open) = self.open.get_mut(&ticket) else { return };
        self.host.extend(ran(&open.infos, open.begin, end));
        open.has_ended = true;
        self.total.launches += open.infos.len() as u64;
        self.total.recorded_launches += open.infos.iter().filter(|info| info.is_recorded()).count() as u64;
        if open.stay.is_none()
            && let Some(open) = self.open.remove(&ticket)
        {
            self.send_name(&open.infos, &open.name);
            self.plain.extend(open.infos);
        }
    }

    /// Counts a launch that was not reserved, because its logs are not in the pool.
    pub(super) fn launched(&mut self, info: &LaunchInfo, time: Duration, begin: Option<Moment>) {
        self.note_ran(&[*info], begin);
        self.launches = self.launches.max(info.number() + 1);
        self.count_recorded(&[*info], 1);
        self.total.kernel += time;
        self.total.launches += 1;
        self.total.recorded_launches += 1;
    }

    /// Returns arenas with launches that ended since their counters were read, and the counters' addresses.
    pub(super) fn unread(&self) -> Vec<(usize, u64)> {
        let Some(pool) = &self.pool else { return Vec::new() };
        let ended = self.open.values().filter(|open| open.has_ended);
        let mut arenas: Vec<usize> = ended.filter_map(|open| open.stay.map(|stay| stay.at)).collect();
        arenas.sort_unstable();
        arenas.dedup();
        arenas.into_iter().map(|at| (at, pool.claims(at))).collect()
    }

    /// Settles the ended launches of an arena up to ticket `last`; `claimed` entries of it were claimed.
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

    pub(super) fn last(&self) -> Ticket {
        Ticket(self.tickets)
    }

    /// Returns true if all launches have ended and settled.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the number of reserved launches that have not ended.
    pub(super) fn running(&self) -> usize {
        self.open.values().filter(|open| !open.has_ended).map(|open| open.infos.len()).sum()
    }

    pub(super) fn oldest(&self) -> Option<OldestLaunch> {
        let Open { infos, since, .. } = self.open.values().find(|open| !open.has_ended)?;
        let info = infos.first()?;
        let kernel = self.tables.metadata().kernels.get(info.kernel() as usize)?.name.clone();
        Some(OldestLaunch { launch: info.number(), kernel, since: *since, others: self.running() - 1 })
    }

    /// Stores the times of failed launches, whose logs may still be readable; returns these launches.
    pub(super) fn fail(&mut self, ticket: Ticket) -> Vec<LaunchInfo> {
        let Some(Open { infos, begin, .. }) = self.open.get(&ticket) else { return Vec::new() };
        let (infos, begin) = (infos.clone(), *begin);
        self.note_ran(&infos, begin);
        infos
    }

    /// Like [`running`](Self::running), without the launches of `ticket`.
    pub(super) fn running_beside(&self, ticket: Option<Ticket>) -> usize {
        let own = ticket.and_then(|ticket| self.open.get(&ticket)).map_or(0, |open| open.infos.len());
        self.running() - own
    }

    /// Takes all data that was not drained. Returns the contents of arenas, in which `claimed` entries were
    /// claimed, with their launches that have not ended; and the launches without logs that have not ended.
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

    pub(super) fn counters(&self) -> Vec<(usize, u64)> {
        self.pool.as_ref().map(Pool::counters).unwrap_or_default()
    }

    /// Returns the next data to write: with `all`, all that has ended, otherwise only what is worthwhile.
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

    pub(super) fn take_news(&mut self) -> (Vec<HostMessage>, Vec<HostLaunch>) {
        if let Some(buffers) = self.buffers.take() {
            self.send(HostMessage::Buffers(buffers));
        }
        (std::mem::take(&mut self.news), std::mem::take(&mut self.host))
    }

    pub(super) fn job(&mut self, filled: Option<Filled>) -> Job {
        let ((news, host), mut plain) = (self.take_news(), std::mem::take(&mut self.plain));
        plain.sort_unstable_by_key(LaunchInfo::number);
        Job { codec: self.codec, news, plain, filled, host }
    }

    /// Registers the drain of the previous job, and returns the [next job](Self::next_job).
    pub(super) fn go_on(&mut self, drained: Option<(usize, DrainCost)>, all: bool) -> Option<Job> {
        if let Some((arena, cost)) = drained {
            self.drained(arena, &cost);
        }
        self.next_job(all)
    }

    pub(super) fn refusal(&self, infos: &[LaunchInfo]) -> SessionError {
        self.pool.as_ref().map_or(SessionError::Unusable, |pool| pool.refusal(infos))
    }

    /// Registers that an arena is empty, with the drain's times and memory use.
    pub(super) fn drained(&mut self, arena: usize, cost: &DrainCost) {
        self.total.encoding += cost.encoding;
        self.total.copy += cost.copy;
        if let Some(pool) = &mut self.pool {
            pool.emptied(arena, cost.filled);
            cost.behavior.iter().for_each(|&(kernel, behavior)| pool.note_behavior(kernel, behavior));
            self.total.memory = pool.memory_use();
        }
    }
}

/// Returns the times of launches between two moments, if both are known.
fn ran(infos: &[LaunchInfo], begin: Option<Moment>, end: Option<Moment>) -> impl Iterator<Item = HostLaunch> {
    let both = begin.zip(end);
    both.into_iter().flat_map(move |(Moment { realtime: begin, monotonic }, end)| {
        let nanoseconds = Some(end.monotonic.saturating_sub(monotonic));
        infos.iter().map(move |info| HostLaunch { launch: info.number(), begin, nanoseconds })
    })
}
