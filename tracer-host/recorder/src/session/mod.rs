//! A recording, from its first launch to the end of its file.

mod buffers;
mod classes;
mod code;
mod drain;
mod error;
mod interrupt;
mod launches;
mod ledger;
mod memory;
mod metadata;
mod modules;
mod options;
mod pool;
mod recorder;
mod running;
mod start;
mod stream;
mod streamed;
mod worker;

pub use self::buffers::memory_of;
#[cfg(test)]
pub(crate) use self::classes::Representatives;
pub(crate) use self::classes::{ClassRun, Classes, StreamName};
pub use self::error::SessionError;
pub use self::interrupt::Interrupted;
pub use self::launches::{Drainer, Ended, Ending, Launches, Next, Patience};
pub use self::ledger::{OldestLaunch, Reserved, Ticket};
pub use self::metadata::{command_line, command_of};
pub use self::options::{LaunchReport, MemoryUse, TracedProgram, Waits};
pub use self::recorder::Recorder;

#[cfg(test)]
mod tests;
