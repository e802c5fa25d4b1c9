//! State of the screen and its changes by keys and answers. Independent of drawing.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use warptrace_analysis::words::{self, Names};
use warptrace_analysis::{
    Analysis, BlockRan, Counts, LaunchBlocks, LaunchSchedule, LocationFigures, Selection, Time, WarpFigures,
    Watch, kernel_name,
};
use warptrace_decoder::TraceFile;

use crate::source::SourceScreen;
use crate::strip::Strip;
use crate::work::{Answer, Request};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Source,
    Loops,
    Warps,
    Strip,
    Blocks,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    pub(crate) at: usize,
    top: usize,
}

impl Cursor {
    pub(crate) fn step(&mut self, by: isize, len: usize) {
        self.at = self.at.saturating_add_signed(by).min(len.saturating_sub(1));
    }

    /// Moves to a row and centres it on a screen of `page` rows.
    pub(crate) fn jump(&mut self, to: usize, page: usize) {
        self.at = to;
        self.top = to.saturating_sub(page / 2);
    }

    /// Returns the rows of a list of `len` rows that are visible on `height` rows.
    pub(crate) fn shown(&mut self, len: usize, height: usize) -> Range<usize> {
        self.at = self.at.min(len.saturating_sub(1));
        let lowest = (self.at + 1).saturating_sub(height);
        self.top = self.top.clamp(lowest, self.at.max(lowest)).min(len.saturating_sub(height));
        self.top..len.min(self.top + height)
    }
}

pub(crate) struct Figures {
    pub(crate) analysis: Box<Analysis>,
    /// Indices of the loop heads in the locations, most idle slots first.
    pub(crate) loops: Vec<usize>,
    /// Warps, most idle slots first.
    pub(crate) warps: Vec<WarpFigures>,
}

/// The launch in the block view.
pub(crate) struct Placed {
    /// Index in [`App::scheduled`].
    pub(crate) at: usize,
    pub(crate) launch: u32,
    /// `None` until they are read.
    pub(crate) blocks: Option<Result<LaunchBlocks, String>>,
}

impl Placed {
    /// Returns the blocks by multiprocessor; empty until they are read.
    pub(crate) fn sms(&self) -> Vec<&[BlockRan]> {
        let found = self.blocks.as_ref().and_then(|found| found.as_ref().ok());
        found.map_or_else(Vec::new, |found| found.blocks.chunk_by(|a, b| a.sm == b.sm).collect())
    }
}

pub(crate) enum Reading {
    /// The analysis is running. `total` is the number of events, if it is known.
    Going {
        watch: Arc<Watch>,
        total: Option<u64>,
    },
    Done(Figures),
    Failed(String),
}

pub(crate) struct App {
    pub(crate) trace: Arc<TraceFile>,
    pub(crate) name: String,
    pub(crate) names: Names,
    pub(crate) view: View,
    pub(crate) source: SourceScreen,
    pub(crate) reading: Reading,
    /// Only launches of this kernel are counted; all if `None`.
    pub(crate) kernel: Option<String>,
    pub(crate) line: Cursor,
    pub(crate) head: Cursor,
    pub(crate) warp: Cursor,
    pub(crate) strip: Option<Strip>,
    /// Selected multiprocessor, and the launch in the block view.
    pub(crate) sm: Cursor,
    pub(crate) placed: Option<Placed>,
    pub(crate) shows_help: bool,
    pub(crate) page: usize,
    pub(crate) quits: bool,
    pub(crate) requests: Vec<Request>,
    base: Selection,
    /// Kernels with selected launches.
    kernels: Vec<String>,
    /// Whether keys have chosen a view or a line, which the program then no longer changes.
    pub(crate) has_moved: bool,
}

impl App {
    pub(crate) fn new(
        trace: Arc<TraceFile>,
        name: String,
        selection: Selection,
        folders: &[PathBuf],
    ) -> Self {
        let source = SourceScreen::read(&trace, folders);
        let names = Names::new(&trace);
        let mut kernels: Vec<String> = Vec::new();
        for (info, _) in selection.launches(&trace).unwrap_or_default() {
            let name = kernel_name(&trace, &info);
            if !kernels.iter().any(|known| known == name) {
                kernels.push(name.to_owned());
            }
        }
        let (kernel, reading) = (selection.kernel.clone(), Reading::Failed(String::new()));
        let (line, page) = (Cursor::default(), 20);
        let mut app = Self {
            view: View::Source,
            reading,
            kernel,
            head: line,
            warp: line,
            line,
            strip: None,
            sm: line,
            placed: None,
            shows_help: false,
            page,
            quits: false,
            requests: Vec::new(),
            base: selection,
            kernels,
            has_moved: false,
            trace,
            name,
            names,
            source,
        };
        if let Some(&first) = app.source.points.first() {
            app.line.jump(first, page);
        }
        app.read();
        app
    }

    pub(crate) fn selection(&self) -> Selection {
        Selection { kernel: self.kernel.clone(), ..self.base.clone() }
    }

    /// Requests the figures of the selection. Stops a running analysis.
    fn read(&mut self) {
        let (watch, selection) = (Arc::new(Watch::default()), self.selection());
        // The number of events is known only for whole launches.
        let is_whole = selection.block.is_none() && selection.warp.is_none();
        let launches = selection.launches(&self.trace).unwrap_or_default();
        let total = launches.iter().map(|(info, _)| self.trace.totals(info.number(), 0).events);
        let total = is_whole.then(|| total.fold(0, u64::saturating_add));
        let before =
            std::mem::replace(&mut self.reading, Reading::Going { watch: Arc::clone(&watch), total });
        if let Reading::Going { watch, .. } = before {
            watch.stop();
        }
        self.requests.push(Request::Analyse { selection, watch });
    }

    /// Returns why a launch ended early, for the first such launch.
    pub(crate) fn ended_early(&self) -> Option<String> {
        self.trace.launches().find_map(|info| words::early_end(&self.trace, info.number()))
    }

    pub(crate) fn figures(&self) -> Option<&Figures> {
        match &self.reading {
            Reading::Done(figures) => Some(figures),
            _ => None,
        }
    }

    pub(crate) fn counts(&self, location: u16) -> Counts {
        match &self.reading {
            Reading::Going { watch, .. } => watch.counts(location),
            Reading::Done(figures) => {
                figures.analysis.location(location).map_or_else(Counts::default, |at| at.counts)
            }
            Reading::Failed(_) => Counts::default(),
        }
    }

    /// Returns the time of a row; `None` if the trace has none or it is not known yet.
    pub(crate) fn time(&self, row: usize) -> Option<Time> {
        let analysis = &self.figures()?.analysis;
        let mut sum = analysis.time.map(|_| Time::default())?;
        let locations = self.source.line(row).map_or(&[][..], |line| &line.locations);
        let times = locations.iter().filter_map(|&id| analysis.location(id)?.time);
        times.for_each(|time| sum.add(&time));
        Some(sum)
    }

    /// Returns the heat of a row: warp-cycles, or idle slots if the trace has no times.
    pub(crate) fn heat(&self, row: usize) -> u64 {
        let idle = || self.source.counts(row, &|location| self.counts(location)).idle;
        self.time(row).map_or_else(idle, |time| time.warp_cycles)
    }

    pub(crate) fn loop_head(&self, at: usize) -> Option<&LocationFigures> {
        let figures = self.figures()?;
        figures.analysis.locations.get(*figures.loops.get(at)?)
    }

    /// Applies an answer of a worker. Ignores outdated answers.
    pub(crate) fn take(&mut self, answer: Answer) {
        match answer {
            Answer::Analysed { watch, result } => {
                let is_asked = matches!(&self.reading, Reading::Going { watch: asked, .. } if Arc::ptr_eq(asked, &watch));
                if is_asked {
                    match result {
                        Ok(analysis) => self.finish(analysis),
                        Err(error) => self.reading = Reading::Failed(error.to_string()),
                    }
                }
            }
            Answer::Runs { launch, warp, result } => {
                if let Some(strip) = &mut self.strip
                    && (strip.launch, strip.warp) == (launch, warp)
                {
                    strip.fill(result);
                }
            }
            Answer::Blocks { launch, result } => {
                if let Some(placed) = self.placed.as_mut().filter(|placed| placed.launch == launch) {
                    placed.blocks = Some(result);
                }
            }
        }
    }

    fn finish(&mut self, analysis: Box<Analysis>) {
        self.source.add_unknown(analysis.locations.iter().map(|location| location.point.location));
        let mut loops: Vec<usize> =
            (0..analysis.locations.len()).filter(|&at| analysis.locations[at].trips.max() > 1).collect();
        loops.sort_by_key(|&at| Reverse(analysis.locations[at].counts.idle));
        let mut warps: Vec<WarpFigures> = analysis.warps.iter().collect();
        warps.sort_by_key(|warp| Reverse(warp.counts.idle));
        self.reading = Reading::Done(Figures { analysis, loops, warps });
        if !self.has_moved {
            self.go_to_hottest();
        }
        if self.view == View::Strip && self.strip.is_none() {
            self.open_strip();
        }
        if self.view == View::Blocks && self.placed.is_none() {
            self.show_blocks(0);
        }
    }

    pub(crate) fn go_to_hottest(&mut self) {
        if let Some(row) = self.source.hottest(&|row| self.heat(row)).first() {
            self.line.jump(*row, self.page);
        }
    }

    /// Selects the next line by heat (colder if `is_forward`), and wraps around; from a line without heat,
    /// the hottest.
    pub(crate) fn go_to_next_hottest(&mut self, is_forward: bool) {
        let order = self.source.hottest(&|row| self.heat(row));
        let here = order.iter().position(|row| *row == self.line.at);
        let to = match here {
            None => order.first(),
            Some(at) if is_forward => order.get(at + 1).or(order.first()),
            Some(at) => at.checked_sub(1).map_or(order.last(), |before| order.get(before)),
        };
        if let Some(row) = to {
            self.line.jump(*row, self.page);
            self.has_moved = true;
        }
    }

    pub(crate) fn open_strip(&mut self) {
        let warp = self.figures().and_then(|figures| {
            let warp = figures.warps.get(self.warp.at)?;
            Some((warp.launch, warp.warp))
        });
        if let Some((launch, warp)) = warp {
            self.show_warp(launch, warp);
        }
    }

    /// Returns the launches with a schedule, longest waits of their multiprocessors first.
    pub(crate) fn scheduled(&self) -> Vec<&LaunchSchedule> {
        let schedule = self.figures().and_then(|figures| figures.analysis.schedule.as_ref());
        let mut launches: Vec<_> = schedule.iter().flat_map(|schedule| &schedule.launches).collect();
        launches.sort_by_key(|launch| Reverse(launch.waiting_nanoseconds));
        launches
    }

    pub(crate) fn show_blocks(&mut self, at: usize) {
        let Some(launch) = self.scheduled().get(at).map(|launch| launch.launch) else { return };
        (self.sm, self.placed) = (Cursor::default(), Some(Placed { at, launch, blocks: None }));
        self.requests.push(Request::Blocks { selection: self.selection(), launch });
    }

    pub(crate) fn show_warp(&mut self, launch: u32, warp: u32) {
        self.view = View::Strip;
        if self.strip.as_ref().is_some_and(|strip| (strip.launch, strip.warp) == (launch, warp)) {
            return;
        }
        self.strip = Some(Strip::new(launch, warp));
        self.requests.push(Request::Runs { launch, warp });
    }

    /// Selects the next kernel; after the last one, all kernels.
    pub(crate) fn next_kernel(&mut self) {
        // A kernel from the command line cannot be changed.
        if self.base.kernel.is_some() || self.kernels.len() < 2 {
            return;
        }
        let here =
            self.kernel.as_ref().and_then(|name| self.kernels.iter().position(|kernel| kernel == name));
        self.kernel = self.kernels.get(here.map_or(0, |at| at + 1)).cloned();
        (self.head, self.warp, self.strip) = Default::default();
        (self.sm, self.placed) = Default::default();
        self.read();
    }

    pub(crate) fn has_kernels(&self) -> bool {
        self.base.kernel.is_none() && self.kernels.len() > 1
    }
}
