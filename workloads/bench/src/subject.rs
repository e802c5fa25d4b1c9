//! Programs with inputs, as they are run.

use std::borrow::Cow;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Launcher;
use warptrace_workloads::{Grid, ProgramInfo};

/// A program on an input.
pub(crate) trait Subject: Sync {
    fn program(&self) -> &'static ProgramInfo;

    /// Short description of the size of a loaded or generated input, if its name does not contain it.
    fn size(&self) -> Option<String> {
        None
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>>;

    /// Reference for each lane's locations, if they do not depend on the order of threads.
    fn lanes(&self) -> Option<&dyn LaneReference> {
        None
    }
}

/// The control flow of every thread, computed without tracing.
pub(crate) trait LaneReference: Sync {
    /// Returns the digest of the locations of thread `thread` (its linear index) in launch `launch`.
    fn lane(&self, launch: u32, thread: u64) -> LaneDigest;
}

pub(crate) struct SubjectRun<'s> {
    pub(crate) kernel: Duration,
    pub(crate) launches: u32,
    pub(crate) result: Box<dyn RunResult + 's>,
}

pub(crate) trait RunResult {
    /// Returns the result as bytes: the same in every correct run on one device, traced or not.
    fn bytes(&self) -> Cow<'_, [u8]>;

    /// Checks the result. Returns a short description of the check or of the error.
    fn check(&self) -> Result<String, String>;

    /// Returns the number of warp events in a complete trace of this run, if a formula gives it.
    fn expected_events(&self) -> Option<u64> {
        None
    }

    /// Returns the sum of active lanes over all events, if it is known.
    fn expected_lanes(&self) -> Option<u64> {
        None
    }

    /// Returns the main loop's location and number of events, which does not assume that lanes reconverge
    /// after it.
    fn expected_rounds(&self) -> Option<(u16, u64)> {
        None
    }

    /// Writes additional requested output, and returns a line about it.
    fn write(&self) -> anyhow::Result<Option<String>> {
        Ok(None)
    }
}

/// A subject that is not yet constructed, because loading or generating its input may take long.
pub(crate) struct Case {
    pub(crate) program: &'static str,
    pub(crate) info: &'static ProgramInfo,
    pub(crate) input: String,
    /// Corresponding row of the thesis's Table A.1.
    pub(crate) thesis: Option<&'static str>,
    /// Whether the behaviour of lanes depends on the order of threads.
    pub(crate) asynchronous: bool,
    /// Name and value of each option that affects the computation, for the trace.
    pub(crate) properties: Vec<(String, String)>,
    /// Files that the program reads, or writes in addition to the trace.
    pub(crate) files: Vec<PathBuf>,
    make: Box<dyn Fn() -> anyhow::Result<Box<dyn Subject>> + Send + Sync>,
}

impl Case {
    /// Creates a case; `make` loads or generates the input.
    pub(crate) fn new<S: Subject + 'static>(
        info: &'static ProgramInfo,
        input: impl Into<String>,
        make: impl Fn() -> anyhow::Result<S> + Send + Sync + 'static,
    ) -> Self {
        let make = Box::new(move || -> anyhow::Result<Box<dyn Subject>> { Ok(Box::new(make()?)) });
        let (program, input, properties) = (info.name, input.into(), Vec::new());
        Self { program, info, input, thesis: None, asynchronous: false, properties, files: Vec::new(), make }
    }

    #[must_use]
    pub(crate) fn like(mut self, thesis: &'static str) -> Self {
        self.thesis = Some(thesis);
        self
    }

    /// Marks a program whose lanes behave differently in each run.
    #[must_use]
    pub(crate) fn asynchronous(mut self) -> Self {
        self.asynchronous = true;
        self
    }

    /// Adds options to store in the trace.
    #[must_use]
    pub(crate) fn with(mut self, properties: &[(&str, &dyn Display)]) -> Self {
        self.properties
            .extend(properties.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())));
        self
    }

    /// Adds a file that the program reads or writes.
    #[must_use]
    pub(crate) fn file(mut self, path: Option<&Path>) -> Self {
        self.files.extend(path.map(Path::to_owned));
        self
    }

    #[must_use]
    pub(crate) fn on_grid(self, grid: Option<Grid>) -> Self {
        match &grid {
            Some(grid) => self.with(&[("grid", grid)]),
            None => self,
        }
    }

    pub(crate) fn make(&self) -> anyhow::Result<Box<dyn Subject>> {
        (self.make)()
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.program, self.input)
    }
}
