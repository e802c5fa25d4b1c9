//! The codecs that are checked and measured.

use warptrace_device::DEVICE_ECL;
use warptrace_format::codec::CodecSpec;
use warptrace_host::Placement;

/// One way to record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Codec {
    /// Name in tables and figures.
    pub(crate) name: &'static str,
    /// Codec of the trace.
    pub(crate) spec: CodecSpec,
    /// Where the kernel keeps its tables.
    pub(crate) placement: Placement,
    /// Whether kernels are compiled to record a raw twin beside it.
    pub(crate) dual: bool,
}

/// The name of a run without tracing.
pub(crate) const UNTRACED: &str = "untraced";
/// The name of the codec that ratios are measured against.
pub(crate) const RAW: &str = "raw";
/// The codec that is compared with the thesis and with other compressors.
pub(crate) const MAIN: &str = "ecl";

/// All codecs. A codec that is added here is checked, measured and drawn.
pub(crate) const CODECS: &[Codec] = &[
    Codec { name: RAW, spec: CodecSpec::Raw, placement: Placement::Shared, dual: false },
    Codec { name: MAIN, spec: CodecSpec::Ecl(DEVICE_ECL), placement: Placement::Shared, dual: true },
    Codec {
        name: "ecl, global memory",
        spec: CodecSpec::Ecl(DEVICE_ECL),
        placement: Placement::Global,
        dual: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_the_tables_ask_for() {
        for name in [RAW, MAIN] {
            assert_eq!(CODECS.iter().filter(|codec| codec.name == name).count(), 1, "{name}");
        }
        assert!(CODECS.iter().any(|codec| codec.dual));
        assert!(CODECS.iter().all(|codec| codec.name != UNTRACED));
    }
}
