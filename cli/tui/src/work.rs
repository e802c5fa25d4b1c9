//! The threads that read the trace while the screen is shown.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

use warptrace_analysis::{
    Analysis, AnalysisError, LaunchBlocks, Selection, WarpRuns, Watch, analyse_watched, blocks,
};
use warptrace_decoder::TraceFile;

use crate::strip::MAX_RUNS;

/// What the screen asks for.
#[derive(Debug)]
pub(crate) enum Request {
    /// Figures; the watch stops what was asked before.
    Analyse { selection: Selection, watch: Arc<Watch> },
    /// The runs of a warp.
    Runs { launch: u32, warp: u32 },
    /// Where and when the blocks of a launch ran.
    Blocks { selection: Selection, launch: u32 },
}

/// What it gets.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Figures, to those who have the same watch.
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

/// Answers a request; `None` if it was stopped.
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

/// Two threads: figures take as long as the trace is large, and one warp should not wait that long.
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
                    // Only the last is still wanted.
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

    /// Hands a request to its thread.
    ///
    /// # Errors
    /// The thread has panicked.
    pub(crate) fn ask(&self, request: Request) -> Result<(), Panicked> {
        let to = match request {
            Request::Analyse { .. } => &self.analyse,
            Request::Runs { .. } | Request::Blocks { .. } => &self.runs,
        };
        to.send(request).map_err(|_| Panicked)
    }

    /// The next answer, if there is one.
    ///
    /// # Errors
    /// A thread has panicked.
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

/// A thread has panicked.
#[derive(Debug)]
pub(crate) struct Panicked;
