//! What the kernels are compiled to record.

/// One compilation of a kernels crate: the features of `warptrace-device` that it switches on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Name in the table, by which the host asks for it.
    pub name: &'static str,
    /// Features of `warptrace-device`.
    pub features: &'static [&'static str],
}

/// The variants that the tool carries.
pub const VARIANTS: &[Variant] = &[
    Variant { name: "untraced", features: &[] },
    Variant { name: "raw", features: &["codec-raw", "state-shared"] },
    Variant { name: "ecl", features: &["codec-ecl", "state-shared"] },
    Variant { name: "ecl-global", features: &["codec-ecl"] },
    Variant { name: "ecl-dual", features: &["codec-ecl", "state-shared", "dual"] },
    Variant { name: "predict", features: &["codec-predict", "state-shared"] },
    Variant { name: "predict-global", features: &["codec-predict"] },
    Variant { name: "predict-dual", features: &["codec-predict", "state-shared", "dual"] },
    Variant { name: "predict-counted", features: &["codec-predict", "state-shared", "counted"] },
    Variant { name: "predict-counted-dual", features: &["codec-predict", "state-shared", "counted", "dual"] },
];
