//! `warptrace export --to parquet`: writes the runs of one trace to a file, or tables of any number of traces
//! to a data set with Hive partitions.
//!
//! ```text
//! OUT/runs/job=4711/rank=3/trace=step.3.wtrc/runs.parquet
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use warptrace_exports::parquet::{self, AccessTable, EventTable, FigureTable, TraceTable};
use warptrace_exports::{ExportError, ExportSource};
use warptrace_format::file::Origin;

use super::{exported, warn};
use crate::arguments::Export;
use crate::files::short_names;
use crate::opened::open;
use crate::output::{bytes, count, shown_name, tell};
use crate::whole_file::{Files, Other, Output, Target};

/// Hive's partition value for unknown values, which readers return as null.
const UNKNOWN: &str = "__HIVE_DEFAULT_PARTITION__";
/// Maximum length of a partition value, in bytes of its folder's name. Names have at most 255 bytes.
const LONGEST: usize = 200;

pub(super) fn file(command: &Export, source: &ExportSource<'_>, path: &Path) -> anyhow::Result<Vec<String>> {
    let runs = |out: &mut Output| parquet::write(source, tables(command.events)[0], out);
    let (rows, size) = Target::new(&command.output, &[("the trace", path)])?.write(runs)?;
    let said = |size| format!("{}: {} rows, {}", shown_name(&command.output), count(rows), bytes(size));
    Ok(size.map(said).into_iter().collect())
}

/// Writes all tables of the traces to a folder. Needs memory for one trace and some hundred bytes per file.
pub(super) fn folder(command: &Export, traces: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let inputs: Vec<Other<'_>> = traces.iter().map(|path| ("the trace", path.as_path())).collect();
    let mut files = Files::new(&command.output, &inputs)?;
    let tables = tables(command.events);
    let mut sums = tables.each_ref().map(|_| (0_u64, 0_u64, 0_u64));
    let (mut taken, mut written) = (BTreeSet::new(), BTreeSet::new());
    let mut left_out = None;
    for (path, name) in traces.iter().zip(short_names(traces)) {
        let cannot = || format!("cannot export {}", shown_name(path));
        let opened = open(path)?;
        let said = if traces.len() == 1 { String::new() } else { format!("{name}: ") };
        opened.warn_of(&said);
        let source = match ExportSource::new(&opened.trace, command.selected.selection()) {
            Err(ExportError::Analysis(error)) if error.is_of_selection() && traces.len() > 1 => {
                tell!("warning: {said}left out: {error}");
                left_out.get_or_insert(error);
                continue;
            }
            source => source.with_context(cannot)?,
        };
        warn(&source, &said);
        let partition = partition(opened.trace.metadata().origin.as_deref(), &name, &mut taken);
        exported(source, |source| {
            for (table, (rows, made, size)) in tables.iter().zip(&mut sums) {
                let at = format!("{}/{partition}/{}.parquet", table.name(), table.name());
                let (added, path, bytes) = files.add(at, |out| parquet::write(source, *table, out))?;
                written.insert(path);
                *rows += added;
                *made += 1;
                *size += bytes.unwrap_or(0);
            }
            Ok(())
        })
        .with_context(cannot)?;
    }
    if let Some(error) = left_out.filter(|_| written.is_empty()) {
        bail!("no trace has what was selected: {error}");
    }
    files.publish()?;
    let (mut lines, mut strange) = (Vec::new(), 0);
    for (table, (rows, made, size)) in tables.iter().zip(sums) {
        let folder = command.output.join(table.name());
        strange += others(&folder, &written);
        let in_files = if traces.len() == 1 { String::new() } else { format!(" in {} files", count(made)) };
        lines.push(format!("{}: {} rows{in_files}, {}", shown_name(&folder), count(rows), bytes(size)));
    }
    if strange > 0 {
        tell!(
            "warning: {} has {} files of other exports, perhaps of the same traces by other names, which readers take \
             as well; name an empty folder to have these traces alone",
            shown_name(&command.output),
            count(strange)
        );
    }
    Ok(lines)
}

fn tables(by_event: bool) -> [TraceTable; 8] {
    use FigureTable::{AccessLosses, Launches, Locations, Losses, Sites};
    let (events, addresses, values) = if by_event {
        (EventTable::Events, AccessTable::LaneAccesses, AccessTable::LaneValues)
    } else {
        (EventTable::Runs, AccessTable::Accesses, AccessTable::Values)
    };
    let [addresses, values] = [addresses, values].map(TraceTable::Accesses);
    let [locations, launches, losses, sites, access_losses] =
        [Locations, Launches, Losses, Sites, AccessLosses].map(TraceTable::Figures);
    [TraceTable::Events(events), locations, launches, losses, sites, access_losses, addresses, values]
}

/// Returns the folders of a trace's partition, which no other trace uses.
fn partition(origin: Option<&Origin>, name: &str, taken: &mut BTreeSet<String>) -> String {
    let job = origin.and_then(|origin| origin.job.as_deref()).filter(|job| !job.is_empty());
    let rank =
        origin.and_then(|origin| origin.rank).map_or_else(|| UNKNOWN.to_owned(), |rank| rank.to_string());
    let job = job.map_or_else(|| UNKNOWN.to_owned(), |job| value("job", job));
    let of_job = format!("job={job}/rank={rank}/trace={}", value("trace", name));
    let mut folders = of_job.clone();
    for number in 2.. {
        if taken.insert(folders.clone()) {
            break;
        }
        folders = format!("{of_job}-{number}");
    }
    folders
}

/// Formats a text as a partition value. If it is too long for a folder's name, cuts it and prints a warning.
fn value(what: &str, text: &str) -> String {
    let whole = escaped(text);
    if whole.len() <= LONGEST {
        return whole;
    }
    let mut fits = text;
    while escaped(fits).len() > LONGEST {
        fits = &fits[..fits.floor_char_boundary(fits.len() - 1)];
    }
    tell!(
        "warning: {} is cut to {} in names of folders{}",
        shown_name(format!("{what}={text}")),
        shown_name(fits),
        if what == "job" { "; facts of the files have all of it" } else { "" }
    );
    escaped(fits)
}

/// Percent-encodes ASCII characters that a folder's name cannot contain or that a reader of Hive partitions
/// may interpret. Others stay, since Spark decodes byte by byte.
fn escaped(text: &str) -> String {
    let mut value = String::new();
    for letter in text.chars() {
        if !letter.is_ascii() || letter.is_ascii_alphanumeric() || "-_.".contains(letter) {
            value.push(letter);
        } else {
            value.push_str(&format!("%{:02X}", u32::from(letter)));
        }
    }
    value
}

/// Counts the files of a table's partitions that this export did not write.
fn others(folder: &Path, written: &BTreeSet<PathBuf>) -> u64 {
    let Some(folder) = folder.to_str() else { return 0 };
    let pattern = format!("{}/*/*/*/*.parquet", glob::Pattern::escape(folder));
    let found = glob::glob(&pattern).into_iter().flatten().flatten();
    found.filter(|path| !written.contains(path)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_as_hive_does_and_stay_in_their_folder() {
        for (text, expected) in [
            ("4711", "4711"),
            ("a/b=c%d e", "a%2Fb%3Dc%25d%20e"),
            ("../../etc", "..%2F..%2Fetc"),
            ("a\\b\u{7}\u{7f}\"*?", "a%5Cb%07%7F%22%2A%3F"),
            ("größe+1", "größe%2B1"),
        ] {
            assert_eq!(value("job", text), expected);
        }
        let long = "é/".repeat(500);
        let cut = value("job", &long);
        assert!(cut.len() <= LONGEST && cut.len() > LONGEST - 5, "{}", cut.len());
        assert!(escaped(&long).starts_with(&cut));
    }

    #[test]
    fn partitions_are_of_one_trace_each() {
        let mut taken = BTreeSet::new();
        let origin = |job: Option<&str>, rank| Origin { job: job.map(Into::into), rank, ..Origin::default() };
        let mut of = |origin: Option<&Origin>| partition(origin, "a b", &mut taken);
        let known = origin(Some(".."), Some(3));
        assert_eq!(of(Some(&known)), "job=../rank=3/trace=a%20b");
        assert_eq!(of(Some(&known)), "job=../rank=3/trace=a%20b-2");
        assert_eq!(of(Some(&known)), "job=../rank=3/trace=a%20b-3");
        for unknown in [None, Some(&origin(None, None)), Some(&origin(Some(""), None))] {
            assert!(of(unknown).starts_with(&format!("job={UNKNOWN}/rank={UNKNOWN}/trace=a%20b")));
        }
    }
}
