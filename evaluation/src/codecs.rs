//! The codecs that are checked and measured.

use warptrace_format::Counting;
use warptrace_format::codec::CodecSpec;
use warptrace_host::{DEVICE_ECL, DEVICE_PREDICT, Placement, Policy};

/// One way to record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Codec {
    /// Name in tables and figures.
    pub(crate) name: &'static str,
    /// Codec of the trace.
    pub(crate) spec: CodecSpec,
    /// Where lanes keep their records; `None`: what suits the kernel.
    pub(crate) placement: Option<Placement>,
    /// Whether `check` records a raw twin beside it, and compares the two.
    pub(crate) dual: bool,
    /// Which loops are counted, and recorded where they end.
    pub(crate) counting: Counting,
    /// What happens where device memory is too little.
    pub(crate) policy: Policy,
}

impl Codec {
    /// With records where they suit the kernel, and each event recorded where it happens.
    const fn new(name: &'static str, spec: CodecSpec) -> Self {
        Self { name, spec, placement: None, dual: false, counting: Counting::Never, policy: Policy::Stop }
    }

    /// The same with records in a place for all kernels.
    const fn in_memory(self, placement: Placement) -> Self {
        Self { placement: Some(placement), ..self }
    }

    /// The same with counted loops.
    const fn counting_loops(self) -> Self {
        Self { counting: Counting::All, ..self }
    }

    /// The same, with logs that the host empties while kernels run.
    const fn streamed(self) -> Self {
        Self { policy: Policy::Stream { stall: Policy::STALL, open_runs: false }, ..self }
    }

    /// The same, with logs that keep each lane's latest events.
    const fn in_rings(self) -> Self {
        Self { policy: Policy::Ring, ..self }
    }

    /// The same, which can also be recorded beside raw.
    const fn beside_raw(self) -> Self {
        Self { dual: true, ..self }
    }
}

/// The name of a run without tracing.
pub(crate) const UNTRACED: &str = "untraced";
/// The name of the codec that ratios are measured against.
pub(crate) const RAW: &str = "raw";
/// The codec that is compared with the thesis and with other compressors.
pub(crate) const MAIN: &str = "ecl";

/// All codecs. A codec that is added here is checked, measured and drawn.
pub(crate) const CODECS: &[Codec] = &[
    Codec::new(RAW, CodecSpec::Raw),
    Codec::new(MAIN, CodecSpec::Ecl(DEVICE_ECL)).beside_raw(),
    Codec::new("predict", CodecSpec::Predict(DEVICE_PREDICT)).beside_raw(),
    Codec::new("predict, counted loops", CodecSpec::Predict(DEVICE_PREDICT)).counting_loops().beside_raw(),
    Codec::new("predict, streamed", CodecSpec::Predict(DEVICE_PREDICT)).streamed().beside_raw(),
    Codec::new("predict, ring", CodecSpec::Predict(DEVICE_PREDICT)).in_rings().beside_raw(),
    Codec::new("predict, registers", CodecSpec::Predict(DEVICE_PREDICT)).in_memory(Placement::Registers),
    Codec::new("predict, shared memory", CodecSpec::Predict(DEVICE_PREDICT)).in_memory(Placement::Shared),
    Codec::new("predict, local memory", CodecSpec::Predict(DEVICE_PREDICT)).in_memory(Placement::Local),
];

/// The codecs of these names, all if none is named; always `raw`, which the others are measured against.
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
