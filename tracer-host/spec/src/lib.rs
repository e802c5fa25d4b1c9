//! Specification of a recording: which data is recorded, and how.
//!
//! A [`RecordingSpec`] serves all ways to record: the arguments of a command (feature `clap`), the library's
//! builder, tests, and programs that `warptrace run` starts, which get a `RunSpec` (feature `run`) in an
//! environment variable. Each option has one default, [`RecordingSpec::default`], and one check,
//! [`RecordingSpec::check`].

mod doors;
mod error;
mod recording;
#[cfg(feature = "run")]
mod run;
mod size;
mod text;
mod visits;
mod window;

pub use self::doors::{Door, refusal};
pub use self::error::SpecError;
pub use self::recording::{MAX_ZSTD, Policy, RecordingSpec, Times};
#[cfg(feature = "run")]
pub use self::run::{OnHang, RunSpec, TextError};
pub use self::size::{MemorySize, MemorySizeError};
pub use self::visits::Visits;
pub use self::window::{BlockChoice, NumberRange, Window, WindowError};
pub use warptrace_abi::recording::{Spaces, UnknownSpaces};
