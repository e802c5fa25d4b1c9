//! Reads instructions.

use super::address::address;
use super::op::{Atomic, Compare, Compute, Memory, Op, Register, SHARED_WINDOW, Type, Value, Vote};
use super::operand::{Problem, number, parts, register, value};
use super::program::Names;
use crate::Instruction;

/// The last PTX version whose votes and shuffles name no lanes.
const LAST_PLAIN_VOTE: (u32, u32) = (6, 3);

/// What an instruction is read with.
pub(super) struct Decoder<'a> {
    pub(super) names: &'a Names,
    pub(super) version: (u32, u32),
}

/// An instruction's modifiers and operands.
struct Parts<'a> {
    decoder: &'a Decoder<'a>,
    modifiers: Vec<&'a str>,
    operands: Vec<&'a str>,
}

/// Reads an instruction; its guard is not looked at.
pub(super) fn decode(decoder: &Decoder<'_>, instruction: &Instruction<'_>) -> Result<Op, Problem> {
    let modifiers = instruction.modifiers().collect();
    let operands = instruction.operands.iter().map(|operand| operand.text).collect();
    let parts = Parts { decoder, modifiers, operands };
    let guard = instruction.guard.map_or("", |guard| guard.predicate);
    match instruction.name() {
        "activemask" => Ok(Op::ActiveMask { to: parts.register(0, 32)? }),
        "vote" => parts.vote(),
        "shfl" => parts.shuffle(),
        "pmevent" if parts.modifiers == ["mask"] => {
            let mask = number(parts.operand(0)?).ok_or("its mask is no number")?;
            Ok(Op::PerformanceEvent { mask })
        }
        "nanosleep" if parts.modifiers == ["u32"] => Ok(Op::Sleep { nanoseconds: parts.value(0, 32)? }),
        "bra" => {
            // The sequences' branches are uniform, or ptxas could make lanes wait for others there.
            let uniform = parts.modifiers == ["uni"] || guard.starts_with(crate::splice::REGISTER_PREFIX);
            Ok(Op::Branch { target: parts.operand(0)?.to_owned(), to: 0, uniform })
        }
        "bar" if parts.modifiers == ["sync"] && parts.operands == ["0"] && guard.is_empty() => {
            Ok(Op::Barrier)
        }
        "ret" => Ok(Op::Return),
        "exit" => Ok(Op::Exit),
        "call" => parts.call(instruction),
        "ld" => parts.load(),
        "st" => parts.store(),
        "atom" | "red" => parts.atomic(instruction.name() == "atom"),
        "mov" => parts.mov(),
        "cvt" => parts.convert(),
        "cvta" => parts.convert_address(),
        name => parts.compute(name),
    }
}

impl<'a> Parts<'a> {
    fn operand(&self, index: usize) -> Result<&'a str, Problem> {
        self.operands.get(index).copied().ok_or_else(|| format!("operand {} is missing", index + 1))
    }

    fn register(&self, index: usize, bits: u32) -> Result<Register, Problem> {
        register(self.decoder.names, self.operand(index)?, bits, false)
    }

    fn value(&self, index: usize, bits: u32) -> Result<Value, Problem> {
        value(self.decoder.names, self.operand(index)?, bits, false)
    }

    fn predicate(&self, index: usize) -> Result<(Value, bool), Problem> {
        let text = self.operand(index)?;
        let (text, negated) = text.strip_prefix('!').map_or((text, false), |text| (text, true));
        Ok((Value::Register(register(self.decoder.names, text, 1, false)?), negated))
    }

    /// The type, which is the last modifier; the others must be among `known`.
    fn ty(&self, known: &[&str]) -> Result<Type, Problem> {
        let (last, others) = self.modifiers.split_last().ok_or("its type is missing")?;
        match others.iter().find(|modifier| !known.contains(*modifier)) {
            Some(modifier) => Err(format!("modifier `{modifier}`")),
            None => Type::parse(last).ok_or_else(|| format!("type `{last}`")),
        }
    }

    /// Whether the instruction names its lanes; else its PTX version must be one that lets it name none.
    fn sync(&self) -> Result<bool, Problem> {
        let sync = self.modifiers.first() == Some(&"sync");
        if sync || self.decoder.version <= LAST_PLAIN_VOTE {
            return Ok(sync);
        }
        Err("without `.sync` it needs PTX 6.3 or older".to_owned())
    }

    fn vote(&self) -> Result<Op, Problem> {
        let sync = self.sync()?;
        let (vote, bits) = match self.modifiers[usize::from(sync)..] {
            ["all", "pred"] => (Vote::All, 1),
            ["any", "pred"] => (Vote::Any, 1),
            ["ballot", "b32"] => (Vote::Ballot, 32),
            _ => return Err("this kind of vote".to_owned()),
        };
        let (of, negated) = self.predicate(1)?;
        let members = if sync { Some(self.value(2, 32)?) } else { None };
        Ok(Op::Vote { vote, to: self.register(0, bits)?, of, negated, members })
    }

    fn shuffle(&self) -> Result<Op, Problem> {
        let sync = self.sync()?;
        if self.modifiers[usize::from(sync)..] != ["idx", "b32"] || self.operand(3)? != "31" {
            return Err("shuffles other than `idx.b32` within the whole warp".to_owned());
        }
        let members = if sync { Some(self.value(4, 32)?) } else { None };
        Ok(Op::Shuffle {
            to: self.register(0, 32)?,
            value: self.value(1, 32)?,
            lane: self.value(2, 32)?,
            members,
        })
    }

    fn call(&self, instruction: &Instruction<'_>) -> Result<Op, Problem> {
        let function = instruction.callee().ok_or("indirect calls")?.to_owned();
        let slots = |list: Option<&&str>| -> Result<Vec<usize>, Problem> {
            let list = list.and_then(|list| list.strip_prefix('(')?.strip_suffix(')')).unwrap_or_default();
            list.split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(|name| match self.decoder.names.variable(name) {
                    Some(variable) if variable.memory == Memory::Param => Ok(variable.offset),
                    _ => Err(format!("`{name}` is no declared parameter")),
                })
                .collect()
        };
        let results = self.operands.first().filter(|text| text.starts_with('('));
        let arguments = self.operands.get(1 + usize::from(results.is_some()));
        Ok(Op::Call { function, results: slots(results)?, arguments: slots(arguments)? })
    }

    fn memory(&self) -> Result<Memory, Problem> {
        let volatile = self.modifiers.first() == Some(&"volatile");
        if !volatile && self.modifiers.contains(&"volatile") {
            return Err("`volatile` stands before the state space".to_owned());
        }
        match self.modifiers.get(usize::from(volatile)).copied() {
            Some("param") if volatile => Err("a volatile access to parameters".to_owned()),
            Some("param") => Ok(Memory::Param),
            Some("global") => Ok(Memory::Global),
            Some("shared") => Ok(Memory::Shared),
            Some("local") => Ok(Memory::Local),
            // `access` has refused others.
            _ => Ok(Memory::Generic),
        }
    }

    /// The type of an access, and how many values it has.
    fn access(&self) -> Result<(Type, usize), Problem> {
        let ty = self.ty(&["param", "global", "shared", "local", "v2", "v4", "volatile"])?;
        let lanes = if self.modifiers.contains(&"v4") { 4 } else { 1 };
        let lanes = if self.modifiers.contains(&"v2") { 2 } else { lanes };
        if ty.bits < 8 || u64::from(ty.bits) * lanes as u64 > 128 {
            return Err("an access of this size".to_owned());
        }
        Ok((ty, lanes))
    }

    fn load(&self) -> Result<Op, Problem> {
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

    fn store(&self) -> Result<Op, Problem> {
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

    fn atomic(&self, answers: bool) -> Result<Op, Problem> {
        let ty = self.ty(&["global", "add", "or"])?;
        let atomic = match self.modifiers[..] {
            ["global", "add", "u32" | "s32" | "u64"] => Atomic::Add,
            ["global", "or", "b32" | "b64"] => Atomic::Or,
            _ => return Err("atomics other than `global.add` and `global.or` of 32 and 64 bits".to_owned()),
        };
        let first = usize::from(answers);
        let to = if answers { Some(self.register(0, ty.bits)?) } else { None };
        let address = address(self.decoder.names, Memory::Global, self.operand(first)?)?;
        Ok(Op::Atomic { atomic, ty, to, address, value: self.value(first + 1, ty.bits)? })
    }

    fn mov(&self) -> Result<Op, Problem> {
        let ty = self.ty(&[])?;
        let (to, from) = (self.operand(0)?, self.operand(1)?);
        let names = self.decoder.names;
        let bits = |text: &str| ty.bits / u32::try_from(parts(text).len()).unwrap_or(u32::MAX).max(1);
        if from.starts_with('{') {
            let bits = bits(from);
            let from =
                parts(from).iter().map(|part| value(names, part, bits, false)).collect::<Result<_, _>>()?;
            return Ok(Op::Pack { bits, to: self.register(0, ty.bits)?, from });
        }
        if to.starts_with('{') {
            let bits = bits(to);
            let to =
                parts(to).iter().map(|part| register(names, part, bits, false)).collect::<Result<_, _>>()?;
            return Ok(Op::Unpack { bits, to, from: self.value(1, ty.bits)? });
        }
        let (to, from) = (self.register(0, ty.bits)?, self.value(1, ty.bits)?);
        Ok(Op::Compute { compute: Compute::Move, ty, to, from: vec![from], negated: false })
    }

    fn convert(&self) -> Result<Op, Problem> {
        let [to, from] = self.modifiers[..] else { return Err("this conversion".to_owned()) };
        let (ty, from) = (Type::parse(to), Type::parse(from));
        let (ty, from) = ty.zip(from).ok_or("a conversion of other than integers")?;
        let to = register(self.decoder.names, self.operand(0)?, ty.bits, true)?;
        let value = value(self.decoder.names, self.operand(1)?, from.bits, true)?;
        Ok(Op::Compute { compute: Compute::Convert { from }, ty, to, from: vec![value], negated: false })
    }

    /// Addresses of global memory are generic addresses as they are.
    fn convert_address(&self) -> Result<Op, Problem> {
        let (compute, window) = match self.modifiers[..] {
            ["to", "global", "u64"] | ["global", "u64"] => (Compute::Move, 0),
            ["shared", "u64"] => (Compute::Add, SHARED_WINDOW),
            ["to", "shared", "u64"] => (Compute::Subtract, SHARED_WINDOW),
            _ => return Err("addresses of other than global and shared memory".to_owned()),
        };
        let ty = Type { bits: 64, signed: false };
        let (to, from) = (self.register(0, 64)?, vec![self.value(1, 64)?, Value::Immediate(window)]);
        Ok(Op::Compute { compute, ty, to, from, negated: false })
    }

    fn compute(&self, name: &str) -> Result<Op, Problem> {
        if name == "setp" {
            return self.set_predicate();
        }
        if name == "shf" {
            return self.funnel_shift();
        }
        let part = self.modifiers.iter().find(|modifier| ["lo", "hi", "wide"].contains(*modifier)).copied();
        let compute = match (name, part) {
            ("not", None) => Compute::Not,
            ("neg", None) => Compute::Negate,
            ("bfind", None) => Compute::HighestBit,
            ("popc", None) => Compute::CountBits,
            ("add", None) => Compute::Add,
            ("sub", None) => Compute::Subtract,
            ("mul", Some("lo")) => Compute::Multiply,
            ("mul", Some("hi")) => Compute::MultiplyHigh,
            ("mul", Some("wide")) => Compute::MultiplyWide,
            ("mad", Some("lo")) => Compute::MultiplyAdd,
            ("mad", Some("wide")) => Compute::MultiplyAddWide,
            ("min", None) => Compute::Minimum,
            ("max", None) => Compute::Maximum,
            ("div", None) => Compute::Divide,
            ("rem", None) => Compute::Remainder,
            ("and", None) => Compute::And,
            ("or", None) => Compute::Or,
            ("xor", None) => Compute::Xor,
            ("shl", None) => Compute::ShiftLeft,
            ("shr", None) => Compute::ShiftRight,
            ("selp", None) => Compute::Select,
            _ => return Err("unknown opcode".to_owned()),
        };
        let ty = self.ty(&["lo", "hi", "wide"])?;
        let wide = part == Some("wide");
        if wide && ty.bits > 32 || ty.bits == 1 && !matches!(name, "not" | "and" | "or" | "xor") {
            return Err("this type".to_owned());
        }
        let to_bits = match compute {
            Compute::HighestBit | Compute::CountBits => 32,
            _ if wide => 2 * ty.bits,
            _ => ty.bits,
        };
        let to = self.register(0, to_bits)?;
        let bits = |index: usize| match (compute, index) {
            (Compute::ShiftLeft | Compute::ShiftRight, 2) => 32,
            (Compute::MultiplyAddWide, 3) => 2 * ty.bits,
            (Compute::Select, 3) => 1,
            _ => ty.bits,
        };
        let from =
            (1..self.operands.len()).map(|at| self.value(at, bits(at))).collect::<Result<Vec<_>, _>>()?;
        let operands = match compute {
            Compute::Not | Compute::Negate | Compute::HighestBit | Compute::CountBits => 1,
            Compute::MultiplyAdd | Compute::MultiplyAddWide | Compute::Select => 3,
            _ => 2,
        };
        if from.len() != operands {
            return Err(format!("it takes {operands} values and has {}", from.len()));
        }
        Ok(Op::Compute { compute, ty, to, from, negated: false })
    }

    fn funnel_shift(&self) -> Result<Op, Problem> {
        let compute = match self.modifiers[..] {
            ["l", "wrap", "b32"] => Compute::FunnelLeft,
            ["r", "wrap", "b32"] => Compute::FunnelRight,
            _ => return Err("this shift".to_owned()),
        };
        let from = (1..4).map(|at| self.value(at, 32)).collect::<Result<_, _>>()?;
        let ty = Type { bits: 32, signed: false };
        Ok(Op::Compute { compute, ty, to: self.register(0, 32)?, from, negated: false })
    }

    fn set_predicate(&self) -> Result<Op, Problem> {
        let (compare, joined) = match self.modifiers[..] {
            [compare, _] => (compare, None),
            [compare, joined, _] => (compare, Some(joined)),
            _ => return Err("this comparison".to_owned()),
        };
        let ty = self.ty(&self.modifiers[..self.modifiers.len() - 1])?;
        let compare = match compare {
            "eq" => Compare::Equal,
            "ne" => Compare::NotEqual,
            "lt" | "lo" => Compare::Less,
            "le" | "ls" => Compare::LessOrEqual,
            "gt" | "hi" => Compare::Greater,
            "ge" | "hs" => Compare::GreaterOrEqual,
            other => return Err(format!("comparison `{other}`")),
        };
        let compute = match joined {
            None => Compute::Set(compare),
            Some("and") => Compute::SetAnd(compare),
            Some("or") => Compute::SetOr(compare),
            Some("xor") => Compute::SetXor(compare),
            Some(other) => return Err(format!("modifier `{other}`")),
        };
        let mut from = vec![self.value(1, ty.bits)?, self.value(2, ty.bits)?];
        let mut negated = false;
        if joined.is_some() {
            let (predicate, not) = self.predicate(3)?;
            from.push(predicate);
            negated = not;
        }
        if self.operands.len() != from.len() + 1 || ty.bits == 1 {
            return Err("this comparison".to_owned());
        }
        Ok(Op::Compute { compute, ty, to: self.register(0, 1)?, from, negated })
    }
}
