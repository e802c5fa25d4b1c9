//! What is run: a program on an input.

use std::borrow::Cow;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Launcher;
use warptrace_workloads::{Grid, ProgramInfo};

/// A program on an input.
pub(crate) trait Subject: Sync {
    /// The program's kernels and trace points.
    fn program(&self) -> &'static ProgramInfo;

    /// The size of an input that was loaded or generated, in a few words, where its name does not tell.
    fn size(&self) -> Option<String> {
        None
    }

    /// Runs it once.
    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>>;

    /// Where each lane must pass, if that does not depend on the order in which threads run.
    fn lanes(&self) -> Option<&dyn LaneReference> {
        None
    }
}

/// The control flow of every thread, computed without tracing.
pub(crate) trait LaneReference: Sync {
    /// The digest of the locations that thread `thread` (its linear index) passes in launch `launch`.
    fn lane(&self, launch: u32, thread: u64) -> LaneDigest;
}

/// What a run took and gave.
pub(crate) struct SubjectRun<'s> {
    /// Time of all kernels.
    pub(crate) kernel: Duration,
    /// Launches.
    pub(crate) launches: u32,
    /// What was computed.
    pub(crate) result: Box<dyn RunResult + 's>,
}

/// What a run computed.
pub(crate) trait RunResult {
    /// The result as bytes: the same in every correct run on one device, traced or not.
    fn bytes(&self) -> Cow<'_, [u8]>;

    /// Checks the result; returns in a few words how, or what is wrong.
    fn check(&self) -> Result<String, String>;

    /// Warp events that a trace of this run must hold, where a formula gives them.
    fn expected_events(&self) -> Option<u64> {
        None
    }

    /// What the masks of all events must add up to: the trace points that all lanes pass, where that is
    /// known.
    fn expected_lanes(&self) -> Option<u64> {
        None
    }

    /// The location of the main loop and its number of events, which holds even where lanes that have left
    /// the loop do not wait for each other (see [`expected_events`](Self::expected_events), which counts on
    /// that).
    fn expected_rounds(&self) -> Option<(u16, u64)> {
        None
    }

    /// Writes what else was asked for, and returns a line about it.
    fn write(&self) -> anyhow::Result<Option<String>> {
        Ok(None)
    }
}

/// A subject that has not been made: inputs may take a while to load or to generate.
pub(crate) struct Case {
    /// Name of the program.
    pub(crate) program: &'static str,
    /// Its kernels and trace points.
    pub(crate) info: &'static ProgramInfo,
    /// The input in a few words.
    pub(crate) input: String,
    /// The row of the thesis's Table A.1 that it stands for.
    pub(crate) thesis: Option<&'static str>,
    /// Whether what lanes do depends on the order in which threads run.
    pub(crate) asynchronous: bool,
    /// Name and value of each option that decides what is computed, for a trace.
    pub(crate) properties: Vec<(String, String)>,
    /// Files that it reads, and writes besides the trace.
    pub(crate) files: Vec<PathBuf>,
    make: Box<dyn Fn() -> anyhow::Result<Box<dyn Subject>> + Send + Sync>,
}

impl Case {
    /// A case; `make` loads or generates the input.
    pub(crate) fn new<S: Subject + 'static>(
        info: &'static ProgramInfo,
        input: impl Into<String>,
        make: impl Fn() -> anyhow::Result<S> + Send + Sync + 'static,
    ) -> Self {
        let make = Box::new(move || -> anyhow::Result<Box<dyn Subject>> { Ok(Box::new(make()?)) });
        let (program, input, properties) = (info.name, input.into(), Vec::new());
        Self { program, info, input, thesis: None, asynchronous: false, properties, files: Vec::new(), make }
    }

    /// The same, to be compared with a row of the thesis's Table A.1.
    #[must_use]
    pub(crate) fn like(mut self, thesis: &'static str) -> Self {
        self.thesis = Some(thesis);
        self
    }

    /// The same, of a program whose lanes do another thing in each run.
    #[must_use]
    pub(crate) fn asynchronous(mut self) -> Self {
        self.asynchronous = true;
        self
    }

    /// The same with options that are named in its trace.
    #[must_use]
    pub(crate) fn with(mut self, properties: &[(&str, &dyn Display)]) -> Self {
        self.properties
            .extend(properties.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())));
        self
    }

    /// The same, which reads or writes a file.
    #[must_use]
    pub(crate) fn file(mut self, path: Option<&Path>) -> Self {
        self.files.extend(path.map(Path::to_owned));
        self
    }

    /// The same on a grid that was chosen, if one was.
    #[must_use]
    pub(crate) fn on_grid(self, grid: Option<Grid>) -> Self {
        match &grid {
            Some(grid) => self.with(&[("grid", grid)]),
            None => self,
        }
    }

    /// Makes the subject.
    pub(crate) fn make(&self) -> anyhow::Result<Box<dyn Subject>> {
        (self.make)()
    }

    /// Program and input.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.program, self.input)
    }
}
