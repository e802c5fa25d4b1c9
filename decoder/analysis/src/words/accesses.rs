//! What matters most of what was accessed.

use super::{Names, count, ratio};
use crate::accesses::{AccessLine, Accesses, SiteFigures};

/// Says what is not exact of a line's requests, and so of its sectors and passes: nothing where there are as
/// many requests as events.
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

/// Says how many accesses are known and what of others: lost, left out, or belonging to nothing.
#[must_use]
pub fn access_lacks(found: &Accesses) -> String {
    let parts = [
        (found.lost, if found.lost_is_least { "lost with what follows from them" } else { "lost" }),
        (found.left_out, "left out, since others of their time were lost"),
        (found.unmatched, "that belong to nothing"),
    ];
    let parts = parts.iter().filter(|(accesses, _)| *accesses > 0);
    let parts: Vec<String> = parts.map(|(accesses, what)| format!("{} {what}", count(*accesses))).collect();
    let known = count(found.accesses);
    if parts.is_empty() {
        format!("accesses: {known}")
    } else {
        format!("accesses: {known}, and {}", parts.join(", "))
    }
}

/// Says of how many sites requests, sectors and passes are estimates or assumed; `None` if all are exact.
#[must_use]
pub fn access_doubt(found: &Accesses) -> Option<String> {
    let sites = found.sites.len() as u64;
    let of = |is: fn(&SiteFigures) -> bool| found.sites.iter().filter(|site| is(site)).count() as u64;
    let estimated = of(|site| site.events.is_some_and(|events| events != site.counts.requests));
    let assumed = of(|site| site.events.is_none());
    let parts = [
        (estimated, "estimated (there were not as many requests as events)"),
        (assumed, "assumed (that lanes whose runs ended together came together)"),
    ];
    let parts = parts.iter().filter(|(sites, _)| *sites > 0);
    let parts: Vec<String> = parts.map(|(sites, what)| format!("of {} {what}", count(*sites))).collect();
    let all = if sites == 1 { "1 site".to_owned() } else { format!("{} sites", count(sites)) };
    (!parts.is_empty()).then(|| format!("requests, sectors and passes of {all}: {}", parts.join(", ")))
}
