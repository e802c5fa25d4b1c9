//! Codecs that `check` and `bench` use.

use std::sync::LazyLock;
use warptrace_format::Counting;

use warptrace_format::codec::CodecSpec;
use warptrace_host::{DEVICE_ECL, DEVICE_PREDICT, Placement, Policy, RecordingSpec};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Codec {
    pub(crate) name: &'static str,
    pub(crate) recording: RecordingSpec,
    /// Whether `check` also makes a dual recording with a raw twin and compares the two.
    pub(crate) dual: bool,
}

impl Codec {
    /// Creates a codec that chooses placements by kernel and records each event where it happens.
    fn new(name: &'static str, codec: CodecSpec) -> Self {
        let recording = RecordingSpec { counting: Counting::Never, ..RecordingSpec::new(codec) };
        Self { name, recording, dual: false }
    }

    /// Sets one placement of records for all kernels.
    fn in_memory(mut self, placement: Placement) -> Self {
        self.recording.placement = Some(placement);
        self
    }

    fn counting_loops(mut self) -> Self {
        self.recording.counting = Counting::All;
        self
    }

    fn with(mut self, policy: Policy) -> Self {
        self.recording.policy = policy;
        self
    }

    /// Allows dual recordings with a raw twin.
    fn beside_raw(self) -> Self {
        Self { dual: true, ..self }
    }
}

pub(crate) const UNTRACED: &str = "untraced";
/// Name of untraced runs with the same registers per kernel as traced ones.
pub(crate) const UNTRACED_LIMITED: &str = "untraced, traced one's registers";
/// Name of the codec that is the base of ratios.
pub(crate) const RAW: &str = "raw";
/// Name of the codec for comparisons with the thesis and with other compressors.
pub(crate) const MAIN: &str = "ecl";

/// All codecs. A codec in this list is checked, measured and drawn.
pub(crate) static CODECS: LazyLock<Vec<Codec>> = LazyLock::new(|| {
    vec![
        Codec::new(RAW, CodecSpec::Raw),
        Codec::new(MAIN, CodecSpec::Ecl(DEVICE_ECL)).beside_raw(),
        Codec::new("predict", CodecSpec::Predict(DEVICE_PREDICT)).beside_raw(),
        Codec::new("predict, counted loops", CodecSpec::Predict(DEVICE_PREDICT))
            .counting_loops()
            .beside_raw(),
        Codec::new("predict, streamed", CodecSpec::Predict(DEVICE_PREDICT)).with(Policy::Stream).beside_raw(),
        Codec::new("predict, ring", CodecSpec::Predict(DEVICE_PREDICT)).with(Policy::Ring).beside_raw(),
        Codec::new("predict, registers", CodecSpec::Predict(DEVICE_PREDICT)).in_memory(Placement::Registers),
        Codec::new("predict, shared memory", CodecSpec::Predict(DEVICE_PREDICT)).in_memory(Placement::Shared),
        Codec::new("predict, local memory", CodecSpec::Predict(DEVICE_PREDICT)).in_memory(Placement::Local),
    ]
});

/// Returns the codecs with these names, or all if there are none. Includes `raw`, the base of ratios.
pub(crate) fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Codec>> {
    let known = || CODECS.iter().map(|codec| format!("`{}`", codec.name)).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = names.iter().find(|name| CODECS.iter().all(|codec| codec.name != **name)) {
        anyhow::bail!("there is no codec `{unknown}`; the codecs are {}", known());
    }
    let is_chosen =
        |codec: &&Codec| names.is_empty() || codec.name == RAW || names.iter().any(|name| name == codec.name);
    Ok(CODECS.iter().filter(is_chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_the_tables_ask_for() {
        for name in [RAW, MAIN] {
            assert_eq!(CODECS.iter().filter(|codec| codec.name == name).count(), 1, "{name}");
        }
        assert!(CODECS.iter().any(|codec| codec.dual && codec.name == MAIN));
        for (number, codec) in CODECS.iter().enumerate() {
            assert!(codec.name != UNTRACED && CODECS[..number].iter().all(|other| other.name != codec.name));
        }
    }

    #[test]
    fn raw_is_always_among_the_chosen() {
        let names = |chosen: &[&str]| -> Vec<&str> {
            let chosen: Vec<String> = chosen.iter().map(|name| (*name).to_owned()).collect();
            super::chosen(&chosen).unwrap().iter().map(|codec| codec.name).collect()
        };
        assert_eq!(names(&[]).len(), CODECS.len());
        assert_eq!(names(&["predict, local memory"]), [RAW, "predict, local memory"]);
        let error = chosen(&["zip".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("there is no codec `zip`; the codecs are `raw`, `ecl`"), "{error}");
    }
}
