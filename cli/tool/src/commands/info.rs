//! `warptrace info`.

use std::process::ExitCode;

use comfy_table::{CellAlignment, Table, presets};
use warptrace_analysis::{LaunchSummary, Summary};
use warptrace_decoder::{FileState, TraceFile};
use warptrace_format::file::{COUNTING, LocationInfo, MEMORY_LIMIT, MEMORY_PEAK, Metadata, POLICY_STREAM};
use warptrace_format::{Counting, LocationKind};

use crate::commands::table::print_table;
use crate::losses::Losses;
use crate::opened::{Opened, open};
use crate::output::{bytes, count, print_json, say, shown_name};
use crate::{arguments, output};

pub(crate) fn run(command: &arguments::Info) -> anyhow::Result<ExitCode> {
    let path = &command.file;
    let Opened { trace, state } = open(path)?;
    let summary = Summary::of(&trace)?;
    if command.json {
        print_json(&summary)?;
    } else {
        let losses = Losses::of(&trace, summary.lost_by_reason.clone())?;
        text(&trace, &state, &summary.launches, &losses, path)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(
    trace: &TraceFile,
    state: &FileState,
    launches: &[LaunchSummary],
    losses: &Losses,
    path: &std::path::Path,
) -> anyhow::Result<()> {
    let metadata = trace.metadata();
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
    for (track, codec) in metadata.tracks.iter().enumerate() {
        say!("track {track}      {}", output::codec(*codec))?;
    }
    let chunk = bytes(u64::from(metadata.chunk_bytes));
    let chunks = match metadata.policy.as_str() {
        // There are none on the device.
        POLICY_STREAM => format!("chunks of {chunk}"),
        _ => format!("{} chunks of {chunk}", count(u64::from(metadata.pool_chunks))),
    };
    say!("pool         {chunks}, policy `{}`", metadata.policy)?;
    if let [Some(limit), Some(peak)] = [MEMORY_LIMIT, MEMORY_PEAK].map(|name| memory(trace, name)) {
        say!("memory       device memory used at most: {} of {}", bytes(peak), bytes(limit))?;
    }
    if let Some(counting) = metadata.counting() {
        say!("counted      {}{}", counting.describe(), counted_loops(metadata))?;
    }
    for (name, value) in &metadata.properties {
        if name == COUNTING && metadata.counting().is_some() {
            continue;
        }
        if ![MEMORY_LIMIT, MEMORY_PEAK].contains(&name.as_str()) || memory(trace, name).is_none() {
            say!("{name:<12} {value}")?;
        }
    }

    print_table(&launch_table(launches).to_string())?;
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

    let mut table = Table::new();
    let nests = metadata.locations.iter().any(|location| location.parent != 0);
    let mut header = vec!["location", "name", "what", "where"];
    if nests {
        header.push("in");
    }
    let has_code = metadata.locations.iter().any(|location| location.code.is_some());
    if has_code {
        header.insert(1, "instructions");
    }
    table.load_preset(presets::NOTHING).set_header(header);
    for location in &metadata.locations {
        let place = match (location.file.as_str(), location.line) {
            ("", _) => String::new(),
            (file, 0) => file.to_owned(),
            (file, line) => format!("{file}:{line}:{}", location.column),
        };
        let mut row =
            vec![location.id.to_string(), location.name.clone(), location.description.clone(), place];
        if nests && location.parent != 0 {
            row.push(location.parent.to_string());
        }
        if has_code {
            let code = location.code.map(|code| code.instructions.to_string());
            row.insert(1, code.unwrap_or_else(|| "?".to_owned()));
        }
        table.add_row(row);
    }
    if let Some(column) = table.column_mut(1).filter(|_| has_code) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    print_table(&table.to_string())?;
    Ok(())
}

/// Names the loops that were counted: those that the file names; else, of all, those that hold no other location.
fn counted_loops(metadata: &Metadata) -> String {
    let holds_none = |info: &&LocationInfo| {
        info.kind == LocationKind::LoopBody && metadata.locations.iter().all(|other| other.parent != info.id)
    };
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

/// A row for each launch. Where some warps were not chosen, a column says how many were.
fn launch_table(launches: &[LaunchSummary]) -> Table {
    let has_choice = launches.iter().any(|launch| launch.recorded_warps < launch.warps);
    let mut table = Table::new();
    let mut header =
        vec!["launch", "kernel", "grid", "block", "warps", "events", "lost", "chunks", "in file"];
    let chosen_at = 5;
    if has_choice {
        header.insert(chosen_at, "recorded");
    }
    let left = 1..4;
    let right: Vec<usize> = (0..header.len()).filter(|column| !left.contains(column)).collect();
    table.load_preset(presets::NOTHING).set_header(header);
    for launch in launches {
        let mut row = vec![
            launch.launch.to_string(),
            launch.kernel.clone(),
            shape(launch.grid),
            shape(launch.block),
            count(u64::from(launch.warps)),
            count(launch.events),
            count(launch.lost),
            count(launch.chunks),
            bytes(launch.file_bytes),
        ];
        if has_choice {
            let recorded = match launch.recorded_warps {
                0 => "not chosen".to_owned(),
                recorded => count(u64::from(recorded)),
            };
            row.insert(chosen_at, recorded);
        }
        table.add_row(row);
    }
    for column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A property that counts bytes of device memory.
fn memory(trace: &TraceFile, name: &str) -> Option<u64> {
    trace.metadata().property(name)?.parse().ok()
}

/// `64x1x1` as `64`, `8x4x1` as `8x4`.
fn shape(size: [u32; 3]) -> String {
    match size {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}x{y}"),
        [x, y, z] => format!("{x}x{y}x{z}"),
    }
}
