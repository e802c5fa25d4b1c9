//! Several kernel modules in one trace, known at its start or added later.

use std::io::Write;

use warptrace_abi::recording::Recording;
use warptrace_device::{KernelCall, KernelModule, LocationKind, SourceLocation};
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{LocationInfo, WaitInfo};

use super::{Recorder, SessionError};

/// The kernels of a trace, as name and source file, and its locations.
type Merged = (Vec<(&'static str, &'static str)>, Vec<LocationInfo>);

/// Merges the tables of several modules. Fails if two locations have the same ID.
pub(super) fn merged(modules: &[&KernelModule]) -> Result<Merged, SessionError> {
    let kernels = modules.iter().flat_map(|module| module.kernels.iter().map(|name| (*name, module.file)));
    let rows = modules.iter().flat_map(|module| module.locations.iter().map(|location| (*module, location)));
    let locations = by_id(rows)?;
    let described = |(module, location): (&KernelModule, _)| LocationInfo::from_source(location, module.file);
    Ok((kernels.collect(), locations.into_iter().map(described).collect()))
}

/// Sorts locations by ID. Fails if two locations have the same ID.
fn by_id<'a>(
    locations: impl Iterator<Item = (&'a KernelModule, &'a SourceLocation)>,
) -> Result<Vec<(&'a KernelModule, &'a SourceLocation)>, SessionError> {
    let mut locations: Vec<_> = locations.collect();
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
    Ok(locations)
}

/// Adds the locations of the modules' waits if `recording` includes waits. If the codec cannot encode the IDs
/// of the waits, turns waits off in `recording` and returns the number of waits. Fails if an ID occurs twice.
pub(super) fn add_waits(
    locations: &mut Vec<LocationInfo>,
    modules: &[&KernelModule],
    recording: &mut Recording,
    codec: CodecSpec,
) -> Result<usize, SessionError> {
    let waits = modules.iter().flat_map(|module| module.waits);
    if !recording.waits || waits.clone().any(|wait| wait.id > codec.max_location()) {
        let left_out = if recording.waits { waits.count() } else { 0 };
        recording.waits = false;
        return Ok(left_out);
    }
    by_id(
        modules.iter().flat_map(|module| {
            module.locations.iter().chain(module.waits).map(|location| (*module, location))
        }),
    )?;
    for module in modules {
        locations.extend(module.waits.iter().map(|wait| {
            // `sync_threads` is `bar.sync 0`.
            let barrier = if wait.kind == LocationKind::Barrier { "bar 0" } else { "" };
            let info = WaitInfo { barrier: barrier.to_owned(), ..WaitInfo::default() };
            let is_begin = wait.kind != LocationKind::Waited;
            let location = LocationInfo::from_source(wait, module.file);
            LocationInfo { wait: is_begin.then(|| Box::new(info)), ..location }
        }));
    }
    locations.sort_by_key(|location| location.id);
    Ok(0)
}

impl<W: Write + Send + 'static> Recorder<W> {
    /// Returns the index of the kernel that a call names. If the modules of the call and of the kernel are
    /// known, they must be the same. If several kernels match, returns the last added kernel.
    pub(super) fn kernel(&self, call: &KernelCall) -> Result<u32, SessionError> {
        let kernels = &self.ledger.tables.metadata().kernels;
        let is_of_module = |index: usize| match (call.module(), self.modules.get(index)) {
            (Some(own), Some(module)) => own.name == *module,
            _ => true,
        };
        let found =
            (0..kernels.len()).rfind(|&index| kernels[index].name == call.name() && is_of_module(index));
        found.map(|at| at as u32).ok_or_else(|| {
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
        waits: &[],
        values: &[],
        source: "",
        ptx: "",
        without_ptx: "",
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
