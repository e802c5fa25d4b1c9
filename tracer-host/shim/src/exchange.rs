//! Rewrites a program's PTX for the driver: adds a traced copy of each kernel, or extracts one kernel's copy.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::mem::offset_of;
use std::time::Duration;

use warptrace_abi::log::LaunchLogs;
use warptrace_abi::recording::Placement;
use warptrace_format::file::limits::MAX_TEXT_BYTES;
use warptrace_format::file::{LocationCode, LocationInfo, SiteInfo, UnrecordedLaunches};
use warptrace_format::location::LocationKind;
use warptrace_host::{memory_of, site_info, traced_registers, wait_info};
use warptrace_ptx::points::{Marked, ParamLayout, Point, PointKind, PointOptions, mark, users_place};
use warptrace_ptx::splice::{Options, TracedKernel, code_at, splice};
use warptrace_ptx::{Module, call_graph, only, stands_alone};

use crate::image::ImagePtx;
use crate::names;
use crate::settings::Settings;

const MAX_REASON_CHARS: usize = 200;
/// Bytes of PTX above which `--kernel` is required: the driver takes long to compile larger texts.
const MAX_PTX_BYTES: usize = 8 << 20;
/// The reason for kernels that the user excluded.
pub(crate) const NOT_ASKED: &str = UnrecordedLaunches::NOT_ASKED_FOR;

/// Part of the name of every device runtime function that launches a kernel.
pub(crate) const LAUNCHES_KERNELS: &str = "LaunchDevice";

#[derive(Debug)]
pub(crate) struct TracedModule {
    kernels: Vec<Kernel>,
    pub(crate) locations: Vec<LocationInfo>,
    pub(crate) sites: Vec<SiteInfo>,
    /// Names of functions without points, with the reason.
    pub(crate) skipped: Vec<(String, String)>,
    /// Names of functions with remarks for the user, for example that part of a function is not recorded.
    remarks: Vec<(String, String)>,
    /// File name and text of the PTX, if locations refer to PTX lines.
    pub(crate) kept: Option<(String, String)>,
    /// Names of the variables in global memory, and whether the code may allocate memory.
    pub(crate) variables: Vec<String>,
    pub(crate) allocates: bool,
    pub(crate) made_in: Duration,
}

impl TracedModule {
    /// Returns the kernels, sorted by name in the PTX.
    pub(crate) fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Returns the remarks as sentences that begin with the demangled name.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = String> {
        self.remarks.iter().map(|(function, remark)| format!("{}: {remark}", names::readable(function)))
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<&Kernel> {
        let found = self.kernels.binary_search_by(|kernel| (*kernel.name).cmp(name)).ok()?;
        self.kernels.get(found)
    }
}

/// Cache of demangled function names.
#[derive(Default)]
struct Functions(HashMap<String, String>);

impl Functions {
    fn readable(&mut self, mangled: &str) -> String {
        if let Some(known) = self.0.get(mangled) {
            return known.clone();
        }
        let made = names::readable(mangled);
        self.0.insert(mangled.to_owned(), made.clone());
        made
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// The name in the PTX.
    pub(crate) name: String,
    /// The demangled name, used in the trace file. It lives as long as the process.
    pub(crate) readable: &'static str,
    pub(crate) traced_name: CString,
    /// Bytes of dynamic shared memory for each warp of a block.
    pub(crate) shared_bytes: u32,
    /// The untraced kernel's parameters.
    pub(crate) parameters: Vec<ParamLayout>,
    /// Offset of the copy's last parameter in the launch's parameter buffer, in bytes.
    pub(crate) logs_offset: usize,
    /// Bytes of the copy's logs parameter: all fields, or only the fields before the choice of warps.
    pub(crate) logs_bytes: usize,
    /// The kernel's source file; empty if it is unknown.
    pub(crate) file: String,
    /// True if the call depth is unknown, because of recursion or indirect calls.
    pub(crate) is_deep: bool,
}

/// Fails with the reason if kernels of a text cannot be traced in separate modules.
pub(crate) fn may_stand_alone(ptx: &str) -> Result<(), String> {
    let module = Module::parse(ptx).map_err(|error| error.to_string())?;
    stands_alone(&module).map_err(|error| error.to_string())
}

/// Returns the demangled names of a text's kernels, by name in the text.
pub(crate) fn kernel_names(ptx: &str) -> HashMap<String, String> {
    let Ok(module) = Module::parse(ptx) else { return HashMap::new() };
    let names: Vec<&str> =
        module.definitions().filter(|function| function.is_entry()).map(|function| function.name).collect();
    names.iter().map(|name| (*name).to_owned()).zip(names::all_readable(&names)).collect()
}

/// A kernel whose copy gets a separate module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone<'a> {
    pub(crate) name: &'a str,
    pub(crate) readable: &'a str,
    /// Limit on registers per thread. If set, the copy also uses no shared memory, so that more blocks fit.
    pub(crate) registers: Option<u32>,
}

/// Extracts a function and everything that it uses from a text.
fn part(text: &str, function: &str) -> Result<String, String> {
    let module = Module::parse(text).map_err(|error| error.to_string())?;
    only(&module, &[function]).map_err(|error| error.to_string())
}

/// Returns true if a kernel, or a function that it calls, launches kernels.
fn launches_kernels(text: &str, kernel: &str) -> bool {
    let Ok(text) = part(text, kernel) else { return false };
    let module = Module::parse(&text);
    module.is_ok_and(|module| {
        module.definitions().any(|function| function.span.text(&text).contains(LAUNCHES_KERNELS))
    })
}

/// Makes the text for the driver and describes it. The text has all kernels with their copies, or only the
/// copy of `alone`. Fails with a sentence if the text cannot be parsed or no kernel of it is to be traced.
pub(crate) fn exchange(
    found: &ImagePtx,
    alone: Option<Alone<'_>>,
    settings: &Settings,
    (first_id, first_site): (u16, u16),
    architecture: u32,
) -> Result<(CString, TracedModule), String> {
    let short = |error: String| error.chars().take(MAX_REASON_CHARS).collect::<String>();
    if alone.is_some_and(|kernel| !settings.wants(kernel.name, kernel.readable)) {
        return Err(NOT_ASKED.to_owned());
    }
    if let Some(other) = found.other.as_ref().filter(|_| !settings.spec.other_architecture) {
        return Err(other.refusal());
    }
    let taken = alone.map(|kernel| part(&found.ptx, kernel.name).map_err(short)).transpose()?;
    let ptx = taken.as_deref().unwrap_or(&found.ptx);
    if alone.is_none() && ptx.len() > MAX_PTX_BYTES && !settings.names_kernels() {
        let mib = ptx.len() >> 20;
        return Err(format!(
            "its module has {mib} MiB of PTX, which takes the driver long: name it with --kernel"
        ));
    }
    let wanted = match alone {
        // The extracted text may also have kernels that this kernel launches.
        Some(kernel) => Some(vec![kernel.name.to_owned()]),
        None => wanted_kernels(ptx, settings).map_err(short)?,
    };
    if wanted.as_ref().is_some_and(Vec::is_empty) {
        return Err(NOT_ASKED.to_owned());
    }
    let wanted: Option<Vec<&str>> = wanted.as_ref().map(|names| names.iter().map(String::as_str).collect());
    let lines = found.lines.as_ref();
    let options = PointOptions {
        points: settings.spec.points,
        waits: settings.spec.marks_waits(),
        first_id,
        accesses: settings.spec.recording.spaces(),
        first_site,
        kernels: wanted.as_deref(),
        lines,
    };
    let Marked { text, points, implied, kernels, mut skipped, sites, unrecorded: mut remarks } =
        mark(ptx, &options).map_err(|error| short(error.to_string()))?;
    if kernels.is_empty() {
        let reason = skipped.first().map_or("it has no kernels", |(_, reason)| reason.as_str());
        return Err(short(reason.to_owned()));
    }
    let spec = &settings.spec.recording;
    if settings.spec.marks {
        return marked(&text, kernels.into_iter().map(|kernel| kernel.name), architecture).map_err(short);
    }
    let limit = |(name, taken): &'_ (String, u32)| (name.clone(), traced_registers(*taken));
    let mut limits: Vec<(String, u32)> = found.registers.iter().map(limit).collect();
    let fitting = alone.and_then(|kernel| Some((kernel.name.to_owned(), kernel.registers?)));
    let fits = fitting.is_some();
    if let Some(fitting) = fitting {
        limits = vec![fitting];
    }
    let registers: Vec<(&str, u32)> = limits.iter().map(|(name, limit)| (&**name, *limit)).collect();
    let deep = deep_kernels(ptx);
    // Points without a marker, by the point after which lanes always reach them.
    let followers: HashMap<u16, Vec<u16>> =
        implied.into_iter().map(|found| (found.after, found.points)).collect();
    let implied: HashSet<u16> = followers.values().flatten().copied().collect();
    let has_marker = |point: &&Point| !implied.contains(&point.id);
    // Without source lines from the compiler, locations refer to lines of the PTX.
    let ptx_name = format!("{}-{first_id}.ptx", names::readable(&kernels[0].name));
    let marked = points.iter().filter(has_marker);
    let mut functions = Functions::default();
    let locations: Vec<LocationInfo> =
        marked.map(|point| location(point, &ptx_name, &mut functions)).collect();
    let mut locations = with_followers(locations, &followers, &points, &ptx_name);
    let visits = spec.window.after.as_ref();
    let after = visits
        .map(|visits| visits.among(&locations))
        .transpose()
        .map_err(|error| short(error.to_string()))?;
    let registers = &*registers;
    let mut recording = spec.traced(after);
    if fits && !ptx.contains("call") {
        recording.placement = Some(Placement::Local);
    }
    let options = Options {
        recording: Some(recording),
        architecture,
        registers,
        limits_bounded: fits,
        ..Options::default()
    };
    let spliced = splice(&text, &options).map_err(|error| short(error.to_string()))?;
    let names: Vec<&str> = kernels.iter().map(|kernel| &*kernel.name).collect();
    let code = code_at(&text, &names, recording.counted()).map_err(|error| short(error.to_string()))?;
    for location in &mut locations {
        let code = code.get(&location.id).copied().unwrap_or_default();
        location.code = Some(LocationCode { instructions: code.instructions, counted: code.is_counted });
    }
    let sites: Vec<SiteInfo> = sites.iter().map(|site| site_info(site, &ptx_name)).collect();
    let keeps = ptx.len() <= MAX_TEXT_BYTES && points.iter().any(|point| point.source.is_none());
    let kept = keeps.then(|| (ptx_name, ptx.to_owned()));
    let sizes = ["%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size"];
    let has_accesses = spec.spaces() != warptrace_spec::Spaces::NONE;
    let (variables, allocates) = if has_accesses { memory_of(ptx) } else { (Vec::new(), false) };
    let asks_for_size = sizes.iter().any(|size| ptx.contains(size));
    let mut traced = Vec::new();
    let readable = match alone {
        Some(kernel) => vec![kernel.readable.to_owned()],
        None => names::all_readable(&names),
    };
    let copies: HashMap<&str, &TracedKernel> =
        spliced.kernels.iter().map(|copy| (copy.name.as_str(), copy)).collect();
    // The first point of a function is its entry.
    let mut entries: HashMap<&str, &Point> = HashMap::new();
    for point in &points {
        entries.entry(&point.function).or_insert(point);
    }
    for (kernel, readable) in kernels.into_iter().zip(readable) {
        let Some(copy) = copies.get(kernel.name.as_str()) else {
            let reason = spliced.left_out.iter().find(|(name, _)| *name == kernel.name);
            skipped.extend(reason.map(|(_, reason)| (kernel.name, reason.clone())));
            continue;
        };
        if copy.shared_bytes != 0 && asks_for_size {
            let reason = "its module asks how much shared memory a block has, of which records take some";
            skipped.push((kernel.name, reason.to_owned()));
            continue;
        }
        let end = kernel.parameters.last().map_or(0, |last| last.offset + last.size);
        let source = entries.get(kernel.name.as_str()).and_then(|entry| entry.source.as_ref());
        traced.push(Kernel {
            readable: Box::leak(readable.into_boxed_str()),
            traced_name: CString::new(copy.traced_name.as_str()).map_err(|error| error.to_string())?,
            shared_bytes: copy.shared_bytes,
            logs_offset: end.next_multiple_of(LOGS_ALIGNMENT),
            logs_bytes: if recording.chooses {
                size_of::<LaunchLogs>()
            } else {
                offset_of!(LaunchLogs, chosen)
            },
            parameters: kernel.parameters,
            file: source.map_or_else(String::new, |source| source.file.to_string()),
            is_deep: deep.contains(&kernel.name),
            name: kernel.name,
        });
    }
    traced.sort_unstable_by(|one: &Kernel, other| one.name.cmp(&other.name));
    let launches = |kernel: &&Kernel| ptx.contains(LAUNCHES_KERNELS) && launches_kernels(ptx, &kernel.name);
    let unseen = "it launches kernels itself, and these are not seen";
    remarks.extend(traced.iter().filter(launches).map(|kernel| (kernel.name.clone(), unseen.to_owned())));
    if let Some(other) = &found.other {
        remarks.extend(traced.iter().map(|kernel| (kernel.name.clone(), other.remark())));
    }
    let copy = alone.and_then(|_| traced.first()).and_then(|kernel| kernel.traced_name.to_str().ok());
    let text = match copy {
        Some(copy) => part(&spliced.text, copy).map_err(short)?,
        None => spliced.text,
    };
    let text = CString::new(text).map_err(|error| error.to_string())?;
    Ok((
        text,
        TracedModule {
            kernels: traced,
            locations,
            sites,
            skipped,
            remarks,
            kept,
            variables,
            allocates,
            made_in: Duration::ZERO,
        },
    ))
}

/// Alignment in bytes of the copies' extra parameter.
const LOGS_ALIGNMENT: usize = 8;

/// Makes a text that records nothing. Each point has an instruction for hardware counters instead.
fn marked(
    text: &str,
    kernels: impl Iterator<Item = String>,
    architecture: u32,
) -> Result<(CString, TracedModule), String> {
    let spliced = splice(text, &Options { marks: 1, architecture, ..Options::default() });
    let text = CString::new(spliced.map_err(|error| error.to_string())?.text);
    let skipped = kernels.map(|name| (name, "its points are counted by the hardware".to_owned())).collect();
    let module = TracedModule {
        kernels: Vec::new(),
        locations: Vec::new(),
        sites: Vec::new(),
        skipped,
        remarks: Vec::new(),
        kept: None,
        variables: Vec::new(),
        allocates: false,
        made_in: Duration::ZERO,
    };
    Ok((text.map_err(|error| error.to_string())?, module))
}

/// Returns the kernels with unknown call depth: they reach a recursive function or an indirect call.
fn deep_kernels(ptx: &str) -> HashSet<String> {
    if !ptx.contains("call") {
        return HashSet::new();
    }
    let Ok(module) = Module::parse(ptx) else { return HashSet::new() };
    let graph = call_graph(&module);
    let is_deep = |kernel: usize| {
        let reached = graph.reachable(kernel);
        let ends_nowhere =
            |function: usize| graph.calls(function).indirect || graph.reachable(function).contains(&function);
        std::iter::once(kernel).chain(reached).any(ends_nowhere)
    };
    let entries = module.functions.iter().enumerate().filter(|(_, function)| function.is_entry());
    entries.filter(|(index, _)| is_deep(*index)).map(|(_, function)| function.name.to_owned()).collect()
}

/// Returns the kernels to trace; `None` for all kernels.
fn wanted_kernels(ptx: &str, settings: &Settings) -> Result<Option<Vec<String>>, String> {
    if !settings.names_kernels() {
        return Ok(None);
    }
    let module = Module::parse(ptx).map_err(|error| error.to_string())?;
    let entries = module.definitions().filter(|function| function.is_entry());
    let wanted = entries.map(|entry| entry.name).filter(|name| settings.wants(name, &names::readable(name)));
    Ok(Some(wanted.map(str::to_owned).collect()))
}

/// Adds to each location's description the blocks without locations that lanes always execute next.
fn with_followers(
    mut locations: Vec<LocationInfo>,
    followers: &HashMap<u16, Vec<u16>>,
    points: &[Point],
    ptx_name: &str,
) -> Vec<LocationInfo> {
    if followers.is_empty() {
        return locations;
    }
    let by_id: HashMap<u16, &Point> = points.iter().map(|point| (point.id, point)).collect();
    for location in &mut locations {
        for point in followers.get(&location.id).into_iter().flatten().filter_map(|id| by_id.get(id)) {
            let (file, line) = match &point.source {
                Some(source) => (&*source.file, source.line),
                None => (ptx_name, clamped(point.ptx_line)),
            };
            let what = format!("; then always block {} at {file}:{line}", point.block);
            location.description.push_str(&what);
        }
    }
    locations
}

/// Describes a point for the trace file, with its place in the source or in the PTX.
fn location(point: &Point, ptx_name: &str, functions: &mut Functions) -> LocationInfo {
    let (kind, description) = match point.kind {
        PointKind::Entry => (LocationKind::Entry, LocationKind::Entry.meaning()),
        PointKind::LoopBody => (LocationKind::LoopBody, LocationKind::LoopBody.meaning()),
        PointKind::Taken => (LocationKind::Then, "branch taken"),
        PointKind::NotTaken => (LocationKind::Else, "branch not taken"),
        PointKind::Named => (LocationKind::Marked, LocationKind::Marked.meaning()),
        PointKind::Barrier => (LocationKind::Barrier, LocationKind::Barrier.meaning()),
        PointKind::Wait => (LocationKind::Wait, LocationKind::Wait.meaning()),
        PointKind::Waited => (LocationKind::Waited, LocationKind::Waited.meaning()),
        _ => (LocationKind::Marked, "basic block begins"),
    };
    let function = functions.readable(&point.function);
    let source = point.source.clone().map(|source| users_place(source, &point.inlined_at));
    // The innermost function of the user that has the point.
    let called = source.as_ref().and_then(|(_, inside)| point.inlined_at.get(*inside));
    let called = called.map(|call| &*call.function).filter(|name| !name.is_empty());
    let called = called.map_or_else(|| function.clone(), |name| functions.readable(name));
    let (file, line, column) = match &source {
        Some((source, _)) => (source.file.to_string(), source.line, source.column),
        None => (ptx_name.to_owned(), clamped(point.ptx_line), clamped(point.ptx_column)),
    };
    let word = match point.kind {
        PointKind::Entry => "entry",
        PointKind::LoopBody => "loop",
        PointKind::Taken => "taken",
        PointKind::NotTaken => "not taken",
        _ => "block",
    };
    let name = match (point.kind, &point.name) {
        (PointKind::Entry, _) => format!("{function}: entry"),
        (PointKind::Named, Some(name)) => format!("{called}: {name}"),
        (PointKind::Barrier | PointKind::Wait, Some(name)) => format!("{called}: line {line} {name}"),
        (PointKind::Waited, Some(name)) => format!("{called}: line {line} behind {name}"),
        _ => format!("{called}: line {line} {word} {}", point.block),
    };
    let inlined: String = point
        .inlined_at
        .iter()
        .map(|call| {
            let called = functions.readable(&call.function);
            format!("; {called} inlined at {}:{}", call.place.file, call.place.line)
        })
        .collect();
    let info = LocationInfo::new(point.id, name, format!("{description}{inlined}"));
    let wait = point.wait.as_deref().map(|wait| Box::new(wait_info(wait, ptx_name)));
    LocationInfo { file, line, column, function, kind, parent: point.parent, wait, ..info }
}

fn clamped(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
