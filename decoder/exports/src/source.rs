//! The selected part of a trace that is exported.

use std::ops::ControlFlow;

use warptrace_analysis::{AnalysisError, LaunchBlocks, Selection, blocks, kernel_name, words};
use warptrace_decoder::{EventRun, LossyWarps, RunJoiner, TraceFile, WarpFilter};
use warptrace_format::file::{LaunchInfo, LocationInfo};

use crate::error::ExportError;
use crate::lacks::Lacks;

/// One step of a walk over a launch.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Step {
    /// A run.
    Run(EventRun),
    /// Events of a warp are missing here or, if their position is unknown, in the following events.
    Missing {
        /// The missing events.
        missing: LossyWarps,
        /// Number that the warp's next event has or would have.
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
    progress: Box<dyn Fn(u64) + 'a>,
}

impl std::fmt::Debug for ExportSource<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Source").field("selection", &self.selection).finish_non_exhaustive()
    }
}

impl<'a> ExportSource<'a> {
    /// Selects a part of a trace, without a focus. Fails if the selection does not match the trace.
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

    #[cfg(feature = "parquet")]
    pub(crate) fn tell(&self, events: u64) {
        (self.progress)(events);
    }

    /// Sets a callback that receives the number of events processed since its last call.
    #[must_use]
    pub fn with_progress(mut self, progress: impl Fn(u64) + 'a) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// Returns the trace.
    pub const fn trace(&self) -> &'a TraceFile {
        self.trace
    }

    /// Returns the selection.
    pub const fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns the missing parts of the selected part.
    pub const fn lacks(&self) -> &Lacks {
        &self.lacks
    }

    /// Returns the selected launches.
    pub fn launches(&self) -> impl ExactSizeIterator<Item = &LaunchInfo> {
        self.launches.iter().map(|(info, _)| info)
    }

    /// Returns the number of events of the selected launches, over all their warps.
    pub fn launch_events(&self) -> u64 {
        let events = self.launches().map(|info| self.trace.totals(info.number(), 0).events);
        events.fold(0, u64::saturating_add)
    }

    /// Returns the trace's entry of a location; `None` if it has none.
    pub fn location(&self, id: u16) -> Option<&'a LocationInfo> {
        self.locations.get(usize::from(id)).copied().flatten()
    }

    /// Returns the name of a location for display: `location 9` if the table has none.
    pub(crate) fn label(&self, id: u16) -> String {
        match self.location(id) {
            Some(info) if !info.name.is_empty() => info.name.clone(),
            _ => format!("location {id}"),
        }
    }

    pub(crate) fn launch_name(&self, info: &LaunchInfo) -> String {
        format!("{} {}", words::launch(self.trace, info.number()), self.kernel(info))
    }

    pub(crate) fn kernel(&self, info: &LaunchInfo) -> &'a str {
        kernel_name(self.trace, info)
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn launches_with_warps(&self) -> &[(LaunchInfo, WarpFilter)] {
        &self.launches
    }

    /// Reads where and when the selected blocks of a launch ran; `None` if the trace has no spans. Memory: as
    /// for [`blocks`]. Fails if the work exceeds the limit of the file.
    pub fn blocks(&self, info: &LaunchInfo) -> Result<Option<LaunchBlocks>, ExportError> {
        Ok(blocks(self.trace, info, &self.selection)?)
    }

    /// Passes the runs of a selected launch to `sink`, with marks at missing events, in order of warp and
    /// event. Memory: as for [`TraceFile::items_in_order`]. Fails if the launch is not selected, the trace is
    /// damaged, or `sink` fails.
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
        // Reports progress often enough for display, but not for every run.
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

    /// Returns facts for the metadata of every export, as pairs of key and value.
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
