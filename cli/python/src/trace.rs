//! An open trace.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use warptrace_analysis::Weight;
use warptrace_analysis::{Analysis, AnalysisError, Selection, Summary, analyse, weights};
use warptrace_decoder::TraceFile;
use warptrace_tables::{AccessTable, EventTable, FigureTable, TraceTable};

use crate::error::{self, LossWarning};
use crate::table::RowTable;

/// A trace, and the figures of the last selection.
pub(crate) struct Opened {
    pub(crate) path: String,
    pub(crate) trace: TraceFile,
    last: Mutex<Option<(Selection, Arc<Analysis>)>>,
}

impl Opened {
    /// Returns the figures of a selection. The figures of the last selection are cached.
    pub(crate) fn analysis(&self, selection: &Selection) -> Result<Arc<Analysis>, Arc<AnalysisError>> {
        // The lock is held during the computation, so that two tables of the same figures do not compute them
        // twice.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, analysis)) = last.as_ref().filter(|(known, _)| known == selection) {
            return Ok(Arc::clone(analysis));
        }
        self.trace.renew_work();
        let analysis = Arc::new(analyse(&self.trace, selection)?);
        *last = Some((selection.clone(), Arc::clone(&analysis)));
        Ok(analysis)
    }
}

/// Coordinates of a block: x, or x and y, or all three.
#[derive(FromPyObject)]
enum Block {
    X(u32),
    Xy((u32, u32)),
    Xyz((u32, u32, u32)),
}

impl Block {
    const fn coordinates(&self) -> [u32; 3] {
        match *self {
            Self::X(x) => [x, 0, 0],
            Self::Xy((x, y)) => [x, y, 0],
            Self::Xyz((x, y, z)) => [x, y, z],
        }
    }
}

/// An open trace; `warptrace.open` makes it.
#[pyclass(frozen, module = "warptrace")]
pub(crate) struct Trace(Arc<Opened>);

/// Opens a trace. Warns with a `LossWarning` if it lacks events or assumes something of the kernel.
///
/// `unlimited`: decodes also files that ask for far more work than their size suggests.
#[pyfunction]
#[pyo3(signature = (path, *, unlimited = false))]
pub(crate) fn open(py: Python<'_>, path: PathBuf, unlimited: bool) -> PyResult<Trace> {
    let opened = error::unlocked(py, || TraceFile::open(&path))?;
    let mut trace = opened.map_err(|error| error::of_open(&error))?;
    if unlimited {
        trace = trace.unlimited();
    }
    let (path, last) = (path.to_string_lossy().into_owned(), Mutex::new(None));
    let state = trace.state();
    if state.warns() {
        let text = format!("{path}: {}", state.sentence);
        py.import("warnings")?.call_method1("warn", (text, py.get_type::<LossWarning>(), 1))?;
    }
    Ok(Trace(Arc::new(Opened { path, trace, last })))
}

impl Trace {
    fn table(
        &self,
        table: TraceTable,
        selection: Selection,
        columns: Option<Vec<String>>,
    ) -> PyResult<RowTable> {
        // A selection that the trace does not have is reported here, not when the table is read.
        selection.launches(&self.0.trace).map_err(|error| error::of_analysis(&error))?;
        let table = RowTable::new(&self.0, table, selection);
        match columns {
            None => Ok(table),
            Some(names) => table.with_columns(&names),
        }
    }
}

fn selection(
    kernel: Option<String>,
    launch: Option<u32>,
    block: Option<Block>,
    warp: Option<u32>,
) -> Selection {
    let block = block.map(|block| block.coordinates());
    Selection { kernel, launch, block, warp, focus: None }
}

/// Declares the methods of `Trace`: getters of tables without a selection, methods with a selection, methods
/// with a selection and columns for tables with many rows, and other methods verbatim.
macro_rules! trace_methods {
    (
        getters { $($(#[$getter_doc:meta])* $getter:ident: $getter_table:ident;)* }
        selected { $($(#[$doc:meta])* $name:ident: $table:ident;)* }
        with_columns { $($(#[$rows_doc:meta])* $rows:ident: $rows_kind:ident($rows_table:expr);)* }
        others { $($other:tt)* }
    ) => {
        /// Each method that takes a selection looks at what fulfils all of it: the kernel with a name, the launch
        /// with a number, the block with coordinates (x, or x and y, or x, y and z), the warp with a number in its
        /// block.
        #[pymethods]
        impl Trace {
            $(
                $(#[$getter_doc])*
                #[getter]
                fn $getter(&self) -> PyResult<RowTable> {
                    self.table(TraceTable::Figures(FigureTable::$getter_table), Selection::default(), None)
                }
            )*
            $(
                $(#[$doc])*
                #[pyo3(signature = (*, kernel = None, launch = None, block = None, warp = None))]
                fn $name(
                    &self,
                    kernel: Option<String>,
                    launch: Option<u32>,
                    block: Option<Block>,
                    warp: Option<u32>,
                ) -> PyResult<RowTable> {
                    self.table(TraceTable::Figures(FigureTable::$table), selection(kernel, launch, block, warp), None)
                }
            )*
            $(
                $(#[$rows_doc])*
                #[pyo3(signature = (*, kernel = None, launch = None, block = None, warp = None, columns = None))]
                fn $rows(
                    &self,
                    kernel: Option<String>,
                    launch: Option<u32>,
                    block: Option<Block>,
                    warp: Option<u32>,
                    columns: Option<Vec<String>>,
                ) -> PyResult<RowTable> {
                    self.table(TraceTable::$rows_kind($rows_table), selection(kernel, launch, block, warp), columns)
                }
            )*
            $($other)*
        }
    };
}

trace_methods! {
    getters {
        /// A row for each kernel with launches.
        kernels: Kernels;
        /// A row for each launch.
        launches: Launches;
        /// A row for each trace point.
        locations: Locations;
    }
    selected {
        /// A row for each line of the source that warps came to.
        lines: Lines;
        /// A row for each cause of idle lanes, the most idle slots first.
        causes: Causes;
        /// A row for each head of a loop.
        loops: Loops;
        /// A row for each edge between locations.
        edges: Edges;
        /// A row for each warp with events.
        warps: Warps;
        /// A row for each site: an instruction that touches memory, or a named value, with what was accessed
        /// there.
        sites: Sites;
        /// A row for warps that lack events: for each reason, warps that follow each other and lack as many.
        losses: Losses;
        /// A row for each launch of which accesses are not known.
        access_losses: AccessLosses;
    }
    with_columns {
        /// A row for each event; `columns`: only those with these names are made.
        events: Events(EventTable::Events);
        /// A row for each run of equal events of a warp; `columns` as for `events`.
        runs: Events(EventTable::Runs);
        /// A row for each run of addresses of a group of lanes or, where they are on no line, of a lane;
        /// `columns` as for `events`.
        accesses: Accesses(AccessTable::Accesses);
        /// The same of named values.
        values: Accesses(AccessTable::Values);
        /// A row for each address that a lane touched; `columns` as for `events`.
        lane_accesses: Accesses(AccessTable::LaneAccesses);
        /// A row for each value that a lane held; `columns` as for `events`.
        lane_values: Accesses(AccessTable::LaneValues);
    }
    others {
        /// The file's path, as it was given.
        #[getter]
        fn path(&self) -> &str {
            &self.0.path
        }

        /// What the trace holds and lacks: the same as `warptrace info --json` prints.
        #[getter]
        fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            let trace = &self.0.trace;
            let text = error::unlocked(py, || {
                trace.renew_work();
                Summary::new(trace).map(|summary| serde_json::to_string(&summary))
            })?;
            let text = text.map_err(|error| error::of_decode(&error))?;
            let text = text.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            py.import("json")?.call_method1("loads", (text,))
        }

        /// What the slots of figures are: "instruction slots" or "lane slots".
        #[getter]
        fn slots(&self) -> &'static str {
            let is_weighed = weights(&self.0.trace).is_some();
            if is_weighed { Weight::Instructions } else { Weight::Events }.slots()
        }

        fn __repr__(&self) -> String {
            format!("<warptrace.Trace {}: {}>", self.0.path, self.0.trace.state().sentence)
        }
    }
}

/// Returns the exception for an unknown column.
pub(crate) fn no_column(name: &str, known: &[String]) -> PyErr {
    PyValueError::new_err(format!("there is no column `{name}`; there are {}", known.join(", ")))
}
