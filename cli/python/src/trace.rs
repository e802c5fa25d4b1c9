//! Traces and their figures.

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
        // Locked during the computation, so that two tables of the same figures do not compute them twice.
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

/// An open trace, returned by `warptrace.open`.
#[pyclass(frozen, module = "warptrace")]
pub(crate) struct Trace(Arc<Opened>);

/// Opens a trace. Warns with a `LossWarning` if it lacks events, or if its events rely on an assumption.
///
/// `unlimited`: also decodes files that require far more work than their size suggests.
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
            Some(names) => table.named(&names),
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
        /// Methods with a selection return rows that match all given arguments: the name of a kernel, the
        /// number of a launch, the coordinates of a block (x, or x and y, or x, y and z), the number of a
        /// warp in its block.
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
        /// One row for each kernel with launches.
        kernels: Kernels;
        /// One row for each launch.
        launches: Launches;
        /// One row for each trace point.
        locations: Locations;
    }
    selected {
        /// One row for each line of the source that warps reached.
        lines: Lines;
        /// One row for each cause of idle lanes, in descending order of idle slots.
        causes: Causes;
        /// One row for each loop header.
        loops: Loops;
        /// One row for each edge between locations.
        edges: Edges;
        /// One row for each warp with events.
        warps: Warps;
        /// One row for each site, with its accesses. A site is an instruction that accesses memory, or a
        /// named value.
        sites: Sites;
        /// One row for each group of consecutive warps that lack equally many events for the same reason.
        losses: Losses;
        /// One row for each launch with unknown accesses.
        access_losses: AccessLosses;
    }
    with_columns {
        /// One row for each event. `columns` selects columns by name.
        events: Events(EventTable::Events);
        /// One row for each run of equal events of a warp. `columns` as for `events`.
        runs: Events(EventTable::Runs);
        /// One row for each run of addresses of a group of lanes, or of one lane if the addresses are not
        /// affine in the lanes. `columns` as for `events`.
        accesses: Accesses(AccessTable::Accesses);
        /// Like `accesses`, for named values.
        values: Accesses(AccessTable::Values);
        /// One row for each address that a lane accessed. `columns` as for `events`.
        lane_accesses: Accesses(AccessTable::LaneAccesses);
        /// One row for each value of a lane. `columns` as for `events`.
        lane_values: Accesses(AccessTable::LaneValues);
    }
    others {
        /// The path of the file, as passed to `open`.
        #[getter]
        fn path(&self) -> &str {
            &self.0.path
        }

        /// Contents and losses of the trace: the output of `warptrace info --json`.
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

        /// The unit of slots in figures: "instruction slots" or "lane slots".
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
