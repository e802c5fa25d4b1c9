//! Opens .wtrc files: events, runs, verification.
