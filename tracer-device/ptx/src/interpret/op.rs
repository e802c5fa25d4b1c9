//! Instructions in the form that the interpreter executes.

use super::float::{Comparison, Conversion, Float, FloatStep, Number};

/// An integer type. Predicates have one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) bits: u32,
    pub(super) signed: bool,
}

impl Type {
    /// Parses a modifier such as `u32`; `None` for unknown types.
    pub(super) fn parse(modifier: &str) -> Option<Self> {
        if modifier == "pred" {
            return Some(Self::unsigned(1));
        }
        let (kind, bits) = modifier.split_at_checked(1)?;
        let bits = bits.parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits))?;
        ["b", "u", "s"].contains(&kind).then_some(Self { bits, signed: kind == "s" })
    }

    pub(super) const fn unsigned(bits: u32) -> Self {
        Self { bits, signed: false }
    }

    /// Parses the type of a value that is only moved. Floating-point types count as bits.
    pub(super) fn of_bits(modifier: &str) -> Option<Self> {
        let float = Float::parse(modifier).map(|(ty, count)| ty.bits() * count);
        float.map(Self::unsigned).or_else(|| Self::parse(modifier))
    }

    pub(super) fn truncate(self, value: u64) -> u64 {
        if self.bits == 64 { value } else { value & ((1 << self.bits) - 1) }
    }

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

pub(super) type Predicate = (Register, bool);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Thread(usize),
    BlockSize(usize),
    Block(usize),
    GridSize(usize),
    Lane,
    /// Any of: the lanes below, the lane itself, the lanes above.
    LaneMask {
        below: bool,
        own: bool,
        above: bool,
    },
    Warp,
    Warps,
    Clock,
    ClockLow,
    GlobalTimer,
    Multiprocessor,
    Multiprocessors,
    DynamicShared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Register(Register),
    Immediate(u64),
    /// The address of a local variable, relative to the function's local memory.
    Local(u64),
    Special(Special),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Param,
    Global,
    Shared,
    Local,
    /// A generic address of global, shared or local memory.
    Generic,
}

/// Start of shared memory in the generic address space.
pub(super) const SHARED_WINDOW: u64 = 0x7f00_0000_0000_0000;
/// Start of a thread's local memory in the generic address space.
pub(super) const LOCAL_WINDOW: u64 = 0x7f80_0000_0000_0000;
/// Start of the addresses of functions.
pub(super) const FUNCTIONS: u64 = 0x7fc0_0000_0000_0000;
/// Start of the module's variables in global memory.
pub(super) const VARIABLES: u64 = 0x7000_0000_0000;

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

/// An address: a register or 0, plus an offset. `within` are the bounds of a named variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) base: Option<Register>,
    pub(super) offset: u64,
    pub(super) within: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compute {
    Move,
    Convert {
        from: Type,
    },
    Not,
    Negate,
    HighestBit,
    ShiftToHighestBit,
    CountBits,
    CountLeadingZeros,
    ReverseBits,
    ExtractBits,
    InsertBits,
    Permute,
    /// A lookup table applied to the bits of three values.
    Logic,
    Add,
    Subtract,
    Absolute,
    /// The absolute difference of two values, plus a third.
    AbsoluteDifference,
    Multiply,
    MultiplyHigh,
    MultiplyWide,
    MultiplyAdd,
    MultiplyAddHigh,
    MultiplyAddWide,
    /// The sum of products of four pairs of bytes, plus a third value.
    DotProduct {
        signed: [bool; 2],
    },
    Minimum,
    Maximum,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    /// The upper half of two values (lower first), shifted left by the third: at most by 32, or modulo 32.
    FunnelLeft {
        clamps: bool,
    },
    /// The lower half, shifted right.
    FunnelRight {
        clamps: bool,
    },
    Select,
    /// The first value, or the second if the third is negative.
    SelectBySign,
}

impl Compute {
    /// Parses the name of a commutative operation.
    pub(super) fn unordered(name: &str) -> Option<Self> {
        match name {
            "add" => Some(Self::Add),
            "min" => Some(Self::Minimum),
            "max" => Some(Self::Maximum),
            "and" => Some(Self::And),
            "or" => Some(Self::Or),
            "xor" => Some(Self::Xor),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomic {
    Compute(Compute),
    Float(FloatStep),
    Exchange,
    CompareAndSwap,
    /// Increments up to a value, then wraps to 0.
    Increment,
    /// Decrements down to 0, then wraps to a value.
    Decrement,
}

/// An instruction without its guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Compute {
        compute: Compute,
        ty: Type,
        to: Register,
        from: Vec<Value>,
    },
    Carry {
        subtract: bool,
        reads: bool,
        writes: bool,
        ty: Type,
        to: Register,
        from: [Value; 2],
    },
    Float {
        step: FloatStep,
        to: Register,
        from: Vec<Value>,
    },
    SetPredicate {
        compare: Comparison,
        of: Number,
        flush: bool,
        to: Register,
        /// The register for the negated result.
        other: Option<Register>,
        from: [Value; 2],
        /// The operation and predicate to combine the result with.
        joined: Option<(Compute, Predicate)>,
    },
    /// A conversion. Two source values go to one register, the first in the lower half.
    Convert {
        conversion: Conversion,
        to: Register,
        from: Vec<Value>,
    },
    IsSpace {
        memory: Memory,
        to: Register,
        of: Value,
    },
    /// A concatenation of values, the first in the lowest bits.
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
        memory: Memory,
        ty: Type,
        to: Option<Register>,
        address: Address,
        values: Vec<Value>,
    },
    /// A copy from global to shared memory. Bytes beyond `length` are 0.
    Copy {
        to: Address,
        from: Address,
        bytes: u64,
        length: Option<Value>,
    },
    ActiveMask {
        to: Register,
    },
    Vote {
        vote: Vote,
        to: Register,
        of: Predicate,
        members: Option<Value>,
    },
    Shuffle {
        shuffle: Shuffle,
        to: Register,
        /// Receives whether the source lane is in range.
        valid: Option<Register>,
        value: Value,
        lane: Value,
        clamp: Value,
        members: Option<Value>,
    },
    /// `match.any`: the mask of the lanes with the same value. `match.all` (`all`): the mask of all active
    /// lanes if their values are equal, otherwise 0.
    Match {
        all: bool,
        to: Register,
        holds: Option<Register>,
        of: Value,
        members: Option<Value>,
    },
    Reduce {
        compute: Compute,
        ty: Type,
        to: Register,
        of: Value,
        members: Option<Value>,
    },
    WarpBarrier {
        members: Option<Value>,
    },
    PerformanceEvent {
        mask: u64,
    },
    Sleep {
        nanoseconds: Value,
    },
    /// A wait at a barrier for all threads of the block, or for a given number.
    Barrier {
        barrier: Value,
        threads: Option<Value>,
    },
    /// No operation. Fences and prefetches do nothing, because all writes are visible at once.
    Nothing,
    Trap,
    Branch {
        target: String,
        to: usize,
        uniform: bool,
    },
    BranchIndexed {
        index: Value,
        table: String,
        to: Vec<usize>,
    },
    /// `results` and `arguments` are offsets in the caller's parameters.
    Call {
        function: Callee,
        results: Vec<usize>,
        arguments: Vec<usize>,
    },
    Return,
    Exit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Callee {
    Named(String),
    /// The function at this address.
    At(Value),
}

impl Op {
    /// Returns `Some` if lanes exchange values or wait for each other, with the operand that names lanes.
    pub(super) fn collective(&self) -> Option<Option<Value>> {
        match self {
            Self::Vote { members, .. }
            | Self::Shuffle { members, .. }
            | Self::Match { members, .. }
            | Self::Reduce { members, .. }
            | Self::WarpBarrier { members } => Some(*members),
            Self::ActiveMask { .. } => Some(None),
            _ => None,
        }
    }
}
