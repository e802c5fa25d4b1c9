//! Conversion of columns to Python values.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error::TraceError;

/// Appends the values of a column to a list. Null values become `None`.
pub(crate) fn append(list: &Bound<'_, PyList>, column: &ArrayRef) -> PyResult<()> {
    fn all<'a, T: IntoPyObject<'a>>(
        list: &Bound<'a, PyList>,
        mut values: impl Iterator<Item = Option<T>>,
    ) -> PyResult<()> {
        values.try_for_each(|value| list.append(value))
    }
    match column.data_type() {
        DataType::UInt8 => all(list, column.as_primitive::<UInt8Type>().iter()),
        DataType::UInt16 => all(list, column.as_primitive::<UInt16Type>().iter()),
        DataType::UInt32 => all(list, column.as_primitive::<UInt32Type>().iter()),
        DataType::Int32 => all(list, column.as_primitive::<Int32Type>().iter()),
        DataType::Int64 => all(list, column.as_primitive::<Int64Type>().iter()),
        DataType::UInt64 => all(list, column.as_primitive::<UInt64Type>().iter()),
        DataType::Float64 => all(list, column.as_primitive::<Float64Type>().iter()),
        DataType::Utf8 => all(list, column.as_string::<i32>().iter()),
        DataType::Utf8View => all(list, column.as_string_view().iter()),
        other => Err(TraceError::new_err(format!("columns of {other} are not known"))),
    }
}
