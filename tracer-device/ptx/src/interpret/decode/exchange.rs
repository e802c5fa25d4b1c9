//! Decodes instructions that exchange values, wait, or access memory atomically.

use super::super::address::address;
use super::super::float::{Float, FloatCompute, FloatStep};
use super::super::op::{Atomic, Compute, Memory, Op, Register, Shuffle, Type, Value, Vote};
use super::super::operand::{Problem, register};
use super::Parts;

/// Modifiers for order and scope. They have no effect: all writes are visible at once.
const ORDERS: [&str; 10] =
    ["relaxed", "acquire", "release", "acq_rel", "sc", "cta", "cluster", "gpu", "sys", "noftz"];

impl Parts<'_> {
    /// Parses a register, or two as `a|b`.
    pub(super) fn two(&self, index: usize, bits: [u32; 2]) -> Result<(Register, Option<Register>), Problem> {
        let text = self.operand(index)?;
        let (first, second) =
            text.split_once('|').map_or((text, None), |(first, second)| (first, Some(second)));
        let names = self.decoder.names;
        let second = second.map(str::trim).filter(|second| *second != "_");
        let second = second.map(|second| register(names, second, bits[1], false)).transpose()?;
        Ok((register(names, first.trim(), bits[0], false)?, second))
    }

    pub(super) fn vote(&self) -> Result<Op, Problem> {
        let sync = self.sync()?;
        let (vote, bits) = match self.modifiers[usize::from(sync)..] {
            ["all", "pred"] => (Vote::All, 1),
            ["any", "pred"] => (Vote::Any, 1),
            ["uni", "pred"] => (Vote::Uniform, 1),
            ["ballot", "b32"] => (Vote::Ballot, 32),
            _ => return Err("this kind of vote".to_owned()),
        };
        let of = self.predicate(1)?;
        let members = if sync { Some(self.value(2, 32)?) } else { None };
        Ok(Op::Vote { vote, to: self.register(0, bits)?, of, members })
    }

    pub(super) fn shuffle(&self) -> Result<Op, Problem> {
        let sync = self.sync()?;
        let shuffle = match self.modifiers[usize::from(sync)..] {
            ["idx", "b32"] => Shuffle::Index,
            ["up", "b32"] => Shuffle::Up,
            ["down", "b32"] => Shuffle::Down,
            ["bfly", "b32"] => Shuffle::Butterfly,
            _ => return Err("this kind of shuffle".to_owned()),
        };
        let members = if sync { Some(self.value(4, 32)?) } else { None };
        let (to, valid) = self.two(0, [32, 1])?;
        let [value, lane, clamp] = [1, 2, 3].map(|at| self.value(at, 32));
        Ok(Op::Shuffle { shuffle, to, valid, value: value?, lane: lane?, clamp: clamp?, members })
    }

    pub(super) fn match_lanes(&self) -> Result<Op, Problem> {
        let (all, bits) = match self.modifiers[..] {
            ["any", "sync", "b32"] => (false, 32),
            ["any", "sync", "b64"] => (false, 64),
            ["all", "sync", "b32"] => (true, 32),
            ["all", "sync", "b64"] => (true, 64),
            _ => return Err("this kind of match".to_owned()),
        };
        let (to, holds) = self.two(0, [32, 1])?;
        Ok(Op::Match { all, to, holds, of: self.value(1, bits)?, members: Some(self.value(2, 32)?) })
    }

    pub(super) fn reduce(&self) -> Result<Op, Problem> {
        let ["sync", name, ty] = self.modifiers[..] else { return Err("this reduction".to_owned()) };
        let compute = Compute::unordered(name).ok_or_else(|| format!("modifier `{name}`"))?;
        let ty = Type::parse(ty).filter(|ty| ty.bits == 32).ok_or("this type")?;
        let members = Some(self.value(2, 32)?);
        Ok(Op::Reduce { compute, ty, to: self.register(0, 32)?, of: self.value(1, 32)?, members })
    }

    pub(super) fn barrier(&self) -> Result<Op, Problem> {
        match self.modifiers[..] {
            ["warp", "sync"] => Ok(Op::WarpBarrier { members: Some(self.value(0, 32)?) }),
            ["sync"] | ["cta", "sync"] | ["sync", "aligned"] => {
                let threads = self.operands.get(1).map(|_| self.value(1, 32)).transpose()?;
                Ok(Op::Barrier { barrier: self.value(0, 32)?, threads })
            }
            _ => Err("this kind of barrier".to_owned()),
        }
    }

    pub(super) fn atomic(&self, returns: bool) -> Result<Op, Problem> {
        let has = |modifier: &str| self.modifiers.contains(&modifier);
        let memory = match (has("global"), has("shared") || has("shared::cta")) {
            (true, _) => Memory::Global,
            (_, true) => Memory::Shared,
            _ => Memory::Generic,
        };
        let known = |modifier: &&&str| {
            !ORDERS.contains(*modifier) && !["global", "shared", "shared::cta"].contains(*modifier)
        };
        let [name, last] = self.modifiers.iter().filter(known).copied().collect::<Vec<_>>()[..] else {
            return Err("this kind of atomic".to_owned());
        };
        let ty = Type::of_bits(last).filter(|ty| ty.bits >= 16).ok_or_else(|| format!("type `{last}`"))?;
        let atomic = match (name, Float::parse(last)) {
            ("add", Some((ty, count))) => {
                let compute = FloatCompute::Add;
                Atomic::Float(FloatStep { compute, ty, count, flush: false, saturate: false })
            }
            ("exch", _) => Atomic::Exchange,
            ("cas", _) => Atomic::CompareAndSwap,
            ("inc", None) => Atomic::Increment,
            ("dec", None) => Atomic::Decrement,
            (name, float) => {
                let compute = Compute::unordered(name).filter(|_| float.is_none());
                Atomic::Compute(compute.ok_or("this kind of atomic")?)
            }
        };
        let first = usize::from(returns);
        // An unused result is `_`.
        let wanted = returns && self.operand(0)? != "_";
        let to = if wanted { Some(self.register(0, ty.bits)?) } else { None };
        let address = address(self.decoder.names, memory, self.operand(first)?)?;
        let count = 1 + usize::from(atomic == Atomic::CompareAndSwap);
        let values = (0..count).map(|at| self.value(first + 1 + at, ty.bits));
        Ok(Op::Atomic { atomic, memory, ty, to, address, values: values.collect::<Result<_, Problem>>()? })
    }

    /// Decodes asynchronous copies, which complete at once.
    pub(super) fn copy(&self) -> Result<Op, Problem> {
        match self.modifiers[..] {
            ["async", "commit_group" | "wait_all" | "wait_group"] => Ok(Op::Nothing),
            ["async", "ca" | "cg", "shared" | "shared::cta", "global", ..] => {
                let names = self.decoder.names;
                let to = address(names, Memory::Shared, self.operand(0)?)?;
                let from = address(names, Memory::Global, self.operand(1)?)?;
                let Value::Immediate(bytes @ (4 | 8 | 16)) = self.value(2, 32)? else {
                    return Err("a copy of this size".to_owned());
                };
                let length = self.operands.get(3).map(|_| self.value(3, 32)).transpose()?;
                Ok(Op::Copy { to, from, bytes, length })
            }
            _ => Err("this kind of copy".to_owned()),
        }
    }
}
