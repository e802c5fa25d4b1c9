//! Rewrites DataFusion's errors as sentences with advice.

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use warptrace_tables::TraceTable;

pub(crate) fn text(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if the error comes from neither the query's text nor DataFusion.
pub(crate) fn is_from_elsewhere(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::External(_))
}

pub(crate) fn message_of(error: &DataFusionError) -> String {
    let text = match error {
        DataFusionError::Collection(errors) if !errors.is_empty() => message_of(&errors[0]),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => message_of(inner),
        DataFusionError::Shared(inner) => message_of(inner),
        DataFusionError::External(inner) => match inner.downcast_ref::<tonic::Status>() {
            Some(status) => status.message().to_owned(),
            None => inner.to_string(),
        },
        DataFusionError::SQL(error, _) => {
            let what = error.to_string();
            format!("this is no SQL that can be read: {}", what.trim_start_matches("sql parser error: "))
        }
        DataFusionError::SchemaError(error, _) => column(error),
        DataFusionError::ResourcesExhausted(what) => format!(
            "the query needs more memory than it may take: group by fewer values, sort less, or give it more with \
             `--memory` ({})",
            first_line(what)
        ),
        DataFusionError::Plan(what) => planned(what),
        DataFusionError::NotImplemented(what) => format!("this cannot be asked: {}", first_line(what)),
        DataFusionError::ArrowError(error, _) => match &**error {
            ArrowError::CastError(what) => what.clone(),
            ArrowError::DivideByZero => "division by zero".to_owned(),
            other => other.to_string(),
        },
        other => planned(&other.strip_backtrace()),
    };
    self::text(&text)
}

fn column(error: &SchemaError) -> String {
    let SchemaError::FieldNotFound { field, valid_fields } = error else { return error.to_string() };
    let mut known: Vec<&str> = Vec::new();
    for field in valid_fields {
        // Several joined tables may have a column of this name.
        if !known.contains(&field.name.as_str()) {
            known.push(&field.name);
        }
    }
    format!("there is no column `{}`; there are {}", field.name, known.join(", "))
}

fn planned(what: &str) -> String {
    let what = first_line(what);
    let table = what.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
    if let Some(table) = table {
        let name = table.strip_prefix("datafusion.").unwrap_or(table);
        let name = name.strip_prefix("public.").unwrap_or(name);
        let tables: Vec<&str> = TraceTable::all().map(TraceTable::name).collect();
        return format!("there is no table `{name}`; there are {}", tables.join(", "));
    }
    if what.contains("DDL not supported")
        || what.contains("DML not supported")
        || what.contains("not supported: ")
    {
        return format!("a query only reads: begin it with SELECT ({what})");
    }
    if what.contains("No SQL statements") {
        return "the query is empty: begin it with SELECT".to_owned();
    }
    if let Some((function, _)) = what.split_once(" failed to match any signature") {
        let function = function.rsplit('\'').nth(1).unwrap_or("?");
        return format!("the function `{function}` takes no arguments of these types");
    }
    if let Some(function) = what.strip_prefix("Invalid function '") {
        let function = function.split('\'').next().unwrap_or(function);
        return format!(
            "there is no function `{function}`: DataFusion's SQL reference lists those that there are"
        );
    }
    what.to_owned()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
