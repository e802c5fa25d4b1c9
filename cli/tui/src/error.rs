//! Why there is no screen.

use std::io;

use warptrace_analysis::AnalysisError;

/// A screen that cannot be shown, or not any longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuiError {
    /// Input or output is no terminal.
    #[error(
        "`warptrace tui` needs a terminal for its keys and its screen; `warptrace top FILE` prints what matters most"
    )]
    NoTerminal,
    /// The terminal cannot be read or written.
    #[error("cannot use the terminal: {0}; `warptrace top FILE` prints what matters most")]
    Terminal(#[from] io::Error),
    /// Something was selected that the trace does not have.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A thread that reads the trace has panicked.
    #[error("reading the trace failed in a way that should not happen; `warptrace verify FILE` may say more")]
    Worker,
    /// A signal asked the program to end.
    #[error("ended by signal {signal}")]
    Signal {
        /// Its number.
        signal: i32,
    },
}
