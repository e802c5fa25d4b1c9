//! Executes an instruction for the lanes of a group.

use super::error::Fault;
use super::machine::{Frame, Group, LANES, Launch, Position, Warp};
use super::memory::{Memory as Global, Scratch};
use super::op::{Address, Atomic, Compute, Memory, Op, Register, SHARED_WINDOW, Special, Type, Value};
use super::program::{Program, Step};

/// The most calls that a lane may be in.
const MAX_CALLS: usize = 64;
/// The most bytes of an access.
const MAX_ACCESS: usize = 16;

/// What an instruction works on, beside its warp.
pub(super) struct Executor<'a> {
    pub(super) program: &'a Program,
    pub(super) launch: &'a Launch<'a>,
    pub(super) memory: &'a mut Global,
    /// Each block's shared memory.
    pub(super) shared: Vec<Scratch>,
    /// Nanoseconds since the launch.
    pub(super) elapsed: u64,
    /// How long the last instruction lets its group sleep.
    pub(super) sleep: Option<u64>,
    /// Whether the last instruction lets its group wait for the block's other threads.
    pub(super) waits: bool,
}

/// A lane of a warp.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub(super) number: u32,
}

/// Where lanes stand next.
pub(super) type Moves = Vec<(u32, Position)>;

pub(super) fn lanes(mask: u32) -> impl Iterator<Item = Lane> {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0).map(|number| Lane { number })
}

pub(super) fn frame(warp: &mut Warp, lane: Lane) -> Result<&mut Frame, Fault> {
    let frames = warp.lanes.get_mut(lane.number as usize);
    frames.and_then(|frames| frames.last_mut()).ok_or(Fault::End)
}

impl Executor<'_> {
    /// Executes an instruction; returns where the group's lanes stand then.
    pub(super) fn execute(&mut self, step: &Step, warp: &mut Warp, group: &Group) -> Result<Moves, Fault> {
        let op = step.op.as_ref().map_err(Clone::clone)?;
        let mut active = group.mask;
        if let Some((predicate, negated)) = step.guard {
            for lane in lanes(group.mask) {
                let holds = self.value(warp, lane, Value::Register(predicate))? == 1;
                if holds == negated {
                    active &= !(1 << lane.number);
                }
            }
        }
        let next = Position { item: group.at.item + 1, ..group.at };
        let stay = group.mask & !active;
        let mut moves = Moves::new();
        add(&mut moves, stay, next);
        match op {
            Op::Branch { to, uniform, .. } => {
                if *uniform && active != 0 && stay != 0 {
                    return Err(Fault::Diverges { taken: active, others: stay });
                }
                add(&mut moves, active, Position { item: *to, ..group.at });
            }
            Op::Call { function, results, arguments } => {
                for lane in lanes(active) {
                    let position = self.call(warp, lane, function, results, arguments, next.item)?;
                    add(&mut moves, 1 << lane.number, position);
                }
            }
            Op::Return => {
                for lane in lanes(active) {
                    if let Some(position) = self.leave(warp, lane)? {
                        add(&mut moves, 1 << lane.number, position);
                    }
                }
            }
            Op::Exit => {}
            Op::Barrier => {
                self.waits = true;
                add(&mut moves, active, next);
            }
            Op::Sleep { nanoseconds } => {
                let mut longest = 0;
                for lane in lanes(active) {
                    longest = longest.max(self.value(warp, lane, *nanoseconds)?);
                }
                self.sleep = Some(longest);
                add(&mut moves, active, next);
            }
            Op::ActiveMask { .. } | Op::Vote { .. } | Op::Shuffle { .. } => {
                self.collective(op, warp, active)?;
                add(&mut moves, active, next);
            }
            _ => {
                for lane in lanes(active) {
                    self.lane(op, warp, lane)?;
                }
                add(&mut moves, active, next);
            }
        }
        Ok(moves)
    }

    fn call(
        &self,
        warp: &mut Warp,
        lane: Lane,
        function: &str,
        results: &[usize],
        arguments: &[usize],
        back: usize,
    ) -> Result<Position, Fault> {
        let unknown = |problem: &str| Fault::Unknown(format!("`{function}` {problem}"));
        let callee = self.program.function(function).ok_or_else(|| unknown("is not defined"))?;
        let code = &self.program.functions[callee];
        if code.parameters.len() != arguments.len() || code.results.len() != results.len() {
            return Err(unknown("takes another number of arguments, or has other results"));
        }
        let mut called = Frame::new(self.program, callee);
        (called.back, called.results) = (back, results.to_vec());
        let caller = frame(warp, lane)?;
        for ((offset, bytes), argument) in code.parameters.iter().zip(arguments) {
            let copied = called.parameters.copy(*offset, &caller.parameters, *argument, *bytes);
            copied.ok_or_else(|| unknown("takes longer arguments"))?;
        }
        let frames = &mut warp.lanes[lane.number as usize];
        if frames.len() >= MAX_CALLS {
            return Err(Fault::Calls { limit: MAX_CALLS });
        }
        frames.push(called);
        Ok(Position { depth: frames.len(), function: callee, item: 0 })
    }

    /// Returns from a call; `None` if it was the kernel.
    fn leave(&self, warp: &mut Warp, lane: Lane) -> Result<Option<Position>, Fault> {
        let frames = warp.lanes.get_mut(lane.number as usize).ok_or(Fault::End)?;
        let ended = frames.pop().ok_or(Fault::End)?;
        let depth = frames.len();
        let Some(caller) = frames.last_mut() else { return Ok(None) };
        for ((offset, bytes), result) in
            self.program.functions[ended.function].results.iter().zip(&ended.results)
        {
            let copied = caller.parameters.copy(*result, &ended.parameters, *offset, *bytes);
            copied.ok_or_else(|| Fault::Unknown("a result that is longer than its variable".to_owned()))?;
        }
        Ok(Some(Position { depth, function: caller.function, item: ended.back }))
    }

    /// Executes an instruction for a lane.
    fn lane(&mut self, op: &Op, warp: &mut Warp, lane: Lane) -> Result<(), Fault> {
        match op {
            Op::Compute { compute, ty, to, from, negated } => {
                let mut operands = [0; 3];
                for (operand, from) in operands.iter_mut().zip(from) {
                    *operand = self.value(warp, lane, *from)?;
                }
                operands[2] ^= u64::from(*negated);
                let result = compute.apply(*ty, &operands).ok_or(Fault::Division { lane: lane.number })?;
                set(warp, lane, *to, result)
            }
            Op::Pack { bits, to, from } => {
                let mut packed = 0;
                for (part, from) in (0..).zip(from) {
                    let ty = Type { bits: *bits, signed: false };
                    packed |= ty.truncate(self.value(warp, lane, *from)?) << (bits * part);
                }
                set(warp, lane, *to, packed)
            }
            Op::Unpack { bits, to, from } => {
                let packed = self.value(warp, lane, *from)?;
                for (part, to) in (0..).zip(to) {
                    set(
                        warp,
                        lane,
                        *to,
                        Type { bits: *bits, signed: false }.truncate(packed >> (bits * part)),
                    )?;
                }
                Ok(())
            }
            Op::Load { memory, ty, to, address } => {
                let bytes = u64::from(ty.bits / 8);
                let whole = bytes * to.len() as u64;
                let at = self.address(warp, lane, *memory, address, whole)?;
                let read = self.read(warp, lane, *memory, at, whole)?;
                for (to, value) in to.iter().zip(read.chunks_exact(bytes as usize)) {
                    let value = number(value);
                    // A wider register takes the number.
                    let value =
                        Compute::Convert { from: *ty }.apply(Type { bits: 64, signed: false }, &[value]);
                    set(warp, lane, *to, value.unwrap_or_default())?;
                }
                Ok(())
            }
            Op::Store { memory, ty, from, address } => {
                let bytes = (ty.bits / 8) as usize;
                let at = self.address(warp, lane, *memory, address, (bytes * from.len()) as u64)?;
                let mut written = [0; MAX_ACCESS];
                for (written, from) in written.chunks_exact_mut(bytes).zip(from) {
                    written.copy_from_slice(&self.value(warp, lane, *from)?.to_le_bytes()[..bytes]);
                }
                self.write(warp, lane, *memory, at, &written[..bytes * from.len()])
            }
            Op::Atomic { atomic, ty, to, address, value } => {
                let bytes = u64::from(ty.bits / 8);
                let at = self.address(warp, lane, Memory::Global, address, bytes)?;
                let old = ty.truncate(number(&self.read(warp, lane, Memory::Global, at, bytes)?[..8]));
                let value = self.value(warp, lane, *value)?;
                let new = match atomic {
                    Atomic::Add => old.wrapping_add(value),
                    Atomic::Or => old | value,
                };
                self.write(warp, lane, Memory::Global, at, &new.to_le_bytes()[..bytes as usize])?;
                to.map_or(Ok(()), |to| set(warp, lane, to, old))
            }
            // A guarded one: the machine counts the others.
            Op::PerformanceEvent { .. } => Err(Fault::Unknown("a guarded performance event".to_owned())),
            _ => Ok(()),
        }
    }

    pub(super) fn value(&self, warp: &mut Warp, lane: Lane, value: Value) -> Result<u64, Fault> {
        match value {
            Value::Immediate(number) => Ok(number),
            Value::Special(special) => Ok(self.special(warp, lane, special)),
            Value::Register(register) => {
                let frame = frame(warp, lane)?;
                frame.registers[register].ok_or_else(|| Fault::Uninitialised {
                    lane: lane.number,
                    register: self.program.functions[frame.function].registers[register].clone(),
                })
            }
        }
    }

    fn special(&self, warp: &Warp, lane: Lane, special: Special) -> u64 {
        let thread = warp.first_thread + lane.number;
        let [x, y, _] = self.launch.block;
        let number = match special {
            Special::Thread(axis) => [thread % x, thread / x % y, thread / x / y][axis],
            Special::BlockSize(axis) => self.launch.block[axis],
            Special::Block(axis) => warp.block[axis],
            Special::GridSize(axis) => self.launch.grid[axis],
            Special::Lane => lane.number,
            Special::LanesBelow => (1 << lane.number) - 1,
            Special::DynamicShared => self.launch.dynamic_shared,
            Special::Clock => return warp.clock,
            Special::GlobalTimer => return self.launch.clock.wrapping_add(self.elapsed),
        };
        u64::from(number)
    }

    fn address(
        &self,
        warp: &mut Warp,
        lane: Lane,
        memory: Memory,
        address: &Address,
        bytes: u64,
    ) -> Result<u64, Fault> {
        let base = match address.base {
            Some(register) => self.value(warp, lane, Value::Register(register))?,
            None => 0,
        };
        let at = base.wrapping_add(address.offset);
        let (lane, space) = (lane.number, memory.name());
        if !at.is_multiple_of(bytes) {
            return Err(Fault::Misaligned { lane, space, address: at, bytes });
        }
        let inside = address.within.is_none_or(|(start, end)| {
            at >= start && at.checked_add(bytes).is_some_and(|access_end| access_end <= end)
        });
        if inside { Ok(at) } else { Err(Fault::Bounds { lane, space, address: at, bytes }) }
    }

    fn read(
        &mut self,
        warp: &mut Warp,
        lane: Lane,
        memory: Memory,
        address: u64,
        bytes: u64,
    ) -> Result<[u8; MAX_ACCESS], Fault> {
        let (memory, address) = resolve(memory, address);
        let (number, space) = (lane.number, memory.name());
        let bounds = Fault::Bounds { lane: number, space, address, bytes };
        let scratch = match memory {
            Memory::Global | Memory::Generic => {
                return self.memory.slice(address, bytes).map(|read| array(read)).ok_or(bounds);
            }
            Memory::Shared => &self.shared[warp.block_index],
            Memory::Param => &frame(warp, lane)?.parameters,
            Memory::Local => &frame(warp, lane)?.local,
        };
        match scratch.read(address, bytes) {
            Ok(read) => Ok(array(read)),
            Err(true) => Err(Fault::Unwritten { lane: number, space, address, bytes }),
            Err(false) => Err(bounds),
        }
    }

    fn write(
        &mut self,
        warp: &mut Warp,
        lane: Lane,
        memory: Memory,
        address: u64,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let (memory, address) = resolve(memory, address);
        let written = match memory {
            Memory::Global | Memory::Generic => {
                self.memory.slice(address, bytes.len() as u64).map(|memory| memory.copy_from_slice(bytes))
            }
            Memory::Shared => self.shared[warp.block_index].write(address, bytes),
            Memory::Param => frame(warp, lane)?.parameters.write(address, bytes),
            Memory::Local => frame(warp, lane)?.local.write(address, bytes),
        };
        let (lane, space, bytes) = (lane.number, memory.name(), bytes.len() as u64);
        written.ok_or(Fault::Bounds { lane, space, address, bytes })
    }
}

/// Finds where a generic address leads.
fn resolve(memory: Memory, address: u64) -> (Memory, u64) {
    match (memory, address.checked_sub(SHARED_WINDOW)) {
        (Memory::Generic, Some(offset)) => (Memory::Shared, offset),
        (Memory::Generic, None) => (Memory::Global, address),
        _ => (memory, address),
    }
}

fn set(warp: &mut Warp, lane: Lane, register: Register, value: u64) -> Result<(), Fault> {
    frame(warp, lane)?.registers[register] = Some(value);
    Ok(())
}

pub(super) fn set_all(warp: &mut Warp, mask: u32, register: Register, value: u64) -> Result<(), Fault> {
    lanes(mask).try_for_each(|lane| set(warp, lane, register, value))
}

/// Bytes that were read, with zeros behind them.
fn array(read: &[u8]) -> [u8; MAX_ACCESS] {
    let mut bytes = [0; MAX_ACCESS];
    let length = read.len().min(MAX_ACCESS);
    bytes[..length].copy_from_slice(&read[..length]);
    bytes
}

/// A little-endian number of at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Adds lanes to a position.
fn add(moves: &mut Moves, mask: u32, at: Position) {
    match moves.iter_mut().find(|(_, known)| *known == at) {
        _ if mask == 0 => {}
        Some((lanes, _)) => *lanes |= mask,
        None => moves.push((mask, at)),
    }
}
