//! Instructions as the interpreter executes them.

use super::float::{Comparison, Conversion, Float, FloatStep, Number};

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
            return Some(Self::unsigned(1));
        }
        let (kind, bits) = modifier.split_at_checked(1)?;
        let bits = bits.parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits))?;
        ["b", "u", "s"].contains(&kind).then_some(Self { bits, signed: kind == "s" })
    }

    pub(super) const fn unsigned(bits: u32) -> Self {
        Self { bits, signed: false }
    }

    /// Reads the type of what is only moved: numbers with a fraction are bits.
    pub(super) fn of_bits(modifier: &str) -> Option<Self> {
        let float = Float::parse(modifier).map(|(ty, count)| ty.bits() * count);
        float.map(Self::unsigned).or_else(|| Self::parse(modifier))
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

/// A register of a predicate, and whether it is negated.
pub(super) type Predicate = (Register, bool);

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Thread(usize),
    BlockSize(usize),
    Block(usize),
    GridSize(usize),
    Lane,
    /// The lane itself alone, and what is above or below it.
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

/// What an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Register(Register),
    Immediate(u64),
    /// An address of what the function has in local memory, from its start.
    Local(u64),
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
/// Where a thread's local memory begins among generic addresses.
pub(super) const LOCAL_WINDOW: u64 = 0x7f80_0000_0000_0000;
/// Where addresses of functions begin.
pub(super) const FUNCTIONS: u64 = 0x7fc0_0000_0000_0000;
/// Where variables of the module begin in global memory.
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

/// An address: a register or 0, plus an offset. `within` are the bounds of the variable that was named, if
/// one was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) base: Option<Register>,
    pub(super) offset: u64,
    pub(super) within: Option<(u64, u64)>,
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
    ShiftToHighestBit,
    CountBits,
    CountLeadingZeros,
    ReverseBits,
    ExtractBits,
    InsertBits,
    Permute,
    /// Each bit is that of a table which three values' bits lead to.
    Logic,
    Add,
    Subtract,
    Absolute,
    /// The distance of two values, added to a third.
    AbsoluteDifference,
    Multiply,
    MultiplyHigh,
    MultiplyWide,
    MultiplyAdd,
    MultiplyAddHigh,
    MultiplyAddWide,
    /// The sum of the products of four bytes each, and a third value.
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
    /// The upper half of two values, the lower one first, shifted by the third: by 32 at most, or modulo 32.
    FunnelLeft {
        clamps: bool,
    },
    /// Their lower half, shifted to the right.
    FunnelRight {
        clamps: bool,
    },
    Select,
    /// The first value, or where the third is negative the second.
    SelectBySign,
}

impl Compute {
    /// Reads an operation whose operands may come in any order.
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

/// What a vote returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// From which lane a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    Index,
    Up,
    Down,
    Butterfly,
}

/// What an atomic does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomic {
    Compute(Compute),
    Float(FloatStep),
    Exchange,
    CompareAndSwap,
    /// Up to a value, then 0.
    Increment,
    /// Down to 0, then a value.
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
    /// Adds or subtracts with a carry.
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
    /// Compares two values.
    SetPredicate {
        compare: Comparison,
        of: Number,
        flush: bool,
        to: Register,
        /// The register that holds the opposite.
        other: Option<Register>,
        from: [Value; 2],
        /// How the result is joined with a predicate.
        joined: Option<(Compute, Predicate)>,
    },
    /// Of two values both are put into one register, the first in the lower half.
    Convert {
        conversion: Conversion,
        to: Register,
        from: Vec<Value>,
    },
    /// Whether a generic address is one of a state space.
    IsSpace {
        memory: Memory,
        to: Register,
        of: Value,
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
        memory: Memory,
        ty: Type,
        to: Option<Register>,
        address: Address,
        values: Vec<Value>,
    },
    /// Copies bytes from global to shared memory; what is beyond the source's length is 0.
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
        /// The register that says whether the lane to read from is in range.
        valid: Option<Register>,
        value: Value,
        lane: Value,
        clamp: Value,
        members: Option<Value>,
    },
    /// The lanes that have the same value, or all lanes if all have it.
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
    /// Lanes wait for the others that they name.
    WarpBarrier {
        members: Option<Value>,
    },
    PerformanceEvent {
        mask: u64,
    },
    Sleep {
        nanoseconds: Value,
    },
    /// Waits at a barrier for all threads of the block, or for as many as are said.
    Barrier {
        barrier: Value,
        threads: Option<Value>,
    },
    /// What orders memory or brings it nearer: all that was written is seen at once here.
    Nothing,
    Trap,
    Branch {
        target: String,
        to: usize,
        uniform: bool,
    },
    /// One of a table's labels, by its number.
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

/// What a call calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Callee {
    Named(String),
    /// The function of this address.
    At(Value),
}

impl Op {
    /// Whether lanes exchange values, or wait for each other: the lanes that it names, if it names some.
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
