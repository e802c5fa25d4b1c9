//! Date of a run.

use std::time::SystemTime;

/// Returns today in UTC, as `2026-11-21`.
pub(crate) fn today() -> String {
    let mut time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    time.truncate("2026-11-21".len());
    time
}
