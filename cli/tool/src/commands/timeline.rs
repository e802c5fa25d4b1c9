//! `warptrace timeline`: prints launches of several ranks on one axis.

use std::cmp::Reverse;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::json;
use warptrace_analysis::words::{many, nanoseconds};
use warptrace_analysis::{Alignment, OrderItems, RankClock, RankLaunch, RankOnAxis, RankTimes, Timeline};
use warptrace_exports::timeline::perfetto_ranks;
use warptrace_format::fits;

use super::table::TextTable;
use crate::arguments::Timeline as Command;
use crate::files::named_files;
use crate::opened::{Opened, open};
use crate::output::{bytes, count, print_json, say, shown_name, tell};
use crate::whole_file::{Target, watch_signals};

const ROWS: usize = 20;
/// Maximum number of late ranks, of incomplete files and of notes that are printed.
const MOST_NAMED: usize = 10;

pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    if command.to.is_some() != command.output.is_some() {
        bail!(
            "`--to perfetto` and `-o FILE` belong together: the one says in which form, the other where to"
        );
    }
    let paths = named_files(&command.files)?;
    let others: Vec<(&str, &Path)> = paths.iter().map(|file| ("a trace", file.as_path())).collect();
    if let Some(target) = &command.output {
        // Checked before the work starts.
        Target::new(target, &others)?;
    }
    let read = |path: &std::path::PathBuf| {
        let Opened { trace, state } = open(path)?;
        let missing = if state.is_plain() { String::new() } else { state.sentence };
        RankTimes::new(&trace, shown_name(path), missing)
            .with_context(|| format!("cannot read when launches of {} ran", shown_name(path)))
    };
    let files = paths.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let patterns = &command.align;
    let timeline = Timeline::new(files, &|kernel| patterns.iter().any(|pattern| fits(pattern, kernel)));
    let headline = headline(&timeline, patterns);
    if let Some(target) = &command.output {
        if timeline.files.iter().all(|file| file.clock.is_none()) {
            bail!("{headline}");
        }
        return perfetto(&timeline, &headline, target, &others);
    }
    let by_spread = by_spread(&timeline.launches);
    let limit = command.limit.unwrap_or(if command.json { 0 } else { ROWS });
    let shown = if limit == 0 { by_spread.len() } else { limit.min(by_spread.len()) };
    if command.json {
        print_json(&json!({
            "headline": headline,
            "align": patterns,
            "alignment": timeline.alignment,
            "begin_realtime_ns": timeline.begin_realtime_ns.to_string(),
            "notes": timeline.notes,
            "files": timeline.files,
            "launches": &by_spread[..shown],
        }))?;
        return Ok(());
    }
    say!("{headline}")?;
    for note in timeline.notes.iter().take(MOST_NAMED) {
        say!("note: {note}")?;
    }
    if timeline.notes.len() > MOST_NAMED {
        say!("note: {} more in JSON", count((timeline.notes.len() - MOST_NAMED) as u64))?;
    }
    let lacking: Vec<&RankOnAxis> = timeline.files.iter().filter(|file| !file.missing.is_empty()).collect();
    for file in lacking.iter().take(MOST_NAMED) {
        say!("{}: {}", file.name, file.missing)?;
    }
    if lacking.len() > MOST_NAMED {
        say!("{} more files lack or assume something", count((lacking.len() - MOST_NAMED) as u64))?;
    }
    late(&timeline)?;
    print_launches(&timeline, &by_spread[..shown])?;
    if shown < by_spread.len() {
        say!("{} more launches: --limit 0", count((by_spread.len() - shown) as u64))?;
    }
    Ok(())
}

/// Describes the number of ranks, and how precisely their times can be compared.
fn headline(timeline: &Timeline, patterns: &[String]) -> String {
    let Alignment { clocks, shared_launches, error_ns, .. } = timeline.alignment;
    let on_axis = timeline.files.iter().filter(|file| file.offset_ns.is_some()).count() as u64;
    let all = many(timeline.files.len() as u64, "file");
    let files =
        if on_axis == timeline.files.len() as u64 { all } else { format!("{} of {all}", count(on_axis)) };
    let patterns = patterns.join(" ");
    if on_axis == 0 {
        return "no file says when its launches ran: record with `--times blocks`".to_owned();
    }
    let is_by_host = timeline.files.iter().any(|file| file.clock == Some(RankClock::Host));
    // With the device's clock, launches begin when their warps begin.
    let begins = if is_by_host { "; launches begin when the host gave them to the device" } else { "" };
    let known = match error_ns {
        None => format!(
            "{files} of {} hosts, whose clocks are taken as they are: how far apart they are is not known, since no launch of {patterns} is in files of several hosts with its end (--align)",
            count(clocks)
        ),
        Some(error) if clocks > 1 => format!(
            "{files} of {} hosts, whose clocks are compared by {} of {patterns}, which are taken to end at the same time everywhere: times of ranks are known to within {}",
            count(clocks),
            launches(shared_launches),
            nanoseconds(error)
        ),
        Some(error) => {
            format!(
                "{files} of one host, by its clock: times of ranks are known to within {}",
                nanoseconds(error)
            )
        }
    };
    known + begins
}

fn launches(number: u64) -> String {
    format!("{} launch{}", count(number), if number == 1 { "" } else { "es" })
}

/// Returns the launches in descending order of the spread of their begins over ranks.
fn by_spread(launches: &[RankLaunch]) -> Vec<&RankLaunch> {
    let mut launches: Vec<&RankLaunch> = launches.iter().collect();
    launches.order_by_key(|launch| Reverse(launch.spread_ns));
    launches
}

fn late(timeline: &Timeline) -> anyhow::Result<()> {
    let compared = timeline.launches.len() as u64;
    if compared == 0 {
        return Ok(say!("no launch is in several files with its time")?);
    }
    let mut late: Vec<&RankOnAxis> = timeline.files.iter().filter(|file| file.late.launches > 0).collect();
    late.order_by_key(|file| Reverse((file.late.launches, file.late.sum_ns)));
    if late.is_empty() {
        let all = launches(compared);
        return Ok(say!("no rank is last by more than that in any of {all} that several ranks made")?);
    }
    for file in late.iter().take(MOST_NAMED) {
        let late = file.late;
        say!(
            "{} begins last in {} of {}, {} after the median rank in the mean, at most {}",
            file.name,
            count(late.launches),
            launches(compared),
            nanoseconds(late.sum_ns / late.launches.max(1)),
            nanoseconds(late.max_ns)
        )?;
    }
    if late.len() > MOST_NAMED {
        say!("{} more ranks are last in some", count((late.len() - MOST_NAMED) as u64))?;
    }
    Ok(())
}

fn print_launches(timeline: &Timeline, launches: &[&RankLaunch]) -> anyhow::Result<()> {
    if launches.is_empty() {
        return Ok(());
    }
    let name = |at: u32| timeline.files.get(at as usize).map_or("?", |file| &file.name).to_owned();
    let table = TextTable::<&RankLaunch>::new()
        .right("number", |launch| launch.number.to_string())
        .left("kernel", |launch| launch.kernel.clone())
        .right("ranks", |launch| count(launch.ranks))
        .right("begin", |launch| nanoseconds(launch.begin_ns))
        .left("earliest", move |launch| name(launch.earliest))
        .left("latest", move |launch| name(launch.latest))
        .right("spread", |launch| nanoseconds(launch.spread_ns))
        .left("", |launch| if launch.is_decided { "" } else { "within the error" }.to_owned());
    say!("")?;
    say!("{}", table.text(launches).trim_end())?;
    Ok(say!(
        "\nnumber: among launches of the kernel; begin: of the earliest rank, since the axis begins; spread: from the earliest rank's begin to the latest one's."
    )?)
}

fn perfetto(
    timeline: &Timeline,
    headline: &str,
    target: &Path,
    others: &[(&str, &Path)],
) -> anyhow::Result<()> {
    watch_signals()?;
    let facts =
        [("clocks", headline)].into_iter().chain(timeline.notes.iter().map(|note| ("note", note.as_str())));
    let missing = timeline.files.iter().filter(|file| !file.missing.is_empty());
    let mut facts: Vec<(String, String)> =
        facts.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    facts.extend(missing.map(|file| (file.name.clone(), file.missing.clone())));
    for (_, fact) in &facts {
        tell!("note: {fact}");
    }
    let ((slices, _), size) =
        Target::new(target, others)?.write(|out| perfetto_ranks(timeline, &facts, out))?;
    if let Some(size) = size {
        say!("{}: {}, {}", shown_name(target), launches(slices), bytes(size))?;
    }
    Ok(())
}
