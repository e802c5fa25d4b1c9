//! `warptrace info`.

use std::collections::{BTreeSet, HashSet};

use warptrace_analysis::words::{cut, many, nanoseconds};
use warptrace_analysis::{HostSummary, LaunchSummary, NotTraced, Summary};
use warptrace_decoder::{FileState, TraceFile};
use warptrace_format::file::{
    Began, CLOCK_STEP, COUNTING, LocationInfo, MEMORY_LIMIT, MEMORY_PEAK, Metadata, Origin, RecordedPolicy,
    TIMER_STEP, UnrecordedLaunches,
};
use warptrace_format::{Counting, LocationKind};

use crate::commands::table::{TextTable, WIDEST};
use crate::losses::Losses;
use crate::opened::{Opened, open};
use crate::output::{bytes, count, print_json, say, shown_name};
use crate::{arguments, output};

/// Maximum number of kernels that are listed as not traced.
const KERNELS: usize = 20;

pub(crate) fn run(command: &arguments::Info) -> anyhow::Result<()> {
    let path = &command.file;
    let Opened { trace, state } = open(path)?;
    if command.json {
        // Serialized directly, since launches may be many.
        print_json(&Summary::new(&trace)?)?;
    } else {
        let (summary, losses) = Losses::new(&trace)?;
        text(&trace, &state, &summary, &losses, path)?;
    }
    Ok(())
}

fn text(
    trace: &TraceFile,
    state: &FileState,
    summary: &Summary<'_>,
    losses: &Losses,
    path: &std::path::Path,
) -> anyhow::Result<()> {
    let (metadata, launches) = (trace.metadata(), summary.launches.as_slice());
    say!("{}: {}, {}", shown_name(path), bytes(trace.length()), state.sentence)?;
    say!("recorded by  {}", metadata.tool)?;
    let device = &metadata.device;
    let mut on = format!("{} ({})", device.name, device.kind);
    if let Some((major, minor)) = device.compute_capability {
        on += &format!(", compute capability {major}.{minor}");
    }
    if let Some(driver) = &device.driver_version {
        on += &format!(", driver for {driver}");
    }
    say!("on           {on}")?;
    if let Some(origin) = &metadata.origin {
        origin_text(origin)?;
    }
    for (track, codec) in metadata.tracks.iter().enumerate() {
        say!("track {track}      {}", output::codec(*codec))?;
    }
    let chunk = bytes(u64::from(metadata.chunk_bytes));
    let chunks = match metadata.policy {
        // With this policy, the device has no chunks.
        RecordedPolicy::Stream => format!("chunks of {chunk}"),
        _ => format!("{} chunks of {chunk}", count(u64::from(metadata.pool_chunks))),
    };
    say!("pool         {chunks}, policy `{}`", metadata.policy.name())?;
    if let [Some(limit), Some(peak)] = [MEMORY_LIMIT, MEMORY_PEAK].map(|name| number(trace, name)) {
        say!("memory       device memory used at most: {} of {}", bytes(peak), bytes(limit))?;
    }
    if let [Some(cycles), Some(timer)] = [CLOCK_STEP, TIMER_STEP].map(|name| number(trace, name)) {
        let (cycles, timer) = (many(cycles, "cycle"), count(timer));
        say!("clocks       in steps of {cycles}, the global timer of {timer} ns, as measured at the begin")?;
    }
    if let Some(counting) = metadata.counting() {
        say!("counted      {}{}", counting.describe(), counted_loops(metadata))?;
    }
    for (name, value) in &metadata.properties {
        if name == COUNTING && metadata.counting().is_some() {
            continue;
        }
        // These are printed in words above.
        let is_said = [MEMORY_LIMIT, MEMORY_PEAK, CLOCK_STEP, TIMER_STEP].contains(&name.as_str());
        if !is_said || number(trace, name).is_none() {
            say!("{name:<12} {value}")?;
        }
    }

    if let Some(spans) = &summary.spans {
        let mut known = format!("of {} warps", count(spans.warps));
        for (warps, what) in
            [(spans.unended_warps, "began, end not known"), (spans.unknown_warps, "not known")]
        {
            if warps > 0 {
                known += &format!(", {} {what}", count(warps));
            }
        }
        say!("spans        {known}; times in steps of {} ns", count(spans.timer_step_nanoseconds))?;
    }

    if let Some(host) = &summary.host {
        say!("host         {}", on_host(trace, host))?;
    }
    if let Some(accesses) = &summary.accesses {
        let recorded = accesses.sites - accesses.derived_sites;
        let mut known = format!("{} of {} sites", count(accesses.recorded), count(recorded));
        if accesses.derived_sites > 0 {
            known += &format!(", from which those of {} more follow", count(accesses.derived_sites));
        }
        if accesses.lost > 0 {
            known += &format!(", {} lost", count(accesses.lost));
        }
        say!("accesses     {known}, {} in the file", bytes(accesses.file_bytes))?;
        if let Some(buffers) = accesses.buffers {
            let all =
                if accesses.has_all_buffers { "" } else { "; there may be memory of which nothing is known" };
            say!("buffers      {}{all}", count(buffers))?;
        }
    }

    print_unrecorded(trace, summary)?;
    print_launches(metadata, launches)?;
    // Launches that were not traced are printed above.
    let is_untraced =
        |launch: &&LaunchSummary| trace.launch(launch.launch).is_some_and(|info| trace.is_untraced(info));
    let launches: Vec<&LaunchSummary> = launches.iter().filter(|launch| !is_untraced(launch)).collect();
    let untraced = launches.iter().filter(|launch| launch.recorded_warps == 0).count() as u64;
    let (warps, recorded) = launches.iter().fold((0, 0), |(warps, recorded), launch| {
        (warps + u64::from(launch.warps), recorded + u64::from(launch.recorded_warps))
    });
    if recorded < warps {
        say!(
            "\nnot chosen to be recorded: {} of {} launches, {} of {} warps; what they did is not in the trace",
            count(untraced),
            count(launches.len() as u64),
            count(warps - recorded),
            count(warps)
        )?;
    }
    let lines = losses.describe();
    if !lines.is_empty() {
        say!("\n{}", lines.join("\n"))?;
    }

    print_locations(metadata)
}

/// Prints the launches that were not traced, and notes on how the recording differs from the program alone.
fn print_unrecorded(trace: &TraceFile, summary: &Summary<'_>) -> anyhow::Result<()> {
    if let Some(NotTraced { launches, kernels, .. }) = summary.not_traced {
        let traced = trace.traced_launches();
        let all = count(traced.saturating_add(launches));
        say!("launches     {all} seen: {} traced, {} not", count(traced), count(launches))?;
        for UnrecordedLaunches { kernel, reason, launches } in kernels.iter().take(KERNELS) {
            say!("             {} of {kernel}: {reason}", count(*launches))?;
        }
        if kernels.len() > KERNELS {
            let more = many((kernels.len() - KERNELS) as u64, "more kernel");
            say!("             {more}")?;
        }
    }
    Ok(summary.notes.iter().try_for_each(|note| say!("note         {note}"))?)
}

/// Prints job, rank, place and time of the recording, one line for each.
fn origin_text(origin: &Origin) -> anyhow::Result<()> {
    let of = |rank: u32| match origin.ranks {
        Some(ranks) => format!("{rank} of {ranks}"),
        None => rank.to_string(),
    };
    let said = [
        origin.rank.map(of),
        origin.local_rank.map(|rank| format!("{rank} on its host")),
        origin.launcher.as_ref().map(|launcher| format!("as {launcher} says")),
    ];
    let place = [
        origin.host.clone(),
        origin.process.map(|process| format!("process {process}")),
        origin.device.map(|device| format!("device {device}")),
        origin.device_uuid.clone(),
    ];
    let all = [("job", vec![origin.job.clone()]), ("rank", said.into()), ("recorded at", place.into())];
    for (name, parts) in all {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            say!("{name:<12} {}", parts.join(", "))?;
        }
    }
    if let Some(Began { realtime_ns, error_ns, .. }) = origin.began {
        let (seconds, rest) = (realtime_ns / 1_000_000_000, realtime_ns % 1_000_000_000);
        let error = nanoseconds(error_ns);
        say!(
            "began        {seconds}.{rest:09} s after 1970-01-01 UTC, to within {error} of the monotonic clock"
        )?;
    }
    Ok(origin.notes.iter().try_for_each(|note| say!("note         {note}"))?)
}

/// Describes when launches ran by the host's clock, and how precisely the device's timer is known on it.
fn on_host(trace: &TraceFile, host: &HostSummary) -> String {
    let (launches, seconds) = (count(host.launches), host.begin / 1_000_000_000);
    let ran = match host.launches {
        0 => "no launch is known to have begun".to_owned(),
        _ => format!(
            "{launches} of {} launches began from {seconds}.{:09} s after 1970-01-01 UTC on, and ended in {}",
            count(trace.launches().len() as u64),
            host.begin % 1_000_000_000,
            nanoseconds(host.nanoseconds)
        ),
    };
    let timer = match trace.on_host(0) {
        Some(on_host) => format!("the device's timer is known to within {}", nanoseconds(on_host.within)),
        None => "no device's timer was compared with it".to_owned(),
    };
    format!("{ran}; {timer}")
}

fn print_locations(metadata: &Metadata) -> anyhow::Result<()> {
    let has = |is: fn(&LocationInfo) -> bool| metadata.locations.iter().any(is);
    let place = |location: &LocationInfo| match (location.file.as_str(), location.line) {
        ("", _) => String::new(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}:{}", location.column),
    };
    let instructions = |location: &LocationInfo| {
        location.code.map_or_else(|| "?".to_owned(), |code| code.instructions.to_string())
    };
    let parent = |location: &LocationInfo| match location.parent {
        0 => String::new(),
        parent => parent.to_string(),
    };
    let table = TextTable::<LocationInfo>::new()
        .left("location", |location| location.id.to_string())
        .when(has(|location| location.code.is_some()), |table| table.right("instructions", instructions))
        .left("name", |location| location.name.clone())
        .left("what", |location| location.description.clone())
        .left("where", place)
        .when(has(|location| location.parent != 0), |table| table.left("in", parent));
    say!("")?;
    Ok(table.print_rows(&metadata.locations)?)
}

/// Lists the counted loops: the loops that the file marks. If it marks no loop and all loops were counted, lists
/// the loops that contain no other location.
fn counted_loops(metadata: &Metadata) -> String {
    let parents: HashSet<u16> = metadata.locations.iter().map(|info| info.parent).collect();
    let holds_none =
        |info: &&LocationInfo| info.kind == LocationKind::LoopBody && !parents.contains(&info.id);
    let is_counted = |info: &&LocationInfo| info.code.is_some_and(|code| code.counted);
    let named = |loops: Vec<&LocationInfo>| -> Vec<String> {
        loops.iter().map(|info| format!("{} (location {})", info.name, info.id)).collect()
    };
    let all = || metadata.locations.iter();
    let is_known = !metadata.locations.is_empty() && all().all(|info| info.code.is_some());
    let loops = match metadata.counting() {
        None | Some(Counting::Never) => return String::new(),
        Some(_) if is_known => named(all().filter(is_counted).collect()),
        Some(Counting::Proven) => return "; which ones is not known".to_owned(),
        Some(Counting::All) => named(all().filter(holds_none).collect()),
    };
    if loops.is_empty() { "; none was".to_owned() } else { format!("; they are {}", loops.join(", ")) }
}

/// Prints a row for each launch, with a column of recorded warps if some were not chosen, and then the kernel
/// names that are too long for their column.
fn print_launches(metadata: &Metadata, launches: &[LaunchSummary]) -> anyhow::Result<()> {
    let has_choice = launches.iter().any(|launch| launch.recorded_warps < launch.warps);
    let name = |kernel: u32| metadata.kernels.get(kernel as usize).map_or("?", |kernel| &kernel.name);
    let has_labels = launches.iter().any(|launch| launch.label.is_some());
    let has_sites = launches.iter().any(|launch| launch.launched_at.is_some());
    let table = TextTable::<LaunchSummary>::new()
        .right("launch", |launch| launch.launch.to_string())
        .left("kernel", |launch| cut(name(launch.kernel), WIDEST).into_owned())
        .left("grid", |launch| shape(launch.grid))
        .left("block", |launch| shape(launch.block))
        .right("warps", |launch| count(launch.warps.into()))
        .when(has_choice, |table| {
            table.right("recorded", |launch| match launch.recorded_warps {
                0 => "not traced".to_owned(),
                recorded => count(recorded.into()),
            })
        })
        .right("events", |launch| count(launch.events))
        .right("lost", |launch| count(launch.lost))
        .right("chunks", |launch| count(launch.chunks))
        .right("in file", |launch| bytes(launch.file_bytes))
        .when(has_labels, |table| table.left("label", |launch| launch.label.clone().unwrap_or_default()))
        .when(has_sites, |table| {
            let short = |site: &str| site.rsplit_once('/').map_or(site, |(_, site)| site).to_owned();
            table.left("launched at", move |launch| {
                launch.launched_at.as_deref().map(short).unwrap_or_default()
            })
        });
    say!("")?;
    table.print_rows(launches)?;
    let kernels: BTreeSet<u32> = launches.iter().map(|launch| launch.kernel).collect();
    let mut long = kernels.into_iter().map(name).filter(|name| cut(name, WIDEST) != *name).peekable();
    if long.peek().is_some() {
        say!("\nnames that are cut above")?;
    }
    for name in long {
        say!("  {name}")?;
    }
    Ok(())
}

fn number(trace: &TraceFile, name: &str) -> Option<u64> {
    trace.metadata().property(name)?.parse().ok()
}

/// Formats a size: `64x1x1` as `64`, `8x4x1` as `8x4`.
fn shape(size: [u32; 3]) -> String {
    match size {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}x{y}"),
        [x, y, z] => format!("{x}x{y}x{z}"),
    }
}
