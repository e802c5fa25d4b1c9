//! Errors of the interpreter, and faults of interpreted kernels.

use crate::ParseError;

/// Errors of [`run`](super::run) and [`Program::parse`](super::Program::parse).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpretError {
    /// The text is not valid PTX.
    #[error("the PTX cannot be read: {0}")]
    Parse(#[from] ParseError),
    /// A declaration cannot be laid out in memory.
    #[error("`{name}` cannot be laid out: {problem}")]
    Declaration {
        /// The declared name.
        name: String,
        /// Description of the problem.
        problem: String,
    },
    /// The launch does not fit the kernel or the interpreter.
    #[error("the launch of `{kernel}` cannot be made: {problem}")]
    Launch {
        /// Name of the kernel.
        kernel: String,
        /// Description of the problem.
        problem: String,
    },
    /// An instruction caused a fault.
    #[error("line {line}, `{text}`, warp {warp}, lanes {lanes:#010x}: {fault}")]
    Instruction {
        /// Line of the instruction, from 1.
        line: usize,
        /// Text of the instruction.
        text: String,
        /// Index of the warp in the launch.
        warp: u32,
        /// Lanes of the executing group.
        lanes: u32,
        /// The fault.
        fault: Fault,
    },
    /// The kernel exceeded its limit of instructions.
    #[error(
        "the kernel did not end within {limit} instructions: raise the limit, or look for a loop without end"
    )]
    Steps {
        /// Maximum number of instructions of all groups together.
        limit: u64,
    },
    /// No group can continue.
    #[error("no lanes can go on: all wait at barriers, or for lanes that are elsewhere")]
    Deadlock,
}

/// Fault of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The interpreter does not support the instruction.
    #[error("the interpreter cannot execute this: {0}")]
    Unknown(String),
    /// A register is read before it is written.
    #[error("lane {lane} reads register `{register}`, which it never wrote")]
    Uninitialised {
        /// The lane.
        lane: u32,
        /// Name of the register.
        register: String,
    },
    /// Bytes are read before they are written.
    #[error(
        "lane {lane} reads {bytes} bytes of {space} memory at {address:#x}, not all of which were written"
    )]
    Unwritten {
        /// The lane.
        lane: u32,
        /// The state space.
        space: &'static str,
        /// The address.
        address: u64,
        /// Size of the access in bytes.
        bytes: u64,
    },
    /// An access is outside declared memory.
    #[error("lane {lane} accesses {bytes} bytes of {space} memory at {address:#x}, outside what is declared")]
    Bounds {
        /// The lane.
        lane: u32,
        /// The state space.
        space: &'static str,
        /// The address.
        address: u64,
        /// Size of the access in bytes.
        bytes: u64,
    },
    /// An access is misaligned.
    #[error(
        "lane {lane} accesses {bytes} bytes of {space} memory at {address:#x}, which is not aligned to them"
    )]
    Misaligned {
        /// The lane.
        lane: u32,
        /// The state space.
        space: &'static str,
        /// The address.
        address: u64,
        /// Size of the access in bytes.
        bytes: u64,
    },
    /// A vote or shuffle names lanes that do not execute it, or lanes name different sets.
    #[error("lane {lane} names the lanes {named:#010x}, but {here:#010x} are here")]
    Members {
        /// The lane.
        lane: u32,
        /// Lanes that its operand names.
        named: u32,
        /// Lanes that execute the instruction.
        here: u32,
    },
    /// A shuffle reads from a lane that does not take part.
    #[error("lane {lane} reads from lane {from}, which does not take part")]
    Source {
        /// The reading lane.
        lane: u32,
        /// The lane that it reads from.
        from: u32,
    },
    /// A branch that must be uniform is divergent.
    #[error("lanes {taken:#010x} branch and {others:#010x} do not, but the branch must be uniform")]
    Diverges {
        /// Lanes that branch.
        taken: u32,
        /// Lanes that do not branch.
        others: u32,
    },
    /// A division by zero.
    #[error("lane {lane} divides by zero")]
    Division {
        /// The lane.
        lane: u32,
    },
    /// The index of a `brx.idx` is out of range.
    #[error("lane {lane} goes to label {index} of the table, which is not there")]
    Table {
        /// The lane.
        lane: u32,
        /// The index.
        index: u64,
    },
    /// The kernel executed `trap` or failed an assertion.
    #[error("the kernel stops itself")]
    Trap,
    /// Calls are nested too deeply.
    #[error("more than {limit} nested calls")]
    Calls {
        /// Maximum number of nested calls.
        limit: usize,
    },
    /// Control ran past the end of a function.
    #[error("the function ends without `ret` or `exit`")]
    End,
}
