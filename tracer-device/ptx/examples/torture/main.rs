//! Marks and splices every `.ptx` file of a folder in all ways, assembles the results, and prints a table:
//! `torture FOLDER [--ptxas PROGRAM] [--assemble none|some|all]`.
//!
//! With `some`, the default, `ptxas` assembles three texts of each file: the original, the default recording
//! at every block, and one other way, which differs between files. Needs no GPU.

mod assembled;
mod table;
mod ways;

use std::error::Error;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use warptrace_build::Ptxas;
use warptrace_ptx::Module;
use warptrace_ptx::points::{Marked, PointOptions, Points, mark};
use warptrace_ptx::splice::{Spliced, splice};

use crate::assembled::Assembled;
use crate::table::TortureTable;
use crate::ways::{Way, ways};

const USAGE: &str = "usage: torture FOLDER [--ptxas PROGRAM] [--assemble none|some|all]";

/// The oldest architecture to assemble for.
const OLDEST: u32 = 80;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Assemble {
    None,
    Some,
    All,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or(USAGE)?);
    let (mut program, mut assemble) = (None, Assemble::Some);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match (option.as_str(), value.as_str()) {
            ("--ptxas", _) => program = Some(PathBuf::from(value)),
            ("--assemble", "none") => assemble = Assemble::None,
            ("--assemble", "some") => assemble = Assemble::Some,
            ("--assemble", "all") => assemble = Assemble::All,
            _ => return Err(USAGE.into()),
        }
    }
    let ptxas = match (assemble, program) {
        (Assemble::None, _) => None,
        (_, Some(program)) => Some(Ptxas { program }),
        (_, None) => Some(Ptxas::find(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))?),
    };
    let files = std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
    let mut files = files.collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    let work = tempfile::tempdir()?;
    let mut table = TortureTable::default();
    for (index, path) in files.iter().enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        eprintln!("{} of {}: {name}", index + 1, files.len());
        let text = std::fs::read_to_string(path)?;
        let run = TortureRun {
            name: &name,
            text: &text,
            index,
            assemble,
            ptxas: ptxas.as_ref(),
            work: work.path(),
        };
        run.all(&mut table);
    }
    print!("{table}");
    Ok(())
}

struct TortureRun<'a> {
    name: &'a str,
    text: &'a str,
    index: usize,
    assemble: Assemble,
    ptxas: Option<&'a Ptxas>,
    work: &'a Path,
}

impl TortureRun<'_> {
    fn all(&self, table: &mut TortureTable) {
        table.files += 1;
        table.bytes += self.text.len();
        let module = match Module::parse(self.text) {
            Ok(module) => module,
            Err(error) => return table.refuse(format!("not read: {error}"), self.name),
        };
        table.kernels += module.definitions().filter(|function| function.is_entry()).count();
        table.functions += module.definitions().filter(|function| !function.is_entry()).count();
        let target = module.targets().first().copied().unwrap_or_default();
        let base: u32 = target.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().unwrap_or(0);
        // Current assemblers do not support older ones.
        let target = if base < OLDEST { &*format!("sm_{OLDEST}") } else { target };
        let architecture = target.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().unwrap_or(0);
        let original = self.assembled(self.text, target);
        match &original {
            Some(Err(error)) => table.unfit(self.name, error),
            Some(Ok(_)) => table.originals += 1,
            None => {}
        }
        for points in Points::ALL {
            let Some(marked) = self.mark(points, table) else { continue };
            for (number, way) in ways().into_iter().enumerate() {
                let Some(spliced) = self.splice(&marked, way, architecture, table) else { continue };
                // The first way is the default.
                let is_default = number == 0 && points == Points::Blocks;
                let turn = number * Points::ALL.len() + points as usize;
                let is_asked = match self.assemble {
                    Assemble::None => false,
                    Assemble::Some => is_default || self.index % (ways().len() * Points::ALL.len()) == turn,
                    Assemble::All => true,
                };
                if is_asked && matches!(original, Some(Ok(_))) {
                    self.compare(&spliced, points, way, target, is_default, table);
                }
            }
        }
    }

    /// Marks the text. After a failure, adds it to the table and returns `None`.
    fn mark(&self, points: Points, table: &mut TortureTable) -> Option<Marked> {
        let options = PointOptions { points, ..PointOptions::default() };
        match catch_unwind(|| mark(self.text, &options)) {
            Err(_) => table.panic(self.name, &format!("marking {points}")),
            Ok(Err(error)) => table.refuse(format!("not marked: {error}"), self.name),
            Ok(Ok(marked)) => {
                if points == Points::Blocks {
                    table.marked += marked.kernels.len();
                    table.points += marked.points.len();
                }
                for (function, reason) in &marked.skipped {
                    table.refuse(
                        format!("{points}: {}", table::kind(reason)),
                        &format!("{}: {function}", self.name),
                    );
                }
                return Some(marked);
            }
        }
        None
    }

    /// Splices marked text. After a failure, adds it to the table and returns `None`.
    fn splice(
        &self,
        marked: &Marked,
        way: Way,
        architecture: u32,
        table: &mut TortureTable,
    ) -> Option<Spliced> {
        let started = Instant::now();
        let options = way.options(architecture);
        let made = catch_unwind(|| splice(&marked.text, &options));
        table.spliced(self.name, marked.text.len(), started.elapsed());
        match made {
            Err(_) => table.panic(self.name, &format!("splicing {way}")),
            Ok(Err(error)) => table.refuse(format!("{way}: {}", table::kind(&error.to_string())), self.name),
            Ok(Ok(spliced)) => {
                for (kernel, reason) in &spliced.left_out {
                    table.refuse(
                        format!("{way}: {}", table::kind(reason)),
                        &format!("{}: {kernel}", self.name),
                    );
                }
                table.traced += spliced.kernels.len();
                return Some(spliced);
            }
        }
        None
    }

    fn assembled(&self, text: &str, target: &str) -> Option<Result<Assembled, String>> {
        self.ptxas.map(|ptxas| Assembled::new(ptxas, text, target, self.work))
    }

    /// Assembles spliced text, and compares each traced kernel with the original.
    fn compare(
        &self,
        spliced: &Spliced,
        points: Points,
        way: Way,
        target: &str,
        is_default: bool,
        table: &mut TortureTable,
    ) {
        match self.assembled(&spliced.text, target) {
            None => {}
            Some(Err(error)) => table.fault(format!("{}, {points}, {way}: {error}", self.name)),
            Some(Ok(assembled)) => {
                table.assembled += 1;
                for kernel in &spliced.kernels {
                    let found =
                        (assembled.kernels.get(&kernel.name), assembled.kernels.get(&kernel.traced_name));
                    if let (Some(own), Some(traced)) = found {
                        table.pair(
                            if is_default {
                                "blocks, default".to_owned()
                            } else {
                                format!("{points}, {way}")
                            },
                            *own,
                            *traced,
                        );
                    }
                }
            }
        }
    }
}
