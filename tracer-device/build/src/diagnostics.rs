//! What the device compiler says is wrong with kernels: its errors alone.

use std::path::Path;

use serde_json::Value;

/// An error of the device compiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file that it points at, as the compiler names it; empty if it points nowhere.
    pub file: String,
    /// Line, from 1; 0 if it points nowhere.
    pub line: u64,
    /// Column, from 1; 0 if it points nowhere.
    pub column: u64,
    /// The message as the compiler writes it.
    pub text: String,
}

/// Stands between the errors that are written for `#[warptrace::kernels]`: no text of the compiler has it.
const SEPARATOR: &str = "\u{1e}";

impl Diagnostic {
    /// Reads the errors of cargo's messages in JSON, one message a line. What is no such message is left out.
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
            // The last words, that compiling failed, point nowhere and say nothing more.
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

    /// The form in which `#[warptrace::kernels]` reads errors: of each a line with its place, then its text,
    /// with names of files as the user knows them.
    pub(crate) fn write(all: &[Self], package: &Path) -> String {
        let package = format!("{}/", package.display());
        let record = |Self { file, line, column, text }: &Self| {
            format!("{file}\t{line}\t{column}\n{}", text.replace(&package, ""))
        };
        all.iter().map(record).collect::<Vec<_>>().join(SEPARATOR)
    }
}

/// The place in the user's source of what stands in a macro.
fn own(mut span: &Value) -> &Value {
    while span["expansion"].is_object() {
        span = &span["expansion"]["span"];
    }
    span
}

/// Says what to do about errors whose message does not, to whom it is new that kernels have no `std`.
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
