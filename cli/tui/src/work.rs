//! Threads that read the trace while the screen is shown.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

use warptrace_analysis::{
    Analysis, AnalysisError, LaunchBlocks, Selection, WarpRuns, Watch, analyse_watched, blocks,
};
use warptrace_decoder::TraceFile;

use crate::strip::MAX_RUNS;

#[derive(Debug)]
pub(crate) enum Request {
    /// Figures. The watch can stop the analysis.
    Analyse { selection: Selection, watch: Arc<Watch> },
    /// Runs of a warp.
    Runs { launch: u32, warp: u32 },
    /// Block schedule of a launch.
    Blocks { selection: Selection, launch: u32 },
}

#[derive(Debug)]
pub(crate) enum Answer {
    /// Figures for the request with the same watch.
    Analysed {
        watch: Arc<Watch>,
        result: Result<Box<Analysis>, AnalysisError>,
    },
    Runs {
        launch: u32,
        warp: u32,
        result: Result<WarpRuns, String>,
    },
    Blocks {
        launch: u32,
        result: Result<LaunchBlocks, String>,
    },
}

/// Processes a request. Returns `None` if it was stopped.
pub(crate) fn answer(trace: &TraceFile, request: Request) -> Option<Answer> {
    Some(match request {
        Request::Analyse { selection, watch } => {
            let result = analyse_watched(trace, &selection, &watch).transpose()?.map(Box::new);
            Answer::Analysed { watch, result }
        }
        Request::Runs { launch, warp } => {
            let result = WarpRuns::read(trace, launch, warp, MAX_RUNS).map_err(|error| error.to_string());
            Answer::Runs { launch, warp, result }
        }
        Request::Blocks { selection, launch } => {
            let found = trace.launch(launch).map(|info| blocks(trace, info, &selection)).transpose();
            let unknown = || format!("the trace does not say when blocks of launch {launch} ran");
            let result = found.map_err(|error| error.to_string());
            Answer::Blocks { launch, result: result.and_then(|found| found.flatten().ok_or_else(unknown)) }
        }
    })
}

/// An analysis takes time proportional to the size of the trace, so the runs of a warp use a second thread.
pub(crate) struct Worker {
    analyse: Sender<Request>,
    runs: Sender<Request>,
    answers: Receiver<Answer>,
    threads: [JoinHandle<()>; 2],
}

impl Worker {
    pub(crate) fn start(trace: &Arc<TraceFile>) -> Self {
        let (answer_to, answers) = channel();
        let thread = || {
            let (sender, requests) = channel::<Request>();
            let (trace, answer_to) = (Arc::clone(trace), answer_to.clone());
            let thread = thread::spawn(move || {
                while let Ok(mut request) = requests.recv() {
                    // Only the latest request is processed.
                    while let Ok(newer) = requests.try_recv() {
                        request = newer;
                    }
                    if answer(&trace, request).is_some_and(|answer| answer_to.send(answer).is_err()) {
                        return;
                    }
                }
            });
            (sender, thread)
        };
        let ((analyse, of_figures), (runs, of_runs)) = (thread(), thread());
        Self { analyse, runs, answers, threads: [of_figures, of_runs] }
    }

    /// Sends a request to its thread. Fails if the thread panicked.
    pub(crate) fn ask(&self, request: Request) -> Result<(), Panicked> {
        let to = match request {
            Request::Analyse { .. } => &self.analyse,
            Request::Runs { .. } | Request::Blocks { .. } => &self.runs,
        };
        to.send(request).map_err(|_| Panicked)
    }

    /// Returns the next answer, if any. Fails if a thread panicked.
    pub(crate) fn answer(&self) -> Result<Option<Answer>, Panicked> {
        if self.threads.iter().any(JoinHandle::is_finished) {
            return Err(Panicked);
        }
        match self.answers.try_recv() {
            Ok(answer) => Ok(Some(answer)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Panicked),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Panicked;
