//! Errors of the device compiler. Each is reported once, by one module.

use std::path::{Path, PathBuf};

use syn::ItemMod;
use syn::spanned::Spanned;

use crate::functions::modules;
use crate::text::{Positions, canonical};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error<'a> {
    /// Line and column in the module's file, from 1; 0 if the error is elsewhere.
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) text: &'a str,
}

/// Returns the errors that the module at line `start` of `file` reports, from `errors` as written by the
/// build script. These are the errors inside the module. The first module of the first file in `files` also
/// reports all errors outside of any module.
pub(crate) fn of_module<'a>(
    errors: &'a str,
    files: &str,
    file: Option<&Path>,
    start: usize,
) -> Vec<Error<'a>> {
    if errors.is_empty() {
        return Vec::new();
    }
    let modules: Vec<(PathBuf, Vec<[usize; 2]>)> =
        files.lines().map(|file| (canonical(Path::new(file)), lines(file))).collect();
    let own = file.map(canonical);
    let first = modules.iter().find_map(|(file, lines)| Some((file, lines.first()?)));
    let is_mine = |file: &PathBuf, lines: &[usize; 2]| {
        own.as_ref().is_none_or(|own| own == file) && (lines[0]..=lines[1]).contains(&start)
    };
    let speaks_for_others = match first {
        Some((file, lines)) => is_mine(file, lines),
        // Without a known module, every module reports all errors.
        None => true,
    };
    let read = |record: &'a str| {
        let (place, text) = record.split_once('\n')?;
        let mut parts = place.split('\t');
        let (file, mut number) = (canonical(Path::new(parts.next()?)), || parts.next()?.parse().ok());
        let (line, column): (usize, usize) = (number()?, number()?);
        let found = modules
            .iter()
            .filter(|(name, _)| *name == file)
            .flat_map(|(name, lines)| lines.iter().map(move |lines| (name, lines)));
        let module = found.clone().find(|(_, lines)| (lines[0]..=lines[1]).contains(&line));
        match module {
            Some((file, lines)) => is_mine(file, lines).then_some(Error { line, column, text }),
            None => speaks_for_others.then_some(Error { line: 0, column: 0, text }),
        }
    };
    errors.split('\u{1e}').filter_map(read).collect()
}

/// Returns the first and last line of each module of kernels in a file.
fn lines(file: &str) -> Vec<[usize; 2]> {
    let positions = Positions::keep();
    let Some(file) = positions.parse(Path::new(file)) else { return Vec::new() };
    let lines = |module: &ItemMod| [module.span().start().line, module.span().end().line];
    modules(&file.items).into_iter().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_error_is_said_by_one_module() {
        let folder = std::env::temp_dir().join(format!("warptrace-errors-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("kernels.rs");
        fs::write(&path, "use a;\n\n#[warptrace::kernels]\nmod one {\n}\nfn helper() {\n}\nmod b {\n#[kernels]\nmod two {\n}\n}\n")
            .unwrap();
        let name = path.display().to_string();
        let record = |line: usize, text: &str| format!("{name}\t{line}\t5\n{text}");
        let errors =
            [record(4, "in one"), record(6, "between"), record(10, "in {two}"), "\t0\t0\nnowhere".to_owned()]
                .join("\u{1e}");
        let of = |start: usize| -> Vec<(usize, &str)> {
            of_module(&errors, &name, Some(&path), start)
                .iter()
                .map(|error| (error.line, error.text))
                .collect()
        };
        assert_eq!(of(3), [(4, "in one"), (0, "between"), (0, "nowhere")]);
        assert_eq!(of(9), [(10, "in {two}")]);
        assert!(of_module("", &name, Some(&path), 3).is_empty());
        assert_eq!(of_module(&errors, "", None, 1).len(), 4, "better twice than never");
        fs::remove_dir_all(&folder).unwrap();
    }
}
