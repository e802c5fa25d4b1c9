//! What matters most of what was accessed.

use super::{Names, ratio};
use crate::accesses::{AccessLine, Accesses};

/// Says what is not exact of a line's requests, and so of its sectors and passes: nothing where there are as many
/// requests as events.
fn doubt(found: &Accesses, line: &AccessLine) -> &'static str {
    let of_line = || found.sites.iter().filter(|site| line.sites.contains(&site.site));
    if of_line().any(|site| site.events.is_some_and(|events| events != site.counts.requests)) {
        " (estimated: there were not as many requests as events)"
    } else if of_line().any(|site| site.events.is_none()) {
        " (assumed: that lanes whose runs ended together came together)"
    } else {
        ""
    }
}

/// Says in a sentence which line moves the most bytes more than it uses, or has the most bank conflicts.
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
            "{} moves {} times the bytes that it uses: {} sectors of 32 bytes a request, {} would do{}",
            place(line),
            ratio(times),
            each(counts.sectors),
            each(counts.least_sectors),
            doubt(found, line)
        );
    }
    let conflicting = found.lines.iter().filter(|line| line.counts.wasted_passes() > 0);
    if let Some(line) = conflicting.max_by_key(|line| line.counts.wasted_passes()) {
        let counts = &line.counts;
        let times = counts.passes as f64 / counts.least_passes.max(1) as f64;
        return format!(
            "{} passes {} times through the banks of shared memory where once would do{}",
            place(line),
            ratio(times),
            doubt(found, line)
        );
    }
    match found.accesses {
        0 => "no accesses in what was looked at".to_owned(),
        _ if !found.is_exact() => {
            "no line is known to move more sectors than it must, or to have bank conflicts (estimated)"
                .to_owned()
        }
        _ => "no line moves more sectors than it must, and none has bank conflicts".to_owned(),
    }
}
