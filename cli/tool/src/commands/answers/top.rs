//! `warptrace top`: one screen with the most important findings.

use std::cmp::Reverse;

use serde_json::{Value, json};
use warptrace_analysis::{
    CauseLine, Hang, HostSchedule, LocationFigures, Outlier, SetAnalysis, accesses, hang, share, source_code,
};
use warptrace_decoder::TraceFile;
use warptrace_format::file::fitting;

use super::causes::{cause_row, cause_table};
use super::lines::line_table;
use super::words::ratio;
use super::{Answer, VERDICT, print_table, set, words};
use crate::arguments::Page;
use crate::output::{count, say};

const CAUSES: usize = 4;
const LINES: usize = 6;
const KERNELS: usize = 3;

pub(crate) fn run(command: &Page, summed: Option<SetAnalysis>) -> anyhow::Result<()> {
    let answer = Answer::of_page(command, None, summed)?;
    if let Some(set) = answer.set() {
        return set::top(&answer, set, command.json);
    }
    let trace = answer.trace()?;
    let analysis = &answer.analysis;
    let mut lines = words::hottest(analysis);
    let widest = analysis.loops().max_by_key(|head| (head.counts.idle, Reverse(head.point.location)));
    let finding = words::finding(analysis, &answer.names);
    let time = words::time(trace, analysis, &answer.names);
    let scheduled = words::schedule(trace, analysis);
    let mut causes = analysis.cause_lines();
    causes.truncate(CAUSES);
    let outlier =
        words::farthest(analysis).map(|outlier| Outlier::new(trace, analysis, outlier)).transpose()?;
    let dominant = words::DominantWarp::new(trace, analysis);
    let accessed = if trace.has_accesses() {
        let found = accesses(trace, &command.selected.selection())?;
        Some(Accessed {
            outside: words::outside_finding(trace, &found, &answer.names),
            finding: words::access_finding(&found, &answer.names),
            lacks: (!found.is_whole()).then(|| words::access_lacks(&found)),
        })
    } else {
        None
    };
    if command.json {
        lines.truncate(LINES);
        let paths: Vec<_> = analysis.paths.iter().take(LINES).collect();
        let hangs: Vec<Hang> = trace.launches().filter_map(|info| hang(trace, info.number())).collect();
        let first = hangs.first().map(|hang| words::hang(trace, &answer.names, hang));
        let outside = accessed.as_ref().and_then(|accessed| accessed.outside.clone());
        let mut figures = json!({
            VERDICT: verdict(&answer, trace, first.or(outside), dominant.as_ref(), causes.first()),
            "finding": finding,
            "causes": causes.iter().map(cause_row).collect::<Vec<_>>(),
            "lines": lines,
            "loop": widest,
            "warp_events": analysis.warp_events,
            "outlier": outlier,
            "roles": analysis.roles,
            "paths": { "number": analysis.paths.len(), "most_common": paths },
        });
        if let Some(dominant) = dominant {
            figures["dominant"] = dominant.describe(trace, &answer.names).into();
        }
        if !hangs.is_empty() {
            figures["hangs"] = json!(hangs);
        }
        if let Some(Accessed { outside, finding, lacks }) = accessed {
            figures["access_finding"] = finding.into();
            if let Some(outside) = outside {
                figures["outside_finding"] = outside.into();
            }
            if let Some(lacks) = lacks {
                figures["access_losses"] = lacks.into();
            }
        }
        if let Some(time) = time {
            figures["time_finding"] = time.into();
        }
        if !scheduled.is_empty() {
            figures["schedule_findings"] = scheduled.into();
        }
        if let Some(schedule) = &analysis.schedule {
            figures["schedule"] = json!(schedule.longest_waits(LINES));
        }
        if let Some(host) = &analysis.host {
            figures["host"] = longest_gaps(host);
        }
        return answer.json(figures);
    }
    let hangs: Vec<Hang> = trace.launches().filter_map(|info| hang(trace, info.number())).collect();
    hangs.iter().try_for_each(|hang| say!("{}", words::hang(trace, &answer.names, hang)))?;
    // Accesses out of bounds are errors, so they come before performance findings.
    let outside = accessed.iter().filter_map(|accessed| accessed.outside.clone());
    let findings: Vec<String> =
        outside.clone().chain(words::findings(trace, analysis, &answer.names)).collect();
    let print_findings = || findings.iter().try_for_each(|finding| say!("{finding}"));
    if analysis.losses.is_plain() && analysis.counts.visits > 0 {
        print_findings()?;
        answer.headline()?;
    } else {
        answer.headline()?;
        if analysis.counts.visits == 0 {
            outside.into_iter().try_for_each(|finding| say!("{finding}"))?;
            return print_accessed(accessed.as_ref());
        }
        print_findings()?;
    }
    if let Some(cause) = causes.first() {
        quoted(trace, &answer, cause.whole.decision()).map_or(Ok(()), |line| say!("  {line}"))?;
        for more in words::apart(analysis, &answer.names, cause) {
            say!("  {more}")?;
        }
    }
    if !causes.is_empty() {
        print_table(&cause_table(&answer, &causes, false))?;
    }
    lines.truncate(LINES);
    print_table(&line_table(&answer, &lines))?;
    say!("")?;
    if let Some(head) = widest {
        say!("loop    {}", loop_line(&answer, head))?;
    }
    for (number, line) in words::work(analysis, KERNELS).iter().enumerate() {
        say!("{}    {line}", if number == 0 { "work" } else { "    " })?;
    }
    for (number, line) in words::roles(analysis, &answer.names).iter().take(KERNELS).enumerate() {
        say!("{}   {line}", if number == 0 { "roles" } else { "     " })?;
    }
    if let Some(outlier) = &outlier {
        say!("outlier {}", outlier.describe(trace, &answer.names).join("\n        "))?;
    }
    say!("paths   {}", words::groups(analysis))?;
    print_accessed(accessed.as_ref())
}

/// Longest quoted source line, in characters.
const QUOTED: usize = 100;

/// Returns a location's place and its line of source: `find.cu:146: while (next < curr) {`. `None` if the source
/// is not found or has changed, or if the location's name quotes it.
fn quoted(trace: &TraceFile, answer: &Answer, id: u16) -> Option<String> {
    let info = trace.metadata().locations.iter().find(|info| info.id == id)?;
    let code = source_code(trace, &info.file, &[]).ok().filter(|code| code.is_compiled != Some(false))?;
    let line = code.lines.get((info.line as usize).checked_sub(1)?)?.trim();
    let start: String = line.chars().take(8).collect();
    let is_new = !start.is_empty() && !info.name.contains(&start);
    is_new.then(|| format!("{}: {}", answer.names.line_at(id), words::cut(line, QUOTED)))
}

/// Limits of the verdict and its texts, in bytes.
const VERDICT_BYTES: usize = 600;
const SAID: usize = 220;
const PATH: usize = 80;

/// Returns the main finding, for programs: a hang, an error, a dominant warp, or the greatest cause of idle
/// slots. At most [`VERDICT_BYTES`] as JSON.
fn verdict(
    answer: &Answer,
    trace: &TraceFile,
    error: Option<String>,
    dominant: Option<&words::DominantWarp>,
    cause: Option<&CauseLine<'_>>,
) -> Value {
    let analysis = &answer.analysis;
    let cause = cause.map(|line| &line.whole).filter(|cause| cause.idle > 0);
    let made_by = dominant.and_then(|dominant| dominant.oddity.made_by.as_ref());
    let causes = |id| format!("warptrace causes FILE --location {id}");
    let (what, location, advice, next) = match (error, dominant, cause) {
        (Some(error), ..) => (error, None, "correct this first", "warptrace info FILE".to_owned()),
        (None, Some(dominant), _) => {
            let id = made_by.map(|made_by| made_by.location);
            let next = id.map_or_else(
                || "warptrace warps FILE".to_owned(),
                |id| format!("warptrace lines FILE --location {id}"),
            );
            let what = dominant.describe(trace, &answer.names);
            (what, id, "split the work of this warp: other warps wait for it or have ended", next)
        }
        (None, None, Some(cause)) => {
            let advice = if cause.is_of_loop() {
                "give the lanes of a warp equal trip counts: sort or split the work"
            } else {
                "let the lanes of a warp take the same side: group the work, or make the branch short"
            };
            let id = cause.decision();
            (words::finding(analysis, &answer.names), Some(id), advice, causes(id))
        }
        (None, None, None) => {
            let (advice, next) = match analysis.counts.visits {
                0 => ("see which kernels were not traced, and why", "warptrace info FILE"),
                _ => ("look at memory and waits: lanes are not idle", "warptrace stats FILE"),
            };
            (words::finding(analysis, &answer.names), None, advice, next.to_owned())
        }
    };
    let certainty = match &analysis.losses {
        losses if !losses.is_whole() || losses.not_traced.is_some() => {
            "partial: figures are of what was recorded"
        }
        losses if losses.assumed.is_some() => "not exact: see state",
        losses if losses.unchosen_warps > 0 => "measured, for the recorded warps only",
        _ => "measured",
    };
    let mut verdict = json!({ "what": fitting(&what, SAID), "certainty": certainty });
    if let Some(info) = location.and_then(|id| trace.metadata().locations.iter().find(|info| info.id == id)) {
        let start = info.file.len().saturating_sub(PATH);
        verdict["file"] = info.file[info.file.ceil_char_boundary(start)..].into();
        verdict["line"] = info.line.into();
        verdict["function"] = fitting(&info.function, PATH).into();
    }
    if let (Some(cause), None) = (cause.filter(|_| location.is_some()), dominant) {
        verdict["idle_share"] = share(cause.idle, analysis.counts.slots).into();
    }
    verdict["try"] = advice.into();
    verdict["next"] = next.into();
    // Characters that JSON escapes need more bytes than the texts have.
    for key in ["what", "function", "file"] {
        let over = verdict.to_string().len().saturating_sub(VERDICT_BYTES);
        if let Some(text) = verdict[key].as_str().filter(|_| over > 0) {
            verdict[key] = fitting(text, text.len().saturating_sub(over)).into();
        }
    }
    verdict
}

struct Accessed {
    outside: Option<String>,
    finding: String,
    lacks: Option<String>,
}

fn print_accessed(accessed: Option<&Accessed>) -> anyhow::Result<()> {
    let Some(Accessed { finding, lacks, .. }) = accessed else { return Ok(()) };
    // Missing data comes first.
    let lacks = lacks.as_ref().map(|lacks| format!("{lacks}; of those known: ")).unwrap_or_default();
    Ok(say!("memory  {lacks}{finding}; `warptrace accesses` says more")?)
}

/// Returns the times by the host's clocks, with the launches that have the longest gaps before them.
fn longest_gaps(host: &HostSchedule) -> Value {
    let mut value = json!(host);
    value["launches"] = json!(host.longest_gaps(LINES));
    value
}

fn loop_line(answer: &Answer, head: &LocationFigures) -> String {
    let trips = &head.trips;
    format!(
        "{}: {} to {} trips, median {}; most over mean {}",
        answer.names.full(head.point.location),
        count(trips.min()),
        count(trips.max()),
        count(trips.percentile(50)),
        ratio(trips.imbalance())
    )
}
