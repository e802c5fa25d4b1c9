//! Executes an instruction for the lanes of a group.

mod accesses;
mod calls;

use super::error::Fault;
use super::machine::{Frame, Group, LANES, Launch, Position, Wait, Warp};
use super::memory::{Memory as Global, Scratch};
use super::observed::Access;
use super::op::{
    Address, LOCAL_WINDOW, Memory, Op, Predicate, Register, SHARED_WINDOW, Special, Type, Value,
};
use super::program::{Program, Step};

/// Maximum size of an access in bytes.
const MAX_ACCESS: usize = 16;

pub(super) struct Executor<'a> {
    pub(super) program: &'a Program,
    pub(super) launch: &'a Launch<'a>,
    pub(super) memory: &'a mut Global,
    pub(super) shared: Vec<Scratch>,
    pub(super) accesses: Vec<Access>,
    /// Nanoseconds since the launch.
    pub(super) elapsed: u64,
    /// Nanoseconds for which the last instruction puts its group to sleep.
    pub(super) sleep: Option<u64>,
    /// The wait that the last instruction begins.
    pub(super) waits: Wait,
}

#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub(super) number: u32,
}

/// Next positions of lanes, with the masks of the lanes.
pub(super) type Moves = Vec<(u32, Position)>;

pub(super) fn lanes(mask: u32) -> impl Iterator<Item = Lane> {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0).map(|number| Lane { number })
}

pub(super) fn frame(warp: &mut Warp, lane: Lane) -> Result<&mut Frame, Fault> {
    let frames = warp.lanes.get_mut(lane.number as usize);
    frames.and_then(|frames| frames.last_mut()).ok_or(Fault::End)
}

/// Returns the local memory that contains an address, of the function or of a caller, with the offset in it.
fn local(warp: &mut Warp, lane: Lane, address: u64) -> Result<(&mut Scratch, u64), Fault> {
    let frames = warp.lanes.get_mut(lane.number as usize).ok_or(Fault::End)?;
    let frame = frames.iter_mut().rev().find(|frame| frame.local_start <= address).ok_or(Fault::End)?;
    Ok((&mut frame.local, address - frame.local_start))
}

impl Executor<'_> {
    /// Executes an instruction and stores the lanes' next positions in `moves`, which must be empty.
    pub(super) fn execute(
        &mut self,
        step: &Step,
        warp: &mut Warp,
        group: &Group,
        moves: &mut Moves,
    ) -> Result<(), Fault> {
        let op = step.op.as_ref().map_err(Clone::clone)?;
        let mut active = group.mask;
        if let Some(guard) = step.guard {
            for lane in lanes(group.mask) {
                if !self.holds(warp, lane, guard)? {
                    active &= !(1 << lane.number);
                }
            }
        }
        let next = Position { item: group.at.item + 1, ..group.at };
        let stay = group.mask & !active;
        add(moves, stay, next);
        match op {
            Op::Branch { to, uniform, .. } => {
                if *uniform && active != 0 && stay != 0 {
                    return Err(Fault::Diverges { taken: active, others: stay });
                }
                add(moves, active, Position { item: *to, ..group.at });
            }
            Op::Call { function, results, arguments } => {
                for lane in lanes(active) {
                    let position = self.call(warp, lane, function, results, arguments, next.item)?;
                    add(moves, 1 << lane.number, position);
                }
            }
            Op::Return => {
                for lane in lanes(active) {
                    if let Some(position) = self.leave(warp, lane)? {
                        add(moves, 1 << lane.number, position);
                    }
                }
            }
            Op::Exit => {}
            Op::BranchIndexed { index, to, .. } => {
                for lane in lanes(active) {
                    let index = self.value(warp, lane, *index)?;
                    let item = usize::try_from(index).ok().and_then(|index| to.get(index));
                    let item = *item.ok_or(Fault::Table { lane: lane.number, index })?;
                    add(moves, 1 << lane.number, Position { item, ..group.at });
                }
            }
            Op::Barrier { barrier, threads } => {
                let lane = Lane { number: group.mask.trailing_zeros() };
                let threads = threads.map(|threads| self.value(warp, lane, threads)).transpose()?;
                let barrier = self.value(warp, lane, *barrier)?;
                self.waits = Wait::Block { barrier, threads };
                add(moves, active, next);
            }
            Op::Trap if active != 0 => return Err(Fault::Trap),
            Op::Sleep { nanoseconds } => {
                let mut longest = 0;
                for lane in lanes(active) {
                    longest = longest.max(self.value(warp, lane, *nanoseconds)?);
                }
                self.sleep = Some(longest);
                add(moves, active, next);
            }
            _ if op.collective().is_some() => {
                self.collective(op, warp, active)?;
                add(moves, active, next);
            }
            _ => {
                for lane in lanes(active) {
                    for (site, operand) in &step.sites {
                        self.note_access(op, warp, lane, *site, *operand)?;
                    }
                    self.lane(op, warp, lane)?;
                }
                add(moves, active, next);
            }
        }
        Ok(())
    }

    fn lane(&mut self, op: &Op, warp: &mut Warp, lane: Lane) -> Result<(), Fault> {
        match op {
            Op::Compute { compute, ty, to, from } => {
                let mut operands = [0; 4];
                for (operand, from) in operands.iter_mut().zip(from) {
                    *operand = self.value(warp, lane, *from)?;
                }
                let result = compute.apply(*ty, &operands).ok_or(Fault::Division { lane: lane.number })?;
                set(self.program, warp, lane, *to, result)
            }
            Op::Pack { bits, to, from } => {
                let mut packed = 0;
                for (part, from) in (0..).zip(from) {
                    let value = self.value(warp, lane, *from)?;
                    packed |= Type::unsigned(*bits).truncate(value) << (bits * part);
                }
                set(self.program, warp, lane, *to, packed)
            }
            Op::Unpack { bits, to, from } => {
                let packed = self.value(warp, lane, *from)?;
                for (part, to) in (0..).zip(to) {
                    let value = Type::unsigned(*bits).truncate(packed >> (bits * part));
                    set(self.program, warp, lane, *to, value)?;
                }
                Ok(())
            }
            Op::Load { memory, ty, to, address } => {
                let bytes = u64::from(ty.bits / 8);
                let whole = bytes * to.len() as u64;
                let at = self.address(warp, lane, *memory, address, whole)?;
                let read = self.read(warp, lane, *memory, at, whole)?;
                for (to, value) in to.iter().zip(read.chunks_exact(bytes as usize)) {
                    // A wider register gets the extended number.
                    set(self.program, warp, lane, *to, ty.number(number(value)) as u64)?;
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
            Op::Carry { subtract, reads, writes, ty, to, from } => {
                let [a, b] = [from[0], from[1]].map(|from| self.value(warp, lane, from));
                let carried = if *reads { frame(warp, lane)?.carry } else { *subtract };
                // A difference is a sum with the complement. Its carry means "no borrow".
                let b = if *subtract { !b? } else { b? };
                let sum = u128::from(ty.truncate(a?)) + u128::from(ty.truncate(b)) + u128::from(carried);
                if *writes {
                    frame(warp, lane)?.carry = sum >> ty.bits != 0;
                }
                set(self.program, warp, lane, *to, ty.truncate(sum as u64))
            }
            Op::Float { step, to, from } => {
                let mut operands = [0; 3];
                for (operand, from) in operands.iter_mut().zip(from) {
                    *operand = self.value(warp, lane, *from)?;
                }
                set(self.program, warp, lane, *to, step.apply(operands))
            }
            Op::SetPredicate { compare, of, flush, to, other, from, joined } => {
                let [a, b] = [from[0], from[1]].map(|from| self.value(warp, lane, from));
                let holds = compare.holds(of.order(*flush, [a?, b?]));
                let joined = match joined {
                    None => None,
                    Some((join, with)) => Some((join, u64::from(self.holds(warp, lane, *with)?))),
                };
                let of = |holds: u64| {
                    joined
                        .and_then(|(join, with)| join.apply(Type::unsigned(1), &[holds, with]))
                        .unwrap_or(holds)
                };
                set(self.program, warp, lane, *to, of(holds.into()))?;
                other.map_or(Ok(()), |other| set(self.program, warp, lane, other, of((!holds).into())))
            }
            Op::Convert { conversion, to, from } => {
                let mut result = 0;
                for (part, from) in (0..).zip(from) {
                    result |= conversion.apply(self.value(warp, lane, *from)?) << (16 * part);
                }
                set(self.program, warp, lane, *to, result)
            }
            Op::IsSpace { memory, to, of } => {
                let (found, _) = resolve(Memory::Generic, self.value(warp, lane, *of)?);
                set(self.program, warp, lane, *to, u64::from(found == *memory))
            }
            Op::Atomic { atomic, memory, ty, to, address, values } => {
                let bytes = u64::from(ty.bits / 8);
                let at = self.address(warp, lane, *memory, address, bytes)?;
                let old = ty.truncate(number(&self.read(warp, lane, *memory, at, bytes)?[..8]));
                let mut given = [0; 2];
                for (given, value) in given.iter_mut().zip(values) {
                    *given = self.value(warp, lane, *value)?;
                }
                let new = atomic.apply(*ty, old, given);
                self.write(warp, lane, *memory, at, &new.to_le_bytes()[..bytes as usize])?;
                to.map_or(Ok(()), |to| set(self.program, warp, lane, to, old))
            }
            Op::Copy { to, from, bytes, length } => {
                let length = length.map(|length| self.value(warp, lane, length)).transpose()?;
                let length = length.unwrap_or(*bytes).min(*bytes);
                let (to, from) = (
                    self.address(warp, lane, Memory::Shared, to, *bytes)?,
                    self.address(warp, lane, Memory::Global, from, *bytes)?,
                );
                let mut copied = [0; MAX_ACCESS];
                if length != 0 {
                    copied = self.read(warp, lane, Memory::Global, from, length)?;
                }
                self.write(warp, lane, Memory::Shared, to, &copied[..*bytes as usize])
            }
            // A guarded performance event; the machine counts the others.
            Op::PerformanceEvent { .. } => Err(Fault::Unknown("a guarded performance event".to_owned())),
            _ => Ok(()),
        }
    }

    pub(super) fn value(&self, warp: &mut Warp, lane: Lane, value: Value) -> Result<u64, Fault> {
        match value {
            Value::Immediate(number) => Ok(number),
            Value::Local(offset) => Ok(frame(warp, lane)?.local_start.wrapping_add(offset)),
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

    /// Returns the value of a predicate, with negation applied.
    pub(super) fn holds(&self, warp: &mut Warp, lane: Lane, of: Predicate) -> Result<bool, Fault> {
        let (register, negated) = of;
        Ok((self.value(warp, lane, Value::Register(register))? == 1) != negated)
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
            Special::LaneMask { below, own, above } => {
                let this = 1_u32 << lane.number;
                let of = |wanted: bool, mask: u32| if wanted { mask } else { 0 };
                of(below, this - 1) | of(own, this) | of(above, !(this | (this - 1)))
            }
            Special::Warp => warp.first_thread / LANES,
            Special::Warps => self.launch.block.iter().product::<u32>().div_ceil(LANES),
            Special::Multiprocessor => self.launch.multiprocessor(warp.block_index),
            Special::Multiprocessors => self.launch.multiprocessors.max(1),
            Special::ClockLow => warp.clock as u32,
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
        let (lane_of, lane, space) = (lane, lane.number, memory.name());
        if !at.is_multiple_of(bytes) {
            return Err(Fault::Misaligned { lane, space, address: at, bytes });
        }
        let inside = address.within.is_none_or(|(start, end)| {
            at >= start && at.checked_add(bytes).is_some_and(|access_end| access_end <= end)
        });
        let start = match memory {
            Memory::Local if address.within.is_some() => frame(warp, lane_of)?.local_start,
            _ => 0,
        };
        if inside { Ok(start + at) } else { Err(Fault::Bounds { lane, space, address: at, bytes }) }
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
        let (scratch, at) = match memory {
            Memory::Global | Memory::Generic => {
                return self.memory.slice(address, bytes).map(|read| array(read)).ok_or(bounds);
            }
            Memory::Shared => (&self.shared[warp.block_index], address),
            Memory::Param => (&frame(warp, lane)?.parameters, address),
            Memory::Local => {
                let (local, at) = local(warp, lane, address)?;
                (&*local, at)
            }
        };
        match scratch.read(at, bytes) {
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
            Memory::Local => {
                let (local, address) = local(warp, lane, address)?;
                local.write(address, bytes)
            }
        };
        let (lane, space, bytes) = (lane.number, memory.name(), bytes.len() as u64);
        written.ok_or(Fault::Bounds { lane, space, address, bytes })
    }
}

fn resolve(memory: Memory, address: u64) -> (Memory, u64) {
    match (memory, address.checked_sub(SHARED_WINDOW), address.checked_sub(LOCAL_WINDOW)) {
        (Memory::Generic, _, Some(offset)) => (Memory::Local, offset),
        (Memory::Generic, Some(offset), _) => (Memory::Shared, offset),
        (Memory::Generic, ..) => (Memory::Global, address),
        _ => (memory, address),
    }
}

pub(super) fn set(
    program: &Program,
    warp: &mut Warp,
    lane: Lane,
    register: Register,
    value: u64,
) -> Result<(), Fault> {
    let frame = frame(warp, lane)?;
    let bits = program.functions[frame.function].bits[register];
    frame.registers[register] = Some(Type::unsigned(bits).truncate(value));
    Ok(())
}

fn array(read: &[u8]) -> [u8; MAX_ACCESS] {
    let mut bytes = [0; MAX_ACCESS];
    let length = read.len().min(MAX_ACCESS);
    bytes[..length].copy_from_slice(&read[..length]);
    bytes
}

/// Converts at most 8 little-endian bytes to a number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn add(moves: &mut Moves, mask: u32, at: Position) {
    match moves.iter_mut().find(|(_, known)| *known == at) {
        _ if mask == 0 => {}
        Some((lanes, _)) => *lanes |= mask,
        None => moves.push((mask, at)),
    }
}
