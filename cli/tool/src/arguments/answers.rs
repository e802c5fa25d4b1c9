//! Arguments of the commands that say what warps did.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use warptrace_analysis::Selection;

use crate::commands::answers::{Listed, Order, order_parser};
use crate::numbers::parse_block;

use super::query::Apart;

/// Selected part of the trace.
#[derive(Debug, Args)]
pub(crate) struct Selected {
    /// Only launches of this kernel; `*` matches any characters: 'gemm*'
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,

    /// Only this launch
    #[arg(long)]
    launch: Option<u32>,

    /// Only this block: `X`, `X,Y` or `X,Y,Z`
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = parse_block)]
    block: Option<[u32; 3]>,

    /// Only this warp of each block
    #[arg(long, value_name = "WARP")]
    warp: Option<u32>,
}

impl Selected {
    pub(crate) fn selection(&self) -> Selection {
        let Self { kernel, launch, block, warp } = self;
        Selection { kernel: kernel.clone(), launch: *launch, block: *block, warp: *warp, focus: None }
    }
}

/// Arguments of commands that answer with one page.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// The trace. `top`, `causes`, `lines`, `loops`, `warps`, `edges` and `stats` sum several up, too: files, folders,
    /// and patterns in quotes
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) selected: Selected,

    #[command(flatten)]
    pub(crate) apart: Apart,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `stats` groups launches by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupBy {
    /// Whole call stacks of the Python code that launches, with all of their frames
    Stack,
}

/// Arguments of `stats`.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) page: Page,

    /// Sum up the launches with one call stack
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<GroupBy>,
}

/// Arguments of commands that answer with rows `R`.
#[derive(Debug, Args)]
pub(crate) struct Rows<R: Listed> {
    #[command(flatten)]
    pub(crate) page: Page,

    /// Only this location: its name, its id, or FILE:LINE
    #[arg(long, value_name = "NAME|ID|FILE:LINE")]
    pub(crate) location: Option<String>,

    /// Which rows come first: those with the most of this; by default the first named here
    #[arg(long, value_parser = order_parser::<R>(), value_name = "COLUMN")]
    pub(crate) sort: Option<&'static Order<R>>,

    /// How many rows; 0: all. By default 20, and all in JSON
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The first trace
    pub(crate) before: PathBuf,

    /// The second trace
    pub(crate) after: PathBuf,

    #[command(flatten)]
    pub(crate) selected: Selected,

    /// How many rows and warps; 0: all. By default 10, and in JSON all rows and 100 warps
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Exit with code 4 if something changed by more than this: all events or a location's visits, in percent
    /// of the first trace's events; idle slots, of all or of a cause, in percentage points of all slots
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) fail_above: Option<f64>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The trace
    pub(crate) file: PathBuf,

    /// Where to write the page; `-` is standard output. By default the trace's name with `.html`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Where sources are looked for, before the current directory; can be given several times
    #[arg(long = "source", value_name = "FOLDER")]
    pub(crate) sources: Vec<PathBuf>,

    /// Show what is different from this trace
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) selected: Selected,
}

/// Arguments of `tui`.
#[derive(Debug, Args)]
pub(crate) struct Tui {
    /// The trace
    pub(crate) file: PathBuf,

    /// Where sources are looked for, before the current directory; can be given several times
    #[arg(long = "source", value_name = "FOLDER")]
    pub(crate) sources: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) selected: Selected,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok();
    percent.filter(|percent| *percent >= 0.0).ok_or_else(|| "a percentage is 0 or more, as in 2.5".to_owned())
}
