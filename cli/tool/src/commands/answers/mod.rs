//! Commands that report what warps did. `docs/reference/answers.md` defines their figures.

mod accesses;
mod causes;
mod diff;
mod diff_accesses;
mod diff_values;
mod edges;
mod lines;
mod loops;
mod paths;
mod rows;
mod set;
mod stats;
mod top;
mod values;
mod waits;
mod warps;

pub(crate) use self::accesses::run as accesses;
pub(crate) use self::causes::run as causes;
pub(crate) use self::diff::run as diff;
pub(crate) use self::edges::run as edges;
pub(crate) use self::lines::run as lines;
pub(crate) use self::loops::run as loops;
pub(crate) use self::paths::run as paths;
pub(crate) use self::rows::{Listed, Order, order_parser};
pub(crate) use self::stats::run as stats;
pub(crate) use self::top::run as top;
pub(crate) use self::values::run as values;
pub(crate) use self::waits::run as waits;
pub(crate) use self::warps::run as warps;

use std::cell::RefCell;

use anyhow::{Context, bail};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use warptrace_analysis::words::{self, Names, losses};
use warptrace_analysis::{Analysis, NotTraced, Selection, SetAnalysis, Time, analyse};
use warptrace_decoder::TraceFile;
use warptrace_format::file::LocationInfo;
use warptrace_format::shown;

use crate::arguments::{Page, Rows};
use crate::commands::table::{TextTable, print_table};
use crate::files::named_files;
use crate::opened::{Opened, open};
use crate::output::{StandardOutput, count, say, shown_name, write_json};

/// Default number of rows in text.
const ROWS: usize = 20;

struct Answer {
    of: Of,
    analysis: Analysis,
    names: Names,
    /// Locations that the arguments name; empty if they name none.
    asked: Vec<u16>,
}

enum Of {
    Trace(Box<Opened>),
    Set(Box<SetAnalysis>),
}

impl<'a, R> TextTable<'a, R> {
    /// Adds columns for cycles, their share of all warp time, cycles per visit, and idle lane-cycles, if
    /// there are times. Rows without times show `-`.
    fn times(self, all: Option<Time>, of: impl Fn(&R) -> Option<Time> + Copy + 'a) -> Self {
        let Some(all) = all else { return self };
        let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        self.right("cycles", move |row| known(of(row).map(|time| count(time.warp_cycles))))
            .right("of all", move |row| {
                known(of(row).map(|time| words::percent(time.warp_cycles, all.warp_cycles)))
            })
            .right("a visit", move |row| {
                let time = of(row).filter(|time| time.timed_visits > 0);
                known(time.map(|time| words::ratio(time.per_visit())))
            })
            .right("idle cycles", move |row| known(of(row).map(|time| count(time.idle_lane_cycles))))
    }
}

/// Opens and analyses the traces of a page. With `is_focus`, counts of warps are those at the location.
fn analysed(page: &Page, location: Option<&str>, is_focus: bool) -> anyhow::Result<Answer> {
    if !page.apart.workers.is_empty() {
        bail!(NOT_APART);
    }
    let files = named_files(&page.files)?;
    let [path] = &files[..] else { return set::analysed(&files, page, location, is_focus) };
    let opened = open(path)?;
    let all = &opened.trace.metadata().locations;
    let asked = location.map_or_else(|| Ok(Vec::new()), |text| find_locations(all, text))?;
    let focus = if is_focus { single(&asked)? } else { None };
    let selection = Selection { focus, ..page.selected.selection() };
    let analysis =
        analyse(&opened.trace, &selection).with_context(|| format!("cannot analyse {}", shown_name(path)))?;
    let names = names_of(&opened.trace.metadata().locations);
    Ok(Answer { of: Of::Trace(Box::new(opened)), analysis, names, asked })
}

/// Like [`analysed`], but fails if several traces are named.
fn analysed_one(page: &Page, location: Option<&str>, is_focus: bool) -> anyhow::Result<Answer> {
    let files = if page.apart.workers.is_empty() { named_files(&page.files)?.len() } else { 1 };
    if files == 1 { analysed(page, location, is_focus) } else { bail!(only_one(files)) }
}

const NOT_APART: &str = "workers have figures for `top`, `causes`, `lines`, `loops`, `edges` and `stats`; ask other \
                         things of them with `warptrace query`";

fn only_one(files: usize) -> String {
    format!(
        "this command looks at one trace, and these are {files}; `top`, `causes`, `lines`, `loops`, `warps`, `edges` \
         and `stats` take several"
    )
}

/// Maximum width of a column of names.
const WIDE: usize = 40;

fn names_of<'a>(locations: impl IntoIterator<Item = &'a LocationInfo>) -> Names {
    Names::from_locations(locations).with_width(WIDE)
}

impl Answer {
    /// Analyses the traces of a page, or takes `summed`, the figures of workers.
    fn of_page(page: &Page, location: Option<&str>, summed: Option<SetAnalysis>) -> anyhow::Result<Self> {
        match summed {
            Some(set) => Self::of_set(set, location),
            None => analysed(page, location, false),
        }
    }

    fn of_rows<R: Listed>(rows: &Rows<R>, summed: Option<SetAnalysis>) -> anyhow::Result<Self> {
        Self::of_page(&rows.page, rows.location.as_deref(), summed)
    }

    fn of_set(mut set: SetAnalysis, location: Option<&str>) -> anyhow::Result<Self> {
        let all = set.table().locations();
        let asked = location.map_or_else(|| Ok(Vec::new()), |text| find_locations(all, text))?;
        let (names, analysis) = (names_of(set.table().locations()), set.sum()?);
        Ok(Self { of: Of::Set(Box::new(set)), analysis, names, asked })
    }

    fn of_one<R: Listed>(rows: &Rows<R>) -> anyhow::Result<Self> {
        analysed_one(&rows.page, rows.location.as_deref(), false)
    }

    /// Returns the trace and the state of its file. Fails if there are several traces.
    fn opened(&self) -> anyhow::Result<&Opened> {
        match &self.of {
            Of::Trace(opened) => Ok(opened),
            Of::Set(set) => bail!(only_one(set.files().len())),
        }
    }

    /// Returns the trace. Fails if there are several traces.
    fn trace(&self) -> anyhow::Result<&TraceFile> {
        Ok(&self.opened()?.trace)
    }

    /// Returns the differences of several traces; `None` for one trace.
    const fn set(&self) -> Option<&SetAnalysis> {
        match &self.of {
            Of::Trace(_) => None,
            Of::Set(set) => Some(set),
        }
    }

    /// Prints JSON: state and losses of the traces, and `more`.
    fn json(&self, more: Value) -> anyhow::Result<()> {
        self.json_rows(more, "", std::iter::empty())
    }

    /// Like [`json`](Self::json), with rows under `name`. Only one row at a time is in memory.
    fn json_rows(
        &self,
        more: Value,
        name: &str,
        rows: impl IntoIterator<Item = Value>,
    ) -> anyhow::Result<()> {
        let state = match &self.of {
            Of::Trace(opened) => opened.state.sentence.clone(),
            Of::Set(set) => words::set_losses(set, &self.analysis).remove(0),
        };
        let mut value = json!({
            "whole": self.analysis.losses.is_whole(),
            "state": state,
            "losses": self.analysis.losses,
            "weight": self.analysis.weight,
            "launches": self.analysis.launches,
            "totals": self.analysis.totals(),
        });
        if let Of::Trace(opened) = &self.of {
            if let Some(not_traced) = NotTraced::new(&opened.trace) {
                value["not_traced"] = json!(not_traced);
            }
            if let notes @ [_, ..] = &opened.trace.unrecorded().notes[..] {
                value["notes"] = json!(notes);
            }
        }
        if let Some(set) = self.set() {
            value["files"] = json!(set.files());
            value["outlier_file"] = json!(set.outlier());
            value["separate_locations"] = set.separate_locations().into();
        }
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
            if !name.is_empty() {
                // Placeholder for the rows.
                value.insert(name.to_owned(), Value::Null);
            }
        }
        let rows = RefCell::new(rows.into_iter());
        let rows = WithRows { value: &value, name, rows: &rows };
        match &self.of {
            Of::Trace(opened) => write_json(opened.trace.limited(StandardOutput), &rows)?,
            Of::Set(_) => write_json(StandardOutput, &rows)?,
        }
        Ok(())
    }

    /// Prints headline and findings: findings first if the trace is whole, otherwise the headline and
    /// `lacks`.
    fn with_headline(
        &self,
        is_whole: bool,
        lacks: Option<String>,
        findings: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<()> {
        if !is_whole {
            self.headline()?;
        }
        lacks.into_iter().chain(findings).try_for_each(|line| say!("{line}"))?;
        if is_whole { self.headline() } else { Ok(()) }
    }

    fn headline(&self) -> anyhow::Result<()> {
        let has_table = match &self.of {
            Of::Trace(opened) => {
                say!("{}", losses(&self.analysis))?;
                if !opened.state.is_whole && self.analysis.losses.is_whole() {
                    say!("the whole file: {}", opened.state.sentence)?;
                }
                !opened.trace.metadata().locations.is_empty()
            }
            Of::Set(set) => {
                words::set_losses(set, &self.analysis).into_iter().try_for_each(|line| say!("{line}"))?;
                set.table().locations().next().is_some()
            }
        };
        if self.analysis.counts.visits == 0 {
            say!("no events: `warptrace info` says what was recorded and of which launches")?;
        } else if !has_table {
            say!("the trace has no table of locations, so they are shown by their ids")?;
        }
        Ok(())
    }
}

/// The field that comes first.
const VERDICT: &str = "verdict";

/// An object whose rows under `name` are created during serialization.
struct WithRows<'a, R> {
    value: &'a Value,
    name: &'a str,
    rows: &'a RefCell<R>,
}

impl<R: Iterator<Item = Value>> Serialize for WithRows<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.value.as_object().into_iter().flatten();
        let mut object = serializer.serialize_map(None)?;
        if let Some(verdict) = self.value.get(VERDICT) {
            object.serialize_entry(VERDICT, verdict)?;
        }
        for (name, value) in fields.filter(|(name, _)| *name != VERDICT) {
            if name == self.name {
                object.serialize_entry(name, &InTurn(self.rows))?;
            } else {
                object.serialize_entry(name, value)?;
            }
        }
        object.end()
    }
}

struct InTurn<'a, R>(&'a RefCell<R>);

impl<R: Iterator<Item = Value>> Serialize for InTurn<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&mut *self.0.borrow_mut())
    }
}

/// Returns the ids of the locations that an argument names: an id, a name, or `FILE:LINE`.
fn find_locations<'a>(
    locations: impl IntoIterator<Item = &'a LocationInfo>,
    text: &str,
) -> anyhow::Result<Vec<u16>> {
    let locations: Vec<&LocationInfo> = locations.into_iter().collect();
    let id = text.parse::<u16>();
    let text = &*shown(text);
    let named: Vec<u16> = locations.iter().filter(|info| info.is_named(text)).map(|info| info.id).collect();
    match (id, &named[..]) {
        (_, [_, ..]) => Ok(named),
        (Ok(id), []) if locations.is_empty() => Ok(vec![id]),
        (Err(_), []) if locations.is_empty() => {
            bail!("the trace has no table of locations: give an id, as in 3")
        }
        (Ok(id), []) if let Some(info) = locations.iter().find(|info| info.name == text) => bail!(
            "the trace has no location with the id {id}; the one called `{text}` has the id {}",
            info.id
        ),
        _ => bail!("the trace has no location `{text}`; `warptrace info` lists them"),
    }
}

/// Returns the location for commands that take one; `None` without locations.
fn single(asked: &[u16]) -> anyhow::Result<Option<u16>> {
    match asked {
        [] => Ok(None),
        &[id] => Ok(Some(id)),
        several => bail!("several locations have this name or line: give one of the ids {several:?}"),
    }
}

/// Prints a table and the number of omitted rows.
fn print_rows(table: &str, more: usize) -> anyhow::Result<()> {
    print_table(table)?;
    print_more(more)
}

fn print_more(more: usize) -> anyhow::Result<()> {
    if more > 0 {
        say!("and {} more; `--limit 0` shows all", count(more as u64))?;
    }
    Ok(())
}
