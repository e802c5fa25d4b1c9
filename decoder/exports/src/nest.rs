//! The functions and loops around each location, for stacks and nested slices.

use std::collections::BTreeMap;

use warptrace_analysis::{PartKind, Selection, analyse, roll_up};
use warptrace_format::file::LaunchInfo;

use crate::error::ExportError;
use crate::source::ExportSource;

/// Names of the functions and loops around each location, the outermost first, by kernel.
pub(crate) struct Nest {
    around: BTreeMap<String, BTreeMap<u16, Vec<String>>>,
}

impl Nest {
    /// Finds the loops that lanes iterated. Takes one pass over the selected part of the trace.
    pub(crate) fn new(source: &ExportSource<'_>, label: impl Fn(u16) -> String) -> Result<Self, ExportError> {
        let selection = Selection { focus: None, ..source.selection().clone() };
        let analysis = analyse(source.trace(), &selection)?;
        let mut around: BTreeMap<String, BTreeMap<u16, Vec<String>>> = BTreeMap::new();
        for kernel in roll_up(source.trace(), &analysis) {
            let of_kernel = around.entry(kernel.name.clone()).or_default();
            kernel.each_location(&mut Vec::new(), &mut |id, parts| {
                let name = |part: &&warptrace_analysis::Part| match (part.kind, part.location) {
                    (PartKind::Loop, Some(head)) => loop_name(&label(head)),
                    _ => part.name.clone(),
                };
                of_kernel.insert(id, parts.iter().skip(1).map(name).collect());
            });
        }
        Ok(Self { around })
    }

    pub(crate) fn around(&self, source: &ExportSource<'_>, info: &LaunchInfo, location: u16) -> &[String] {
        self.around.get(source.kernel(info)).and_then(|own| own.get(&location)).map_or(&[], Vec::as_slice)
    }
}

pub(crate) fn loop_name(head: &str) -> String {
    format!("loop at {head}")
}
