//! Several modules of kernels in one trace, known at its start or later.

use std::io::Write;

use warptrace_device::{KernelCall, KernelModule};
use warptrace_format::file::{Additions, LocationInfo, SourceText};

use super::{Session, SessionError};

/// The kernels of a trace, by name and source file, and its locations.
type Merged = (Vec<(&'static str, &'static str)>, Vec<LocationInfo>);

/// Makes one table of those of several modules.
///
/// # Errors
/// If an id stands for two locations.
pub(super) fn merged(modules: &[&KernelModule]) -> Result<Merged, SessionError> {
    let mut kernels = Vec::new();
    let mut locations: Vec<(&KernelModule, LocationInfo)> = Vec::new();
    for module in modules {
        kernels.extend(module.kernels.iter().map(|name| (*name, module.file)));
        let rows = module.locations.iter();
        locations.extend(rows.map(|location| (*module, LocationInfo::from_source(location, module.file))));
    }
    locations.sort_by_key(|(_, location)| location.id);
    if let Some(pair) = locations.windows(2).find(|pair| pair[0].1.id == pair[1].1.id) {
        let last = locations.last().map_or(0, |(_, location)| location.id);
        return Err(SessionError::SharedId {
            id: pair[0].1.id,
            first: pair[0].0.name,
            second: pair[1].0.name,
            free: last.saturating_add(1),
        });
    }
    Ok((kernels, locations.into_iter().map(|(_, location)| location).collect()))
}

impl<W: Write + Send + 'static> Session<'_, W> {
    /// Tells the session of kernels, each with its source file or an empty text, and of locations, which it
    /// can record from now on. If it was [started](Self::start) without any kernel, its window may name such.
    ///
    /// # Errors
    /// If an id is 0, taken, or too large for the codec, a location lies in one that is not there, or there
    /// are more kernels than a file can name: nothing is added then, and the session goes on. If the file
    /// cannot be written.
    pub fn add_kernels(
        &mut self,
        kernels: &[(&str, &str)],
        locations: Vec<LocationInfo>,
    ) -> Result<(), SessionError> {
        let kernels = kernels.iter().map(|&kernel| kernel.into()).collect();
        let additions = Additions { kernels, locations };
        if additions.is_empty() {
            return Ok(());
        }
        let Some(worker) = &mut self.worker else { return Err(SessionError::Unusable) };
        self.tables.add(additions.clone())?;
        worker.add(additions)
    }

    /// Keeps a text in the file, for locations whose file is `name`: where nobody else may have it.
    ///
    /// # Errors
    /// If name or text is longer than the format holds, or the file cannot be written.
    pub fn keep_text(&mut self, name: &str, text: &str) -> Result<(), SessionError> {
        let Some(worker) = &mut self.worker else { return Err(SessionError::Unusable) };
        worker.keep(SourceText { name: name.to_owned(), text: text.to_owned() })
    }

    /// The index of a call's kernel: the one of its module, where that is known. Of several with this name, the one
    /// that was added last.
    pub(super) fn kernel(&self, call: &KernelCall) -> Result<usize, SessionError> {
        let kernels = &self.tables.metadata().kernels;
        let is_of_module = |index: usize| match (call.module(), self.modules.get(index)) {
            (Some(own), Some(module)) => own.name == *module,
            _ => true,
        };
        let found =
            (0..kernels.len()).rfind(|&index| kernels[index].name == call.name() && is_of_module(index));
        found.ok_or_else(|| {
            let known: Vec<&str> = kernels.iter().map(|kernel| &*kernel.name).collect();
            let kernel = match call.module() {
                Some(module) if !self.modules.is_empty() => format!("{}::{}", module.name, call.name()),
                _ => call.name().to_owned(),
            };
            SessionError::UnknownKernel { kernel, known: known.join(", ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use warptrace_device::{LocationKind, SourceLocation};

    use super::*;

    const fn location(id: u16) -> SourceLocation {
        SourceLocation {
            id,
            name: "here",
            function: "f",
            kind: LocationKind::Then,
            line: 1,
            column: 1,
            parent: 0,
            rejoin_line: 2,
            rejoin_column: 1,
        }
    }

    const ONE: KernelModule = KernelModule {
        name: "one",
        file: "one.rs",
        kernels: &["a"],
        locations: &[location(1), location(2)],
        source: "",
        ptx: "",
    };

    #[test]
    fn tables_are_one_in_the_order_of_ids() {
        let low = KernelModule { name: "two", file: "two.rs", kernels: &["b"], ..ONE };
        let high = KernelModule { locations: const { &[location(7)] }, ..low };
        let (kernels, locations) = merged(&[&high, &ONE]).unwrap();
        assert_eq!(kernels, [("b", "two.rs"), ("a", "one.rs")]);
        let found: Vec<(u16, &str)> = locations.iter().map(|found| (found.id, found.file.as_str())).collect();
        assert_eq!(found, [(1, "one.rs"), (2, "one.rs"), (7, "two.rs")]);

        let error = merged(&[&ONE, &low]).unwrap_err().to_string();
        assert_eq!(
            error,
            "location 1 is in module `one` and in module `two`: number one of them from above the other, \
             `#[warptrace::kernels(first_id = 3)]`, or record each into a trace of its own"
        );
    }
}
