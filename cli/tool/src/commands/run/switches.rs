//! Environment variables that make frameworks give the driver PTX, or machine code that contains its PTX.
//! They add only line info, so code that a framework caches is also valid for runs without warptrace.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Environment variable that names the library to which NVTX reports ranges.
pub(super) const NVTX_INJECTION: &str = "NVTX_INJECTION64_PATH";

struct Switch {
    name: &'static str,
    value: &'static str,
    how: How,
}

/// How a switch combines with the user's value, which always stays.
enum How {
    Alone,
    /// Appended, unless the user's value contains the part before `=`.
    Appended,
}

const SWITCHES: [Switch; 6] = [
    // Otherwise, CuPy reuses machine code of earlier runs.
    Switch { name: "CUPY_COMPILE_WITH_PTX", value: "1", how: How::Alone },
    Switch { name: "CUPY_CACHE_IN_MEMORY", value: "1", how: How::Alone },
    Switch { name: "CUTE_DSL_LINEINFO", value: "1", how: How::Alone },
    Switch { name: "FLASHINFER_JIT_LINEINFO", value: "1", how: How::Alone },
    Switch { name: "XLA_FLAGS", value: "--xla_gpu_generate_line_info=true", how: How::Appended },
    // JAX's persistent cache does not distinguish code with line info from code without.
    Switch { name: "JAX_ENABLE_COMPILATION_CACHE", value: "false", how: How::Alone },
];

/// Returns the variables to set. `is_set` returns a variable's current value; NVTX reports to `shim`.
pub(super) fn to_set(
    is_set: impl Fn(&str) -> Option<OsString>,
    shim: &Path,
) -> Vec<(&'static str, OsString)> {
    let value = |switch: &Switch| match (is_set(switch.name), &switch.how) {
        (None, _) => Some(switch.value.into()),
        (Some(_), How::Alone) => None,
        (Some(mut value), How::Appended) => {
            let flag = switch.value.split('=').next().unwrap_or(switch.value);
            if has(&value, flag) {
                return None;
            }
            value.push(" ");
            value.push(switch.value);
            Some(value)
        }
    };
    let nvtx = is_set(NVTX_INJECTION).is_none().then(|| (NVTX_INJECTION, shim.into()));
    SWITCHES.iter().filter_map(|switch| Some((switch.name, value(switch)?))).chain(nvtx).collect()
}

fn has(value: &OsStr, flag: &str) -> bool {
    value.as_bytes().windows(flag.len()).any(|part| part == flag.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_set_stays() {
        let shim = Path::new("/shim.so");
        let all = to_set(|_| None, shim);
        assert_eq!(all.len(), SWITCHES.len() + 1);
        assert!(all.contains(&(NVTX_INJECTION, "/shim.so".into())));
        assert!(all.contains(&("XLA_FLAGS", "--xla_gpu_generate_line_info=true".into())));
        let set = |name: &str| match name {
            "XLA_FLAGS" => Some("--xla_dump_to=x".into()),
            "CUTE_DSL_LINEINFO" => Some("0".into()),
            _ => None,
        };
        let some = to_set(set, shim);
        assert!(some.contains(&("XLA_FLAGS", "--xla_dump_to=x --xla_gpu_generate_line_info=true".into())));
        assert!(!some.iter().any(|(name, _)| *name == "CUTE_DSL_LINEINFO"));
        let decided =
            to_set(|name| (name == "XLA_FLAGS").then(|| "--xla_gpu_generate_line_info=false".into()), shim);
        let nsys = to_set(|name| (name == NVTX_INJECTION).then(|| "/nsys.so".into()), shim);
        assert!(!nsys.iter().any(|(name, _)| *name == NVTX_INJECTION));
        assert!(!decided.iter().any(|(name, _)| *name == "XLA_FLAGS"));
    }
}
