//! Launches: blocks, warps, lanes and groups.

mod launch;
mod waits;

pub use self::launch::{CLOCKS_APART, Launch};
pub(super) use self::waits::Wait;
use super::error::{Fault, InterpretError};
use super::execute::{Executor, Moves};
use super::memory::{Memory, Scratch};
use super::observed::{Executions, MarkerEvent, Observed};
use super::op::Op;
use super::program::{Item, Program};
use super::schedule::{Candidate, Schedule};

pub(super) const LANES: u32 = 32;
const MAX_THREADS: u64 = 1 << 16;
/// Maximum size of dynamic shared memory in bytes.
const MAX_DYNAMIC_SHARED: u32 = 1 << 18;

#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) function: usize,
    pub(super) registers: Vec<Option<u64>>,
    pub(super) parameters: Scratch,
    pub(super) local: Scratch,
    /// Start of `local` in the thread's local memory.
    pub(super) local_start: u64,
    /// The caller's item after the call.
    pub(super) back: usize,
    /// Offsets of the caller's variables for the results.
    pub(super) results: Vec<usize>,
    pub(super) carry: bool,
}

impl Frame {
    pub(super) fn new(program: &Program, function: usize) -> Self {
        let code = &program.functions[function];
        Self {
            function,
            registers: vec![None; code.registers.len()],
            parameters: Scratch::new(code.parameter_bytes),
            local: Scratch::new(code.local_bytes),
            local_start: 0,
            back: 0,
            results: Vec::new(),
            carry: false,
        }
    }
}

#[derive(Debug)]
pub(super) struct Warp {
    /// Index in the launch.
    pub(super) index: u32,
    pub(super) block: [u32; 3],
    pub(super) block_index: usize,
    pub(super) first_thread: u32,
    pub(super) clock: u64,
    pub(super) lanes: Vec<Vec<Frame>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) number: u64,
    pub(super) warp: usize,
    pub(super) mask: u32,
    pub(super) at: Position,
    /// Time in nanoseconds since the launch until which the group sleeps.
    pub(super) wakes: u64,
    pub(super) waits: Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// Number of stack frames, including the kernel's.
    pub(super) depth: usize,
    pub(super) function: usize,
    pub(super) item: usize,
}

/// A divergent branch whose lanes have not reconverged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divergence {
    number: u64,
    depth: usize,
    function: usize,
    block: usize,
}

struct Machine<'a> {
    program: &'a Program,
    executor: Executor<'a>,
    warps: Vec<Warp>,
    groups: Vec<Group>,
    /// Scratch memory: groups that may run, and lanes' positions after an instruction.
    candidates: Vec<Candidate>,
    moves: Moves,
    lines: Vec<Executions>,
    numbers: u64,
    /// For each group, the divergent branches that separate it from others, outermost first.
    divergences: Vec<Vec<Divergence>>,
    parted: u64,
    observed: Observed,
    max_steps: u64,
}

/// Runs a launch with all blocks concurrently and returns the observations.
///
/// # Errors
/// Returns an [`InterpretError`] if the launch does not fit the kernel, an instruction causes a fault, or the
/// launch exceeds its limit of instructions. `memory` then holds all earlier writes.
pub fn run(
    program: &Program,
    launch: &Launch<'_>,
    memory: &mut Memory,
    schedule: &mut Schedule,
) -> Result<Observed, InterpretError> {
    run_with_host(program, launch, memory, schedule, &mut |_| {})
}

/// Like [`run`], with a host that accesses memory: called after each turn, also when a group goes to sleep.
pub fn run_with_host(
    program: &Program,
    launch: &Launch<'_>,
    memory: &mut Memory,
    schedule: &mut Schedule,
    host: &mut dyn FnMut(&mut Memory),
) -> Result<Observed, InterpretError> {
    let function = check(program, launch)
        .map_err(|problem| InterpretError::Launch { kernel: launch.kernel.to_owned(), problem })?;
    let mut frame = Frame::new(program, function);
    for ((offset, _), bytes) in program.functions[function].parameters.iter().zip(&launch.parameters) {
        let _ = frame.parameters.write(*offset as u64, bytes);
    }
    for (address, bytes) in &program.variables {
        if memory.region(*address).is_none() {
            memory.declare(*address, bytes.clone());
        }
    }
    let [x, y, z] = launch.grid;
    let blocks = x * y * z;
    let threads: u32 = launch.block.iter().product();
    let mut warps = Vec::new();
    for block in 0..blocks {
        let sm = u64::from(launch.multiprocessor(block as usize));
        for first_thread in (0..threads).step_by(LANES as usize) {
            let lanes = (threads - first_thread).min(LANES);
            warps.push(Warp {
                index: warps.len() as u32,
                block: [block % x, block / x % y, block / x / y],
                block_index: block as usize,
                first_thread,
                clock: launch.clock.wrapping_add(sm * CLOCKS_APART),
                lanes: vec![vec![frame.clone()]; lanes as usize],
            });
        }
    }
    let start = Position { depth: 1, function, item: 0 };
    let groups = warps.iter().enumerate().map(|(warp, state)| {
        let mask = u32::MAX >> (LANES - state.lanes.len() as u32);
        Group { number: warp as u64, warp, mask, at: start, wakes: 0, waits: Wait::Nothing }
    });
    let shared_bytes = program.shared_bytes + launch.dynamic_shared as usize;
    let mut machine = Machine {
        program,
        executor: Executor {
            program,
            launch,
            memory,
            shared: vec![Scratch::new(shared_bytes); blocks as usize],
            accesses: Vec::new(),
            elapsed: 0,
            sleep: None,
            waits: Wait::Nothing,
        },
        groups: groups.collect(),
        candidates: Vec::new(),
        moves: Moves::new(),
        lines: Vec::new(),
        numbers: warps.len() as u64,
        divergences: vec![Vec::new(); warps.len()],
        parted: 0,
        warps,
        observed: Observed { shared_bytes: shared_bytes as u64, ..Observed::default() },
        max_steps: launch.max_steps,
    };
    machine.run(schedule, host)?;
    let executed = machine.lines.into_iter().enumerate().filter(|(_, executions)| executions.groups > 0);
    machine.observed.lines = executed.collect();
    machine.observed.accesses = machine.executor.accesses;
    Ok(machine.observed)
}

fn check(program: &Program, launch: &Launch<'_>) -> Result<usize, String> {
    let function = program.function(launch.kernel).ok_or("the module has no such function")?;
    let code = &program.functions[function];
    if !code.is_entry {
        return Err("it is no kernel".to_owned());
    }
    let sizes = launch.grid.iter().chain(&launch.block);
    let threads = sizes.fold(1_u64, |product, size| product.saturating_mul(u64::from(*size)));
    if threads == 0 || threads > MAX_THREADS {
        return Err(format!("it has {threads} threads; 1 to {MAX_THREADS} are allowed"));
    }
    if launch.dynamic_shared > MAX_DYNAMIC_SHARED {
        return Err(format!("more than {MAX_DYNAMIC_SHARED} bytes of dynamic shared memory"));
    }
    let expected: Vec<usize> = code.parameters.iter().map(|(_, bytes)| *bytes).collect();
    let given: Vec<usize> = launch.parameters.iter().map(Vec::len).collect();
    if expected != given {
        return Err(format!("its parameters have the sizes {expected:?}, but {given:?} were given"));
    }
    Ok(function)
}

impl Machine<'_> {
    fn run(
        &mut self,
        schedule: &mut Schedule,
        host: &mut dyn FnMut(&mut Memory),
    ) -> Result<(), InterpretError> {
        let mut last = 0;
        while !self.groups.is_empty() {
            let mut current = self.choose(schedule, last)?;
            loop {
                self.join(&mut current, schedule);
                last = self.groups[current].number;
                let sleeps = self.step(current, schedule)?;
                // The group may have moved in the list or ended.
                if self.groups.get(current).is_none_or(|group| group.number != last) {
                    match self.groups.iter().position(|group| group.number == last) {
                        Some(found) => current = found,
                        None => break,
                    }
                }
                let at_label = self.joins_at(self.groups[current].at);
                if schedule.turn_ends(self.observed.steps, at_label) || sleeps {
                    break;
                }
            }
            host(self.executor.memory);
        }
        Ok(())
    }

    /// Chooses one of the groups that can run. If all sleep, advances the time until one wakes.
    fn choose(&mut self, schedule: &mut Schedule, last: u64) -> Result<usize, InterpretError> {
        if self.groups.iter().any(|group| group.waits != Wait::Nothing) {
            self.pass_barriers();
        }
        let free = self.groups.iter().filter(|group| group.waits == Wait::Nothing);
        let first = free.map(|group| group.wakes).min().ok_or(InterpretError::Deadlock)?;
        self.executor.elapsed = self.executor.elapsed.max(first);
        self.candidates.clear();
        for (index, group) in self.groups.iter().enumerate() {
            if group.wakes <= self.executor.elapsed && group.waits == Wait::Nothing {
                let position = (group.at.depth, group.at.item);
                self.candidates.push(Candidate { index, warp: group.warp, group: group.number, position });
            }
        }
        Ok(self.candidates[schedule.choose(&self.candidates, last)].index)
    }

    fn joins_at(&self, at: Position) -> bool {
        let item = self.program.functions[at.function].items.get(at.item);
        matches!(item, Some(Item::Label { joins: true, .. }))
    }

    /// Returns the index of the group's outermost divergent branch whose reconvergence point is here.
    fn meeting(&self, group: &Group) -> Option<usize> {
        let Some(Item::Label { block, .. }) =
            self.program.functions[group.at.function].items.get(group.at.item)
        else {
            return None;
        };
        self.divergences[group.number as usize].iter().position(|divergence| {
            (divergence.depth, divergence.function, divergence.block)
                == (group.at.depth, group.at.function, *block)
        })
    }

    /// Returns true if one branch has separated two groups at a label, and they reconverge there.
    fn rejoin(&mut self, group: &Group, other: u64) -> bool {
        let Some(first) = self.meeting(group) else { return false };
        let mine = &self.divergences[group.number as usize];
        let theirs = &self.divergences[other as usize];
        let common = (first..mine.len()).rev().find(|at| {
            let same_place = (mine[*at].depth, mine[*at].function, mine[*at].block)
                == (mine[first].depth, mine[first].function, mine[first].block);
            same_place && theirs.get(*at) == Some(&mine[*at])
        });
        if let Some(at) = common {
            // The branch still separates the group from others until they leave this point.
            self.divergences[group.number as usize].truncate(at + 1);
        }
        common.is_some()
    }

    fn join(&mut self, current: &mut usize, schedule: &mut Schedule) {
        let group = self.groups[*current];
        if !self.joins_at(group.at) {
            return;
        }
        for other in (0..self.groups.len()).rev() {
            let Group { number, warp, mask, at, wakes, waits } = self.groups[other];
            let meets =
                waits == Wait::Nothing && number != group.number && (warp, at) == (group.warp, group.at);
            if !meets || wakes > self.executor.elapsed || !schedule.joins() {
                continue;
            }
            if schedule.only_where_ways_meet() && !self.rejoin(&group, number) {
                continue;
            }
            self.groups[*current].mask |= mask;
            self.groups.remove(other);
            self.observed.joins += 1;
            if other < *current {
                *current -= 1;
            }
        }
    }

    /// Executes one instruction with the labels, markers and performance events before it. Returns true if
    /// the group then sleeps or waits.
    fn step(&mut self, current: usize, schedule: &mut Schedule) -> Result<bool, InterpretError> {
        let mut group = self.groups[current];
        let program = self.program;
        let step = loop {
            match program.functions[group.at.function].items.get(group.at.item) {
                Some(Item::Label { .. }) => {
                    if let Some(at) = self.meeting(&group) {
                        self.divergences[group.number as usize].truncate(at);
                    }
                }
                Some(Item::Marker(marker)) => {
                    let warp = self.warps[group.warp].index;
                    self.observed.markers.push(MarkerEvent { warp, mask: group.mask, marker: *marker });
                }
                Some(Item::Value { site, register, guard }) => {
                    let accessed =
                        self.executor.values(&mut self.warps[group.warp], &group, *site, *register, *guard);
                    accessed.map_err(|fault| self.error(group, 0, format!("site {site}"), fault))?;
                }
                Some(Item::Instruction(step)) => match (&step.op, step.guard) {
                    (Ok(Op::PerformanceEvent { mask }), None) => {
                        self.count(group, schedule)?;
                        let events = self.observed.performance_events.entry(*mask).or_default();
                        events.groups += 1;
                        events.lanes += u64::from(group.mask.count_ones());
                    }
                    _ => break step,
                },
                None => {
                    let name = program.functions[group.at.function].name.clone();
                    return Err(self.error(group, 0, name, Fault::End));
                }
            }
            group.at.item += 1;
        };
        let members = step.op.as_ref().ok().and_then(Op::collective).flatten();
        if let Some(members) = members.filter(|_| step.guard.is_none()) {
            self.groups[current].at = group.at;
            let named = self.executor.members(members, &mut self.warps[group.warp], group.mask);
            // Lanes of a recording sequence must name exactly the active lanes.
            let (lane, here) = (group.mask.trailing_zeros(), group.mask);
            let named = named.and_then(|named| match named == here || !step.is_sequence {
                true => Ok(named),
                false => Err(Fault::Members { lane, named, here }),
            });
            let named = named.map_err(|fault| self.error(group, step.line, step.text.clone(), fault))?;
            if !self.gather(current, named) {
                self.groups[current].waits = Wait::Warp;
                return Ok(true);
            }
            group = self.groups.iter().copied().find(|found| found.number == group.number).unwrap_or(group);
        }
        let current = self.groups.iter().position(|found| found.number == group.number).unwrap_or(current);
        self.count(group, schedule)?;
        if self.lines.len() <= step.line {
            self.lines.resize(step.line + 1, Executions::default());
        }
        let executed = &mut self.lines[step.line];
        executed.groups += 1;
        executed.lanes += u64::from(group.mask.count_ones());
        let mut moves = std::mem::take(&mut self.moves);
        self.executor
            .execute(step, &mut self.warps[group.warp], &group, &mut moves)
            .map_err(|fault| self.error(group, step.line, step.text.clone(), fault))?;
        let sleep = self.executor.sleep.take();
        let wakes = sleep.map_or(0, |sleep| self.executor.elapsed.saturating_add(sleep));
        let waits = std::mem::take(&mut self.executor.waits);
        let here: u32 = moves.iter().fold(0, |lanes, (mask, _)| lanes | mask);
        if here != group.mask {
            self.wake(group.warp);
        }
        self.observed.splits += (moves.len() as u64).saturating_sub(1);
        if let Some(block) = step.meets.filter(|_| moves.len() > 1) {
            self.parted += 1;
            let Position { depth, function, .. } = group.at;
            let divergence = Divergence { number: self.parted, depth, function, block };
            self.divergences[group.number as usize].push(divergence);
        }
        match moves.first() {
            None => {
                self.groups.remove(current);
            }
            Some(&(mask, at)) => self.groups[current] = Group { mask, at, wakes, waits, ..group },
        }
        for (mask, at) in moves.drain(..).skip(1) {
            self.groups.push(Group { number: self.numbers, mask, at, wakes, waits, ..group });
            self.divergences.push(self.divergences[group.number as usize].clone());
            self.numbers += 1;
        }
        self.moves = moves;
        Ok(sleep.is_some() || waits != Wait::Nothing)
    }

    fn count(&mut self, group: Group, schedule: &mut Schedule) -> Result<(), InterpretError> {
        self.observed.steps += 1;
        if self.observed.steps > self.max_steps {
            return Err(InterpretError::Steps { limit: self.max_steps });
        }
        let warp = &mut self.warps[group.warp];
        warp.clock = warp.clock.wrapping_add(schedule.cycles());
        self.executor.elapsed = self.executor.elapsed.saturating_add(1);
        Ok(())
    }

    fn error(&self, group: Group, line: usize, text: String, fault: Fault) -> InterpretError {
        let warp = self.warps[group.warp].index;
        InterpretError::Instruction { line, text, warp, lanes: group.mask, fault }
    }
}
