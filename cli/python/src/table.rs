//! Tables that are computed when they are read.

use std::sync::{Arc, Mutex};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use warptrace_analysis::Selection;
use warptrace_tables::{Sink, TraceFigures, TraceTable};

use crate::error;
use crate::stream::Batches;
use crate::trace::{Opened, no_column};

/// Rows of a trace, computed each time they are read.
///
/// pandas, Polars, PyArrow and DuckDB accept a table directly, through `__arrow_c_stream__`.
#[pyclass(frozen, module = "warptrace", name = "Table")]
pub(crate) struct RowTable {
    opened: Arc<Opened>,
    rows: TraceTable,
    selection: Selection,
    /// Indices of the columns in `rows`.
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl RowTable {
    /// Returns a table of all columns except the first, which is the name of the trace.
    pub(crate) fn new(opened: &Arc<Opened>, rows: TraceTable, selection: Selection) -> Self {
        let columns = (1..rows.schema().fields().len()).collect();
        Self::with_columns(opened, rows, selection, columns)
    }

    fn with_columns(
        opened: &Arc<Opened>,
        rows: TraceTable,
        selection: Selection,
        columns: Vec<usize>,
    ) -> Self {
        let schema = rows.schema();
        let schema = schema.project(&columns).map_or(schema, Arc::new);
        Self { opened: Arc::clone(opened), rows, selection, columns, schema }
    }

    pub(crate) fn named(&self, names: &[String]) -> PyResult<Self> {
        let all = self.columns();
        let number = |name: &String| match all.iter().position(|known| known == name) {
            Some(at) => Ok(self.columns[at]),
            None => Err(no_column(name, &all)),
        };
        let columns = names.iter().map(number).collect::<PyResult<Vec<_>>>()?;
        Ok(Self::with_columns(&self.opened, self.rows, self.selection.clone(), columns))
    }

    fn batches(&self) -> PyResult<Batches> {
        let (opened, selection) = (Arc::clone(&self.opened), self.selection.clone());
        let (rows, columns, schema) = (self.rows, self.columns.clone(), Arc::clone(&self.schema));
        let make = move |sink: &mut Sink<'_>| {
            opened.trace.renew_work();
            let (name, trace) = (opened.path.as_str(), &opened.trace);
            let analysis = &|| opened.analysis(&selection);
            let figures = TraceFigures { name, trace, selection: &selection, analysis };
            rows.rows(&figures, (&columns, &schema), sink)
        };
        Ok(Batches::start(Arc::clone(&self.schema), make)?)
    }
}

#[pymethods]
impl RowTable {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the rows as a stream of Arrow's C interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows ignoring the requested schema.
        drop(requested_schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(self.batches()?));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Returns the rows as a dict from column names to lists of values. Needs no other package.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (dict, batches) = (PyDict::new(py), Mutex::new(self.batches()?));
        let lists: Vec<_> = self.schema.fields().iter().map(|_| PyList::empty(py)).collect();
        let next = || batches.lock().ok().and_then(|mut batches| batches.next());
        while let Some(batch) = error::unlocked(py, next)? {
            let batch = batch.map_err(|error| error::TraceError::new_err(error.to_string()))?;
            for (list, column) in lists.iter().zip(batch.columns()) {
                crate::values::append(list, column)?;
            }
        }
        for (field, list) in self.schema.fields().iter().zip(lists) {
            dict.set_item(field.name(), list)?;
        }
        Ok(dict)
    }

    /// Returns the rows as a pandas data frame. Needs pandas and PyArrow.
    fn to_pandas(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))?.call_method0("to_pandas")
    }

    fn __repr__(&self) -> String {
        format!("<warptrace.Table of {}: {}>", self.opened.path, self.columns().join(", "))
    }
}
