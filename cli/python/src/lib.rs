//! The module `warptrace._native`: traces as tables that data frames take.
//!
//! ```text
//! open ── Trace ──┬─ summary                        what `warptrace info --json` prints
//!                 ├─ kernels, lines, causes, ...    Table of figures
//!                 ├─ accesses, values, ...          Table of addresses ┐
//!                 └─ events, runs                   Table of events ───┴─ __arrow_c_stream__ ─ pandas, Polars
//! ```
//!
//! Nothing is computed before a table is read. A table that is read is made batch by batch, on a thread of
//! its own, without the interpreter's lock.

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
