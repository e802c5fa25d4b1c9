//! Decodes loads and stores.

use super::super::address::address;
use super::super::op::{Memory, Op, Register, Type, Value};
use super::super::operand::{Problem, parts, register, value};
use super::Parts;

const ACCESSES: [&str; 30] = [
    "param",
    "param::entry",
    "param::func",
    "global",
    "const",
    "shared",
    "shared::cta",
    "local",
    "v2",
    "v4",
    "volatile",
    "nc",
    "relaxed",
    "acquire",
    "release",
    "weak",
    "cta",
    "cluster",
    "gpu",
    "sys",
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "unified",
    "mmio",
    "release",
];

impl Parts<'_> {
    fn memory(&self) -> Result<Memory, Problem> {
        let volatile = self.modifiers.first() == Some(&"volatile");
        if !volatile && self.modifiers.contains(&"volatile") {
            return Err("`volatile` stands before the state space".to_owned());
        }
        let spaces = [
            ("param", Memory::Param),
            ("param::entry", Memory::Param),
            ("param::func", Memory::Param),
            ("global", Memory::Global),
            ("const", Memory::Global),
            ("shared", Memory::Shared),
            ("shared::cta", Memory::Shared),
            ("local", Memory::Local),
        ];
        let found =
            spaces.into_iter().find(|(name, _)| self.modifiers.contains(name)).map(|(_, space)| space);
        match found {
            Some(Memory::Param) if volatile => Err("a volatile access to parameters".to_owned()),
            // `access` has rejected unknown spaces.
            found => Ok(found.unwrap_or(Memory::Generic)),
        }
    }

    /// Returns the type of an access and its number of values.
    fn access(&self) -> Result<(Type, usize), Problem> {
        let (last, others) = self.modifiers.split_last().ok_or("its type is missing")?;
        let is_hint = |modifier: &str| modifier.starts_with("L1::") || modifier.starts_with("L2::");
        if let Some(other) = others.iter().find(|other| !ACCESSES.contains(*other) && !is_hint(other)) {
            return Err(format!("modifier `{other}`"));
        }
        let ty = Type::of_bits(last).ok_or_else(|| format!("type `{last}`"))?;
        let lanes = if self.modifiers.contains(&"v4") { 4 } else { 1 };
        let lanes = if self.modifiers.contains(&"v2") { 2 } else { lanes };
        if ty.bits < 8 || u64::from(ty.bits) * lanes as u64 > 128 {
            return Err("an access of this size".to_owned());
        }
        Ok((ty, lanes))
    }

    pub(super) fn load(&self) -> Result<Op, Problem> {
        let (ty, count) = self.access()?;
        let memory = self.memory()?;
        let to = parts(self.operand(0)?);
        let to: Vec<Register> = to
            .iter()
            .map(|part| register(self.decoder.names, part, ty.bits, true))
            .collect::<Result<_, _>>()?;
        if to.len() != count {
            return Err(format!("it has {} registers for {count} values", to.len()));
        }
        Ok(Op::Load { memory, ty, to, address: address(self.decoder.names, memory, self.operand(1)?)? })
    }

    pub(super) fn store(&self) -> Result<Op, Problem> {
        let (ty, count) = self.access()?;
        let memory = self.memory()?;
        let from = parts(self.operand(1)?);
        let from: Vec<Value> = from
            .iter()
            .map(|part| value(self.decoder.names, part, ty.bits, true))
            .collect::<Result<_, _>>()?;
        if from.len() != count {
            return Err(format!("it has {} values for {count}", from.len()));
        }
        Ok(Op::Store { memory, ty, from, address: address(self.decoder.names, memory, self.operand(0)?)? })
    }
}
