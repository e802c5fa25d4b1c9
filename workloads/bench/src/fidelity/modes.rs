//! Ways to run a program for the comparison.

use warptrace_format::Counting;
use warptrace_host::MemorySize;

use crate::codecs::{CODECS, Codec, MAIN, RAW, UNTRACED};
use crate::subject::Case;

/// Device memory limit of the tracer.
const MEMORY: MemorySize = MemorySize(4 << 30);
/// Device memory limit of the recording with other memory.
const OTHER_MEMORY: MemorySize = MemorySize(16 << 30);
/// Program that is also recorded with other memory: the behaviour of its warps is the easiest to disturb.
const WITH_OTHER_MEMORY: &str = "stress";

#[derive(Clone, Debug)]
pub(crate) struct Mode {
    pub(crate) name: String,
    /// Codec of the recording; `None`: untraced.
    pub(crate) codec: Option<&'static Codec>,
    /// Whether a raw twin is also recorded.
    pub(crate) dual: bool,
    pub(crate) memory: MemorySize,
}

impl Mode {
    fn new(codec: Option<&'static Codec>) -> Self {
        let name = codec.map_or(UNTRACED, |codec| codec.name).to_owned();
        Self { name, codec, dual: false, memory: MEMORY }
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.codec.is_some_and(|codec| codec.recording.counting == Counting::All)
    }

    pub(crate) fn tracks(&self) -> u32 {
        u32::from(self.codec.is_some()) + u32::from(self.dual)
    }
}

pub(crate) fn untraced() -> Mode {
    Mode::new(None)
}

pub(crate) fn recordings(case: &Case) -> Vec<Mode> {
    let of = |name: &str| Mode::new(Some(codec(name)));
    let dual = Mode { name: "predict beside raw".to_owned(), dual: true, ..of("predict") };
    let mut modes =
        vec![of("predict"), of("predict, ring"), of(MAIN), of(RAW), of("predict, counted loops"), dual];
    if case.program == WITH_OTHER_MEMORY {
        let name = format!("predict, {OTHER_MEMORY} of memory");
        modes.push(Mode { name, memory: OTHER_MEMORY, ..of("predict") });
    }
    modes
}

fn codec(name: &str) -> &'static Codec {
    CODECS.iter().find(|codec| codec.name == name).expect("the names are those of the list; see the test")
}

/// Returns the mode with this name. If it does not exist, the error lists the known names.
pub(crate) fn named(case: &Case, name: &str) -> anyhow::Result<Mode> {
    let mut modes = recordings(case);
    modes.insert(0, untraced());
    let known = || modes.iter().map(|mode| format!("`{}`", mode.name)).collect::<Vec<_>>().join(", ");
    let found = modes.iter().find(|mode| mode.name == name);
    found
        .cloned()
        .ok_or_else(|| anyhow::anyhow!("there is no way to run called `{name}`; there are {}", known()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs;

    #[test]
    fn every_way_is_found_by_its_name() {
        for case in programs::fidelity(&[]).unwrap() {
            let modes = recordings(&case);
            assert_eq!(modes.len(), if case.program == "stress" { 7 } else { 6 }, "{}", case.name());
            for mode in modes {
                let found = named(&case, &mode.name).unwrap();
                assert_eq!((found.codec, found.dual, found.memory), (mode.codec, mode.dual, mode.memory));
                assert!(found.codec.is_some());
            }
            assert_eq!(named(&case, UNTRACED).unwrap().tracks(), 0);
        }
        let case = &programs::fidelity(&[]).unwrap()[0];
        let error = named(case, "slow").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no way to run called `slow`; there are `untraced`, `predict`"),
            "{error}"
        );
    }
}
