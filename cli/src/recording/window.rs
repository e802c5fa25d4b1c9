//! What to record, for every program.

use std::num::NonZeroU32;

use anyhow::bail;
use clap::Args;
use warptrace_format::chosen::After;
use warptrace_format::file::LocationInfo;
use warptrace_host::{BlockChoice, NumberRange, Window};

/// What to record: what fulfils all of it. A RANGE is written as in Rust: `3`, `3..7`, `3..=7`, `3..`, `..7`.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "What to record (by default everything; ranges as in Rust: 3, 3..7, 3..=7, 3.., ..7)"
)]
pub struct Chosen {
    /// Only this kernel; `*` stands for any characters; may be given more than once
    #[arg(long = "kernel", value_name = "NAME")]
    kernels: Vec<String>,

    /// Only these launches; all launches of the program count, from 0
    #[arg(long = "launch", value_name = "RANGE", default_value = "..", hide_default_value = true)]
    launches: NumberRange,

    /// Only these blocks of each launch, by their linear index; `1/64`: those whose index is a multiple of 64
    #[arg(long, value_name = "RANGE|1/K", default_value = "..", hide_default_value = true)]
    blocks: BlockChoice,

    /// Only these warps of each block, by their number in it
    #[arg(long, value_name = "RANGE", default_value = "..", hide_default_value = true)]
    warps: NumberRange,

    /// In each launch, what lanes do from the COUNTth visit of a location on. LOCATION is a name or id, as
    /// `info` lists them, or FILE:LINE. Each lane counts its own visits; one that meets a lane that is
    /// recorded is recorded from then on, too
    #[arg(long, value_name = "LOCATION:COUNT", value_parser = visits)]
    after: Option<Visits>,

    /// No launch after those that have recorded so many events; a launch that has begun is recorded to its
    /// end
    #[arg(long, value_name = "N")]
    max_events: Option<u64>,
}

impl Chosen {
    /// Converts it to a window of a session that records a program with these locations.
    ///
    /// # Errors
    /// If it names a location that is not one of these, or several.
    pub fn window(&self, locations: &[LocationInfo]) -> anyhow::Result<Window> {
        let Self { kernels, launches, blocks, warps, after, max_events } = self;
        let (launches, blocks, warps) = (*launches, *blocks, *warps);
        let after = after.as_ref().map(|after| after.among(locations)).transpose()?;
        Ok(Window { kernels: kernels.clone(), launches, blocks, warps, after, max_events: *max_events })
    }
}

/// Visits of a location, as the command line names it.
#[derive(Clone, Debug)]
struct Visits {
    location: String,
    count: NonZeroU32,
}

fn visits(text: &str) -> Result<Visits, String> {
    let parts = text.rsplit_once(':').filter(|(location, _)| !location.is_empty());
    let visits = parts.and_then(|(location, count)| {
        Some(Visits { location: location.to_owned(), count: count.parse().ok()? })
    });
    visits.ok_or_else(|| {
        "write a location and a count from 1 on, as in STEP:1000 or main.rs:12:1000".to_owned()
    })
}

impl Visits {
    /// The same with the id of the location.
    fn among(&self, locations: &[LocationInfo]) -> anyhow::Result<After> {
        let Self { location, count } = self;
        let line = location.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
        let is_meant = |info: &&LocationInfo| {
            let here = |(file, line): (&str, u32)| info.line == line && is_file(&info.file, file);
            info.name == *location || info.id.to_string() == *location || line.is_some_and(here)
        };
        let meant: Vec<&LocationInfo> = locations.iter().filter(is_meant).collect();
        match meant[..] {
            [info] => Ok(After { location: info.id, count: *count }),
            [] => {
                let known: Vec<&str> = locations.iter().map(|info| info.name.as_str()).collect();
                bail!("--after: the program has no location `{location}`; it has {}", known.join(", "))
            }
            _ => {
                let ids: Vec<String> =
                    meant.iter().map(|info| format!("{} ({})", info.id, info.name)).collect();
                bail!("--after: `{location}` is several locations: give one of the ids {}", ids.join(", "))
            }
        }
    }
}

/// Whether a path is meant by a file's name, or by the end of its path.
fn is_file(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}
