//! Chrome's trace events as JSON.
//!
//! A process for each launch, or for each multiprocessor where it is known; a thread for each warp; a
//! complete event (`X`) for each run, for each stay in a function or a loop around runs, and for each warp
//! that is known to have run. Format: "Trace Event Format", the object form,
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;

use serde_json::{Value, json};
use warptrace_decoder::Missing;
use warptrace_format::file::{LaunchInfo, StreamId};

use super::{Counted, Ran, Tracks, UNENDED, Written, draw, mark};
use crate::axis::Scale;
use crate::error::ExportError;
use crate::runs::Run;
use crate::source::Source;

/// Writes a timeline as Chrome's trace events. `sliced` is told the number of slices after each.
///
/// # Errors
/// The trace is damaged, asks for more output than [its length lets
/// expect](warptrace_decoder::TraceFile::limited), or `out` cannot be written.
pub fn chrome(
    source: &Source<'_>,
    out: impl Write,
    sliced: &mut dyn FnMut(u64),
) -> Result<Written, ExportError> {
    let mut out = Counted { out: source.trace().limited(out), bytes: 0 };
    let scale = Scale::shared(source)?;
    let facts = source.facts().into_iter().chain(scale.facts(source));
    let about: serde_json::Map<_, _> =
        facts.map(|(key, value)| (key.to_owned(), Value::from(value))).collect();
    let unit = if scale.unit() == 1 { "ns" } else { "ms" };
    // As in PyTorch's traces: what the events' times count from.
    let base =
        scale.realtime(source).map_or_else(String::new, |base| format!("\"baseTimeNanoseconds\":{base},"));
    // One event a line, so that a file can be looked at.
    let about = Value::from(about);
    write!(out, "{{\"displayTimeUnit\":\"{unit}\",{base}\"otherData\":{about},\"traceEvents\":[")?;
    let mut tracks = Chrome {
        out,
        unit: scale.unit(),
        process: 0,
        thread: 0,
        launch: None,
        sms: BTreeSet::new(),
        host_lanes: 0,
        is_first: true,
        locations: locations(source),
    };
    let mut written = draw(source, scale, &mut tracks, sliced)?;
    tracks.out.write_all(b"\n]}\n")?;
    tracks.out.flush()?;
    written.bytes = tracks.out.bytes;
    Ok(written)
}

/// What the events of a location have in common, as JSON: the name, and the last arguments.
struct LocationJson {
    name: String,
    arguments: String,
}

fn locations(source: &Source<'_>) -> Vec<LocationJson> {
    let ids = source.trace().metadata().locations.iter().map(|info| info.id).max().unwrap_or(0);
    (0..=ids).map(|id| location(source, id)).collect()
}

fn location(source: &Source<'_>, id: u16) -> LocationJson {
    let mut arguments = format!(",\"location\":{id}");
    if let Some(info) = source.location(id).filter(|info| !info.file.is_empty()) {
        arguments += &format!(",\"file\":{}", Value::from(info.file.as_str()));
        if info.line > 0 {
            arguments += &format!(",\"line\":{}", info.line);
        }
    }
    LocationJson { name: Value::from(source.label(id)).to_string(), arguments }
}

/// The process of launches by the host's clocks: far from those of launches and multiprocessors.
const HOST: u64 = 2_000_000_000;

struct Chrome<W> {
    out: Counted<W>,
    /// Nanoseconds that a unit of the axis takes.
    unit: u64,
    /// Number of the launch, or of the multiprocessor, from 1: some readers take process 0 for the idle one.
    process: u64,
    /// Linear index of the warp, or its number among all that are written where processes are
    /// multiprocessors; from 1.
    thread: u64,
    /// Where processes are multiprocessors: the launch of the next warps, and the multiprocessors that have
    /// names.
    launch: Option<String>,
    sms: BTreeSet<u32>,
    /// Lanes of the host that have names.
    host_lanes: u32,
    is_first: bool,
    locations: Vec<LocationJson>,
}

impl<W: Write> Chrome<W> {
    /// Begins the line of an event.
    fn begin(&mut self) -> Result<(), ExportError> {
        self.out.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        Ok(())
    }

    /// Returns a place on the axis in microseconds.
    fn micros(&self, at: u64) -> Value {
        // The nearest number: as it has been written, up to 2^53 nanoseconds.
        if self.unit == 1 { Value::from(at as f64 / 1_000.0) } else { Value::from(at) }
    }

    /// Writes an event that names or sorts a process or thread.
    fn describe(&mut self, what: &str, arguments: &Value) -> Result<(), ExportError> {
        self.begin()?;
        let (process, thread) = (self.process, self.thread);
        let event = json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": arguments });
        Ok(serde_json::to_writer(&mut self.out, &event)?)
    }
}

impl<W: Write> Tracks for Chrome<W> {
    fn launch(&mut self, source: &Source<'_>, info: &LaunchInfo) -> Result<(), ExportError> {
        (self.process, self.thread) = (u64::from(info.number()) + 1, 0);
        self.describe("process_name", &json!({ "name": source.launch_name(info) }))?;
        self.describe("process_sort_index", &json!({ "sort_index": info.number() }))
    }

    fn block(&mut self, _: [u32; 3], _: u32) -> Result<(), ExportError> {
        Ok(())
    }

    fn warp(&mut self, warp: u32, id: &StreamId) -> Result<(), ExportError> {
        self.thread = if self.launch.is_some() { self.thread } else { warp.into() } + 1;
        let ([x, y, z], number) = (id.block, id.warp_in_block);
        let launch = self.launch.as_deref().unwrap_or_default();
        self.describe("thread_name", &json!({ "name": format!("{launch}block {x},{y},{z} warp {number}") }))?;
        self.describe("thread_sort_index", &json!({ "sort_index": self.thread - 1 }))
    }

    fn block_on(
        &mut self,
        sm: u32,
        source: &Source<'_>,
        info: &LaunchInfo,
        _: &StreamId,
    ) -> Result<(), ExportError> {
        self.process = u64::from(sm) + 1;
        self.launch = Some(source.launch_name(info) + " ");
        if self.sms.insert(sm) {
            self.describe("process_name", &json!({ "name": format!("SM {sm}") }))?;
            self.describe("process_sort_index", &json!({ "sort_index": sm }))?;
        }
        Ok(())
    }

    /// Threads do not nest: a block is what its warps' names say.
    fn block_ran(&mut self, _: &Ran<'_>) -> Result<(), ExportError> {
        Ok(())
    }

    fn warp_runs(&mut self, ran: &Ran<'_>) -> Result<(), ExportError> {
        self.begin()?;
        let mut arguments = json!({ "launch": ran.launch, "cycles": ran.cycles });
        if let Some(sm) = ran.moved_to {
            arguments["ended on SM"] = sm.into();
        }
        let event = json!({
            "ph": "X", "name": ran.kernel, "cat": "warp", "pid": self.process, "tid": self.thread,
            "ts": self.micros(ran.lasts.start), "dur": self.micros(ran.lasts.end - ran.lasts.start),
            "args": arguments,
        });
        Ok(serde_json::to_writer(&mut self.out, &event)?)
    }

    fn warp_ran(&mut self, _: u64) -> Result<(), ExportError> {
        Ok(())
    }

    fn unended(&mut self, at: u64) -> Result<(), ExportError> {
        self.begin()?;
        let event = json!({
            "ph": "i", "s": "t", "name": UNENDED, "cat": "loss", "pid": self.process, "tid": self.thread,
            "ts": self.micros(at),
        });
        Ok(serde_json::to_writer(&mut self.out, &event)?)
    }

    fn enter(&mut self, _: &str, _: u64) -> Result<(), ExportError> {
        Ok(())
    }

    fn leave(&mut self, name: &str, from: u64, to: u64) -> Result<(), ExportError> {
        self.begin()?;
        let (process, thread) = (self.process, self.thread);
        let event = json!({
            "ph": "X", "name": name, "cat": "nest", "pid": process, "tid": thread, "ts": self.micros(from),
            "dur": self.micros(to - from),
        });
        Ok(serde_json::to_writer(&mut self.out, &event)?)
    }

    fn run(&mut self, source: &Source<'_>, run: &Run, lasts: Range<u64>) -> Result<(), ExportError> {
        self.begin()?;
        let Run { event, count, .. } = *run;
        let [from, length] = [lasts.start, lasts.end - lasts.start].map(|at| self.micros(at));
        let unknown;
        let location = if let Some(location) = self.locations.get(usize::from(event.location)) {
            location
        } else {
            unknown = location(source, event.location);
            &unknown
        };
        let (process, thread, mask) = (self.process, self.thread, event.mask);
        let LocationJson { name, arguments } = location;
        let lanes = mask.count_ones();
        write!(
            self.out,
            "{{\"ph\":\"X\",\"name\":{name},\"cat\":\"run\",\"pid\":{process},\"tid\":{thread},\"ts\":{from},\
             \"dur\":{length},\"args\":{{\"lanes\":{lanes},\"mask\":\"0x{mask:08x}\",\"count\":{count}{arguments}}}}}"
        )?;
        Ok(())
    }

    fn on_host(
        &mut self,
        source: &Source<'_>,
        info: &LaunchInfo,
        lane: u32,
        lasts: Range<u64>,
    ) -> Result<(), ExportError> {
        (self.process, self.thread) = (HOST, u64::from(lane) + 1);
        if self.host_lanes == 0 {
            self.describe("process_name", &json!({ "name": "host" }))?;
            self.describe("process_sort_index", &json!({ "sort_index": -1 }))?;
        }
        if lane >= self.host_lanes {
            self.host_lanes = lane + 1;
            self.describe("thread_name", &json!({ "name": "launches" }))?;
        }
        self.begin()?;
        let event = json!({
            "ph": "X", "name": source.kernel(info), "cat": "launch", "pid": HOST, "tid": self.thread,
            "ts": self.micros(lasts.start), "dur": self.micros(lasts.end - lasts.start),
            "args": { "launch": info.number() },
        });
        self.thread = 0;
        Ok(serde_json::to_writer(&mut self.out, &event)?)
    }

    fn missing(&mut self, missing: &Missing, at: u64) -> Result<(), ExportError> {
        self.begin()?;
        let (name, why) = mark(missing);
        let event = json!({
            "ph": "i", "s": "t", "name": name, "cat": "loss", "pid": self.process, "tid": self.thread,
            "ts": self.micros(at), "args": { "events": missing.events, "why": why },
        });
        Ok(serde_json::to_writer(&mut self.out, &event)?)
    }
}
