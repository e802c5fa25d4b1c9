//! What matters most of what was accessed.

use super::{Names, ratio};
use crate::accesses::{AccessLine, Accesses};

/// Says in a sentence which line moves the most bytes in vain, or has the most bank conflicts.
#[must_use]
pub fn access_finding(found: &Accesses, names: &Names) -> String {
    let place = |line: &AccessLine| match names.line(&line.file, line.line).as_str() {
        "-" => format!("site {}", line.sites.first().copied().unwrap_or(0)),
        place => place.to_owned(),
    };
    if let Some(line) = found.lines.first().filter(|line| line.counts.wasted_bytes() > 0) {
        let counts = &line.counts;
        let times = counts.moved_bytes as f64 / counts.used_bytes.max(1) as f64;
        let each = |sectors: u64| ratio(sectors as f64 / counts.requests.max(1) as f64);
        return format!(
            "{} moves {} times the bytes that it uses: {} sectors of 32 bytes a request, {} would do",
            place(line),
            ratio(times),
            each(counts.sectors),
            each(counts.least_sectors)
        );
    }
    let conflicting = found.lines.iter().filter(|line| line.counts.wasted_passes() > 0);
    if let Some(line) = conflicting.max_by_key(|line| line.counts.wasted_passes()) {
        let counts = &line.counts;
        let times = counts.passes as f64 / counts.least_passes.max(1) as f64;
        return format!(
            "{} passes {} times through the banks of shared memory where once would do",
            place(line),
            ratio(times)
        );
    }
    match found.accesses {
        0 => "no accesses in what was looked at".to_owned(),
        _ => "no line moves more sectors than it must, and none has bank conflicts".to_owned(),
    }
}
