//! Decodes instructions.

mod access;
mod exchange;
mod float;

use super::op::{Callee, Compute, LOCAL_WINDOW, Memory, Op, Predicate, Register, SHARED_WINDOW, Type, Value};
use super::operand::{Problem, number, parts, register, value};
use super::program::Names;
use crate::Instruction;

/// The last PTX version with votes and shuffles that name no lanes.
const LAST_PLAIN_VOTE: (u32, u32) = (6, 3);

/// Integer operations by name, with the modifier that selects among variants, and their number of operands.
const COMPUTE: [(&str, Compute, usize); 32] = [
    ("abs", Compute::Absolute, 1),
    ("add", Compute::Add, 2),
    ("and", Compute::And, 2),
    ("bfe", Compute::ExtractBits, 3),
    ("bfi", Compute::InsertBits, 4),
    ("bfind", Compute::HighestBit, 1),
    ("bfind.shiftamt", Compute::ShiftToHighestBit, 1),
    ("brev", Compute::ReverseBits, 1),
    ("clz", Compute::CountLeadingZeros, 1),
    ("div", Compute::Divide, 2),
    ("lop3", Compute::Logic, 4),
    ("mad.hi", Compute::MultiplyAddHigh, 3),
    ("mad.lo", Compute::MultiplyAdd, 3),
    ("mad.wide", Compute::MultiplyAddWide, 3),
    ("max", Compute::Maximum, 2),
    ("min", Compute::Minimum, 2),
    ("mul.hi", Compute::MultiplyHigh, 2),
    ("mul.lo", Compute::Multiply, 2),
    ("mul.wide", Compute::MultiplyWide, 2),
    ("neg", Compute::Negate, 1),
    ("not", Compute::Not, 1),
    ("or", Compute::Or, 2),
    ("popc", Compute::CountBits, 1),
    ("prmt", Compute::Permute, 3),
    ("rem", Compute::Remainder, 2),
    ("sad", Compute::AbsoluteDifference, 3),
    ("selp", Compute::Select, 3),
    ("shl", Compute::ShiftLeft, 2),
    ("shr", Compute::ShiftRight, 2),
    ("slct", Compute::SelectBySign, 3),
    ("sub", Compute::Subtract, 2),
    ("xor", Compute::Xor, 2),
];

pub(super) struct Decoder<'a> {
    pub(super) names: &'a Names,
    pub(super) version: (u32, u32),
}

struct Parts<'a> {
    decoder: &'a Decoder<'a>,
    modifiers: Vec<&'a str>,
    operands: Vec<&'a str>,
}

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
            // Branches of sequences must be uniform: otherwise `ptxas` could make lanes wait for others
            // there. Branches to meeting labels are an exception, because lanes may come there separately.
            let target = parts.operand(0)?;
            let is_met = target.ends_with(crate::splice::MEETING_SUFFIX);
            let of_sequence = guard.starts_with(crate::splice::REGISTER_PREFIX) && !is_met;
            let uniform = parts.modifiers == ["uni"] || of_sequence;
            Ok(Op::Branch { target: target.to_owned(), to: 0, uniform })
        }
        "bar" | "barrier" if guard.is_empty() => parts.barrier(),
        "match" => parts.match_lanes(),
        "redux" => parts.reduce(),
        "membar" | "fence" | "prefetch" | "prefetchu" | "griddepcontrol" | "discard" | "applypriority" => {
            Ok(Op::Nothing)
        }
        "cp" => parts.copy(),
        "trap" => Ok(Op::Trap),
        "brx" => Ok(Op::BranchIndexed {
            index: parts.value(0, 32)?,
            table: parts.operand(1)?.to_owned(),
            to: Vec::new(),
        }),
        "ret" => Ok(Op::Return),
        "exit" => Ok(Op::Exit),
        "call" => parts.call(instruction),
        "ld" => parts.load(),
        "st" => parts.store(),
        "atom" | "red" => parts.atomic(instruction.name() == "atom"),
        "mov" => parts.mov(),
        "cvt" => parts.convert(),
        "cvta" => parts.convert_address(),
        "isspacep" => parts.is_space(),
        "testp" => parts.test_float(),
        "setp" => parts.set_predicate(),
        "shf" => parts.funnel_shift(),
        "dp4a" => parts.dot_product(),
        "addc" | "subc" => parts.carry(instruction.name()),
        "add" | "sub" if parts.modifiers.contains(&"cc") => parts.carry(instruction.name()),
        "selp" | "slct" => parts.compute(instruction.name()),
        name if parts.is_float() => parts.compute_float(name),
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

    fn predicate(&self, index: usize) -> Result<Predicate, Problem> {
        let text = self.operand(index)?;
        let (text, negated) = text.strip_prefix('!').map_or((text, false), |text| (text, true));
        Ok((register(self.decoder.names, text, 1, false)?, negated))
    }

    /// Returns the type, which is the last modifier. All other modifiers must be in `known`.
    fn ty(&self, known: &[&str]) -> Result<Type, Problem> {
        let (last, others) = self.modifiers.split_last().ok_or("its type is missing")?;
        match others.iter().find(|modifier| !known.contains(*modifier)) {
            Some(modifier) => Err(format!("modifier `{modifier}`")),
            None => Type::parse(last).ok_or_else(|| format!("type `{last}`")),
        }
    }

    /// Returns true if the instruction names its lanes. Otherwise its PTX version must allow the plain form.
    fn sync(&self) -> Result<bool, Problem> {
        let sync = self.modifiers.first() == Some(&"sync");
        if sync || self.decoder.version <= LAST_PLAIN_VOTE {
            return Ok(sync);
        }
        Err("without `.sync` it needs PTX 6.3 or older".to_owned())
    }

    fn call(&self, instruction: &Instruction<'_>) -> Result<Op, Problem> {
        let called = self.operands.iter().find(|text| !text.starts_with('(')).ok_or("a call of nothing")?;
        let function = match instruction.callee() {
            Some(name) => Callee::Named(name.to_owned()),
            None => Callee::At(value(self.decoder.names, called, 64, false)?),
        };
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

    fn mov(&self) -> Result<Op, Problem> {
        let [ty] = self.modifiers[..] else { return Err("this kind of move".to_owned()) };
        let ty = Type::of_bits(ty).ok_or_else(|| format!("type `{ty}`"))?;
        let (to, from) = (self.operand(0)?, self.operand(1)?);
        let names = self.decoder.names;
        if ty.bits == 128 {
            return Err("this type".to_owned());
        }
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
        Ok(Op::Compute { compute: Compute::Move, ty, to, from: vec![from] })
    }

    fn convert(&self) -> Result<Op, Problem> {
        let [to, from] = self.modifiers[..] else { return self.convert_float() };
        let (ty, from) = (Type::parse(to), Type::parse(from));
        let Some((ty, from)) = ty.zip(from) else { return self.convert_float() };
        let to = register(self.decoder.names, self.operand(0)?, ty.bits, true)?;
        let value = value(self.decoder.names, self.operand(1)?, from.bits, true)?;
        Ok(Op::Compute { compute: Compute::Convert { from }, ty, to, from: vec![value] })
    }

    /// Generic addresses of global memory equal the global addresses.
    fn convert_address(&self) -> Result<Op, Problem> {
        let (compute, window) = match self.modifiers[..] {
            ["to", "global", "u64"] | ["global", "u64"] => (Compute::Move, 0),
            ["shared", "u64"] => (Compute::Add, SHARED_WINDOW),
            ["to", "shared", "u64"] => (Compute::Subtract, SHARED_WINDOW),
            ["shared::cta", "u64"] => (Compute::Add, SHARED_WINDOW),
            ["to", "shared::cta", "u64"] => (Compute::Subtract, SHARED_WINDOW),
            ["local", "u64"] => (Compute::Add, LOCAL_WINDOW),
            ["to", "local", "u64"] => (Compute::Subtract, LOCAL_WINDOW),
            ["const", "u64"] | ["to", "const", "u64"] => (Compute::Move, 0),
            _ => return Err("addresses of this memory".to_owned()),
        };
        let ty = Type::unsigned(64);
        let (to, from) = (self.register(0, 64)?, vec![self.value(1, 64)?, Value::Immediate(window)]);
        Ok(Op::Compute { compute, ty, to, from })
    }

    fn compute(&self, name: &str) -> Result<Op, Problem> {
        let part =
            self.modifiers.iter().find(|modifier| ["lo", "hi", "wide", "shiftamt"].contains(*modifier));
        let name = part.map_or(name.to_owned(), |part| format!("{name}.{part}"));
        let found = COMPUTE.into_iter().find(|(known, ..)| *known == name);
        let (_, compute, operands) = found.ok_or("unknown opcode")?;
        let ty = match compute {
            // Selected values are only moved.
            Compute::Select => {
                self.modifiers.last().and_then(|last| Type::of_bits(last)).ok_or("this type")?
            }
            Compute::SelectBySign => match self.modifiers[..] {
                [ty, "s32"] => Type::of_bits(ty).ok_or("this type")?,
                _ => return Err("this type".to_owned()),
            },
            _ => self.ty(&["lo", "hi", "wide", "shiftamt"])?,
        };
        let wide = part == Some(&"wide");
        if wide && ty.bits > 32 || ty.bits == 1 && !matches!(&*name, "not" | "and" | "or" | "xor") {
            return Err("this type".to_owned());
        }
        let to_bits = match compute {
            Compute::HighestBit | Compute::ShiftToHighestBit => 32,
            Compute::CountBits | Compute::CountLeadingZeros => 32,
            _ if wide => 2 * ty.bits,
            _ => ty.bits,
        };
        let to = self.register(0, to_bits)?;
        let bits = |index: usize| match (compute, index) {
            (Compute::ShiftLeft | Compute::ShiftRight, 2) => 32,
            (Compute::ExtractBits, 2 | 3) | (Compute::InsertBits, 3 | 4) => 32,
            (Compute::SelectBySign, 3) => 32,
            (Compute::MultiplyAddWide, 3) => 2 * ty.bits,
            (Compute::Select, 3) => 1,
            _ => ty.bits,
        };
        let from =
            (1..self.operands.len()).map(|at| self.value(at, bits(at))).collect::<Result<Vec<_>, _>>()?;
        if from.len() != operands {
            return Err(format!("it takes {operands} values and has {}", from.len()));
        }
        Ok(Op::Compute { compute, ty, to, from })
    }

    fn carry(&self, name: &str) -> Result<Op, Problem> {
        let ty = self.ty(&["cc"])?;
        let from = [self.value(1, ty.bits)?, self.value(2, ty.bits)?];
        Ok(Op::Carry {
            subtract: name.starts_with("sub"),
            reads: name.ends_with('c'),
            writes: self.modifiers.contains(&"cc"),
            ty,
            to: self.register(0, ty.bits)?,
            from,
        })
    }

    fn dot_product(&self) -> Result<Op, Problem> {
        let signed = |at: usize| match self.modifiers.get(at) {
            Some(&"s32") => Ok(true),
            Some(&"u32") => Ok(false),
            _ => Err("this type".to_owned()),
        };
        let compute = Compute::DotProduct { signed: [signed(0)?, signed(1)?] };
        self.of_three_words(compute)
    }

    fn of_three_words(&self, compute: Compute) -> Result<Op, Problem> {
        let from = (1..4).map(|at| self.value(at, 32)).collect::<Result<_, _>>()?;
        Ok(Op::Compute { compute, ty: Type::unsigned(32), to: self.register(0, 32)?, from })
    }

    fn is_space(&self) -> Result<Op, Problem> {
        let memory = match self.modifiers[..] {
            ["global"] => Memory::Global,
            ["shared" | "shared::cta"] => Memory::Shared,
            ["local"] => Memory::Local,
            _ => return Err("this memory".to_owned()),
        };
        Ok(Op::IsSpace { memory, to: self.register(0, 1)?, of: self.value(1, 64)? })
    }

    fn funnel_shift(&self) -> Result<Op, Problem> {
        let compute = match self.modifiers[..] {
            ["l", "wrap", "b32"] => Compute::FunnelLeft { clamps: false },
            ["l", "clamp", "b32"] => Compute::FunnelLeft { clamps: true },
            ["r", "wrap", "b32"] => Compute::FunnelRight { clamps: false },
            ["r", "clamp", "b32"] => Compute::FunnelRight { clamps: true },
            _ => return Err("this shift".to_owned()),
        };
        self.of_three_words(compute)
    }
}
