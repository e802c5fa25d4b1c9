//! The module `warptrace._native`: traces as tables for data frames.
//!
//! ```text
//! open ── Trace ──┬─ summary                        output of `warptrace info --json`
//!                 ├─ kernels, lines, causes, ...    Table of figures
//!                 ├─ accesses, values, ...          Table of addresses ┐
//!                 └─ events, runs                   Table of events ───┴─ __arrow_c_stream__ ─ pandas, Polars
//! ```
//!
//! A table is computed when it is read, batch by batch, on a separate thread without the interpreter lock.

mod error;
mod stream;
mod table;
mod trace;
mod values;

use pyo3::prelude::*;

/// The extension module.
#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<trace::Trace>()?;
    module.add_class::<table::RowTable>()?;
    module.add("TraceError", py.get_type::<error::TraceError>())?;
    module.add("LossWarning", py.get_type::<error::LossWarning>())?;
    module.add_function(wrap_pyfunction!(trace::open, module)?)
}
