//! Parser for the source page of Nsight Compute in CSV: a table for each profiled launch, a line for each
//! instruction.
//!
//! ```text
//! ==PROF== Connected to process 532 (/tmp/program)
//! "Kernel Name","fractal$traced",
//! "Address","Source","inst_executed","thread_inst_executed"
//! "0x7f5f1f7a0050","      PMTRIG 0x1","192","6144"
//! ```
//!
//! A mark is `pmevent.mask LOCATION` in PTX and `PMTRIG LOCATION` in machine code. The parser sums all marks
//! of a location in a launch, because code may have copies at several addresses. It finds columns by name,
//! either by the names of the metrics or by the names in the section `SourceCounters`, and ignores other
//! columns. It skips everything outside tables.
//!
//! The assembler may make a mark conditional instead of branching around it (`@P0 PMTRIG 0x5`). The counter
//! then includes each warp that reaches the mark, so its events are an upper bound. Its lanes are those whose
//! predicate is true.

use anyhow::{Context, bail};
use warptrace_ptx::splice::TRACED_SUFFIX;

use super::counts::{Counts, Passed};

/// Machine instruction of a mark.
const MARK: &str = "PMTRIG";
/// Column names: warp executions, lanes, lanes whose predicate is true.
const EVENTS: [&str; 2] = ["inst_executed", "Instructions Executed"];
const LANES: [&str; 2] = ["thread_inst_executed", "Thread Instructions Executed"];
const LANES_ON: [&str; 2] = ["thread_inst_executed_true", "Predicated-On Thread Instructions Executed"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProfiledLaunch {
    /// Original name of the kernel.
    pub(crate) kernel: String,
    pub(crate) traced: bool,
    pub(crate) counts: Counts,
}

const NAMED: usize = 6;

#[derive(Clone, Copy, Debug)]
struct Columns {
    source: usize,
    events: usize,
    lanes: usize,
    lanes_on: Option<usize>,
}

/// Parses the output of ncu into launches, in order. The error names the line if a table lacks a column or a
/// mark is malformed.
pub(crate) fn read(text: &str) -> anyhow::Result<Vec<ProfiledLaunch>> {
    let mut launches: Vec<ProfiledLaunch> = Vec::new();
    let mut columns = None;
    for (index, content) in text.lines().enumerate() {
        let line = index + 1;
        if content.starts_with("\"Kernel Name\"") {
            let name = fields(content, line)?.into_iter().nth(1).unwrap_or_default();
            let own = name.strip_suffix(TRACED_SUFFIX);
            columns = None;
            launches.push(ProfiledLaunch {
                traced: own.is_some(),
                kernel: own.unwrap_or(&name).to_owned(),
                counts: Counts::default(),
            });
        } else if is_heading(content) {
            columns = Some(headings(&fields(content, line)?, line)?);
        } else if content.starts_with('"') && content.contains(MARK) {
            let (Some(launch), Some(columns)) = (launches.last_mut(), columns) else {
                bail!(
                    "line {line} of what ncu printed has a mark, but no kernel or no heading stands before it"
                );
            };
            add_mark(launch, columns, &fields(content, line)?, line)?;
        }
    }
    Ok(launches)
}

fn is_heading(content: &str) -> bool {
    content.starts_with("\"Address\"") || content.starts_with("\"#\",\"Address\"")
}

fn fields(content: &str, line: usize) -> anyhow::Result<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(content.as_bytes());
    let reason = match reader.records().next() {
        Some(Ok(record)) => return Ok(record.iter().map(str::to_owned).collect()),
        Some(Err(error)) => error.to_string(),
        None => "it is empty".to_owned(),
    };
    bail!("line {line} of what ncu printed is no CSV: {reason}")
}

fn no_column(line: usize, column: &str, found: &str) -> String {
    format!(
        "line {line} of what ncu printed: the table has no column `{column}`; it has {found}: this version of ncu names it in another way"
    )
}

fn headings(names: &[String], line: usize) -> anyhow::Result<Columns> {
    let find = |wanted: &[&str]| {
        names.iter().position(|name| wanted.contains(&name.trim().trim_start_matches("# ")))
    };
    let needed =
        |wanted: &[&'static str]| find(wanted).with_context(|| no_column(line, wanted[0], &names.join(", ")));
    Ok(Columns {
        source: needed(&["Source"])?,
        events: needed(&EVENTS)?,
        lanes: needed(&LANES)?,
        lanes_on: find(&LANES_ON),
    })
}

/// Adds the counts of an instruction if it is a mark. Ignores marks of location 0, which only take time.
fn add_mark(
    launch: &mut ProfiledLaunch,
    columns: Columns,
    fields: &[String],
    line: usize,
) -> anyhow::Result<()> {
    let field = |column: usize| fields.get(column).map_or("", |field| field.trim());
    let mut words = field(columns.source).split_whitespace().peekable();
    let guarded = words.next_if(|word| word.starts_with('@')).is_some();
    if words.next() != Some(MARK) {
        return Ok(());
    }
    let operand = words.next().unwrap_or_default().trim_end_matches(';');
    let wrong = |text: &str, what| format!("line {line} of what ncu printed: `{text}` is not {what}");
    let location = match operand.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => operand.parse(),
    };
    let location = location.ok().with_context(|| wrong(operand, "a location"))?;
    if location == 0 {
        return Ok(());
    }
    let number = |column: usize| {
        let text = field(column);
        let digits: String =
            text.chars().filter(|character| !matches!(character, ',' | '\'' | ' ')).collect();
        // 48 bits suffice for years of execution, and sums do not overflow.
        digits.parse().ok().filter(|number: &u64| *number < 1 << 48).with_context(|| wrong(text, "a count"))
    };
    let mut passed = Passed { events: number(columns.events)?, lanes: number(columns.lanes)? };
    if guarded {
        let column = columns.lanes_on.with_context(|| no_column(line, LANES_ON[0], "no such column"))?;
        passed.lanes = number(column)?;
        // Without an active lane there was no event.
        passed.events = passed.events.min(passed.lanes);
        if passed.lanes != 0 {
            launch.counts.set_bound(&launch.kernel, location);
        }
    }
    launch.counts.add(&launch.kernel, location, passed);
    Ok(())
}

/// Returns the profiled launches, one per entry of `kernels`, in order. Drops the second copy of a table,
/// which some versions of ncu print. Fails if the tables do not match `kernels`.
pub(crate) fn of_launches(
    tables: Vec<ProfiledLaunch>,
    kernels: &[String],
    traced: bool,
) -> Result<Vec<ProfiledLaunch>, String> {
    let are_theirs = |tables: &[ProfiledLaunch]| {
        tables.len() == kernels.len()
            && tables
                .iter()
                .zip(kernels)
                .all(|(table, kernel)| table.kernel == *kernel && table.traced == traced)
    };
    if are_theirs(&tables) {
        return Ok(tables);
    }
    let (pairs, rest) = tables.as_chunks::<2>();
    if rest.is_empty() && pairs.iter().all(|[one, other]| one == other) {
        let halves: Vec<ProfiledLaunch> = pairs.iter().map(|[one, _]| one.clone()).collect();
        if are_theirs(&halves) {
            return Ok(halves);
        }
    }
    let tabled: Vec<String> = tables.into_iter().map(|table| table.kernel).collect();
    let names = |names: &[String]| {
        let more = if names.len() > NAMED { ", ..." } else { "" };
        format!("{}{more}", names[..names.len().min(NAMED)].join(", "))
    };
    Err(format!(
        "{} launches were to be profiled ({}), and ncu printed {} tables ({})",
        kernels.len(),
        names(kernels),
        tabled.len(),
        names(&tabled)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::counts::tests::counts;
    use super::*;

    /// Output in the form of Nsight Compute 2025.3 with metrics by name.
    const METRICS: &str = r#"==WARNING== Note: Running with unmodified GPU clocks.
==PROF== Connected to process 621 (/tmp/a)
"Kernel Name","walk",
"Address","Source","inst_executed","thread_inst_executed","thread_inst_executed_true"
"0x7f5f1f7a0000","      LDC R1, c[0x0][0x28]","192","6144","6144"
"0x7f5f1f7a0050","      PMTRIG 0x1","192","6144","6144"
"0x7f5f1f7a0180","      PMTRIG 0x2","1344","21496","21496"
"0x7f5f1f7a0240","      PMTRIG 0x2","1,518","9,224","9224"
"0x7f5f1f7a0300","      PMTRIG 0x9","0","0","0"
"0x7f5f1f7a06e0","      PMTRIG 0xffff","2837","6144","6144"
"Kernel Name","walk$traced",
"Address","Source","inst_executed","thread_inst_executed","thread_inst_executed_true"
"0x7f5f1f7a0000","@!P0  PMTRIG 0x12c","5","160","40"
==PROF== Disconnected from process 621
"#;

    #[test]
    fn marks_are_summed_by_launch_and_location() {
        let launches = read(METRICS).unwrap();
        assert_eq!(launches.len(), 2);
        let [untraced, traced] = &launches[..] else { panic!("{launches:?}") };
        assert_eq!((untraced.kernel.as_str(), untraced.traced), ("walk", false));
        assert_eq!(untraced.counts, counts(&[(1, 192, 6144), (2, 2862, 30720), (65535, 2837, 6144)]));
        assert_eq!((traced.kernel.as_str(), traced.traced), ("walk", true));
        let mut expected = counts(&[(300, 5, 40)]);
        expected.set_bound("walk", 300);
        assert_eq!((&traced.counts, untraced.counts.bounds().len()), (&expected, 0));
    }

    #[test]
    fn the_sections_columns_are_found_among_others() {
        let text = r##"  warptrace, 2026-Nov-22, Context 1
"Kernel Name","mis_find",""
"#","Address","Source","# Samples","Warp Stall, All","Instructions Executed","Thread Instructions Executed"
"1","0x100","PMTRIG 7","-","-","1,971,191","7,490,526"
"2","0x110","EXIT","-","-","-","-"
"##;
        let launches = read(text).unwrap();
        assert_eq!(launches[0].counts.total(), Passed { events: 1_971_191, lanes: 7_490_526 });
    }

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_line() {
        let table =
            "\"Kernel Name\",\"walk\",\n\"Address\",\"Source\",\"inst_executed\",\"thread_inst_executed\"\n";
        for (line, says) in [
            ("\"0x0\",\"PMTRIG 0x1\",\"many\",\"1\"", "`many` is not a count"),
            ("\"0x0\",\"PMTRIG 0x1\",\"1\"", "`` is not a count"),
            ("\"0x0\",\"PMTRIG 0x1\",\"1\",\"-5\"", "`-5` is not a count"),
            ("\"0x0\",\"PMTRIG 0x1\",\"1\",\"99999999999999999999\"", "is not a count"),
            ("\"0x0\",\"PMTRIG 0x10000\",\"1\",\"1\"", "`0x10000` is not a location"),
            ("\"0x0\",\"PMTRIG\",\"1\",\"1\"", "`` is not a location"),
        ] {
            let message = refused(&format!("{table}{line}\n"));
            assert!(message.starts_with("line 3 of what ncu printed") && message.contains(says), "{message}");
        }
        let message = refused("\"Kernel Name\",\"walk\",\n\"Address\",\"Source\",\"inst_executed\"\n");
        let says = "line 2 of what ncu printed: the table has no column `thread_inst_executed`; it has Address, Source";
        assert!(message.starts_with(says), "{message}");
        let message = refused(&format!("{table}\"0x0\",\"@P0 PMTRIG 0x1\",\"1\",\"1\"\n"));
        let says = "line 3 of what ncu printed: the table has no column `thread_inst_executed_true`";
        assert!(message.starts_with(says), "{message}");
        for (line, before) in [(1, ""), (2, "\"Kernel Name\",\"walk\",\n")] {
            let message = refused(&format!("{before}\"0x0\",\"PMTRIG 0x1\",\"1\",\"1\"\n"));
            assert!(message.starts_with(&format!("line {line} of what ncu printed has a mark")), "{message}");
        }
    }

    #[test]
    fn anything_else_is_passed_over() {
        assert_eq!(read("").unwrap(), []);
        assert_eq!(read("==ERROR== PMTRIG\nPMTRIG 0x1\n\u{0}\u{ffff}\n,,,\n\"\n").unwrap(), []);
        let launches =
            read("\"Kernel Name\"\n\"Address\",\"Source\",\"inst_executed\",\"thread_inst_executed\",\"a\n");
        assert_eq!(launches.unwrap().len(), 1);
    }

    fn launch(kernel: &str, location: u16) -> ProfiledLaunch {
        let counts = counts(&[(location, 1, 32)]);
        ProfiledLaunch { kernel: kernel.to_owned(), traced: true, counts }
    }

    #[test]
    fn tables_that_are_printed_twice_count_once() {
        let kernels = ["force".to_owned(), "move".to_owned()];
        let once = vec![launch("force", 1), launch("move", 2)];
        assert_eq!(of_launches(once.clone(), &kernels, true), Ok(once.clone()));
        let twice = vec![launch("force", 1), launch("force", 1), launch("move", 2), launch("move", 2)];
        assert_eq!(of_launches(twice, &kernels, true), Ok(once.clone()));
        let unequal = vec![launch("force", 1), launch("force", 3), launch("move", 2), launch("move", 2)];
        let error = of_launches(unequal, &kernels, true).unwrap_err();
        assert!(
            error.contains("2 launches were to be profiled (force, move), and ncu printed 4 tables"),
            "{error}"
        );
        assert!(of_launches(once, &kernels, false).is_err());
        assert_eq!(of_launches(Vec::new(), &[], true), Ok(Vec::new()));
    }
}
