//! Tasks: the encoded scan that a worker receives, and the traces that it opens.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use borsh::{BorshDeserialize, BorshSerialize};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use warptrace_decoder::TraceFile;
use warptrace_tables::Made;

use super::VERSION;
use super::channel::shown;
use crate::filter::Bounds;
use crate::listing::Listed;
use crate::parts::Chosen;
use crate::scan::{Open, Scan, TableName, Traces};
use crate::source::{Named, events, words};

/// Returns the files that a pattern names: a file, a folder, or a pattern.
pub type ListFiles = Arc<dyn Fn(&Path) -> Result<Vec<PathBuf>, String> + Send + Sync>;

const MAX_PARTS: u32 = 64;
/// Number of bytes at each end of a file in its digest.
const DIGESTED: u64 = 1 << 16;

#[derive(BorshSerialize, BorshDeserialize)]
struct Sent {
    table: String,
    columns: Vec<u32>,
    bounds: Bounds,
    parts: u32,
    worker: u32,
    place: String,
    files: Vec<(String, String)>,
    chosen: Option<Chosen>,
}

/// Limits of a worker: the files that it may read, and the time for a query.
#[derive(Clone)]
pub(crate) struct Room {
    /// Folders, as canonical paths.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) limit: Option<Duration>,
    pub(crate) list: ListFiles,
}

impl fmt::Debug for Room {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Room").field("roots", &self.roots).finish_non_exhaustive()
    }
}

impl Room {
    /// Returns the canonical path of a file that may be read.
    fn path(&self, path: &Path) -> Result<PathBuf, String> {
        // The error does not reveal whether a file outside the folders exists.
        let refused = || format!("{}: not a file under a folder of this worker", path.display());
        let tried = self.roots.iter().filter_map(|root| root.join(path).canonicalize().ok());
        let mut inside = tried.filter(|path| self.roots.iter().any(|root| path.starts_with(root)));
        inside.next().ok_or_else(refused)
    }
}

#[derive(Debug)]
pub(crate) struct Task {
    worker: u32,
    place: String,
    files: Vec<(String, String)>,
    room: Room,
    until: Option<Instant>,
    open: OnceLock<Result<Open, String>>,
}

impl Task {
    pub(crate) const fn worker(&self) -> u32 {
        self.worker
    }

    pub(crate) fn in_time(&self) -> Result<()> {
        match (self.until, self.room.limit) {
            (Some(until), Some(limit)) if Instant::now() > until => Err(failed(format!(
                "the worker's limit of {} s for a query is over: ask for less, or start it with a greater `--timeout`",
                limit.as_secs()
            ))),
            _ => Ok(()),
        }
    }

    /// Opens the traces on the first call. Fails if a file cannot be opened, or this worker may not read it.
    pub(crate) fn open(&self) -> Result<&Open> {
        let opened = self.open.get_or_init(|| {
            let open = |(name, path): &(String, String)| {
                let at = &self.place;
                let path =
                    self.room.path(Path::new(path)).map_err(|error| format!("worker {at}: {error}"))?;
                let trace = TraceFile::open(&path);
                let trace = trace.map_err(|error| format!("{name}, with the worker {at}: {error}"))?;
                Ok(Named::new(name.clone(), trace).at(at))
            };
            let traces: Vec<Named> = self.files.iter().map(open).collect::<Result<_, String>>()?;
            Ok(Open { traces: traces.into(), made: Arc::new(Made::default()) })
        });
        opened.as_ref().map_err(|error| failed(error.clone()))
    }

    /// Lists the traces that match the patterns. Fails if one of them cannot be read.
    pub(crate) fn list(&self) -> Result<Vec<Listed>> {
        let (mut found, mut seen) = (Vec::new(), BTreeMap::new());
        for (number, (_, pattern)) in (0..).zip(&self.files) {
            let is_absolute = Path::new(pattern).is_absolute();
            // An absolute pattern does not depend on the folder.
            let roots =
                if is_absolute { &self.room.roots[..1.min(self.room.roots.len())] } else { &self.room.roots };
            for root in roots {
                // If this folder has no such file, skip it: another folder or worker may have the file.
                let Ok(paths) = (self.room.list)(&root.join(pattern)) else { continue };
                for path in paths {
                    let true_path = match self.room.path(&path) {
                        Ok(true_path) => true_path,
                        Err(_) if !path.is_symlink() => continue,
                        Err(_) => {
                            return Err(failed(format!(
                                "{}, with the worker {}: this link leads out of its folders, and is not read",
                                path.display(),
                                self.place
                            )));
                        }
                    };
                    let shown = if is_absolute { &path } else { path.strip_prefix(root).unwrap_or(&path) };
                    let shown = shown.to_string_lossy().into_owned();
                    match seen.insert(true_path.clone(), number) {
                        Some(before) if before == number => continue,
                        Some(_) => {
                            return Err(failed(format!("{shown} is named twice: name each trace once")));
                        }
                        None => {}
                    }
                    let listed = listed(&true_path, shown, number);
                    found.push(listed.map_err(|error| failed(format!("worker {}: {error}", self.place)))?);
                    self.in_time()?;
                }
            }
        }
        Ok(found)
    }
}

fn failed(text: String) -> DataFusionError {
    DataFusionError::External(text.into())
}

fn listed(true_path: &Path, path: String, pattern: u32) -> Result<Listed, String> {
    let trace = TraceFile::open(true_path).map_err(|error| format!("{path}: {error}"))?;
    let (length, digest) = digest(true_path).map_err(|error| format!("{path}: {error}"))?;
    let (is_whole, state, events) = (trace.state().is_whole, words(&trace).to_owned(), events(&trace));
    let Some(true_path) = true_path.to_str().map(str::to_owned) else {
        return Err(format!("{path}: its name is no text, and cannot be sent"));
    };
    Ok(Listed { pattern, path, true_path, length, digest, events, is_whole, state })
}

fn digest(path: &Path) -> std::io::Result<(u64, u64)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    let mut sum = |file: &File| {
        bytes.clear();
        file.take(DIGESTED).read_to_end(&mut bytes).map(|_| u64::from(crc32fast::hash(&bytes)))
    };
    let first = sum(&file)?;
    file.seek(SeekFrom::Start(length.saturating_sub(DIGESTED)))?;
    Ok((length, first << 32 | sum(&file)?))
}

/// Encodes scans on the client, and decodes them on a worker within its limits.
#[derive(Debug)]
pub(crate) struct Codec {
    pub(crate) room: Option<Room>,
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let unknown = |what: &str| failed(format!("this is no scan that warptrace {VERSION} knows: {what}"));
        let room = self.room.clone().ok_or_else(|| unknown("it came to a client"))?;
        if !inputs.is_empty() {
            return Err(unknown("it has inputs"));
        }
        let sent: Sent = borsh::from_slice(bytes).map_err(|error| unknown(&error.to_string()))?;
        let Some((_, table)) = TableName::known().find(|(name, _)| *name == sent.table) else {
            return Err(unknown("its table"));
        };
        if !(1..=MAX_PARTS).contains(&sent.parts) {
            return Err(unknown("its number of parts"));
        }
        let columns = sent.columns.iter().map(|column| *column as usize).collect();
        let until = room.limit.and_then(|limit| Instant::now().checked_add(limit));
        let (worker, place, files) = (sent.worker, sent.place, sent.files);
        let task = Task { worker, place, files, room, until, open: OnceLock::new() };
        let traces = Traces::Task(Arc::new(task));
        let chosen = sent.chosen.or_else(|| (table == TableName::Parts).then(Chosen::default));
        let scan = Scan::new(table, columns, sent.bounds, sent.parts as usize, traces)?;
        Ok(Arc::new(scan.with_chosen(chosen.map(Arc::new))))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(scan) = node.downcast_ref::<Scan>() else {
            return Err(failed(format!("{} cannot be sent to workers", node.name())));
        };
        let (worker, place, files) = match &scan.traces {
            Traces::Share(shares, number) => {
                let share = &shares[*number];
                // The worker need not open traces that a condition excludes.
                let files = share.files.iter().filter(|(name, _)| scan.bounds.allow_text("trace", name));
                (*number as u32, shown(&share.worker), files.cloned().collect())
            }
            // Never executed: a placeholder for the shares until they are sent.
            _ => (0, String::new(), Vec::new()),
        };
        let name = TableName::known().find(|(_, table)| *table == scan.table);
        let sent = Sent {
            table: name.map(|(name, _)| name.to_owned()).unwrap_or_default(),
            columns: scan.columns.iter().map(|column| *column as u32).collect(),
            bounds: scan.bounds.clone(),
            parts: scan.part_count() as u32,
            worker,
            place,
            files,
            chosen: scan.chosen.as_deref().cloned(),
        };
        sent.serialize(bytes).map_err(DataFusionError::from)
    }
}
