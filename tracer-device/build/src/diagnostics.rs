//! The device compiler's errors in kernels.

use std::path::Path;

use serde_json::Value;

/// An error of the device compiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostic {
    /// File of the error, as named by the compiler; empty without a position.
    pub file: String,
    /// Line, from 1; 0 without a position.
    pub line: u64,
    /// Column, from 1; 0 without a position.
    pub column: u64,
    /// The rendered message of the compiler.
    pub text: String,
}

/// Separates the errors that are written for `#[warptrace::kernels]`. Compiler messages never contain it.
const SEPARATOR: &str = "\u{1e}";

impl Diagnostic {
    /// Reads the errors from cargo's JSON messages, one message per line. Ignores everything else.
    pub(crate) fn read(messages: &str) -> Vec<Self> {
        let values = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let errors = values.filter(|value| {
            value["reason"] == "compiler-message"
                && value["message"]["level"].as_str().is_some_and(|level| level.starts_with("error"))
        });
        let read = |value: Value| {
            let message = &value["message"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let spans = message["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
            let place = spans.iter().find(|span| span["is_primary"] == true).map(own).unwrap_or(&Value::Null);
            // The final message only states that compilation failed, without a position.
            let is_summary = text(&message["message"]).starts_with("aborting due to");
            (!is_summary).then(|| Self {
                file: text(&place["file_name"]),
                line: place["line_start"].as_u64().unwrap_or(0),
                column: place["column_start"].as_u64().unwrap_or(0),
                text: text(&message["rendered"]).trim_end().to_owned() + &help(&text(&message["message"])),
            })
        };
        errors.filter_map(read).collect()
    }

    /// Writes errors in the form that `#[warptrace::kernels]` reads: per error a line with its position, then
    /// its text, with file names relative to the package.
    pub(crate) fn write(all: &[Self], package: &Path) -> String {
        let package = format!("{}/", package.display());
        let record = |Self { file, line, column, text }: &Self| {
            format!("{file}\t{line}\t{column}\n{}", text.replace(&package, ""))
        };
        all.iter().map(record).collect::<Vec<_>>().join(SEPARATOR)
    }
}

/// Returns the position in the user's source, outside of macro expansions.
fn own(mut span: &Value) -> &Value {
    while span["expansion"].is_object() {
        span = &span["expansion"]["span"];
    }
    span
}

/// Returns help for errors whose message does not explain that kernels have no `std`.
fn help(message: &str) -> String {
    let name = || message.split('`').nth(1).unwrap_or_default();
    let help = if message.starts_with("symbol `") && message.ends_with("is already defined") {
        format!(
            "two kernels are named `{}`: rename one. All kernels of a package are one program on the GPU",
            name()
        )
    } else if message.starts_with("no method named `")
        && (message.contains("type `f32`") || message.contains("type `f64`") || message.contains("`{float}`"))
    {
        format!(
            "`f32` and `f64` have few methods on the GPU: see `warptrace::device::math`, as in `math::{}(x)`",
            name()
        )
    } else if message.starts_with("cannot find macro `") {
        format!("`{}!` may be one of `std` or `alloc`, which kernels do not have", name())
    } else {
        return String::new();
    };
    format!("\n  = help: {help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: &str, text: &str, spans: &str) -> String {
        let quoted = serde_json::to_string(text).expect("a string");
        format!(
            r#"{{"reason":"compiler-message","message":{{"level":"{level}","message":{quoted},"rendered":{quoted},"spans":[{spans}]}}}}"#
        )
    }

    #[test]
    fn errors_alone_are_read_with_their_places() {
        let at = |file: &str, line: u32| {
            format!(
                r#"{{"is_primary":true,"file_name":"{file}","line_start":{line},"column_start":9,"expansion":null}}"#
            )
        };
        let inside = format!(
            r#"{{"is_primary":true,"file_name":"/core/macros.rs","line_start":7,"column_start":1,"expansion":{{"span":{}}}}}"#,
            at("/p/src/k.rs", 12)
        );
        let text = [
            "Compiling kernels".to_owned(),
            message("warning", "feature `abi_ptx` is declared but not used", &at("/w/lib.rs", 47)),
            message("error", "mismatched types { brace", &at("/p/src/k.rs", 3)),
            message("error", "cannot find macro `vec` in this scope", &inside),
            message("error", "symbol `step` is already defined", &at("/p/src/k.rs", 20)),
            message("error", "no method named `sin` found for type `f64` in the current scope", ""),
            message("error", "aborting due to 4 previous errors", ""),
            r#"{"reason":"build-finished","success":false}"#.to_owned(),
        ]
        .join("\n");
        let found = Diagnostic::read(&text);
        let places: Vec<(&str, u64)> = found.iter().map(|found| (&*found.file, found.line)).collect();
        assert_eq!(places, [("/p/src/k.rs", 3), ("/p/src/k.rs", 12), ("/p/src/k.rs", 20), ("", 0)]);
        assert_eq!(found[0].text, "mismatched types { brace");
        for (found, part) in
            found[1..].iter().zip(["kernels do not have", "are named `step`: rename one", "math::sin(x)"])
        {
            assert!(found.text.contains(part), "{}", found.text);
        }
    }

    #[test]
    fn files_are_named_from_the_package() {
        let error = |text: &str| Diagnostic {
            file: "/p/src/k.rs".to_owned(),
            line: 3,
            column: 9,
            text: text.to_owned(),
        };
        let written = Diagnostic::write(&[error("error\n --> /p/src/k.rs:3:9"), error("b")], Path::new("/p"));
        assert_eq!(written, "/p/src/k.rs\t3\t9\nerror\n --> src/k.rs:3:9\u{1e}/p/src/k.rs\t3\t9\nb");
    }
}
