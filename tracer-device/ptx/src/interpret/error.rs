//! Why a kernel cannot be interpreted, or what it did that it must not.

use crate::ParseError;

/// Why [`run`](super::run) or [`Program::parse`](super::Program::parse) gave up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpretError {
    /// The text is no PTX.
    #[error("the PTX cannot be read: {0}")]
    Parse(#[from] ParseError),
    /// A declaration cannot be laid out in memory.
    #[error("`{name}` cannot be laid out: {problem}")]
    Declaration {
        /// What is declared.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The launch does not fit the kernel or the interpreter.
    #[error("the launch of `{kernel}` cannot be made: {problem}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        problem: String,
    },
    /// An instruction did what it must not.
    #[error("line {line}, `{text}`, warp {warp}, lanes {lanes:#010x}: {fault}")]
    Instruction {
        /// Line of the instruction, from 1.
        line: usize,
        /// The instruction.
        text: String,
        /// Index of the warp in the launch.
        warp: u32,
        /// Lanes of the group that executed it.
        lanes: u32,
        /// What is wrong.
        fault: Fault,
    },
    /// The kernel took more instructions than it was allowed.
    #[error(
        "the kernel did not end within {limit} instructions: raise the limit, or look for a loop without end"
    )]
    Steps {
        /// Instructions that all groups may execute in all.
        limit: u64,
    },
    /// No group can go on.
    #[error("no lanes can go on: all wait at barriers, or for lanes that are elsewhere")]
    Deadlock,
}

/// What is wrong with an instruction, or with what it did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The interpreter does not know it.
    #[error("the interpreter cannot execute this: {0}")]
    Unknown(String),
    /// A register is read that was never written.
    #[error("lane {lane} reads register `{register}`, which it never wrote")]
    Uninitialised {
        /// The lane.
        lane: u32,
        /// The register.
        register: String,
    },
    /// Bytes are read that were never written.
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
        /// Bytes of the access.
        bytes: u64,
    },
    /// An access outside declared memory.
    #[error("lane {lane} accesses {bytes} bytes of {space} memory at {address:#x}, outside what is declared")]
    Bounds {
        /// The lane.
        lane: u32,
        /// The state space.
        space: &'static str,
        /// The address.
        address: u64,
        /// Bytes of the access.
        bytes: u64,
    },
    /// A misaligned access.
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
        /// Bytes of the access.
        bytes: u64,
    },
    /// A vote or shuffle names other lanes than the ones that execute it.
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
        /// The lane that reads.
        lane: u32,
        /// The lane that it reads from.
        from: u32,
    },
    /// A branch that must be uniform is not.
    #[error("lanes {taken:#010x} branch and {others:#010x} do not, but the branch must be uniform")]
    Diverges {
        /// Lanes that branch.
        taken: u32,
        /// Lanes that do not.
        others: u32,
    },
    /// A division by zero.
    #[error("lane {lane} divides by zero")]
    Division {
        /// The lane.
        lane: u32,
    },
    /// A number beyond a table's end chooses from it.
    #[error("lane {lane} goes to label {index} of the table, which is not there")]
    Table {
        /// The lane.
        lane: u32,
        /// The number.
        index: u64,
    },
    /// The kernel says itself that something is wrong: `trap`, or an assertion that does not hold.
    #[error("the kernel stops itself")]
    Trap,
    /// Calls are nested too deeply.
    #[error("more than {limit} nested calls")]
    Calls {
        /// The most that may be.
        limit: usize,
    },
    /// Control runs over the end of a function.
    #[error("the function ends without `ret` or `exit`")]
    End,
}
