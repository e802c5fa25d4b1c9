//! What is exported: a selected part of a trace.

use std::ops::ControlFlow;

use warptrace_analysis::{AnalysisError, LaunchBlocks, Selection, blocks, kernel_name, words};
use warptrace_decoder::{EventRun, LossyWarps, RunJoiner, TraceFile, WarpFilter};
use warptrace_format::file::{LaunchInfo, LocationInfo};

use crate::error::ExportError;
use crate::lacks::Lacks;

/// What a walk over a launch comes to next.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Step {
    /// A run.
    Run(EventRun),
    /// Events of a warp are missing here or, if they may be missing anywhere, in what follows.
    Missing {
        /// What is missing.
        missing: LossyWarps,
        /// Number that the warp's next event in the trace has, or would have.
        next_event: u64,
    },
}

/// A selected part of a trace, to be exported.
pub struct ExportSource<'a> {
    trace: &'a TraceFile,
    selection: Selection,
    launches: Vec<(LaunchInfo, WarpFilter)>,
    /// By id.
    locations: Vec<Option<&'a LocationInfo>>,
    lacks: Lacks,
    /// Told how many events were gone through.
    progress: Box<dyn Fn(u64) + 'a>,
}

impl std::fmt::Debug for ExportSource<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Source").field("selection", &self.selection).finish_non_exhaustive()
    }
}

impl<'a> ExportSource<'a> {
    /// Chooses what `selection` names of a trace. The selection's focus is not used.
    ///
    /// # Errors
    /// Something was selected that the trace does not have.
    pub fn new(trace: &'a TraceFile, selection: Selection) -> Result<Self, ExportError> {
        let launches = selection.launches(trace)?;
        let mut locations = Vec::new();
        for location in &trace.metadata().locations {
            let at = usize::from(location.id);
            if locations.len() <= at {
                locations.resize(at + 1, None);
            }
            locations[at] = Some(location);
        }
        let lacks = Lacks::new(trace, &selection, launches.iter().map(|(info, _)| *info))?;
        Ok(Self { trace, selection, launches, locations, lacks, progress: Box::new(|_| {}) })
    }

    /// Says that more events were gone through.
    #[cfg(feature = "parquet")]
    pub(crate) fn tell(&self, events: u64) {
        (self.progress)(events);
    }

    /// Calls `progress` with the number of events that were gone through since it was called last.
    #[must_use]
    pub fn with_progress(mut self, progress: impl Fn(u64) + 'a) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// The trace.
    pub const fn trace(&self) -> &'a TraceFile {
        self.trace
    }

    /// What was selected.
    pub const fn selection(&self) -> &Selection {
        &self.selection
    }

    /// What the selected part lacks.
    pub const fn lacks(&self) -> &Lacks {
        &self.lacks
    }

    /// The selected launches.
    pub fn launches(&self) -> impl ExactSizeIterator<Item = &LaunchInfo> {
        self.launches.iter().map(|(info, _)| info)
    }

    /// Events of the selected launches, of all of their warps.
    pub fn launch_events(&self) -> u64 {
        let events = self.launches().map(|info| self.trace.totals(info.number(), 0).events);
        events.fold(0, u64::saturating_add)
    }

    /// What the trace's table says of a location; `None` if it does not have it.
    pub fn location(&self, id: u16) -> Option<&'a LocationInfo> {
        self.locations.get(usize::from(id)).copied().flatten()
    }

    /// The name of a location as people read it: `location 9` if the table has none.
    pub(crate) fn label(&self, id: u16) -> String {
        match self.location(id) {
            Some(info) if !info.name.is_empty() => info.name.clone(),
            _ => format!("location {id}"),
        }
    }

    /// A launch's number, with what the program called it, and its kernel's name.
    pub(crate) fn launch_name(&self, info: &LaunchInfo) -> String {
        format!("{} {}", words::launch(self.trace, info.number()), self.kernel(info))
    }

    /// The name of a launch's kernel.
    pub(crate) fn kernel(&self, info: &LaunchInfo) -> &'a str {
        kernel_name(self.trace, info)
    }

    /// The selected launches, each with the warps of it that may be selected.
    #[cfg(feature = "parquet")]
    pub(crate) fn launches_with_warps(&self) -> &[(LaunchInfo, WarpFilter)] {
        &self.launches
    }

    /// Reads where and when the selected blocks of a launch ran; `None` if the trace does not say it. Memory:
    /// that of [`blocks`].
    ///
    /// # Errors
    /// The file asks for too much work.
    pub fn blocks(&self, info: &LaunchInfo) -> Result<Option<LaunchBlocks>, ExportError> {
        Ok(blocks(self.trace, info, &self.selection)?)
    }

    /// Gives the runs of a selected launch to `sink`, with marks where events are missing, in order of warp
    /// and event. Memory: that of [`TraceFile::items_in_order`].
    ///
    /// # Errors
    /// The launch is not one of the selected, the trace is damaged, or what `sink` gives.
    pub fn walk(
        &self,
        launch: u32,
        sink: &mut dyn FnMut(Step) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let place = self.launches.binary_search_by_key(&launch, |(info, _)| info.number());
        let Some((info, filter)) = place.ok().and_then(|place| self.launches.get(place)) else {
            let launches = self.trace.launches().len();
            return Err(AnalysisError::UnknownLaunch { launch, launches }.into());
        };
        // Often enough for a person, rarely enough to cost nothing.
        let mut events = 0;
        let mut result = Ok(());
        let mut give = |step: Step| {
            if let Step::Run(run) = &step {
                events += run.count;
                if events >= 1 << 16 {
                    (self.progress)(std::mem::take(&mut events));
                }
            }
            result = sink(step);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let mut joiner = RunJoiner::default();
        let flow = self.trace.items_in_order(launch, 0, &filter.clone().with_marks(), &mut |item| {
            if !self.selection.has_warp(info, item.warp) {
                return ControlFlow::Continue(());
            }
            let Some(missing) = item.missing else {
                return joiner.take(&item, &mut |run| give(Step::Run(run)));
            };
            joiner.end(&mut |run| give(Step::Run(run)))?;
            give(Step::Missing { missing, next_event: item.first_event })
        })?;
        if flow.is_continue() {
            let _ = joiner.end(&mut |run| give(Step::Run(run)));
        }
        result?;
        (self.progress)(events);
        Ok(())
    }

    /// Facts that every export says of itself, as pairs of a key and a value.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let metadata = self.trace.metadata();
        let mut facts = vec![
            ("exported_by", concat!("warptrace ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("recorded_by", metadata.tool.clone()),
            ("device", metadata.device.name.clone()),
            ("policy", metadata.policy.name().to_owned()),
            ("selection", self.selected()),
            ("whole", self.lacks.is_whole().to_string()),
            ("state", self.trace.state().sentence.clone()),
        ];
        let origin = metadata.origin.as_deref();
        facts.extend(origin.and_then(|origin| Some(("job", origin.job.clone()?))));
        facts.extend(origin.and_then(|origin| Some(("rank", origin.rank?.to_string()))));
        if !self.lacks.is_whole() {
            facts.push(("missing", self.lacks.describe().join("; ")));
        }
        if self.lacks.unchosen_warps > 0 {
            facts.push(("warps_not_chosen_to_be_recorded", self.lacks.unchosen_warps.to_string()));
        }
        facts
    }

    /// The selection as arguments of the tool; `all`.
    fn selected(&self) -> String {
        let Selection { kernel, launch, block, warp, .. } = &self.selection;
        let block = block.map(|[x, y, z]| format!("--block {x},{y},{z}"));
        let parts = [
            kernel.as_ref().map(|kernel| format!("--kernel {kernel}")),
            launch.map(|launch| format!("--launch {launch}")),
            block,
            warp.map(|warp| format!("--warp {warp}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "all".to_owned() } else { parts.join(" ") }
    }
}
