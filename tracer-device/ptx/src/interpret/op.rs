//! Instructions as the interpreter executes them.

/// An integer type: signedness matters to some operations. Predicates have one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) bits: u32,
    pub(super) signed: bool,
}

impl Type {
    /// Reads a modifier such as `u32`; `None` if it is no type that the interpreter knows.
    pub(super) fn parse(modifier: &str) -> Option<Self> {
        if modifier == "pred" {
            return Some(Self { bits: 1, signed: false });
        }
        let (kind, bits) = modifier.split_at_checked(1)?;
        let bits = bits.parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits))?;
        ["b", "u", "s"].contains(&kind).then_some(Self { bits, signed: kind == "s" })
    }

    /// The value's low bits.
    pub(super) fn truncate(self, value: u64) -> u64 {
        if self.bits == 64 { value } else { value & ((1 << self.bits) - 1) }
    }

    /// The value as a number.
    pub(super) fn number(self, value: u64) -> i128 {
        let value = self.truncate(value);
        if self.signed && value >> (self.bits - 1) != 0 {
            i128::from(value) - (1 << self.bits)
        } else {
            i128::from(value)
        }
    }
}

/// Index of a register in its function.
pub(super) type Register = usize;

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Thread(usize),
    BlockSize(usize),
    Block(usize),
    GridSize(usize),
    Lane,
    LanesBelow,
    Clock,
    GlobalTimer,
    DynamicShared,
}

/// What an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Register(Register),
    Immediate(u64),
    Special(Special),
}

/// A state space that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Param,
    Global,
    Shared,
    Local,
    /// A generic address: of global memory, or of shared memory in its window.
    Generic,
}

/// Where shared memory begins among generic addresses.
pub(super) const SHARED_WINDOW: u64 = 0x7f00_0000_0000_0000;

impl Memory {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Param => "param",
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Generic => "generic",
        }
    }
}

/// An address: a register or 0, plus an offset. `within` are the bounds of the variable that was named, if
/// one was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) base: Option<Register>,
    pub(super) offset: u64,
    pub(super) within: Option<(u64, u64)>,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What is computed of a lane's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compute {
    Move,
    Convert {
        from: Type,
    },
    Not,
    Negate,
    HighestBit,
    CountBits,
    Add,
    Subtract,
    Multiply,
    MultiplyHigh,
    MultiplyWide,
    MultiplyAdd,
    MultiplyAddWide,
    Minimum,
    Maximum,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    /// The upper half of two values, the first the lower one, shifted by the third modulo 32.
    FunnelLeft,
    /// Their lower half, shifted to the right.
    FunnelRight,
    Select,
    /// A comparison, joined with a predicate (the third operand) where one follows.
    Set(Compare),
    SetAnd(Compare),
    SetOr(Compare),
    SetXor(Compare),
}

/// What a vote returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    All,
    Any,
    Ballot,
}

/// What an atomic does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomic {
    Add,
    Or,
}

/// An instruction without its guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Compute {
        compute: Compute,
        ty: Type,
        to: Register,
        from: Vec<Value>,
        negated: bool,
    },
    /// Makes one value of several, the first in the lowest bits.
    Pack {
        bits: u32,
        to: Register,
        from: Vec<Value>,
    },
    Unpack {
        bits: u32,
        to: Vec<Register>,
        from: Value,
    },
    Load {
        memory: Memory,
        ty: Type,
        to: Vec<Register>,
        address: Address,
    },
    Store {
        memory: Memory,
        ty: Type,
        from: Vec<Value>,
        address: Address,
    },
    Atomic {
        atomic: Atomic,
        ty: Type,
        to: Option<Register>,
        address: Address,
        value: Value,
    },
    ActiveMask {
        to: Register,
    },
    Vote {
        vote: Vote,
        to: Register,
        of: Value,
        negated: bool,
        members: Option<Value>,
    },
    Shuffle {
        to: Register,
        value: Value,
        lane: Value,
        members: Option<Value>,
    },
    PerformanceEvent {
        mask: u64,
    },
    Sleep {
        nanoseconds: Value,
    },
    /// Waits for all threads of the block.
    Barrier,
    Branch {
        target: String,
        to: usize,
        uniform: bool,
    },
    /// `results` and `arguments` are offsets in the caller's parameters.
    Call {
        function: String,
        results: Vec<usize>,
        arguments: Vec<usize>,
    },
    Return,
    Exit,
}
