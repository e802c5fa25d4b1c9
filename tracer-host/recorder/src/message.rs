//! Messages from the host to a trace's writer.

use std::sync::Arc;

use warptrace_format::file::{
    Additions, BufferKind, Buffers, HostTimes, SiteInfo, SourceText, StackFrame, Unrecorded,
};

/// A message from the host to a trace's writer, next to what launches record.
///
/// A new kind takes two places: its variant here, and its section in
/// [`TraceWriter::write_message`](crate::writer::TraceWriter::write_message).
#[derive(Clone, Debug)]
pub enum HostMessage {
    /// Kernels and locations that are added to the file's, before launches of the kernels.
    Additions(Additions),
    /// Sites of kernels, before launches that access them. Their numbers are unique in the file.
    Sites(Vec<SiteInfo>),
    /// Memory that kernels can reach: each buffer when the program gets it, and again, by the same number,
    /// when its end is known.
    Buffers(Buffers),
    /// A text that locations lie in, where nothing else may have it.
    Text(SourceText),
    /// Labels that the program gave to launches, by launch number. Written before these launches, the labels
    /// are in a file that breaks off after them.
    Labels(Vec<(u32, Arc<str>)>),
    /// Call stacks of the threads that made launches, by launch number, innermost frame first.
    Stacks(Vec<(u32, Arc<[StackFrame]>)>),
    /// When launches ran by the host's clocks, and how these compare with the device's timer.
    Times(HostTimes),
    /// Launches that were not recorded, and notes on those that were. Several messages add up.
    Unrecorded(Unrecorded),
}

impl HostMessage {
    /// Adds the message to those that wait to be written, which are in the order of their kinds. Sites and
    /// labels become one message.
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

/// Memory that a program has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The address of its first byte.
    pub address: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Of what kind it is.
    pub kind: BufferKind,
    /// The program's name for it, or an empty text.
    pub name: String,
}

/// A change of the memory that kernels can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryChange {
    /// The program got memory. Memory that it overlaps is gone.
    Got(Memory),
    /// The memory that begins at this address is gone.
    Gone(u64),
    /// The program has memory that is not known.
    Unknown,
}
