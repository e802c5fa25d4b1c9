use std::sync::Arc;

use warptrace_format::file::{
    Additions, BufferKind, Buffers, HostTimes, SiteInfo, SourceText, StackFrame, Unrecorded,
};

/// A message from the host to a trace's writer, in addition to the data of launches. Each kind has a section
/// in [`TraceWriter::write_message`](crate::writer::TraceWriter::write_message).
#[derive(Clone, Debug)]
pub enum HostMessage {
    /// Kernels and locations to add to the file, before launches of these kernels.
    Additions(Additions),
    /// Sites of kernels, before launches that access them. Site numbers are unique in the file.
    Sites(Vec<SiteInfo>),
    /// Buffers that kernels can access: when allocated, and again by number when their end is known.
    Buffers(Buffers),
    /// A source text that locations refer to, for texts that may not be stored anywhere else.
    Text(SourceText),
    /// Labels by launch number. Written before these launches, so that a truncated file has them.
    Labels(Vec<(u32, Arc<str>)>),
    /// Call stacks of the threads that made launches, by launch number, innermost frame first.
    Stacks(Vec<(u32, Arc<[StackFrame]>)>),
    /// Host times of launches, and readings that relate host clocks and device timer.
    Times(HostTimes),
    /// Launches that were not recorded, and notes on recorded ones. Several messages add up.
    Unrecorded(Unrecorded),
}

impl HostMessage {
    /// Inserts the message into `waiting`, sorted by kind. Merges messages with sites or labels.
    pub(crate) fn add_to(self, waiting: &mut Vec<Self>) {
        let at = waiting.partition_point(|other| other.order() <= self.order());
        match (waiting[..at].last_mut(), self) {
            (Some(Self::Sites(sites)), Self::Sites(mut more)) => sites.append(&mut more),
            (Some(Self::Labels(labels)), Self::Labels(mut more)) => labels.append(&mut more),
            (Some(Self::Stacks(stacks)), Self::Stacks(mut more)) => stacks.append(&mut more),
            (_, message) => waiting.insert(at, message),
        }
    }

    const fn order(&self) -> u8 {
        match self {
            Self::Additions(_) => 0,
            Self::Sites(_) => 1,
            Self::Buffers(_) => 2,
            Self::Text(_) => 3,
            Self::Labels(_) => 4,
            Self::Stacks(_) => 5,
            Self::Times(_) => 6,
            Self::Unrecorded(_) => 7,
        }
    }
}

/// How the program names a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchName {
    /// The label that the program gave to it.
    pub label: Option<Arc<str>>,
    /// The call stack of the launching thread, innermost frame first.
    pub stack: Option<Arc<[StackFrame]>>,
}

/// A range of memory that kernels can access: an allocation, a module's variable, or mapped memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Address of the first byte.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// The kind of memory.
    pub kind: BufferKind,
    /// The program's name for the memory; may be empty.
    pub name: String,
}

/// A change of the memory that kernels can access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryChange {
    /// Kernels can now access this memory. Known memory that overlaps it no longer exists.
    Got(Memory),
    /// The memory that begins at this address no longer exists.
    Gone(u64),
    /// The program has memory that the tracer does not know.
    Unknown,
}
