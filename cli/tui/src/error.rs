//! Errors of the terminal interface.

use std::io;

use warptrace_analysis::AnalysisError;

/// Reasons why the screen cannot be shown or has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuiError {
    /// Standard input or output is not a terminal.
    #[error(
        "`warptrace tui` needs a terminal for its keys and its screen; `warptrace top FILE` prints what matters most"
    )]
    NoTerminal,
    /// The terminal cannot be read or written.
    #[error("cannot use the terminal: {0}; `warptrace top FILE` prints what matters most")]
    Terminal(#[from] io::Error),
    /// The trace does not have what was selected.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A thread that reads the trace panicked.
    #[error("reading the trace failed in a way that should not happen; `warptrace verify FILE` may say more")]
    Worker,
    /// A signal ended the program.
    #[error("ended by signal {signal}")]
    Signal {
        /// Number of the signal.
        signal: i32,
    },
}
