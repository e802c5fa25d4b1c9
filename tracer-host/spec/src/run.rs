//! Text form of the options that `warptrace run` passes to the library that it loads into a program.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use warptrace_ptx::points::Points;

#[cfg(feature = "clap")]
use crate::text::seconds;
use crate::{Door, RecordingSpec, SpecError, refusal};

/// Default maximum wait of a launch for memory.
const WAIT: Duration = Duration::from_secs(10);

/// Recording options for a program that launches its own kernels.
// The comments of the fields are also the text of `--help`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "How the program is recorded"))]
#[serde(default, deny_unknown_fields)]
pub struct RunSpec {
    /// Recording options of its kernels.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub recording: RecordingSpec,

    /// Trace points of kernels: every basic block (with `--times runs` also waits), both sides of every
    /// branch, the first block of every loop, function entries, or waits
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "blocks|branches|loops|functions|waits", default_value_t)
    )]
    #[serde(with = "crate::text")]
    pub points: Points,

    /// Maximum time in seconds that a launch waits for earlier launches if there is too little memory for
    /// its records. After that it runs with the memory that is left, or untraced
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds::parse))]
    #[serde(with = "crate::text::seconds")]
    pub wait: Duration,

    /// Also trace kernels whose PTX is for another architecture than their machine code. Their results may
    /// differ from those without tracing
    #[cfg_attr(feature = "clap", arg(long))]
    pub other_architecture: bool,

    /// Wait for each launch and write its records before the next one. If a kernel fails, more of the
    /// earlier launches is kept. Kernels that wait for each other hang
    #[cfg_attr(feature = "clap", arg(long))]
    pub sync: bool,

    /// Record nothing until the program requests it: with `warptrace_begin` of warptrace.h, or
    /// `warptrace.trace` in Python
    #[cfg_attr(feature = "clap", arg(long))]
    pub manual: bool,

    /// Report where a launch hangs if it has not ended this many seconds after the program made it. The
    /// trace then ends with the positions of its warps
    #[cfg_attr(feature = "clap", arg(long, value_name = "SECONDS", value_parser = seconds::parse))]
    #[serde(with = "crate::text::seconds::option")]
    pub launch_limit: Option<Duration>,

    /// Action after the report: the program continues untraced, or is terminated by SIGTERM
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "report|stop", default_value_t, requires = "launch_limit")
    )]
    #[serde(with = "crate::text")]
    pub on_hang: OnHang,

    /// Records nothing; hardware counters count at each point. For measurements.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub marks: bool,
}

impl Default for RunSpec {
    fn default() -> Self {
        Self {
            recording: RecordingSpec::default(),
            points: Points::default(),
            wait: WAIT,
            other_architecture: false,
            sync: false,
            manual: false,
            launch_limit: None,
            on_hang: OnHang::default(),
            marks: false,
        }
    }
}

/// Action after reporting where a launch hangs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnHang {
    /// The program continues.
    #[default]
    Report,
    /// The program is terminated.
    Stop,
}

impl fmt::Display for OnHang {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Report => "report",
            Self::Stop => "stop",
        })
    }
}

impl FromStr for OnHang {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "report" => Ok(Self::Report),
            "stop" => Ok(Self::Stop),
            _ => Err("say report or stop"),
        }
    }
}

/// Error of parsing a [`RunSpec`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// A field is invalid.
    #[error("{field}: {problem}")]
    Field {
        /// The field, for example `recording.memory`.
        field: String,
        /// Its value and the valid values.
        problem: String,
    },
    /// The fields contradict each other.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl RunSpec {
    /// Checks the recording ([`RecordingSpec::check`]) and that all options are available for such a program.
    /// Returns the first error found.
    pub fn check(&self) -> Result<(), SpecError> {
        self.recording.check()?;
        let option =
            if self.recording.policy == crate::Policy::Stream { "policy stream" } else { return Ok(()) };
        refusal(Door::Run, option).map_or(Ok(()), |reason| Err(SpecError::Refused { option, reason }))
    }

    /// Returns true if waits have points in addition to the selected ones.
    pub fn marks_waits(&self) -> bool {
        self.points == Points::Blocks && self.recording.times.has_runs()
    }

    /// Formats the specification as text.
    pub fn to_text(&self) -> String {
        // All keys are strings, and serialization of the fields cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses text. Missing fields have their default values. Fails if the text is invalid, or
    /// [`check`](Self::check) fails.
    ///
    /// ```
    /// use warptrace_spec::RunSpec;
    /// let spec = RunSpec::from_text(r#"{"recording": {"memory": "64MiB"}, "points": "loops"}"#)?;
    /// assert_eq!(RunSpec::from_text(&spec.to_text())?, spec);
    /// let error = RunSpec::from_text(r#"{"recording": {"memory": "much"}}"#).unwrap_err().to_string();
    /// assert!(error.starts_with("recording.memory: it is `much`: a size is a number"), "{error}");
    /// # Ok::<(), warptrace_spec::TextError>(())
    /// ```
    pub fn from_text(text: &str) -> Result<Self, TextError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let read: Result<Self, _> = serde_path_to_error::deserialize(&mut reader);
        let spec = read.map_err(|error| {
            let field = error.path().to_string();
            TextError::Field { field, problem: error.into_inner().to_string() }
        })?;
        let whole = |error: serde_json::Error| TextError::Field {
            field: "its end".to_owned(),
            problem: error.to_string(),
        };
        reader.end().map_err(whole)?;
        spec.check()?;
        Ok(spec)
    }
}
