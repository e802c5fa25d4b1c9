//! The tables in Markdown.

use super::counts::{Counts, Passed, Point, union};
use super::findings::{Findings, percent};
use super::rows::names;
use crate::date;
use crate::machine::Machine;
use crate::table::{MarkdownTable, count, digits};
use warptrace_workloads::ProgramInfo;

const HEAD: &str = "Events are warp executions of trace points. *Untraced* and *traced* are what hardware counters say of the \
    kernel without and with recording, *decoded* is what the trace of that same traced run says. *Difference* is the sum over \
    all trace points of |untraced - decoded| events, over the untraced kernel's events; trace points whose events are an upper \
    bound (\u{2264}) are left out of it. How it is measured is in \
    `docs/evaluation/method.md`; every location of every recording is in `fidelity-locations.csv`.\n";

pub(super) struct Subject {
    pub(super) findings: Findings,
    pub(super) program: &'static ProgramInfo,
}

/// Returns all tables; `left_out` lists the runs that are missing.
pub(super) fn markdown(subjects: &[Subject], left_out: &[String], machine: &Machine, commit: &str) -> String {
    let mut text = format!(
        "# Fidelity\n\n{}; driver {}; commit {commit}; {}. Made by `warptrace-bench fidelity`.\n\n{HEAD}\n{}",
        machine.name,
        machine.driver,
        date::today(),
        recordings(subjects).markdown()
    );
    text += "\n## What it says\n\n";
    for Subject { findings, .. } in subjects {
        text += &format!("- {}\n", findings.summary());
    }
    if subjects.iter().any(|subject| !subject.findings.slower.is_empty()) {
        text += &format!("\n## Untraced and slower\n\n{SLOWER}\n{}", slower(subjects).markdown());
    }
    let problems: Vec<String> = subjects.iter().flat_map(|subject| problems(&subject.findings)).collect();
    if !problems.is_empty() {
        text += &format!("\n## Problems\n\n{}\n", problems.join("\n"));
    }
    if !left_out.is_empty() {
        text += "\n## Left out or failed\n\n";
        for name in left_out {
            text += &format!("- {name}\n");
        }
    }
    text += "\n## Locations\n\nEvents of the untraced kernel, its lanes an event, and the events of each trace.\n";
    for subject in subjects {
        let Findings { program, input, .. } = &subject.findings;
        text += &format!("\n### {program} {input}\n\n{}", locations(subject).markdown());
    }
    text
}

fn problems(findings: &Findings) -> Vec<String> {
    let mut all = Vec::new();
    for recording in &findings.recordings {
        for problem in findings.problems(recording) {
            all.push(format!(
                "- {} {}, {}: {problem}",
                findings.program, findings.input, recording.mode.name
            ));
        }
    }
    all
}

fn track_name(mode: &str, track: usize) -> String {
    if track == 0 { mode.to_owned() } else { format!("{mode}: the twin") }
}

const SLOWER: &str = "The untraced kernel with more instructions (the table says how many, and where), which do nothing but take time (`pmevent.mask 0`). Differences are \
    as above: from the untraced runs, and from the first recording's trace.\n";

fn slower(subjects: &[Subject]) -> MarkdownTable {
    let headings = [
        "program",
        "input",
        "instructions more",
        "events",
        "from untraced",
        "the trace from untraced",
        "from the trace",
    ];
    let mut table = MarkdownTable::new(2, headings);
    for Subject { findings, .. } in subjects {
        let decoded = findings.recordings.first().and_then(|recording| recording.decoded.first());
        let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), percent);
        for (more, counts) in &findings.slower {
            table.row([
                findings.program.to_owned(),
                findings.input.clone(),
                more.to_string(),
                count(counts.total().events),
                percent(findings.distance(counts)),
                share(decoded.map(|decoded| findings.distance(decoded))),
                share(decoded.map(|decoded| counts.distance(decoded))),
            ]);
        }
    }
    table
}

fn recordings(subjects: &[Subject]) -> MarkdownTable {
    let mut table = MarkdownTable::new(
        3,
        [
            "program",
            "input",
            "recording",
            "events untraced",
            "events traced",
            "events decoded",
            "lanes an event untraced",
            "lanes an event traced",
            "lanes an event decoded",
            "difference",
            "spread of untraced runs",
            "decoded = traced",
        ],
    );
    for Subject { findings, .. } in subjects {
        for recording in &findings.recordings {
            for (track, decoded) in recording.decoded.iter().enumerate() {
                let counts = [findings.reference(), &recording.traced, decoded];
                let all = counts.map(Counts::total);
                let mut row = vec![
                    findings.program.to_owned(),
                    findings.input.clone(),
                    track_name(&recording.mode.name, track),
                ];
                row.extend(counts.map(|counts| bounded(counts.bounds().len() > 0, counts.total().events)));
                row.extend(all.map(lanes_an_event));
                let within = match findings.is_within_spread(decoded) {
                    Some(true) if findings.asynchronous => ", within the spread",
                    Some(false) if findings.asynchronous => ", MORE than the spread",
                    _ => "",
                };
                row.push(format!("{}{within}", percent(findings.distance(decoded))));
                row.push(findings.spread().map_or_else(|| "-".to_owned(), percent));
                row.push(Findings::as_its_kernel(recording, decoded));
                table.row(row);
            }
        }
    }
    table
}

fn bounded(is_bound: bool, events: u64) -> String {
    format!("{}{}", if is_bound { "≤ " } else { "" }, count(events))
}

fn lanes_an_event(passed: Passed) -> String {
    digits(passed.lanes_an_event())
}

fn locations(subject: &Subject) -> MarkdownTable {
    let findings = &subject.findings;
    let names = names(subject.program);
    let mut headings = vec!["kernel".to_owned(), "location".to_owned(), "untraced".to_owned()];
    headings.push("lanes an event".to_owned());
    let mut columns: Vec<&Counts> = Vec::new();
    for recording in &findings.recordings {
        for (track, decoded) in recording.decoded.iter().enumerate() {
            headings.push(track_name(&recording.mode.name, track));
            columns.push(decoded);
        }
    }
    let mut table = MarkdownTable::new(2, headings);
    for point in union(std::iter::once(findings.reference()).chain(columns.iter().copied())) {
        let Point { kernel, location } = &point;
        let untraced = findings.reference().at(&point);
        let name = names.get(location).copied().unwrap_or_default();
        let mut row = vec![kernel.clone(), format!("{location} {name}"), String::new()];
        row[2] = bounded(findings.reference().bounds().any(|bound| *bound == point), untraced.events);
        row.push(lanes_an_event(untraced));
        row.extend(columns.iter().map(|decoded| count(decoded.at(&point).events)));
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::counts::tests::counts;
    use super::super::findings::Recording;
    use super::super::modes;
    use super::super::slower::Slower;
    use super::*;
    use crate::programs;

    fn machine() -> Machine {
        Machine { name: "a GPU".to_owned(), driver: "580".to_owned(), kind: "cuda" }
    }

    fn subject() -> Subject {
        let case = &programs::fidelity(&["mis".to_owned()]).unwrap()[0];
        let (untraced, traced) = (counts(&[(1, 1000, 32_000)]), counts(&[(1, 1010, 32_000), (2, 1, 1)]));
        let mode = modes::named(case, "predict beside raw").unwrap();
        let decoded = vec![traced.clone(), untraced.clone()];
        let recording = Recording { mode, launches: 1, traced, decoded, lost: 0 };
        let findings = Findings {
            program: case.program,
            input: case.input.clone(),
            asynchronous: true,
            slower: vec![(Slower::Each(8), counts(&[(1, 990, 32_000)]))],
            untraced: vec![untraced.clone(), untraced],
            recordings: vec![recording],
        };
        Subject { findings, program: &warptrace_workloads::mis::PROGRAM }
    }

    #[test]
    fn the_tables_hold_every_number() {
        let text = markdown(&[subject()], &["stress, raw".to_owned()], &machine(), "abc");
        for words in [
            "| 1.10%, MORE than the spread |",
            "|         1,011 |",
            "|              1,010 |",
            "predict beside raw: the twin",
            " 0%, within the spread |",
            "NO, ",
            "- stress, raw\n",
            "the raw twin has other events than its kernel at 2 trace points (1,000 for 1,010 at walk:1, 0 for 1 at walk:2)",
            "commit abc",
            "|  8 for each event |    990 |         1.00% |                   1.10% |          2.12% |",
            "| 1 INIT_ENTER |",
        ] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
        let rows = text.lines().filter(|line| line.starts_with("| walk ")).count();
        assert_eq!(rows, 2, "{text}");
    }

    #[test]
    fn lines_go_to_the_files_as_they_come() {
        let folder = tempfile::tempdir().unwrap();
        let mut rows = super::super::rows::Rows::create(folder.path(), &machine(), "abc").unwrap();
        let Subject { findings, program } = subject();
        rows.add(&findings, &findings.recordings[0], program).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let (recordings, locations) = (read("fidelity.csv"), read("fidelity-locations.csv"));
        assert_eq!(
            (recordings.lines().count(), locations.lines().count()),
            (3, 5),
            "{recordings}\n{locations}"
        );
        assert!(
            recordings.contains(",predict beside raw,0,1,1000,1011,1011,32000,32001,32001,0,0.011,0.0,true,"),
            "{recordings}"
        );
        assert!(locations.contains(",predict beside raw,1,walk,1,"), "{locations}");
    }
}
